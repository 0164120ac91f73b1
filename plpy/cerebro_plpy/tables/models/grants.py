"""Predictions with a model for roles that must not read its weights.

A model's owner makes a function that runs as the owner: it fills a job of the session that calls it
with the weights, and the trainer gives them to nobody (see `trainer.requests`). Who may execute the
function is PostgreSQL's own business: it is granted, revoked, dumped, restored and dropped with its
tables like anything else.
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
COLUMNS = {"mst_key", "model_arch", "model_weights", "__dist_key__"}


def may_read(catalog: Catalog, model: Relation) -> bool:
    """Whether the caller may read the weights of a model table."""
    return bool(catalog.db.value(sql("grant.may_read"), model.oid))


def check_granted(catalog: Catalog, model: Relation) -> None:
    """Refuse a model whose weights the caller may not read, unless there is a function that fills a
    job with them.

    It must run as the owner of the table, or it would run as the caller; `granted_function` looks
    at it closely.
    """
    read = f"let you read it{_and_states(catalog, model)}: GRANT SELECT."
    found = _found(catalog, model)
    if not found or not found[0]["genuine"] or not found[0]["granted"]:
        raise InsufficientPrivilege(
            f"{catalog.module} error: permission denied for the weights in table "
            f"'{model.spelling}'.",
            hint=f"Its owner can {catalog.db.platform.grant_hint(model.spelling)}{read}",
        )


def grant(catalog: Catalog, given: str | None, role: str | None) -> None:
    """Let a role predict and evaluate with the models of a table of the caller's."""
    model, companions = _own_tables(catalog, given)
    catalog.db.platform.check_grants(catalog.module)
    name, may_use = _grantee(catalog, model, role)
    function, state = _function(model), _states(catalog, model, companions["_summary"])
    found = _found(catalog, model)
    if not found:
        signature = literal(f"{function}(json, integer)")
        made = sql(
            "grant.function",
            function=function,
            literal=signature,
            model=model.quoted,
            state=state.quoted,
        )
        catalog.db.rows(made)
    elif not found[0]["genuine"]:
        raise WrongObjectType(
            f"{catalog.module} error: function {function}(json, integer) exists and is another "
            "one.",
            hint="Rename it: the function that fills jobs for predictions has its name from the "
            "model table.",
        )
    catalog.db.rows(_text("grant.allow", name, model, companions))
    if not may_use:
        catalog.db.notice(
            f"role {name} has no USAGE on schema {model.schema} and will not find the model: GRANT "
            "USAGE ON SCHEMA."
        )


def revoke(catalog: Catalog, given: str | None, role: str | None) -> None:
    """Take that back; with the last role that had it the function goes."""
    model, companions = _own_tables(catalog, given)
    catalog.db.platform.check_grants(catalog.module)
    name, _ = _grantee(catalog, model, role)
    function = _function(model)
    if not _found(catalog, model):
        raise UndefinedObject(
            f"{catalog.module} error: nobody was granted predictions with table "
            f"'{model.spelling}'.",
            hint="cerebro.grant_predict() grants them; REVOKE takes back what GRANT gave.",
        )
    catalog.db.rows(_text("grant.forbid", name, model, companions))
    if not catalog.db.value(sql("grant.others"), f"{function}(json, integer)"):
        catalog.db.rows(sql("grant.drop", function=function))


def _found(catalog: Catalog, model: Relation) -> Sequence[Row]:
    """The function of a model, if it has one."""
    return catalog.db.platform.read_granting_function(catalog.db, model.oid, model.name + SUFFIX)


def _text(name: str, role: str, model: Relation, companions: dict[str, Relation]) -> str:
    info, summary = companions["_info"].quoted, companions["_summary"].quoted
    return sql(
        name, function=_function(model), role=role, model=model.quoted, info=info, summary=summary
    )


def _function(model: Relation) -> str:
    return quote_qualified((model.schema, model.name + SUFFIX))


def _own_tables(catalog: Catalog, given: str | None) -> tuple[Relation, dict[str, Relation]]:
    """A model table and its companions, all of them tables of the caller's."""
    model = catalog.resolve_input(given, "model")
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
    companions = {suffix: _companion(catalog, model, suffix) for suffix in ("_info", "_summary")}
    _check_own(catalog, [model, *companions.values()])
    return model, companions


def _states(catalog: Catalog, model: Relation, summary: Relation) -> Relation:
    """The table with the states of the caller's models."""
    states = model_states.find(catalog, model, summary)
    if states is None:
        raise UndefinedTable(
            f"{catalog.module} error: the models of table '{model.spelling}' have no table of "
            "states.",
            hint="Name the output table of madlib_fit_multiple_model(), as it has made it.",
        )
    _check_own(catalog, [states])
    return states


def _and_states(catalog: Catalog, model: Relation) -> str:
    summary = catalog.find_companion(model, "_summary")
    states = model_states.find(catalog, model, summary) if summary else None
    return f" and {states.spelling}" if states else ""


def _companion(catalog: Catalog, model: Relation, suffix: str) -> Relation:
    found = catalog.find_companion(model, suffix)
    if found is None:
        raise UndefinedTable(
            f"{catalog.module} error: table '{model.spelling}{suffix}' does not exist.",
            hint="Name the output table of madlib_fit_multiple_model().",
        )
    return found


def _check_own(catalog: Catalog, tables: Sequence[Relation]) -> None:
    others = [
        row["name"]
        for row in catalog.db.rows(sql("grant.not_own"), [table.oid for table in tables])
    ]
    if others:
        raise InsufficientPrivilege(
            f"{catalog.module} error: {', '.join(others)}: expected tables of your own.",
            hint="Only the owner of the output tables can grant predictions: SET ROLE to it.",
        )


def grantee(module: str, role: str | None, ask: Callable[[str], Sequence[Row]]) -> tuple[str, bool]:
    """The name of a role as it must stand in a statement, and whether it may use what it takes, as
    a query tells.
    """
    if role is None:
        raise NullNotAllowed(f"{module} error: role is NULL; expected the name of a role.")
    found = ask(role)
    if not found:
        raise UndefinedObject(f"{module} error: there is no role {role}.")
    if found[0]["own"]:
        raise InvalidParameter(
            f"{module} error: role is {role}, who owns the model; expected another one.",
            hint="An owner predicts without being granted it, and loses it by DROP alone.",
        )
    return found[0]["role"], bool(found[0]["may_use"])


def _grantee(catalog: Catalog, model: Relation, role: str | None) -> tuple[str, bool]:
    return grantee(
        catalog.module, role, lambda name: catalog.db.rows(sql("grant.role"), model.schema, name)
    )
