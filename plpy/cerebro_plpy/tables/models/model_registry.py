"""Names of models, and adding versions to them, in the session that writes the log.

A version therefore remains even if the caller's transaction is rolled back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.database.platform_protocol import read_value
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session, transaction
from cerebro_plpy.database.sql.identifiers import Names
from cerebro_plpy.errors import ObjectNotReady, hidden_run
from cerebro_plpy.platform.state_tables import StoredState, version_table
from cerebro_plpy.preprocessing.scoring.calibration import NO_CALIBRATION, Calibration
from cerebro_plpy.tables.models import model_grants

REGISTERED = "registered"
"""Logged as the template of a version that was trained by a fit function and registered."""
IMPORTED = "imported"
"""Logged as the template of a version that came from a file."""


class ModelEntry(NamedTuple):
    """The entry of a model name, which all its versions share."""

    split: str
    split_seed: int
    bound: str | None  # where the hold-out rows begin, if a column's order decides the split
    deployed: int | None  # the version that predicts
    identity: Names = ()  # columns that identify a row; empty if not recorded


class Ensemble(NamedTuple):
    """The fields of a version that joins several configurations."""

    template: str
    params: Mapping[str, Sequence[Mapping[str, Any]]]
    architecture: str
    compile_params: str

    @property
    def members(self) -> tuple[int, ...]:
        """The configurations, by mst_key."""
        return tuple(member["mst_key"] for member in self.params["members"])


class RunResult(NamedTuple):
    """The best configuration of a run, or an ensemble whose first member it is."""

    run_id: int
    mst_key: int
    value: float | None  # of the ranking metric
    margin: float | None
    state: StoredState
    ensemble: Ensemble | None = None
    base: tuple[int, int] | None = None  # run and configuration of the version that it continues
    loss: float | None = None  # decides between equal values
    calibration: Calibration = NO_CALIBRATION


class GroupResult(NamedTuple):
    """The best configuration of a group of rows."""

    result: RunResult
    rows: int  # training rows of the group


class AddedVersion(NamedTuple):
    """A new version, and the version that is deployed now."""

    version: int
    deployed: int | None


def find_model(session: Session, model: str) -> ModelEntry | None:
    """Return the entry of the caller's model of that name, if there is one."""
    rows = session.run(sql("version.model"), (model,))
    if not rows:
        return None
    split, split_seed, bound, deployed, identity = rows[0]
    return ModelEntry(split, split_seed, bound, deployed, tuple(identity or ()))


def add(
    session: Session,
    model: str,
    entry: ModelEntry,
    result: RunResult,
    groups: Sequence[GroupResult] = (),
    *,
    deploy: bool,
) -> AddedVersion:
    """Add a version with its models of groups, and complete its run.

    Args:
        deploy: deploy the version; the first version of a model is always deployed.

    Raises:
        UndefinedObject: the run cannot be seen, for example after its owner was renamed. Its
            states would be dropped otherwise, because no version would refer to them.
        ObjectNotReady: the version that the run continues was dropped.
    """
    with transaction(session):
        if result.base is not None:
            check_base(session, model, result.base)
        session.run(sql("run.end"), ("completed", None, None, result.run_id))
        identity = list(entry.identity) or None
        session.run(
            sql("version.add_model"), (model, entry.split, entry.split_seed, entry.bound, identity)
        )
        deployed = read_value(session, sql("version.lock_model"), (model,))
        version = read_value(session, sql("version.next"), (model,))
        state_table = _copy_state(session, result)
        template = params = architecture = compile_params = None
        if result.ensemble is not None:
            template, members, architecture, compile_params = result.ensemble
            params = json.dumps(members)
        values = (
            model,
            version,
            template,
            params,
            result.value,
            result.margin,
            architecture,
            compile_params,
            state_table,
            result.loss,
            result.calibration.to_json(),
            result.run_id,
            result.mst_key,
        )
        if not session.run(sql("version.add"), values):
            raise hidden_run(result.run_id)
        for group in groups:
            _add_group(session, model, version, group)
        if deploy or deployed is None:
            session.run(sql("version.deploy"), (version, model))
            model_grants.publish_deployed(session, model)
            deployed = version
    return AddedVersion(version, deployed)


def check_base(session: Session, model: str, base: tuple[int, int]) -> None:
    """Check that the version that a run continues still exists.

    Raises:
        ObjectNotReady: it was dropped, with its weights.
    """
    rows = session.run(sql("version.base"), (*base, model))
    if not any(exists for (exists,) in rows):
        raise ObjectNotReady(
            f"model {model!r} was dropped while it was trained further: there is nothing to "
            "continue from",
            hint="cerebro.train makes a new model.",
        )


def _add_group(session: Session, model: str, version: int, group: GroupResult) -> None:
    result = group.result
    state_table = _copy_state(session, result)
    values = (
        model,
        version,
        result.value,
        group.rows,
        result.margin,
        state_table,
        result.calibration.to_json(),
        result.run_id,
        result.mst_key,
    )
    session.run(sql("version.add_group"), values)


def _copy_state(session: Session, result: RunResult) -> str:
    """Copy a state into a table of the version's own; return the name of the table."""
    platform = session.platform
    table = version_table(result.run_id, result.mst_key)
    session.run(platform.state_table_sql(table))
    session.run(platform.copy_state_sql(*result.state, table))
    return table
