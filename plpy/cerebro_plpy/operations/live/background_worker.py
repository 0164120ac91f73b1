"""The session that executes a call in the background.

Its procedure commits whenever it checks for a cancel, so that no snapshot holds back vacuum while
it waits for workers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from cerebro_plpy.configs.run_spec import FitArguments
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Globals
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.errors import InvalidParameter, ObjectNotReady
from cerebro_plpy.operations.fit.automl import run_automl
from cerebro_plpy.operations.fit.automl_arguments import AutomlArguments
from cerebro_plpy.operations.fit.fit import fit
from cerebro_plpy.operations.live.background_run import LOGGED
from cerebro_plpy.operations.live.resume import resume
from cerebro_plpy.operations.train.train import train
from cerebro_plpy.operations.train_arguments import TrainArguments
from cerebro_plpy.platform.connection_limit import BACKGROUND, session_label
from cerebro_plpy.trainer_client import argument_checks

T = TypeVar("T")


def run_task(db: Database, gd: Globals, text: str | None, version: str) -> None:
    """Execute a task in this session, which loses its client when the run is logged.

    Args:
        text: the JSON of the task.
        version: the version of the extension.
    """
    if db.value(sql("session.setting"), "application_name") != session_label(BACKGROUND):
        raise ObjectNotReady(
            "cerebro_internal.work was called in a session that no other one has opened for it",
            hint="cerebro.submit() begins a run in the background.",
        )
    task = argument_checks.parse_object("task", text)
    db.adopt_caller(
        argument_checks.check_type("path", task.get("path"), str),
        argument_checks.check_type("settings", task.get("settings"), dict),
    )
    db.caller_schema = task.get("schema")

    def report_run(run_id: int) -> None:
        db.notice(LOGGED.format(run_id))
        db.detach_client()

    if "fit" in task:
        fit_arguments = _read_arguments(task, "fit", "fit", FitArguments.from_json)
        fit(db, gd, fit_arguments, version, report_run)
    elif "automl" in task:
        automl_arguments = _read_arguments(
            task, "automl", "search", lambda values: AutomlArguments(**values)
        )
        run_automl(db, gd, automl_arguments, version, report_run)
    elif "train" in task:
        train_arguments = _read_arguments(
            task, "train", "train", lambda values: TrainArguments(**values)
        )
        train(db, gd, train_arguments, version, report_run)
    else:
        run_id = argument_checks.check_type("resume", task.get("resume"), int)
        resume(db, gd, run_id, report_run)


def _read_arguments(task: JsonObject, key: str, call: str, read: Callable[[JsonObject], T]) -> T:
    """Read the arguments of a call from a task.

    Args:
        call: the name of the call in error messages.
    """
    values = argument_checks.check_type(key, task[key], dict)
    try:
        return read(values)
    except (TypeError, AttributeError) as error:
        raise InvalidParameter(
            f"these are no arguments of a {call}: {error}", hint=argument_checks.HINT
        ) from error
