"""Runs that go on without the session that asked for them.

A worker session is told to do the whole call, in a procedure, and is left alone once it says that the run is logged.
Its procedure commits whenever it looks for a cancel, so that no snapshot holds back vacuum while it waits for its
workers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from cerebro_plpy.calls.fit import fit
from cerebro_plpy.calls.fit_arguments import MODULE, check_arguments
from cerebro_plpy.calls.inputs import find_inputs
from cerebro_plpy.calls.resume import resume
from cerebro_plpy.configs.spec import FitArguments
from cerebro_plpy.database.caller import Database
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.dispatch import DONE, ready
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions import WorkerSession
from cerebro_plpy.database.visibility import refuse_held
from cerebro_plpy.errors import ObjectNotReady, SegmentLost, TrainerFailure
from cerebro_plpy.platform.workplace import BACKGROUND, Workplace, label
from cerebro_plpy.trainer import settings

Task = Mapping[str, Any]
LOGGED = "run {} goes on in the background"


def submit(db: Database, session: dict[str, Any], arguments: FitArguments) -> int:
    """Begin what a fit call with these arguments would do; the id of its run."""
    check_arguments(arguments)
    refuse_held(db, find_inputs(Catalog(db, MODULE), arguments).relations().values())
    return begin(db, session, {"fit": arguments.to_json()})


def begin(db: Database, session: dict[str, Any], task: Task) -> int:
    """Have a session of its own do the task; the id of its run, once that is logged."""
    place = Workplace(db, session, settings.read(db), local=False)
    payload = json.dumps({**task, "path": db.caller_path, "schema": db.caller_schema})
    try:
        worker = place.background()
        worker.start(sql("background.begin"), (payload,))
        run_id = _awaited(place, worker)
        place.leave(worker)
    except BaseException:
        place.close(keep=False)
        raise
    place.close(keep=True)
    return run_id


def _awaited(place: Workplace, worker: WorkerSession) -> int:
    """Wait until the run is logged; an error before that is raised here."""
    while (wanted := worker.wants()) != DONE:
        for text in worker.messages():
            if found := re.fullmatch(LOGGED.format(r"(\d+)"), text):
                return int(found[1])
            place.db.notice(text)
        if not ready([(worker, wanted)]):
            place.check()
    raise TrainerFailure("the background session ended without beginning a run")


def work(db: Database, session: dict[str, Any], text: str | None, version: str) -> None:
    """Do the task of that text in this session, which has a client until the run is logged."""
    if db.value(sql("session.setting"), "application_name") != label(BACKGROUND):
        raise ObjectNotReady(
            "cerebro.work was called in a session that no other one has opened for it",
            hint="SELECT cerebro.submit(...) begins a run in the background.",
        )
    task = json.loads(text or "{}")
    begun: list[int] = []
    db.caller_path, db.caller_schema = task["path"], task["schema"]

    def logged(run_id: int) -> None:
        db.notice(LOGGED.format(run_id))
        begun.append(run_id)
        db.leave_client()

    try:
        if "fit" in task:
            fit(db, session, FitArguments.from_json(task["fit"]), version, logged)
        else:
            resume(db, session, task["resume"], logged)
    except SegmentLost:
        raise  # this session can do no more, and the log knows
    except BaseException as error:
        for run_id in begun:  # nobody hears of it; where the run itself failed, its log says so already
            db.rollback()
            db.rows(sql("run.outputs_missing"), str(error), run_id)
            db.commit()
        raise
