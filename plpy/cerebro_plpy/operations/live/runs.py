"""Operations on logged runs: claim, wait for, cancel and remove them."""

from __future__ import annotations

import time

from cerebro_plpy.database import lock_holders
from cerebro_plpy.database.call_checks import read_seconds
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Globals, Row
from cerebro_plpy.errors import (
    LIST_RUNS,
    NullNotAllowed,
    ObjectInUse,
    UndefinedObject,
    hidden_run,
    quote_text,
)
from cerebro_plpy.operations.fit.drop_run_tables import drop_packed_tables, drop_states
from cerebro_plpy.platform.call_context import open_context
from cerebro_plpy.platform.state_tables import features_table
from cerebro_plpy.run.activation_cache import store
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.tables import model_states

PAUSE_SECONDS = 0.1
DEFAULT_AGE = "7 days"
MORE_EPOCHS = 20
"""Epochs of the call that hints suggest for training longer."""


def claim(db: Database, module: str, run_id: int | None, *, to_train: bool = False) -> Row:
    """Claim a run that no session works on, until the end of this transaction; return its log.

    A lock that only sessions of other roles hold does not count.

    Args:
        to_train: the call will train, and therefore needs the lock, which shows other sessions that
            the run is alive.

    Raises:
        UndefinedObject: the caller has no such run.
        ObjectInUse: another session works on the run, or holds its lock.
    """
    if run_id is None:
        raise NullNotAllowed(f"{module} error: run_id is NULL.", hint=LIST_RUNS)
    if not db.peek(sql("run.own"), run_id):
        raise UndefinedObject(f"{module} error: there is no run {run_id} of yours.", hint=LIST_RUNS)
    is_claimed = db.lock("mark_alive", run_id) if to_train else _claim_unused(db, run_id)
    rows = db.peek(sql("run.own"), run_id)  # read again now that no other session changes it
    if not is_claimed or not rows:
        raise _make_in_use_error(db, module, run_id)
    return rows[0]


def suggest_longer_training(db: Database, run_id: int | None, epochs: int) -> str:
    """Return a hint with a call that trains longer what a completed run has trained."""
    rows = db.peek(sql("act.origin"), run_id)
    if not rows:
        return LIST_RUNS
    row = rows[0]
    if row["model"] is None:
        return (
            "To train longer, call again with the same model_output_table and warm_start => true. "
            f"SELECT cerebro.write_outputs({run_id}, 'model_of_run_{run_id}'); writes the outputs "
            "of this run again."
        )
    if row["version"] is None or row["grouped"]:
        return "To train longer, call cerebro.train again with more epochs and a larger budget."
    model = quote_text(row["model"])
    call = f"SELECT * FROM cerebro.refresh({model}, epochs => {epochs});"
    if not row["deployed"]:
        call = f"SELECT cerebro.deploy({model}, '{row['version']}'); {call}"
    return f"To train the model longer: {call}"


def _make_in_use_error(db: Database, module: str, run_id: int) -> ObjectInUse:
    if lock_holders.is_owner_at_work(db, run_id):
        return ObjectInUse(
            f"{module} error: run {run_id} is under way: another session executes it, or "
            "holds its lock.",
            hint=f"SELECT * FROM cerebro.progress WHERE run_id = {run_id};",
        )
    return ObjectInUse(
        f"{module} error: run {run_id} is not under way, but another role holds its lock:"
        f" {lock_holders.describe_holders(db, run_id)}.",
        hint="An administrator can end that session by pg_terminate_backend; then call again.",
    )


def drop(db: Database, run_id: int | None) -> None:
    """Remove the log and the states of a run; its output tables stay.

    A run that has not begun, because it waits in the queue, is cancelled first.
    """
    if run_id is not None and db.peek(sql("run.own"), run_id):
        status = _read_status(db, "drop_run", run_id)
        if status["status"] == "queued" and not status["begun"]:
            cancel(db, run_id)
            wait(db, run_id, None)
    run = claim(db, "drop_run", run_id)
    with db.limited_lock_wait():
        db.rows(sql("run.mark_dropped"), run["run_id"])
        db.rows(sql("run.remove_dropped"), run["run_id"])
    drop_states(db, run["run_id"])


def vacuum(db: Database, gd: Globals, older_than: str | None) -> int:
    """Remove the states of the caller's old runs and removed models; return their size in bytes.

    The tables are removed in several transactions, because one transaction may not be able to lock
    all of them.

    Args:
        older_than: age of a run since its end, as an interval.
    """
    age = read_seconds(db, "vacuum_runs", "older_than", older_than or DEFAULT_AGE)
    with open_context(db, gd, (), None) as context:
        rows = db.peek(sql("run.ended_with_states"), age)
        run_ids = [row["run_id"] for row in rows if _claim_unused(db, row["run_id"])]
        size = sum(RunLog(context.control, run_id).drop_states(keep=[]) for run_id in run_ids)
        size += sum(drop_packed_tables(context.control, run_id) for run_id in run_ids)
        size += store.evict(context.control, context.settings)
    return size + model_states.sweep(db)


def _claim_unused(db: Database, run_id: int) -> bool:
    """Lock a run, if possible; return False if a session of its owner works on it."""
    return db.lock("mark_alive", run_id) or not lock_holders.is_owner_at_work(db, run_id)


def drop_features(db: Database, table: str | None) -> int:
    """Remove stored activations when this transaction commits; return their size in bytes.

    Args:
        table: the packed table of their rows; None for all.
    """
    rows = db.rows(sql("kept.tables"))
    if table is not None:
        source = Catalog(db, "drop_features").resolve_input(table, "packed").oid
        rows = [row for row in rows if row["source"] == source]
    for row in rows:
        db.rows(sql("run.drop_table", table=features_table(row["relname"])))
    return sum(row["bytes"] for row in rows)


def wait(db: Database, run_id: int | None, timeout: str | None) -> str:
    """Wait until a run and its output tables are finished; return its status.

    Args:
        timeout: longest time to wait, as an interval.
    """
    limit = read_seconds(db, "wait", "timeout", timeout)
    start = time.monotonic()
    while True:
        status = _read_status(db, "wait", run_id)
        if not status["under_way"]:
            return str(status["status"])
        if limit is not None and time.monotonic() - start >= limit:
            return "running"
        time.sleep(PAUSE_SECONDS)
        db.check_interrupts()


def cancel(db: Database, run_id: int | None) -> bool:
    """Cancel the statement that works on a run; return False if there is none."""
    status = _read_status(db, "cancel", run_id)
    return bool(status["under_way"] and db.value(sql("background.cancel"), status["pid"]))


def _read_status(db: Database, module: str, run_id: int | None) -> Row:
    """Return the status of a run, and whether it is under way.

    A run is under way if its own orchestrator works on it, not if any session holds its lock.
    """
    if run_id is None:
        raise NullNotAllowed(f"{module} error: run_id is NULL.", hint=LIST_RUNS)
    db.platform.refresh_activity(db)
    # Read before the status, which then cannot be older than the end of the work.
    working_pids = {row["pid"] for row in db.rows(sql("locks.at_work"), run_id)}
    rows = db.peek(sql("background.standing"), run_id)
    if not rows:
        raise hidden_run(run_id, module)
    return {**rows[0], "under_way": rows[0]["pid"] in working_pids}
