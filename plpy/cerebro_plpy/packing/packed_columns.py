"""The columns that a preprocessor packs: their types, their encodings and their names."""

from __future__ import annotations

from collections.abc import Sequence

from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.sessions.spi import Row
from cerebro_plpy.database.sql.identifiers import MAX_BYTES, quote_identifier
from cerebro_plpy.errors import DatatypeMismatch, DuplicateColumn, InvalidName, InvalidParameter
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.packing.packed_summary import ClassValues
from cerebro_plpy.records import dataclass, replace

IMAGE = "image"
SENT_TYPES = {
    "float32": "real[]",
    "float64": "double precision[]",
    "int16": "smallint[]",
    "int32": "integer[]",
    "int64": "bigint[]",
    IMAGE: "bytea[]",
}
"""SQL type in which values go to the packer, by the kind of column."""
INPUT_KINDS = {
    "integer": "int32",
    "bigint": "int64",
    "integer[]": "int32",
    "bigint[]": "int64",
    "double precision": "float64",
    "double precision[]": "float64",
}
"""Kinds of inputs that are not sent as float32.

The packer checks that integers fit into float32, and rounds arrays faster than the server.
"""

NUMBERS = "N"
"""PostgreSQL's category of numeric types."""
KEY_COLUMNS = ("__dist_key__", "buffer_id")
"""Columns of every packed table."""
SHAPE = "_shape"
"""Suffix of the column with the shapes of a packed column."""
CLASSES = "_class_values"
"""Suffix of the summary's column with the classes of a target."""
MAX_CLASSES = 1 << 16
"""A one-hot row then takes 128 KB. A target with more classes is probably a key."""

SECONDS_AS_DAYS = "extract(epoch FROM {0}) / 86400"
NUMERIC_SQL = {"B": "{0}::integer", "D": SECONDS_AS_DAYS, "T": SECONDS_AS_DAYS}
"""Expressions that make a number of a value, by PostgreSQL's category of its type.

The categories are Boolean, dates and times, and timespans.
"""
NUMBER_TYPES = ("smallint", "integer", "bigint", "real", "double precision", "numeric")
ONE_HOT_SQL = (
    "ARRAY(SELECT (d.v IS NOT DISTINCT FROM {0}::text)::integer"
    " FROM (SELECT DISTINCT {0}::text AS v FROM {1} t) d ORDER BY d.v)"
)
"""The expression for values of other categories."""
NUMERIC_ARRAY_SQL = {"B": "{0}::integer[]", "S": "{0}::real[]"}
"""The same for arrays, by the category of their elements."""
OTHER_ARRAY_SQL = f"ARRAY(SELECT {SECONDS_AS_DAYS.format('e')} FROM pg_catalog.unnest({{0}}) e)"


@dataclass(frozen=True)
class Column:
    """A column, and how it is packed.

    Inputs are sent as float32, float64, int32, int64 or image, and stored as float32. Targets are
    float32, int16 (encoded by the user) or onehot.
    """

    name: str
    type: str
    kind: str
    scalar: bool
    classes: ClassValues | None = None
    # Texts of a target's values in the source: usually one per class, but 1 may also be 1.0.
    value_texts: ClassValues = ()

    @property
    def quoted(self) -> str:
        """The name in double quotes."""
        return quote_identifier(self.name)

    def wrap(self, value: str) -> str:
        """Return the expression of a value as an array."""
        if self.scalar:
            return f"ARRAY[{value}]"
        return value

    def array_sql(self, value: str) -> str:
        """Return the expression of the array that is packed for a value."""
        return f"{self.wrap(value)}::{SENT_TYPES[self.kind]}"

    def bytes_sql(self, value: str) -> str:
        """Return the expression of the bytes that go to the packer.

        Args:
            value: expression of the value; of a class, the expression of its number.
        """
        if self.classes is not None:
            return f"pg_catalog.int4send({value})"
        if self.kind == IMAGE:
            return f"pg_catalog.array_send({self.array_sql(value)})"
        return f"cerebro_internal.array_bytes({self.array_sql(value)})"


def read_input_column(catalog: Catalog, source: Relation, name: str) -> Column:
    """Return an input: an array of numbers, a number, or an image."""
    entry = catalog.read_column(source, name)
    column = make_input_column(entry)
    if column is None:
        raise DatatypeMismatch(
            f"{catalog.module} error: independent column '{name}' of table '{source.spelling}' is "
            f"of type {entry['type']}; expected an array of numbers, a "
            "number, or an image (bytea).",
            hint=suggest_numeric_view(source, entry),
        )
    return column


def suggest_numeric_view(source: Relation, entry: Row) -> str:
    """Return a hint with a view that turns a column of the catalog into numbers."""
    column = f"t.{quote_identifier(entry['name'])}"
    if entry["category"] == "A":
        template = NUMERIC_ARRAY_SQL.get(entry["element_category"], OTHER_ARRAY_SQL)
    else:
        template = NUMERIC_SQL.get(entry["category"], ONE_HOT_SQL)
    expression = template.format(column, source.quoted)
    return (
        f"Pack a view that has it as numbers: SELECT t.*, {expression} AS as_numbers FROM "
        f"{source.quoted} t;"
    )


def make_input_column(entry: Row) -> Column | None:
    """Return a column of the catalog as an input; None if its type cannot be an input."""
    if entry["base"] == "bytea":
        return Column(entry["name"], entry["type"], IMAGE, True)
    scalar = entry["category"] == NUMBERS
    if not scalar and not _is_numeric_array(entry):
        return None
    kind = INPUT_KINDS.get(entry["type"], "float32")
    return Column(entry["name"], entry["type"], kind, scalar)


def read_target_column(
    catalog: Catalog, source: Relation, name: str, dependent_type: str | None
) -> Column:
    """Return a target without its classes, which take a scan of the table."""
    entry = catalog.read_column(source, name)
    if entry["category"] == "A":
        return _make_array_target(catalog, source, entry, dependent_type)
    if dependent_type != "float":
        return Column(name, entry["type"], "onehot", True)
    if entry["category"] != NUMBERS:
        raise DatatypeMismatch(
            f"{catalog.module} error: dependent column '{name}' of table '{source.spelling}' "
            f"is of type {entry['type']}; dependent_type 'float' expects a number or an array "
            "of numbers.",
            hint="Leave dependent_type out to encode classes.",
        )
    return Column(name, entry["type"], "float32", True)


def _make_array_target(
    catalog: Catalog, source: Relation, entry: Row, dependent_type: str | None
) -> Column:
    name = entry["name"]
    if not _is_numeric_array(entry):
        raise DatatypeMismatch(
            f"{catalog.module} error: dependent column '{name}' of table '{source.spelling}' is of "
            f"type {entry['type']}; expected an array of numbers (encoded classes, or floats), or "
            "a single value.",
        )
    kind = "int16"
    is_integer = entry["element"] in ("smallint", "integer", "bigint")
    if dependent_type == "float" or (dependent_type is None and not is_integer):
        kind = "float32"
    return Column(name, entry["type"], kind, False)


def read_weight_column(catalog: Catalog, source: Relation, name: str) -> Column:
    """Return the column with the weight of each row, a number."""
    entry = catalog.read_column(source, name)
    if entry["category"] != NUMBERS:
        raise DatatypeMismatch(
            f"{catalog.module} error: column '{name}' of table '{source.spelling}' is of type "
            f"{entry['type']}; sample_weight_varname expects a number for each row.",
            hint=suggest_numeric_view(source, entry),
        )
    return Column(name, entry["type"], "float32", True)


def _is_numeric_array(entry: Row) -> bool:
    return bool(entry["category"] == "A" and entry["element_category"] == NUMBERS)


def _suggest_fewer_classes(column: Column) -> str:
    """Return a hint for a target of too many classes."""
    if column.type in NUMBER_TYPES:
        return "To predict a number write dependent_type => 'float'."
    return "Name another dependent column."


def add_classes(
    column: Column, classes: ClassValues, width: int, value_texts: ClassValues
) -> Column:
    """Return the target with its classes.

    Args:
        width: number of one-hot columns; the classes are padded with NULL to it.
        value_texts: texts of the target's values in the source.
    """
    if width > MAX_CLASSES:
        raise InvalidParameter(
            f"column '{column.name}' would be encoded as more than {MAX_CLASSES} classes.",
            hint=_suggest_fewer_classes(column),
        )
    padding = (None,) * (width - len(classes))
    return replace(column, classes=(*classes, *padding), value_texts=value_texts)


def check_names(module: str, dependent: Sequence[str], independent: Sequence[str]) -> None:
    """Check that the columns of the packed table and its summary can have their names."""
    packed = [*independent, *dependent]
    columns = [*KEY_COLUMNS, *packed, *(name + SHAPE for name in packed)]
    duplicates = sorted({name for name in columns if columns.count(name) > 1})
    if duplicates:
        raise DuplicateColumn(
            f"{module} error: received columns {', '.join(packed)}; the packed table would have "
            f"{', '.join(duplicates)} twice.",
            hint=f"A packed table has columns {', '.join(KEY_COLUMNS)} and, for each column x, "
            f"x{SHAPE}. Pack a view with other names.",
        )
    for name in [n + SHAPE for n in independent] + [n + CLASSES for n in dependent]:
        if len(name.encode()) > MAX_BYTES:
            raise InvalidName(
                f"{module} error: the packed data would have a column '{name}' of "
                f"{count_nouns(len(name.encode()), 'byte')}; expected at most {MAX_BYTES}.",
                hint="Pack a view with shorter column names.",
            )
