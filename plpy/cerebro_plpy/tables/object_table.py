"""Object tables: the functions that administrators register, and who else may name them.

What such a table holds is executed as the operating-system user of the server. So it lies in the
extension's schema, is a superuser's, and no one else may write to it; that is looked at whenever it
is used, here and on the segments.
"""

from __future__ import annotations

from cerebro_plpy.configs.params import function_source
from cerebro_plpy.configs.params.custom_functions import Functions
from cerebro_plpy.configs.params.function_source import TITLE
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sql.identifiers import quote_identifier, quote_qualified, split_qualified
from cerebro_plpy.errors import (
    DuplicateObject,
    InsufficientPrivilege,
    InvalidName,
    InvalidParameter,
    NullNotAllowed,
    UndefinedObject,
    UndefinedTable,
    WrongObjectType,
)
from cerebro_plpy.trainer_client.privileged_requests import trusted_table

COLUMNS = {"id", "name", "description", "object"}


def load(
    catalog: Catalog,
    table: str | None,
    source: bytes | str | None,
    name: str | None,
    note: str | None,
) -> None:
    """Register a function; the table is made by the first one."""
    _check_administrator(catalog.db)
    text, name = function_source.check_source(source, name)
    db, (schema, plain) = catalog.db, _name(catalog, table)
    quoted = quote_qualified((schema, plain))
    if trusted_table(db, plain) is None:
        catalog.wait_for_creator(quoted)
    if trusted_table(db, plain) is None:
        catalog.reserve_output(quoted)
        db.rows(sql("functions.create", table=quoted, **db.platform.clauses))
        db.rows(sql("functions.grant", table=quoted))
        db.info(f"{TITLE}: Created new custom function table {plain}.")
    existing(catalog, plain)
    db.rows(sql("functions.lock", table=quoted))
    if db.value(sql("functions.known", table=quoted), name):
        raise DuplicateObject(
            f"Function '{name}' already exists in {plain}",
            hint="Delete it first by delete_custom_function(), or choose another name.",
        )
    db.rows(sql("functions.add", table=quoted), name, note, text)
    db.info(f"{TITLE}: Added function {name} to {plain} table")


def delete(catalog: Catalog, table: str | None, key: int | str | None) -> None:
    """Delete a function by its id or its name, and the table with the last one."""
    _check_administrator(catalog.db)
    if key is None:
        raise NullNotAllowed(f"{TITLE}: function id/name cannot be NULL!")
    db, relation = catalog.db, existing(catalog, _name(catalog, table)[1])
    by = "id" if isinstance(key, int) else "name"
    if not db.rows(sql(f"functions.delete_by_{by}", table=relation.quoted), key):
        raise UndefinedObject(
            f"{TITLE}: function {by} {key} not found in {relation.name}",
            hint=f"SELECT id, name, description FROM {relation.quoted};",
        )
    db.info(f"{TITLE}: Function {by} {key} has been deleted from {relation.name}.")
    if db.value(sql("model.empty", table=relation.quoted)):
        db.rows(sql("model.drop", table=relation.quoted))


def find(catalog: Catalog, table: str | None) -> Relation | None:
    """The object table that a model selection table names; None where it names none."""
    return None if table is None else existing(catalog, _name(catalog, table, qualified=True)[1])


def same(catalog: Catalog, one: str, other: str) -> bool:
    """Whether two names are of one object table."""
    return _name(catalog, one, qualified=True) == _name(catalog, other, qualified=True)


def functions(catalog: Catalog, table: str | None) -> Functions | None:
    """The functions of an object table that a model selection table names; None where it names
    none.
    """
    return read_functions(catalog, find(catalog, table))


def read_functions(catalog: Catalog, relation: Relation | None) -> Functions | None:
    """The functions of an object table; None where there is none."""
    if relation is None:
        return None
    rows = catalog.db.rows(sql("functions.digests", table=relation.quoted))
    existing(
        catalog, relation.name
    )  # from the first read on nobody can put another table in its place
    return Functions(relation.name, tuple((row["name"], row["digest"]) for row in rows))


def _check_administrator(db: Database) -> None:
    if not db.value(sql("functions.superuser")):
        raise InsufficientPrivilege(
            f"{TITLE}: only a superuser may register or delete custom functions.",
            hint="They are executed as the operating-system user of the server.",
        )


def _name(catalog: Catalog, given: str | None, *, qualified: bool = False) -> tuple[str, str]:
    """The extension's schema, and the name of the table in it.

    A table that is there may be named with that schema, as MADlib does in model selection tables.
    """
    if given is None or not given.strip():
        raise NullNotAllowed(
            f"{catalog.module} error: NULL/empty object table name!", hint="Name the object table."
        )
    schema = str(catalog.db.value(sql("functions.schema")))
    try:
        parts = split_qualified(given)
    except InvalidName as error:
        raise InvalidName(
            f"{catalog.module} error: Invalid object table name {given}",
            detail=error.message,
            hint=error.hint,
        ) from error
    if len(parts) > 1 and not (qualified and parts[0] == schema):
        raise InvalidParameter(
            f"DL: Custom function table has to be in the {schema} schema",
            detail=f"Received {given!r}.",
            hint=f"Leave the schema out: {quote_identifier(parts[-1])} is looked for in {schema} "
            "alone.",
        )
    return schema, parts[-1]


def existing(catalog: Catalog, name: str) -> Relation:
    """An object table that may be used, with the columns that one has."""
    found = trusted_table(catalog.db, name)
    if found is None:
        raise UndefinedTable(
            f"{catalog.module} error: object table '{name}' does not exist.",
            hint="A superuser makes it by load_custom_function().",
        )
    relation = catalog.resolve_input(quote_qualified((found["schema"], name)), "object")
    missing = sorted(COLUMNS - catalog.read_columns(relation).keys())
    if missing:
        raise WrongObjectType(
            f"{catalog.module} error: '{name}' is no object table: it has no column "
            f"{', '.join(missing)}.",
            hint="Name a table made by load_custom_function().",
        )
    return relation
