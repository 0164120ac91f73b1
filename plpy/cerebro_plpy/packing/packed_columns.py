"""The columns that a preprocessor packs: which types it takes, what becomes of them, what they are
called then.
"""

from __future__ import annotations

from collections.abc import Sequence

from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.sessions.spi import Row
from cerebro_plpy.database.sql.identifiers import MAX_BYTES, quote_identifier
from cerebro_plpy.errors import DatatypeMismatch, DuplicateColumn, InvalidName, InvalidParameter
from cerebro_plpy.records import dataclass, replace

NUMBERS = "N"
SEND_TYPE = {
    "float32": "real[]", "float64": "double precision[]", "int16": "smallint[]",
    "int32": "integer[]",
    "int64": "bigint[]", "image": "bytea[]",
}  # fmt: skip
# Sent as they are: integers that float32 may not hold, for the packer to look at, and arrays that
# it rounds faster.
AS_IT_IS = {
    "integer": "int32", "bigint": "int64", "integer[]": "int32", "bigint[]": "int64",
    "double precision": "float64", "double precision[]": "float64",
}  # fmt: skip
IMAGE = "image"
OWN_COLUMNS = ("__dist_key__", "buffer_id")
SHAPE, CLASSES = "_shape", "_class_values"
# One row of a one-hot target then has 128 KB. More classes are a key that was taken for a target.
MAX_CLASSES = 1 << 16


@dataclass(frozen=True)
class Column:
    """How one column is packed.

    `kind` says how it is sent: float32, float64, int32, int64 and image for an input, all stored as
    float32; float32, int16 (encoded by the user) or onehot for a target. `forms` are the texts that
    a target's values have in the source: as a rule one for each class, but numeric 1 may also be
    written 1.0.
    """

    name: str
    type: str
    kind: str
    scalar: bool
    classes: tuple[str | None, ...] | None = None
    forms: tuple[str | None, ...] = ()

    def array(self, value: str) -> str:
        """A value of the column as the array that is packed; of a class, its number is."""
        return f"{f'ARRAY[{value}]' if self.scalar else value}::{SEND_TYPE[self.kind]}"

    def sent(self, value: str) -> str:
        """The bytes that go to the packer for a value; for a class `value` is its number."""
        if self.classes is not None:
            return f"pg_catalog.int4send({value})"
        if self.kind == IMAGE:
            return f"pg_catalog.array_send({self.array(value)})"
        return f"cerebro.array_bytes({self.array(value)})"


def independent_column(catalog: Catalog, source: Relation, name: str) -> Column:
    """An input: an array of numbers, a number, or an image."""
    column = as_input(catalog.read_column(source, name))
    if column is None:
        raise DatatypeMismatch(
            f"{catalog.module} error: independent column '{name}' of table '{source.spelling}' is "
            f"of type {catalog.read_column(source, name)['type']}; expected an array of numbers, a "
            "number, or an image (bytea).",
            hint=number_hint(source, catalog.read_column(source, name)),
        )
    return column


# How numbers are made of what is none, by PostgreSQL's categories of types: Boolean, dates and
# times, timespans.
DAYS = "extract(epoch FROM {0}) / 86400"
AS_NUMBER = {"B": "{0}::integer", "D": DAYS, "T": DAYS}
AS_NUMBERS = {"B": "{0}::integer[]", "S": "{0}::real[]"}
EACH_AS_NUMBER = "ARRAY(SELECT " + DAYS.format("e") + " FROM pg_catalog.unnest({0}) e)"
ONE_COLUMN_EACH = (
    "ARRAY(SELECT (d.v IS NOT DISTINCT FROM {0}::text)::integer"
    " FROM (SELECT DISTINCT {0}::text AS v FROM {1} t) d ORDER BY d.v)"
)


def number_hint(source: Relation, found: Row) -> str:
    """How a view gives a column of the catalog as numbers."""
    column = f"t.{quote_identifier(found['name'])}"
    if found["category"] == "A":
        text = AS_NUMBERS.get(found["element_category"], EACH_AS_NUMBER)
    else:
        text = AS_NUMBER.get(found["category"], ONE_COLUMN_EACH)
    made = text.format(column, source.quoted)
    return (
        f"Pack a view that has it as numbers: SELECT t.*, {made} AS as_numbers FROM "
        f"{source.quoted} t;"
    )


def as_input(found: Row) -> Column | None:
    """How a column of the catalog is sent as an input; None where its type cannot be one."""
    if found["base"] == "bytea":
        return Column(found["name"], found["type"], IMAGE, True)
    scalar = found["category"] == NUMBERS
    if not scalar and not numeric_array(found):
        return None
    return Column(found["name"], found["type"], AS_IT_IS.get(found["type"], "float32"), scalar)


def dependent_column(
    catalog: Catalog, source: Relation, name: str, dependent_type: str | None
) -> Column:
    """A target; its classes are filled in later, for they take a scan."""
    found = catalog.read_column(source, name)
    if found["category"] == "A" and not numeric_array(found):
        raise DatatypeMismatch(
            f"{catalog.module} error: dependent column '{name}' of table '{source.spelling}' is of "
            f"type {found['type']}; expected an array of numbers (encoded classes, or floats), or "
            "a single value.",
        )
    if found["category"] == "A":
        whole = found["element"] in ("smallint", "integer", "bigint")
        is_float = dependent_type == "float" or (dependent_type is None and not whole)
        return Column(name, found["type"], "float32" if is_float else "int16", False)
    if dependent_type == "float":
        if found["category"] != NUMBERS:
            raise DatatypeMismatch(
                f"{catalog.module} error: dependent column '{name}' of table '{source.spelling}' "
                f"is of type {found['type']}; dependent_type 'float' expects a number or an array "
                "of numbers.",
                hint="Leave dependent_type out to encode classes.",
            )
        return Column(name, found["type"], "float32", True)
    return Column(name, found["type"], "onehot", True)


def weight_column(catalog: Catalog, source: Relation, name: str) -> Column:
    """Weights of rows: a number for each."""
    found = catalog.read_column(source, name)
    if found["category"] != NUMBERS:
        raise DatatypeMismatch(
            f"{catalog.module} error: column '{name}' of table '{source.spelling}' is of type "
            f"{found['type']}; sample_weight_varname expects a number for each row.",
            hint=number_hint(source, found),
        )
    return Column(name, found["type"], "float32", True)


def numeric_array(found: Row) -> bool:
    """Whether a column of the catalog is an array of numbers."""
    return bool(found["category"] == "A" and found["element_category"] == NUMBERS)


def with_classes(
    column: Column, classes: tuple[str | None, ...], padded: int, forms: tuple[str | None, ...]
) -> Column:
    """The column with its classes, padded with NULL to a number of them, and the texts that stand
    for them.
    """
    if padded > MAX_CLASSES:
        raise InvalidParameter(
            f"column '{column.name}' would be encoded as more than {MAX_CLASSES} classes.",
            hint="Leave num_classes out, name another dependent column, or pass dependent_type => "
            "'float' for numbers.",
        )
    return replace(column, classes=(*classes, *(None,) * (padded - len(classes))), forms=forms)


def check_names(module: str, dependent: Sequence[str], independent: Sequence[str]) -> None:
    """Raises where the packed table, which has further columns, could not have these."""
    named = [*independent, *dependent]
    made = [*OWN_COLUMNS, *named, *(name + SHAPE for name in named)]
    twice = sorted({name for name in made if made.count(name) > 1})
    if twice:
        raise DuplicateColumn(
            f"{module} error: received columns {', '.join(named)}; the packed table would have "
            f"{', '.join(twice)} twice.",
            hint=f"A packed table has columns {', '.join(OWN_COLUMNS)} and, for each column x, "
            f"x{SHAPE}. Pack a view with other names.",
        )
    for name in [n + SHAPE for n in independent] + [n + CLASSES for n in dependent]:
        if len(name.encode()) > MAX_BYTES:
            raise InvalidName(
                f"{module} error: the packed data would have a column '{name}' of "
                f"{len(name.encode())} bytes; expected at most {MAX_BYTES}.",
                hint="Pack a view with shorter column names.",
            )
