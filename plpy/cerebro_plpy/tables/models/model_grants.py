"""Predictions with a named model for roles that must not read its weights or training data.

PostgreSQL alone decides which roles may predict: those that may read an empty table of the owner's,
the gate. It is granted, dumped and restored like any other table. A role that predicts never runs
or reads anything of the owner's: the necessary parts of a version are copied into tables of the
extension whenever another version is deployed.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from itertools import chain

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sql.literals import literal
from cerebro_plpy.errors import FeatureNotSupported, UndefinedObject
from cerebro_plpy.platform.state_tables import quote_table
from cerebro_plpy.tables.models import granted_versions, model_versions
from cerebro_plpy.tables.models.grants import find_grantee
from cerebro_plpy.tables.models.model_versions import (
    MEMBER_COLUMNS,
    parse_group_members,
    read_version,
)

COLUMNS = (
    "owner",
    "model",
    "version",
    "run_id",
    "mst_key",
    "task",
    "source",
    "target",
    "target_type",
    "recipe",
    "classes",
    "margin",
    "calibration",
    "backend",
    "metric",
    "seed",
    "group_by",
    "reading",
)
"""Columns of the query granted.own_version."""
HINT = (
    "Models that were granted to somebody: SELECT model FROM cerebro.grant_log WHERE owner = "
    "current_user;"
)


def grant(db: Database, module: str, model: str, role: str | None) -> None:
    """Let a role predict with a model of the caller's."""
    role_name, may_use = _find_grantee(db, module, role)
    model_versions.get_deployed(db, module, model)
    with db.limited_lock_wait():
        gate = _find_gate(db, model) or _create_gate(db, model)
        _publish(LocalSession(db), model)
    db.rows(sql("granted.open", gate=gate, role=role_name))
    if not may_use:
        db.notice(
            f"role {role_name} has no usage of the extension and cannot predict: SELECT "
            f"cerebro.grant_usage('{role_name}')"
        )


def revoke(db: Database, module: str, model: str, role: str | None) -> None:
    """Revoke a grant; the copy of the model is removed with the last grant."""
    role_name, _ = _find_grantee(db, module, role)
    gate = _find_gate(db, model)
    if gate is None:
        raise UndefinedObject(
            f"{module} error: nobody was granted predictions with model {model!r}.", hint=HINT
        )
    db.rows(sql("granted.close", gate=gate, role=role_name))
    if not db.value(sql("granted.others"), gate):
        revoke_all(db, model)
        db.rows(sql("granted.remove"), model)


def revoke_all(db: Database, model: str) -> None:
    """Revoke all grants of a model of the caller's, by dropping its gate."""
    gate = _find_gate(db, model)
    db.rows(sql("granted.shut"), model)
    if gate is not None:
        db.rows(sql("run.drop_table", table=gate))


def publish_deployed(session: Session, model: str) -> None:
    """Copy the newly deployed version of a model, if the model was granted.

    If values that the recipe learned from a column cannot be hidden, other roles keep the version
    that they have.
    """
    with suppress(FeatureNotSupported):
        _publish(session, model)


def _publish(session: Session, model: str) -> None:
    for row in session.run(sql("granted.own_version"), (model,)):
        fields = dict(zip(COLUMNS, row))
        key = (fields["owner"], model, fields["version"])
        member_rows = session.run(sql("version.members"), (*key, None))
        members = parse_group_members(dict(zip(MEMBER_COLUMNS, values)) for values in member_rows)
        version = read_version(fields, members.get("", ()))
        types = model_versions.find_column_types(session, version)
        outline = granted_versions.make_outline(version, types.columns, types.target_base)
        session.run(sql("granted.tell"), (version.version, outline, model))
        for member in chain.from_iterable(members.values()):
            rows = session.platform.state_rows_sql(member.state_table, None)
            session.run(sql("granted.copy", rows=rows), (model, version.version, member.mst_key))
        session.run(sql("granted.remove"), (model,))


def _find_gate(db: Database, model: str) -> str | None:
    """Return the quoted name of a model's gate; None if the model was not granted."""
    return next((row["gate"] for row in db.peek(sql("granted.gate"), model)), None)


def _create_gate(db: Database, model: str) -> str:
    """Create a gate that no other role may read yet; return its quoted name."""
    name = f"granted_{secrets.token_hex(8)}"
    gate = quote_table(name)
    comment = literal(
        f"Made by cerebro.grant_predict: who may read it may predict with model {model}"
    )
    db.rows(sql("granted.add_gate", gate=gate, literal=literal(gate), comment=comment))
    db.rows(sql("granted.add"), model, name)
    return gate


def _find_grantee(db: Database, module: str, role: str | None) -> tuple[str, bool]:
    return find_grantee(module, role, lambda name: db.rows(sql("granted.role"), name))
