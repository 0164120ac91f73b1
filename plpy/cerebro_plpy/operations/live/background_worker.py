"""The session that does a call for one that has gone on.

Its procedure commits whenever it looks for a cancel, so that no snapshot holds back vacuum while it
waits for its workers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from cerebro_plpy.configs.run_spec import FitArguments
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Globals
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
    """Do the task of that text in this session, which has a client until the run is logged."""
    if db.value(sql("session.setting"), "application_name") != session_label(BACKGROUND):
        raise ObjectNotReady(
            "cerebro.work was called in a session that no other one has opened for it",
            hint="SELECT cerebro.submit(...) begins a run in the background.",
        )
    task = argument_checks.parse_object("task", text)
    db.adopt_caller(
        argument_checks.check_type("path", task.get("path"), str),
        argument_checks.check_type("settings", task.get("settings"), dict),
    )
    db.caller_schema = task.get("schema")

    def logged(run_id: int) -> None:
        db.notice(LOGGED.format(run_id))
        db.detach_client()

    if "fit" in task:
        values = argument_checks.check_type("fit", task["fit"], dict)
        fit(db, gd, _arguments("fit", lambda: FitArguments.from_json(values)), version, logged)
    elif "automl" in task:
        values = argument_checks.check_type("automl", task["automl"], dict)
        run_automl(db, gd, _arguments("search", lambda: AutomlArguments(**values)), version, logged)
    elif "train" in task:
        values = argument_checks.check_type("train", task["train"], dict)
        train(db, gd, _arguments("train", lambda: TrainArguments(**values)), version, logged)
    else:
        resume(db, gd, argument_checks.check_type("resume", task.get("resume"), int), logged)


def _arguments(call: str, read: Callable[[], T]) -> T:
    """What a task says that a call is asked."""
    try:
        return read()
    except (TypeError, AttributeError) as error:
        raise InvalidParameter(
            f"these are no arguments of a {call}: {error}", hint=argument_checks.HINT
        ) from error
