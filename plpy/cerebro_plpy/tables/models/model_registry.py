"""Names of models, and adding versions to them, in the session that writes the log.

A version therefore remains even if the caller's transaction is rolled back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import read_value
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session, transaction
from cerebro_plpy.database.sql.identifiers import Names
from cerebro_plpy.errors import ObjectNotReady, hidden_run
from cerebro_plpy.platform.state_tables import StoredState, version_table
from cerebro_plpy.preprocessing.scoring.calibration import NO_CALIBRATION, Calibration
from cerebro_plpy.tables.models import model_grants

ENSEMBLE = "ensemble"
"""Logged as the template of a version with several members."""
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


class ResultMember(NamedTuple):
    """A configuration of an ensemble."""

    mst_key: int
    template: str | None
    share: float  # of the prediction
    state: StoredState


class RunResult(NamedTuple):
    """The best configuration of a run, or an ensemble whose first member it is."""

    run_id: int
    mst_key: int
    value: float | None  # of the ranking metric
    margin: float | None
    state: StoredState
    ensemble: tuple[ResultMember, ...] = ()
    base: tuple[int, int] | None = None  # run and configuration of the version that it continues
    loss: float | None = None  # decides between equal values
    calibration: Calibration = NO_CALIBRATION
    refit_run_id: int | None = None  # the run that has trained members again
    refit: Mapping[int, StoredState] = {}  # states of that run, by mst_key
    holdout_calibration: Calibration | None = (
        None  # of the states before; None if it is `calibration`
    )

    @property
    def members(self) -> tuple[ResultMember, ...]:
        """The configurations whose predictions are added up."""
        return self.ensemble or (ResultMember(self.mst_key, None, 1.0, self.state),)

    def describe_ensemble(self) -> str | None:
        """Return the members of an ensemble as JSON, the params of its version."""
        if not self.ensemble:
            return None
        members = [
            {"mst_key": member.mst_key, "template": member.template, "share": member.share}
            for member in self.ensemble
        ]
        return json.dumps({"members": members})


class GroupResult(NamedTuple):
    """The best configuration of a group of rows."""

    result: RunResult
    rows: int  # training rows of the group


class AddedVersion(NamedTuple):
    """A new version, and the version that is deployed now."""

    version: int
    deployed: int | None
    backend: str  # framework in which the new version predicts


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
        for run_id in filter(None, (result.refit_run_id, result.run_id)):
            session.run(sql("run.end"), ("completed", None, None, run_id))
        identity = list(entry.identity) or None
        session.run(
            sql("version.add_model"), (model, entry.split, entry.split_seed, entry.bound, identity)
        )
        deployed = read_value(session, sql("version.lock_model"), (model,))
        version = read_value(session, sql("version.next"), (model,))
        tables = _copy_states(session, result)
        stored = [(key, table) for key, names in tables.items() for table in names]
        values = (
            model,
            version,
            ENSEMBLE if result.ensemble else None,
            result.describe_ensemble(),
            result.value,
            result.margin,
            result.loss,
            result.calibration.to_json(),
            result.holdout_calibration and result.holdout_calibration.to_json(),
            [key for key, _ in stored],
            [table for _, table in stored],
            result.run_id,
            result.mst_key,
        )
        rows = session.run(sql("version.add"), values)
        if not rows:
            raise hidden_run(result.run_id)
        ((backend,),) = rows
        _add_members(session, (model, version), result, tables)
        for group in groups:
            _add_group(session, model, version, group)
        if deploy or deployed is None:
            session.run(sql("version.deploy"), (version, model))
            model_grants.publish_deployed(session, model)
            deployed = version
    return AddedVersion(version, deployed, backend)


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
    tables = _copy_states(session, result)
    values = (
        model,
        version,
        result.value,
        group.rows,
        result.margin,
        tables[result.mst_key][0],
        result.calibration.to_json(),
        result.run_id,
        result.mst_key,
    )
    session.run(sql("version.add_group"), values)
    _add_members(session, (model, version), result, tables)


def _add_members(
    session: Session, key: tuple[str, int], result: RunResult, tables: Mapping[int, Sequence[str]]
) -> None:
    """Add the members of a version, or of the model of a group.

    Args:
        key: the model and the number of the version.
        tables: those with the states of each member, by mst_key.
    """
    for position, member in enumerate(result.members, 1):
        mst_key = member.mst_key
        refit_run_id = result.refit_run_id if mst_key in result.refit else None
        values = (*key, position, member.share, list(tables[mst_key]), refit_run_id)
        session.run(sql("version.add_member"), (*values, result.run_id, mst_key))


def _copy_states(session: Session, result: RunResult) -> dict[int, list[str]]:
    """Copy states into tables of the version's own.

    Returns:
        The tables of each member by mst_key: of its state and, if it was trained again, of the
        state after that.
    """
    tables = {}
    for member in result.members:
        mst_key = member.mst_key
        tables[mst_key] = [_copy_state(session, result.run_id, mst_key, member.state)]
        if mst_key in result.refit:
            assert result.refit_run_id is not None
            state = result.refit[mst_key]
            tables[mst_key].append(_copy_state(session, result.refit_run_id, mst_key, state))
    return tables


def _copy_state(session: Session, run_id: int, mst_key: int, state: StoredState) -> str:
    """Copy a state into a table of a version; return the name of the table."""
    platform = session.platform
    table = version_table(run_id, mst_key)
    session.run(platform.state_table_sql(table))
    session.run(platform.copy_state_sql(*state, table))
    return table
