"""Predictions with a model table for roles that must not read its weights.

The model's owner makes a function that runs as the owner. It fills a job of the caller's session
with the weights, and the trainer does not return them (`trainer_client.privileged_requests`).
PostgreSQL alone decides which roles may execute the function: it is granted, revoked, dumped,
restored and dropped with its tables like any other function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Row
from cerebro_plpy.database.sql.identifiers import MAX_BYTES, quote_qualified
from cerebro_plpy.database.sql.literals import literal
from cerebro_plpy.errors import (
    InsufficientPrivilege,
    InvalidName,
    InvalidParameter,
    NullNotAllowed,
    UndefinedColumn,
    UndefinedObject,
    UndefinedTable,
    WrongObjectType,
)
from cerebro_plpy.tables import model_states

SUFFIX = "_predict"
"""Suffix of the function's name after the name of the model table."""
COLUMNS = {"mst_key", "model_arch", "model_weights", "__dist_key__"}


def can_read_weights(catalog: Catalog, model: Relation) -> bool:
    """Return whether the caller may read the weights of a model table."""
    return bool(catalog.db.value(sql("grant.may_read"), model.oid))


def check_granted(catalog: Catalog, model: Relation) -> None:
    """Check that a function lets the caller predict with a model whose weights are private.

    It must run as the owner of the table, or it would run as the caller; `granted_function`
    examines it in detail.
    """
    functions = _find_function(catalog, model)
    if functions and functions[0]["genuine"] and functions[0]["granted"]:
        return
    summary = catalog.find_companion(model, "_summary")
    states = model_states.find(catalog, model, summary)
    state_name = ""
    if states is not None:
        state_name = f" and {states.spelling}"
    raise InsufficientPrivilege(
        f"{catalog.module} error: permission denied for the weights in table '{model.spelling}'.",
        hint=f"Its owner can {catalog.db.platform.grant_hint(model.spelling)}"
        f"let you read it{state_name}: GRANT SELECT.",
    )


def grant(catalog: Catalog, table: str | None, role: str | None) -> None:
    """Let a role predict and evaluate with the models of a table of the caller's."""
    model, companions = _find_own_tables(catalog, table)
    catalog.db.platform.check_grants(catalog.module)
    role_name, may_use = _find_grantee(catalog, model, role)
    name = _function_name(model)
    states = _find_own_states(catalog, model, companions["_summary"])
    functions = _find_function(catalog, model)
    if not functions:
        statement = sql(
            "grant.function",
            function=name,
            literal=literal(f"{name}(json, integer)"),
            model=model.quoted,
            state=states.quoted,
        )
        catalog.db.rows(statement)
    elif not functions[0]["genuine"]:
        raise WrongObjectType(
            f"{catalog.module} error: function {name}(json, integer) exists and is another one.",
            hint="Rename it: the function that fills jobs for predictions has its name from the "
            "model table.",
        )
    catalog.db.rows(_build_grant("grant.allow", role_name, model, companions))
    if not may_use:
        catalog.db.notice(
            f"role {role_name} has no USAGE on schema {model.schema} and will not find the model: "
            "GRANT USAGE ON SCHEMA."
        )


def revoke(catalog: Catalog, table: str | None, role: str | None) -> None:
    """Revoke a grant; the function is dropped with the last grant."""
    model, companions = _find_own_tables(catalog, table)
    catalog.db.platform.check_grants(catalog.module)
    role_name, _ = _find_grantee(catalog, model, role)
    name = _function_name(model)
    if not _find_function(catalog, model):
        raise UndefinedObject(
            f"{catalog.module} error: nobody was granted predictions with table "
            f"'{model.spelling}'.",
            hint="cerebro.grant_predict() grants them; REVOKE takes back what GRANT gave.",
        )
    catalog.db.rows(_build_grant("grant.forbid", role_name, model, companions))
    if not catalog.db.value(sql("grant.others"), f"{name}(json, integer)"):
        catalog.db.rows(sql("grant.drop", function=name))


def find_grantee(
    module: str, role: str | None, read_role: Callable[[str], Sequence[Row]]
) -> tuple[str, bool]:
    """Return the quoted name of a role, and whether it may use what predictions need.

    Args:
        read_role: runs a query about the role.
    """
    if role is None:
        raise NullNotAllowed(f"{module} error: role is NULL; expected the name of a role.")
    rows = read_role(role)
    if not rows:
        raise UndefinedObject(f"{module} error: there is no role {role}.")
    if rows[0]["own"]:
        raise InvalidParameter(
            f"{module} error: role is {role}, who owns the model; expected another one.",
            hint="An owner predicts without being granted it, and loses it by DROP alone.",
        )
    return rows[0]["role"], bool(rows[0]["may_use"])


def _find_grantee(catalog: Catalog, model: Relation, role: str | None) -> tuple[str, bool]:
    return find_grantee(
        catalog.module, role, lambda name: catalog.db.rows(sql("grant.role"), model.schema, name)
    )


def _find_function(catalog: Catalog, model: Relation) -> Sequence[Row]:
    """Return a row about the function of a model, if it has one."""
    return catalog.db.platform.read_granting_function(catalog.db, model.oid, model.name + SUFFIX)


def _function_name(model: Relation) -> str:
    return quote_qualified((model.schema, model.name + SUFFIX))


def _build_grant(query: str, role: str, model: Relation, companions: dict[str, Relation]) -> str:
    return sql(
        query,
        function=_function_name(model),
        role=role,
        model=model.quoted,
        info=companions["_info"].quoted,
        summary=companions["_summary"].quoted,
    )


def _find_own_tables(catalog: Catalog, table: str | None) -> tuple[Relation, dict[str, Relation]]:
    """Return a model table and its companions, all of them owned by the caller."""
    model = catalog.resolve_input(table, "model")
    missing = sorted(COLUMNS - catalog.read_columns(model).keys())
    if missing:
        raise UndefinedColumn(
            f"{catalog.module} error: table '{model.spelling}' has no column {', '.join(missing)}.",
            hint="Name the output table of madlib_fit_multiple_model().",
        )
    if len((model.name + SUFFIX).encode()) > MAX_BYTES:
        raise InvalidName(
            f"{catalog.module} error: the name of table '{model.spelling}' leaves no room for that "
            f"of a function with {SUFFIX} after it, of at most {MAX_BYTES} bytes.",
            hint="Rename the three output tables.",
        )
    suffixes = ("_info", "_summary")
    companions = {suffix: _find_companion(catalog, model, suffix) for suffix in suffixes}
    _check_own(catalog, [model, *companions.values()])
    return model, companions


def _find_companion(catalog: Catalog, model: Relation, suffix: str) -> Relation:
    companion = catalog.find_companion(model, suffix)
    if companion is None:
        raise UndefinedTable(
            f"{catalog.module} error: table '{model.spelling}{suffix}' does not exist.",
            hint="Name the output table of madlib_fit_multiple_model().",
        )
    return companion


def _find_own_states(catalog: Catalog, model: Relation, summary: Relation) -> Relation:
    """Return the table with the states of the caller's models."""
    states = model_states.find(catalog, model, summary)
    if states is None:
        raise UndefinedTable(
            f"{catalog.module} error: the models of table '{model.spelling}' have no table of "
            "states.",
            hint="Name the output table of madlib_fit_multiple_model(), as it has made it.",
        )
    _check_own(catalog, [states])
    return states


def _check_own(catalog: Catalog, tables: Sequence[Relation]) -> None:
    rows = catalog.db.rows(sql("grant.not_own"), [table.oid for table in tables])
    if rows:
        names = ", ".join(row["name"] for row in rows)
        raise InsufficientPrivilege(
            f"{catalog.module} error: {names}: expected tables of your own.",
            hint="Only the owner of the output tables can grant predictions: SET ROLE to it.",
        )
