"""Runs that are in the log: claimed, so that nobody else trains or removes them meanwhile; awaited,
ended, removed.
"""

from __future__ import annotations

import time

from cerebro_plpy.database import lock_holders
from cerebro_plpy.database.call_checks import read_seconds
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Globals, Row
from cerebro_plpy.errors import LIST_RUNS, NullNotAllowed, ObjectInUse, UndefinedObject, hidden_run
from cerebro_plpy.operations.fit.drop_run_tables import drop_packed_tables, drop_states
from cerebro_plpy.platform.call_context import open_context
from cerebro_plpy.platform.state_tables import features_table
from cerebro_plpy.run.activation_cache import store
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.tables import model_states

PAUSE_SECONDS = 0.1
DEFAULT_AGE = "7 days"


def claim(db: Database, module: str, run_id: int | None, *, to_train: bool = False) -> Row:
    """Return the log of a run that nobody works on; until its end this transaction counts as who
    does.

    A lock that only sessions of other roles hold does not count, except for a call that is
    `to_train`: the lock is what tells others that its run is alive.
    """
    if run_id is None:
        raise NullNotAllowed(f"{module} error: run_id is NULL.", hint=LIST_RUNS)
    if not db.peek(sql("run.own"), run_id):
        raise UndefinedObject(f"{module} error: there is no run {run_id} of yours.", hint=LIST_RUNS)
    locked = db.lock("mark_alive", run_id)
    free = locked or not (to_train or lock_holders.is_owner_at_work(db, run_id))
    rows = db.peek(sql("run.own"), run_id)  # as it is now that nobody else changes it
    if not free or not rows:
        raise _in_use(db, module, run_id)
    return rows[0]


def _in_use(db: Database, module: str, run_id: int) -> ObjectInUse:
    if lock_holders.is_owner_at_work(db, run_id):
        return ObjectInUse(
            f"{module} error: run {run_id} is under way: another session is its orchestrator, or "
            "holds its lock.",
            hint=f"SELECT * FROM cerebro.progress WHERE run_id = {run_id};",
        )
    return ObjectInUse(
        f"{module} error: run {run_id} is not under way, but another role holds its lock:"
        f" {lock_holders.describe_holders(db, run_id)}.",
        hint="An administrator can end that session by pg_terminate_backend; then call again.",
    )


def drop(db: Database, run_id: int | None) -> None:
    """Remove a run: its log and its states. Output tables that were made of it stay. One that has
    only waited is cancelled."""
    if run_id is not None and db.peek(sql("run.own"), run_id) and _only_waits(db, run_id):
        cancel(db, run_id)
        wait(db, run_id, None)
    run = claim(db, "drop_run", run_id)
    with db.limited_lock_wait():
        db.rows(sql("run.mark_dropped"), run["run_id"])
        db.rows(sql("run.remove_dropped"), run["run_id"])
    drop_states(db, run["run_id"])


def _only_waits(db: Database, run_id: int) -> bool:
    found = read_status(db, "drop_run", run_id)
    return bool(found["status"] == "queued" and not found["begun"])


def vacuum(db: Database, gd: Globals, older_than: str | None) -> int:
    """Remove the states of own runs that ended so long ago, and of own models that are gone; their
    size in bytes.

    Few tables go in a transaction, for there may be more than one transaction can lock.
    """
    age = read_seconds(db, "vacuum_runs", "older_than", older_than or DEFAULT_AGE)
    with open_context(db, gd, (), None) as workplace:
        ended = [
            row["run_id"]
            for row in db.peek(sql("run.ended_with_states"), age)
            if db.lock("mark_alive", row["run_id"])
            or not lock_holders.is_owner_at_work(db, row["run_id"])
        ]
        freed = sum(RunLog(workplace.control, run_id).drop_states(keep=[]) for run_id in ended)
        freed += sum(drop_packed_tables(workplace.control, run_id) for run_id in ended)
        freed += store.sweep(workplace.control, workplace.settings)
    return freed + model_states.sweep(db)


def drop_features(db: Database, table: str | None) -> int:
    """Remove what is kept for later runs of the rows of a packed table, or of all, with this
    transaction; its bytes.
    """
    source = (
        None if table is None else Catalog(db, "drop_features").resolve_input(table, "packed").oid
    )
    found = [row for row in db.rows(sql("kept.tables")) if source in (None, row["source"])]
    for row in found:
        db.rows(sql("run.drop_table", table=features_table(row["relname"])))
    return sum(row["bytes"] for row in found)


def wait(db: Database, run_id: int | None, timeout: str | None) -> str:
    """The status of a run when nobody works for it any more, its output tables included, or when
    the time is over.
    """
    limit = read_seconds(db, "wait", "timeout", timeout)
    began = time.monotonic()
    while True:
        found = read_status(db, "wait", run_id)
        if not found["under_way"]:
            return str(found["status"])
        if limit is not None and time.monotonic() - began >= limit:
            return "running"
        time.sleep(PAUSE_SECONDS)
        db.check_interrupts()


def cancel(db: Database, run_id: int | None) -> bool:
    """Cancel the statement that works for a run; False where none does."""
    found = read_status(db, "cancel", run_id)
    return bool(found["under_way"] and db.value(sql("background.cancel"), found["pid"]))


def read_status(db: Database, module: str, run_id: int | None) -> Row:
    """Status of a run, and whether somebody works for it: its own orchestrator, not just anyone who
    took the lock.
    """
    if run_id is None:
        raise NullNotAllowed(f"{module} error: run_id is NULL.", hint=LIST_RUNS)
    db.platform.refresh_activity(db)
    # Before the status, which then cannot be older than the end of the work.
    at_work = {row["pid"] for row in db.rows(sql("locks.at_work"), run_id)}
    rows = db.peek(sql("background.standing"), run_id)
    if not rows:
        raise hidden_run(run_id, module)
    return {**rows[0], "under_way": rows[0]["pid"] in at_work}
