"""Runs that go on without the session that asked for them.

A worker session is told to do the whole call, in a procedure, and is left alone once it says that the run is logged.
Its procedure commits whenever it looks for a cancel, so that no snapshot holds back vacuum while it waits for its
workers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from cerebro_plpy.calls import automl
from cerebro_plpy.calls import train as training
from cerebro_plpy.calls.automl_arguments import MODULE as AUTOML
from cerebro_plpy.calls.automl_arguments import AutomlArguments
from cerebro_plpy.calls.fit import fit
from cerebro_plpy.calls.fit_arguments import MODULE, check_arguments
from cerebro_plpy.calls.inputs import find_inputs
from cerebro_plpy.calls.resume import resume
from cerebro_plpy.calls.train_arguments import TrainArguments, read_arguments
from cerebro_plpy.configs.spec import FitArguments
from cerebro_plpy.database.caller import Database, Row
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.dispatch import DONE, ready
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions import WorkerSession
from cerebro_plpy.database.visibility import refuse_held
from cerebro_plpy.errors import InvalidParameter, ObjectNotReady, TrainerFailure
from cerebro_plpy.platform.workplace import BACKGROUND, Workplace, label
from cerebro_plpy.records import asdict
from cerebro_plpy.trainer import fields, settings

Task = Mapping[str, Any]
T = TypeVar("T")
COLUMNS = (
    "rank",
    "mst_key",
    "template",
    "params",
    "epochs",
    "metric",
    "validation",
    "training",
    "seconds",
    "group_value",
)
LOGGED = "run {} goes on in the background"


def submit(db: Database, gd: dict[str, Any], arguments: FitArguments) -> int:
    """Begin what a fit call with these arguments would do; the id of its run."""
    check_arguments(arguments)
    refuse_held(db, find_inputs(Catalog(db, MODULE), arguments).relations().values())
    return begin(db, gd, {"fit": arguments.to_json()})


def search(db: Database, gd: dict[str, Any], arguments: AutomlArguments) -> int:
    """Begin what a call of AutoML with these arguments would do; the id of its run."""
    refuse_held(db, automl.tables_of(Catalog(db, AUTOML), arguments).existing())
    return begin(db, gd, {"automl": asdict(arguments)})


def train(db: Database, gd: dict[str, Any], arguments: TrainArguments) -> list[Row]:
    """Begin what a call of train with these arguments would do; a row with the id of its run."""
    read_arguments(db, training.MODULE, arguments)
    training.refuse_own(db, Catalog(db, training.MODULE).relation(arguments.source))
    run_id = begin(db, gd, {"train": asdict(arguments)})
    return [{**dict.fromkeys(COLUMNS), "run_id": run_id, "status": "running"}]


def begin(db: Database, gd: dict[str, Any], task: Task) -> int:
    """Have a session of its own do the task; the id of its run, once that is logged."""
    workplace = Workplace(db, gd, settings.read(db), local=False)
    payload = json.dumps({**task, "path": db.caller_path, "schema": db.caller_schema})
    try:
        worker = workplace.background()
        worker.start(sql("background.begin"), (payload,))
        run_id = _awaited(workplace, worker)
        workplace.leave(worker)
    except BaseException:
        workplace.close(keep=False)
        raise
    workplace.close(keep=True)
    return run_id


def _awaited(workplace: Workplace, worker: WorkerSession) -> int:
    """Wait until the run is logged; an error before that is raised here."""
    while (wanted := worker.wants()) != DONE:
        for text in worker.messages():
            if found := re.fullmatch(LOGGED.format(r"(\d+)"), text):
                return int(found[1])
            workplace.db.notice(text)
        if not ready([(worker, wanted)]):
            workplace.check()
    raise TrainerFailure("the background session ended without beginning a run")


def work(db: Database, gd: dict[str, Any], text: str | None, version: str) -> None:
    """Do the task of that text in this session, which has a client until the run is logged."""
    if db.value(sql("session.setting"), "application_name") != label(BACKGROUND):
        raise ObjectNotReady(
            "cerebro.work was called in a session that no other one has opened for it",
            hint="SELECT cerebro.submit(...) begins a run in the background.",
        )
    task = fields.record("task", text)
    db.caller_path, db.caller_schema = fields.kind("path", task.get("path"), str), task.get("schema")

    def logged(run_id: int) -> None:
        db.notice(LOGGED.format(run_id))
        db.leave_client()

    if "fit" in task:
        values = fields.kind("fit", task["fit"], dict)
        fit(db, gd, _arguments("fit", lambda: FitArguments.from_json(values)), version, logged)
    elif "automl" in task:
        values = fields.kind("automl", task["automl"], dict)
        automl.automl(db, gd, _arguments("search", lambda: AutomlArguments(**values)), version, logged)
    elif "train" in task:
        values = fields.kind("train", task["train"], dict)
        training.train(db, gd, _arguments("train", lambda: TrainArguments(**values)), version, logged)
    else:
        resume(db, gd, fields.kind("resume", task.get("resume"), int), logged)


def _arguments(call: str, read: Callable[[], T]) -> T:
    """What a task says that a call is asked."""
    try:
        return read()
    except (TypeError, AttributeError) as error:
        raise InvalidParameter(f"these are no arguments of a {call}: {error}", hint=fields.HINT) from error
