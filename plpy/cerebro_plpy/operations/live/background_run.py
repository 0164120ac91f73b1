"""Runs in the background, which continue without the session that started them.

Another session executes the whole call, and is detached when it reports that the run is logged.
Modules of operations are loaded by that session only (`background_worker`).
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
from cerebro_plpy.operations.fit.cost_limits import convert_intervals
from cerebro_plpy.operations.fit.fit_arguments import MODULE, check_arguments
from cerebro_plpy.operations.fit.input_tables import find_inputs
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.trainer_client import settings

Task = Mapping[str, Any]
"""The JSON of a task: the name of a call with its arguments."""
LOGGED = "run {} goes on in the background"


def submit_fit(db: Database, gd: Globals, arguments: FitArguments) -> int:
    """Start a fit in the background; return the id of its run."""
    arguments = convert_intervals(db, MODULE, arguments)
    check_arguments(arguments)
    refuse_private_tables(db, find_inputs(Catalog(db, MODULE), arguments).get_relations().values())
    return start_background_run(db, gd, {"fit": arguments.to_json()})


def start_background_run(
    db: Database, gd: Globals, task: Task, sources: Sequence[Relation] = ()
) -> int:
    """Have a new session execute a task; return the id of its run when that is logged.

    Args:
        sources: tables that the task reads.
    """
    custom = read_settings_for_reader(db, sources) if sources else None
    context = CallContext(db, gd, settings.read(db), is_local=False, custom_settings=custom)
    caller = {
        "path": db.caller_path,
        "schema": db.caller_schema,
        "settings": dict(db.caller_settings),
    }
    payload = json.dumps({**task, **caller})
    try:
        worker = context.open_background()
        worker.start(sql("background.begin"), (payload,))
        run_id = _wait_for_run(context, worker)
        context.detach(worker)
    except BaseException:
        context.close(keep=False)
        raise
    context.close(keep=True)
    return run_id


def _wait_for_run(context: CallContext, worker: WorkerSession) -> int:
    """Wait until the run is logged, and return its id; raise errors before that."""
    while (event := worker.poll()) != DONE:
        for text in worker.take_notices():
            if match := re.fullmatch(LOGGED.format(r"(\d+)"), text):
                return int(match[1])
            context.db.notice(text)
        if not wait_for_any([(worker, event)]):
            context.check()
    raise TrainerFailure("the background session ended without beginning a run")
