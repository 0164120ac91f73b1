"""Names of models, and how versions come under them: written by the session that writes the log.

So a version stays, whatever becomes of the caller's transaction.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session, transaction
from cerebro_plpy.errors import hidden_run
from cerebro_plpy.platform.state_tables import StoredState, version_table
from cerebro_plpy.tables.models import model_grants

REGISTERED = "registered"
"""In the place of a template: of a version whose model a function of MADlib's has trained."""


class Name(NamedTuple):
    """What a name of the caller's has: how rows are divided, in all its versions, and the version
    that predicts.
    """

    split: str
    split_seed: int
    bound: str | None  # where rows are held back from, if the order of a column decides it
    deployed: int | None
    identity: tuple[
        str, ...
    ] = ()  # the columns whose values name a row; empty if that was not recorded


class Ensemble(NamedTuple):
    """What a version has that is made of several configurations, in the place of what one of them
    has.
    """

    template: str
    params: Mapping[str, Sequence[Mapping[str, Any]]]
    architecture: str
    compile_params: str

    @property
    def members(self) -> tuple[int, ...]:
        """The configurations, by mst_key."""
        return tuple(each["mst_key"] for each in self.params["members"])


class Result(NamedTuple):
    """What a run has come to: its best configuration, or an ensemble that has it first, and the
    metric of that.
    """

    run_id: int
    mst_key: int
    value: float | None
    margin: float | None
    state: StoredState
    ensemble: Ensemble | None = None


class OfGroup(NamedTuple):
    """The best of a group of rows, which is trained on so many of them."""

    result: Result
    rows: int


class Added(NamedTuple):
    """A new version, and the one that predicts now."""

    version: int
    deployed: int | None


def find_name(session: Session, model: str) -> Name | None:
    """What the caller has under a name."""
    rows = session.run(sql("version.model"), (model,))
    if not rows:
        return None
    split, split_seed, bound, deployed, identity = rows[0]
    return Name(split, split_seed, bound, deployed, tuple(identity or ()))


def add(
    session: Session,
    model: str,
    name: Name,
    result: Result,
    groups: Sequence[OfGroup] = (),
    *,
    deploy: bool,
) -> Added:
    """Add a version with its models of groups, and so complete its run; it predicts from now on
    where that is wanted, or nothing else does.

    Raises UndefinedObject if the run cannot be seen, as after a rename of its owner: else its
    states would be dropped, though no version has them.
    """
    with transaction(session):
        session.run(sql("run.end"), ("completed", None, result.run_id))
        session.run(
            sql("version.add_model"),
            (model, name.split, name.split_seed, name.bound, list(name.identity) or None),
        )
        ((deployed,),) = session.run(sql("version.lock_model"), (model,))
        ((version,),) = session.run(sql("version.next"), (model,))
        table = _kept(session, result)
        several = result.ensemble
        made = (several.template, json.dumps(several.params)) if several else (None, None)
        network = (several.architecture, several.compile_params) if several else (None, None)
        told = (model, version, *made, result.value, result.margin, *network, table)
        if not session.run(sql("version.add"), (*told, result.run_id, result.mst_key)):
            raise hidden_run(result.run_id)
        for best, rows in groups:
            size_of = _kept(session, best)
            values = (
                model,
                version,
                best.value,
                rows,
                best.margin,
                size_of,
                best.run_id,
                best.mst_key,
            )
            session.run(sql("version.add_group"), values)
        if deploy or deployed is None:
            session.run(sql("version.deploy"), (version, model))
            model_grants.follow(session, model)
            deployed = version
    return Added(version, deployed)


def _kept(session: Session, result: Result) -> str:
    """Copy a state into the table of its own that it has for a version; that table."""
    table, platform = version_table(result.run_id, result.mst_key), session.platform
    session.run(platform.state_table_sql(table))
    session.run(platform.copy_state_sql(*result.state, table))
    return table
