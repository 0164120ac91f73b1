"""Predictions with a model by name for roles that must read neither its weights nor what it was
made of.

Who may predict is PostgreSQL's own business: who may read an empty table of the owner's, the gate,
which is granted, dumped and restored like any other and holds nothing. Nothing of the owner's is
ever run or read by who predicts: what they need of a version is copied into tables of the
extension, whenever another version is deployed.
"""

from __future__ import annotations

import secrets
from contextlib import suppress

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sql.literals import literal
from cerebro_plpy.errors import FeatureNotSupported, UndefinedObject
from cerebro_plpy.platform.state_tables import gate_table, version_table
from cerebro_plpy.tables.models import granted_versions, model_versions
from cerebro_plpy.tables.models.grants import grantee
from cerebro_plpy.tables.models.model_versions import read_version

COLUMNS = (
    "owner", "model", "version", "run_id", "mst_key", "task", "source", "target", "target_type",
    "recipe", "classes",
    "margin", "architecture", "compile_params", "backend", "metric", "seed", "group_by", "reading",
)  # fmt: skip
HINT = (
    "Models that were granted to somebody: SELECT model FROM cerebro.grant_log WHERE owner = "
    "current_user;"
)


def grant(db: Database, module: str, model: str, role: str | None) -> None:
    """Let a role predict with a model of the caller's."""
    name, may_use = _grantee(db, module, role)
    model_versions.deployed(db, module, model)
    with db.limited_lock_wait():
        gate = _gate(db, model) or _opened(db, model)
        _publish(LocalSession(db), model)
    db.rows(sql("granted.open", gate=gate, role=name))
    if not may_use:
        db.notice(
            f"role {name} has no usage of the extension and cannot predict: SELECT "
            f"cerebro.grant_usage('{name}')"
        )


def revoke(db: Database, module: str, model: str, role: str | None) -> None:
    """Take that back; with the last role that had it the copy of the model goes."""
    name, _ = _grantee(db, module, role)
    gate = _gate(db, model)
    if gate is None:
        raise UndefinedObject(
            f"{module} error: nobody was granted predictions with model {model!r}.", hint=HINT
        )
    db.rows(sql("granted.close", gate=gate, role=name))
    if not db.value(sql("granted.others"), gate):
        shut(db, model)
        db.rows(sql("granted.remove"), model)


def shut(db: Database, model: str) -> None:
    """Nobody else may predict with a model of the caller's any more."""
    gate = _gate(db, model)
    db.rows(sql("granted.shut"), model)
    if gate is not None:
        db.rows(sql("run.drop_table", table=gate))


def follow(session: Session, model: str) -> None:
    """Another version of a model predicts now: also for others, if it was granted to any.

    Where what was learned of a column cannot be kept from them, they go on with the version that
    they have.
    """
    with suppress(FeatureNotSupported):
        _publish(session, model)


def _publish(session: Session, model: str) -> None:
    for row in session.run(sql("granted.own_version"), (model,)):
        version = read_version(dict(zip(COLUMNS, row)))
        types = {
            str(name): str(type_)
            for name, type_ in session.run(sql("predict.types"), (version.source,))
        }
        bases = [base for (base,) in session.run(sql("predict.base"), (version.target_type,))]
        outline = granted_versions.told(version, types, next(iter(bases), None))
        session.run(sql("granted.tell"), (version.version, outline, model))
        groups = session.run(sql("version.groups"), (version.owner, model, version.version))
        for run_id, mst_key in [
            (version.run_id, version.mst_key),
            *(group[1:3] for group in groups),
        ]:
            rows = session.platform.state_rows_sql(version_table(run_id, mst_key), None)
            session.run(sql("granted.copy", rows=rows), (model, version.version, mst_key))
        session.run(sql("granted.remove"), (model,))


def _gate(db: Database, model: str) -> str | None:
    """The gate of a model, quoted; None where nobody was granted it."""
    rows = db.peek(sql("granted.gate"), model)
    return rows[0]["gate"] if rows else None


def _opened(db: Database, model: str) -> str:
    """A gate, which nobody passes yet."""
    name = f"granted_{secrets.token_hex(8)}"
    gate = gate_table(name)
    comment = literal(
        f"Made by cerebro.grant_predict: who may read it may predict with model {model}"
    )
    db.rows(sql("granted.add_gate", gate=gate, literal=literal(gate), comment=comment))
    db.rows(sql("granted.add"), model, name)
    return gate


def _grantee(db: Database, module: str, role: str | None) -> tuple[str, bool]:
    return grantee(module, role, lambda name: db.rows(sql("granted.role"), name))
