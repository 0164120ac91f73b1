"""The SQL functions that start, resume, await and remove logged runs."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, call, call_training, read_package_version, report_errors
from cerebro_plpy.database.sessions.spi import Database


@report_errors
def write_outputs(plpy: Any, gd: Globals, run_id: int | None, output: str | None) -> None:
    """Write the output tables of a completed run again."""
    from cerebro_plpy.operations.fit import run_outputs

    call(plpy, gd, lambda db: run_outputs.rewrite_outputs(db, run_id, output))


@report_errors
def submit(plpy: Any, gd: Globals, *arguments: Any) -> int:
    """Start a fit in the background; the arguments are those of `FitArguments`."""

    def begin(db: Database) -> int:
        from cerebro_plpy.configs.run_spec import FitArguments
        from cerebro_plpy.operations.live import background_run

        return background_run.submit_fit(db, gd, FitArguments(*arguments))

    return call_training(plpy, gd, begin)


@report_errors
def submit_call(plpy: Any, gd: Globals, call: str | None, arguments: str | None) -> int:
    """Start any call that trains in the background."""

    def begin(db: Database) -> int:
        from cerebro_plpy.operations.live import submission

        return submission.submit(db, gd, call, arguments)

    return call_training(plpy, gd, begin)


@report_errors
def work(plpy: Any, gd: Globals, task: str | None) -> None:
    """Do a background task that another session has requested."""

    def work_in_procedure(db: Database) -> None:
        from cerebro_plpy.operations.live import background_worker

        db.in_procedure = True
        background_worker.run_task(db, gd, task, read_package_version())

    call_training(plpy, gd, work_in_procedure)


@report_errors
def resume_run(plpy: Any, gd: Globals, run_id: int | None, background: bool | None) -> None:
    """Resume a run that ended early."""

    def resume_or_submit(db: Database) -> None:
        if background:
            from cerebro_plpy.operations.live import background_run

            background_run.start_background_run(db, gd, {"resume": run_id})
        else:
            from cerebro_plpy.operations.live import resume

            resume.resume(db, gd, run_id)

    call_training(plpy, gd, resume_or_submit)


@report_errors
def wait(plpy: Any, gd: Globals, run_id: int | None, timeout: str | None) -> str:
    """Wait for the end of a run; return its status."""
    from cerebro_plpy.operations.live import runs

    return call(plpy, gd, lambda db: runs.wait(db, run_id, timeout))


@report_errors
def cancel(plpy: Any, gd: Globals, run_id: int | None) -> bool:
    """Cancel a run."""
    from cerebro_plpy.operations.live import runs

    return call(plpy, gd, lambda db: runs.cancel(db, run_id))


@report_errors
def drop_run(plpy: Any, gd: Globals, run_id: int | None) -> None:
    """Remove a run, its log and its states."""
    from cerebro_plpy.operations.live import runs

    call(plpy, gd, lambda db: runs.drop(db, run_id))


@report_errors
def vacuum_runs(plpy: Any, gd: Globals, older_than: str | None) -> int:
    """Remove the states of runs that ended long ago; return their size in bytes."""
    from cerebro_plpy.operations.live import runs

    return call(plpy, gd, lambda db: runs.vacuum(db, gd, older_than))


@report_errors
def drop_features(plpy: Any, gd: Globals, source: str | None) -> int:
    """Remove cached activations of frozen layers; return their size in bytes."""
    from cerebro_plpy.operations.live import runs

    return call(plpy, gd, lambda db: runs.drop_features(db, source))
