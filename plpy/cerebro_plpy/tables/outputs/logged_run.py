"""The log of a run, as far as its output tables need it.

The log shows nothing of a run to a role that does not own it, for example after a rename.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from cerebro_plpy.configs.run_spec import RunSpec
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.sql.identifiers import Names
from cerebro_plpy.errors import DataCorrupted, ObjectNotReady, hidden_run
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.records import dataclass, replace
from cerebro_plpy.scheduling.schedule.schedule import AVERAGING


@dataclass(frozen=True)
class LoggedRun:
    """A run that has states, as logged."""

    run_id: int
    name: str | None
    status: str
    epochs: int | None
    last_evaluated: int | None  # newest epoch with metrics
    started_at: str
    ended_at: str
    spec: RunSpec

    @property
    def is_completed(self) -> bool:
        return self.status == "completed"

    @property
    def evaluate_epochs(self) -> list[int] | None:
        """Epochs after which metrics were computed; None if there are none."""
        epochs = list(self.spec.list_evaluations_until(self.epochs or self.spec.epochs))
        if not self.is_completed:
            last_evaluated = self.last_evaluated or 0
            epochs = [epoch for epoch in epochs if epoch <= last_evaluated]
        return epochs or None


def read_run(db: Database, run_id: int) -> LoggedRun:
    """Read a run, and check that the types of its class values exist.

    Raises:
        ObjectNotReady: the run has no states.
        DataCorrupted: the log contains names of types that do not exist.
    """
    row = _check_visible(run_id, db.peek(sql("output.run"), run_id))[0]
    if row["status"] != "completed":
        states = map(stored_state, read_newest_states(db, run_id))
        if not any(states):
            raise ObjectNotReady(
                f"run {run_id} is {row['status']}, and none of its configurations has a state",
                hint="There are models to write out once a visit is completed: SELECT * FROM "
                "cerebro.progress;",
            )
    spec = RunSpec.from_json(json.loads(row["spec"]))
    source = replace(spec.source, class_types=_check_types(db, spec.source.class_types))
    return LoggedRun(
        run_id=row["run_id"],
        name=row["name"],
        status=row["status"],
        epochs=row["epochs"],
        last_evaluated=row["evaluated"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        spec=replace(spec, source=source),
    )


def _check_visible(run_id: int, rows: list[Row]) -> list[Row]:
    """Return rows of the log, of which every visible run has at least one."""
    if not rows:
        raise hidden_run(run_id)
    return rows


def _check_types(db: Database, logged: Sequence[str]) -> Names:
    """Return the types of class values; the owner of the run may have changed the log."""
    types = tuple(row["type"] for row in db.rows(sql("output.types"), list(logged)))
    if len(types) != len(logged):
        raise DataCorrupted(
            f"the run log contains invalid class value types: {', '.join(map(repr, logged))}",
            hint="Types may have been dropped or renamed, or the log changed. Train again.",
        )
    return types


def read_configs(db: Database, run_id: int) -> list[Row]:
    """Return the configurations of a run with their newest states.

    Only configurations that failed, or were stopped before they were trained, have no state.

    Raises:
        ObjectNotReady: a state was dropped.
    """
    configs = read_newest_states(db, run_id)
    for config in configs:
        is_untrained = config["status"] != "completed" and config["state_table"] is None
        if config["status"] != "failed" and not is_untrained and not config["kept"]:
            raise ObjectNotReady(
                f"the state of mst_key {config['mst_key']} of run {run_id} is gone",
                detail="Its table was dropped, or the transaction that trained in its own session "
                "was rolled back.",
                hint="Train again. For the same visits write schedule => 'replay', "
                f"replay_run => {run_id}.",
            )
    return configs


def read_newest_states(db: Database, run_id: int) -> list[Row]:
    """Return the configurations of a run, each with the table of its newest state."""
    query = sql("output.configs", visits="", configs="")
    return _check_visible(run_id, db.peek(query, run_id, AVERAGING, run_id))


def read_newest_state(db: Database, run_id: int, mst_key: int) -> Row:
    """Return one configuration of a run, with the table of its newest state."""
    query = sql(
        "output.configs",
        visits=" AND v.mst_key = %s::integer",
        configs=" AND c.mst_key = %s::integer",
    )
    rows = db.peek(query, run_id, AVERAGING, mst_key, run_id, mst_key)
    return _check_visible(run_id, rows)[0]


def read_pinned_configs(db: Database, run: LoggedRun) -> list[Row]:
    """Return the configurations of a run, and keep their newest states until they are read.

    Visits of a live run write to other tables than those that are locked here. If a newer state is
    stored before its predecessor is locked, the newer one is locked and read.
    """
    configs = read_configs(db, run.run_id)
    while run.status == "running":
        states = list(map(stored_state, configs))
        for state in filter(None, states):
            db.protect_table(state.table)
        configs = read_configs(db, run.run_id)
        if list(map(stored_state, configs)) == states:
            break
    return configs


def stored_state(config: Row) -> StoredState | None:
    """Return the newest state of a configuration; None if it has none."""
    if not config["state_table"]:
        return None
    return StoredState(config["state_table"], config["segment_id"], config["base_table"])


def read_logged_architecture(db: Database, run: LoggedRun, config: Row) -> str:
    """Return the architecture that a configuration had at the start of its run."""
    rows = db.peek(sql("output.architecture"), run.run_id, config["mst_key"])
    return str(_check_visible(run.run_id, rows)[0]["architecture"])


def read_metrics(db: Database, run_id: int, config: Row) -> list[Row]:
    """Return the metrics of a configuration that has a state, or had one; else []."""
    if not (config["state_table"] or config["released"]):
        return []
    rows = _check_visible(run_id, db.peek(sql("output.metrics"), config["mst_key"], run_id))
    return [row for row in rows if row["name"]]
