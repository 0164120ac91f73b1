"""Runs that go on without the session that asked for them.

A session of ours is told to do the whole call, and is left alone once it says that the run is
logged. Whoever asks loads no more than that takes: what the call does is loaded by the session that
does it (`background_work`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from cerebro_plpy.configs.run_spec import FitArguments
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.custom_settings import read_settings_for_reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import DONE, wait_for_any
from cerebro_plpy.database.sessions.spi import Database, Globals
from cerebro_plpy.database.sessions.worker_sessions import WorkerSession
from cerebro_plpy.database.table_visibility import refuse_private_tables
from cerebro_plpy.errors import TrainerFailure
from cerebro_plpy.operations.fit.fit_arguments import MODULE, check_arguments
from cerebro_plpy.operations.fit.input_tables import find_inputs
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.trainer_client import settings

Task = Mapping[str, Any]
LOGGED = "run {} goes on in the background"


def submit_fit(db: Database, gd: Globals, arguments: FitArguments) -> int:
    """Begin what a fit call with these arguments would do; the id of its run."""
    check_arguments(arguments)
    refuse_private_tables(db, find_inputs(Catalog(db, MODULE), arguments).get_relations().values())
    return start_background_run(db, gd, {"fit": arguments.to_json()})


def start_background_run(
    db: Database, gd: Globals, task: Task, sources: Sequence[Relation] = ()
) -> int:
    """Have a session of its own do the task, which reads these sources; the id of its run, once
    that is logged.
    """
    custom = read_settings_for_reader(db, sources) if sources else None
    workplace = CallContext(db, gd, settings.read(db), is_local=False, custom_settings=custom)
    caller = {
        "path": db.caller_path,
        "schema": db.caller_schema,
        "settings": dict(db.caller_settings),
    }
    payload = json.dumps({**task, **caller})
    try:
        worker = workplace.open_background()
        worker.start(sql("background.begin"), (payload,))
        run_id = _awaited(workplace, worker)
        workplace.detach(worker)
    except BaseException:
        workplace.close(keep=False)
        raise
    workplace.close(keep=True)
    return run_id


def _awaited(workplace: CallContext, worker: WorkerSession) -> int:
    """Wait until the run is logged; an error before that is raised here."""
    while (wanted := worker.poll()) != DONE:
        for text in worker.take_notices():
            if found := re.fullmatch(LOGGED.format(r"(\d+)"), text):
                return int(found[1])
            workplace.db.notice(text)
        if not wait_for_any([(worker, wanted)]):
            workplace.check()
    raise TrainerFailure("the background session ended without beginning a run")
