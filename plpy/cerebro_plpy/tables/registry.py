"""Names of models, and how versions come under them: written by the session that writes the log.

So a version stays, whatever becomes of the caller's transaction.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from cerebro_plpy.database.dispatch import Session, transaction
from cerebro_plpy.database.queries import sql
from cerebro_plpy.platform.state_tables import StoredState, version_table


class Name(NamedTuple):
    """What a name of the caller's has: how rows are divided, in all its versions, and the version that predicts."""

    split: str
    split_seed: int
    deployed: int | None


class Result(NamedTuple):
    """What a run has come to: its best configuration, and the metric of that."""

    run_id: int
    mst_key: int
    value: float | None
    margin: float | None
    state: StoredState


class Added(NamedTuple):
    """A new version, and the one that predicts now."""

    version: int
    deployed: int | None


def find_name(session: Session, model: str) -> Name | None:
    """What the caller has under a name."""
    rows = session.run(sql("version.model"), (model,))
    return Name(*rows[0]) if rows else None


def add(session: Session, model: str, name: Name, result: Result, software: Mapping[str, str], larger: bool) -> Added:
    """Add a version; it predicts from now on, unless the one that does so is at least as good on as many rows."""
    with transaction(session):
        session.run(sql("version.add_model"), (model, name.split, name.split_seed))
        ((deployed,),) = session.run(sql("version.lock_model"), (model,))
        ((version,),) = session.run(sql("version.next"), (model,))
        table, platform = version_table(result.run_id, result.mst_key), session.platform
        session.run(platform.state_table(table))
        session.run(platform.state_copy(result.state.table, result.state.segment_id, table))
        told = (model, version, result.value, result.margin, table, json.dumps(software))
        session.run(sql("version.add"), (*told, result.run_id, result.mst_key))
        if deployed is None or _better(session, model, (deployed, version), larger):
            session.run(sql("version.deploy"), (version, model))
            deployed = version
    return Added(version, deployed)


def _better(session: Session, model: str, versions: tuple[int, int], larger: bool) -> bool:
    """Whether the second of two versions is better, as far as they can be compared; if they cannot, it is newer."""
    old, new = (session.run(sql("version.deployed"), (model, version))[0] for version in versions)
    if old[1:2] + old[3:] != new[1:2] + new[3:] or None in (old[2], new[2]):
        return True
    return bool(new[2] > old[2] if larger else new[2] < old[2])
