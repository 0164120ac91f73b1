"""Object tables: custom functions that administrators register for model selection tables.

The functions are executed as the operating-system user of the server. An object table is therefore
in the extension's schema, is owned by a superuser, and can be written to by nobody else. This is
checked whenever the table is used, here and on the segments.
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
from cerebro_plpy.trainer_client.privileged_requests import find_trusted_table

COLUMNS = {"id", "name", "description", "object"}


def load(
    catalog: Catalog,
    table: str | None,
    source: bytes | str | None,
    name: str | None,
    note: str | None,
) -> None:
    """Register a function in a table, which is created if it does not exist."""
    db = catalog.db
    _check_administrator(db)
    text, name = function_source.check_source(source, name)
    schema, plain_name = _resolve_name(catalog, table)
    quoted = quote_qualified((schema, plain_name))
    if find_trusted_table(db, plain_name) is None:
        catalog.wait_for_creator(quoted)
    if find_trusted_table(db, plain_name) is None:
        catalog.reserve_output(quoted)
        db.rows(sql("functions.create", table=quoted, **db.platform.clauses))
        db.rows(sql("functions.grant", table=quoted))
        db.info(f"{TITLE}: Created new custom function table {plain_name}.")
    find_trusted(catalog, plain_name)
    db.rows(sql("functions.lock", table=quoted))
    if db.value(sql("functions.known", table=quoted), name):
        raise DuplicateObject(
            f"Function '{name}' already exists in {plain_name}",
            hint="Delete it first by delete_custom_function(), or choose another name.",
        )
    db.rows(sql("functions.add", table=quoted), name, note, text)
    db.info(f"{TITLE}: Added function {name} to {plain_name} table")


def delete(catalog: Catalog, table: str | None, key: int | str | None) -> None:
    """Delete a function by its id or its name, and the table with its last one."""
    db = catalog.db
    _check_administrator(db)
    if key is None:
        raise NullNotAllowed(f"{TITLE}: function id/name cannot be NULL!")
    _, plain_name = _resolve_name(catalog, table)
    relation = find_trusted(catalog, plain_name)
    column = "id" if isinstance(key, int) else "name"
    if not db.rows(sql(f"functions.delete_by_{column}", table=relation.quoted), key):
        raise UndefinedObject(
            f"{TITLE}: function {column} {key} not found in {relation.name}",
            hint=f"SELECT id, name, description FROM {relation.quoted};",
        )
    db.info(f"{TITLE}: Function {column} {key} has been deleted from {relation.name}.")
    if db.value(sql("model.empty", table=relation.quoted)):
        db.rows(sql("model.drop", table=relation.quoted))


def find(catalog: Catalog, table: str | None) -> Relation | None:
    """Return the object table that a model selection table names; None if it names none."""
    if table is None:
        return None
    _, plain_name = _resolve_name(catalog, table, may_have_schema=True)
    return find_trusted(catalog, plain_name)


def is_same(catalog: Catalog, one: str, other: str) -> bool:
    """Return whether two names mean the same object table."""
    return _resolve_name(catalog, one, may_have_schema=True) == _resolve_name(
        catalog, other, may_have_schema=True
    )


def find_functions(catalog: Catalog, table: str | None) -> Functions | None:
    """Return the functions of an object table; None if the model selection table names none."""
    return read_functions(catalog, find(catalog, table))


def read_functions(catalog: Catalog, relation: Relation | None) -> Functions | None:
    """Return the functions of an object table; None without a table."""
    if relation is None:
        return None
    rows = catalog.db.rows(sql("functions.digests", table=relation.quoted))
    # Since the read above, the table is locked, so it cannot be replaced after this check.
    find_trusted(catalog, relation.name)
    return Functions(relation.name, tuple((row["name"], row["digest"]) for row in rows))


def _check_administrator(db: Database) -> None:
    if not db.value(sql("functions.superuser")):
        raise InsufficientPrivilege(
            f"{TITLE}: only a superuser may register or delete custom functions.",
            hint="They are executed as the operating-system user of the server.",
        )


def _resolve_name(
    catalog: Catalog, table: str | None, *, may_have_schema: bool = False
) -> tuple[str, str]:
    """Return the extension's schema, and the name of the table in it.

    Args:
        may_have_schema: the name may contain that schema, as in MADlib's model selection tables.
    """
    if table is None or not table.strip():
        raise NullNotAllowed(
            f"{catalog.module} error: NULL/empty object table name!", hint="Name the object table."
        )
    schema = str(catalog.db.value(sql("functions.schema")))
    try:
        parts = split_qualified(table)
    except InvalidName as error:
        raise InvalidName(
            f"{catalog.module} error: Invalid object table name {table}",
            detail=error.message,
            hint=error.hint,
        ) from error
    if len(parts) > 1 and not (may_have_schema and parts[0] == schema):
        raise InvalidParameter(
            f"DL: Custom function table has to be in the {schema} schema",
            detail=f"Received {table!r}.",
            hint=f"Leave the schema out: {quote_identifier(parts[-1])} is looked for in {schema} "
            "alone.",
        )
    return schema, parts[-1]


def find_trusted(catalog: Catalog, name: str) -> Relation:
    """Return an object table that may be used, with its columns checked."""
    row = find_trusted_table(catalog.db, name)
    if row is None:
        raise UndefinedTable(
            f"{catalog.module} error: object table '{name}' does not exist.",
            hint="A superuser makes it by load_custom_function().",
        )
    relation = catalog.resolve_input(quote_qualified((row["schema"], name)), "object")
    missing = sorted(COLUMNS - catalog.read_columns(relation).keys())
    if missing:
        raise WrongObjectType(
            f"{catalog.module} error: '{name}' is no object table: it has no column "
            f"{', '.join(missing)}.",
            hint="Name a table made by load_custom_function().",
        )
    return relation
