"""One function per SQL function for runs that are in the log already."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, call, package_version
from cerebro_plpy.calls import background, outputs, resume, runs
from cerebro_plpy.configs.spec import FitArguments
from cerebro_plpy.database.caller import Database


def write_outputs(plpy: Any, session: Globals, run_id: int | None, name: str | None) -> None:
    """Make the output tables of a completed run again."""
    call(plpy, session, lambda db: outputs.write_again(db, run_id, name))


def submit(plpy: Any, session: Globals, *arguments: Any) -> int:
    """Begin a fit in the background; the arguments are those of `FitArguments`."""
    given = FitArguments(*arguments)
    return call(plpy, session, lambda db: background.submit(db, session, given))


def work(plpy: Any, session: Globals, task: str | None) -> None:
    """Do in this session what another one asked for."""

    def working(db: Database) -> None:
        db.in_procedure = True
        background.work(db, session, task, package_version())

    call(plpy, session, working)


def resume_run(plpy: Any, session: Globals, run_id: int | None, in_background: bool | None) -> None:
    """Go on with a run that ended early."""
    if in_background:
        call(plpy, session, lambda db: background.begin(db, session, {"resume": run_id}))
    else:
        call(plpy, session, lambda db: resume.resume(db, session, run_id))


def wait(plpy: Any, session: Globals, run_id: int | None, timeout: str | None) -> str:
    """Wait for the end of a run; its status."""
    return call(plpy, session, lambda db: runs.wait(db, run_id, timeout))


def cancel(plpy: Any, session: Globals, run_id: int | None) -> bool:
    """Cancel a run."""
    return call(plpy, session, lambda db: runs.cancel(db, run_id))


def drop_run(plpy: Any, session: Globals, run_id: int | None) -> None:
    """Remove a run, its log and its states."""
    call(plpy, session, lambda db: runs.drop(db, run_id))


def vacuum_runs(plpy: Any, session: Globals, older_than: str | None) -> int:
    """Remove the states of runs that ended long ago; their bytes."""
    return call(plpy, session, lambda db: runs.vacuum(db, session, older_than))
