"""The SQL functions that list GPUs."""

from __future__ import annotations

import json
from typing import Any

from cerebro_plpy.api.entry import Globals, call, get_database, report_errors
from cerebro_plpy.operations.admin import gpu_configuration
from cerebro_plpy.trainer_client.argument_checks import require


@report_errors
def write(plpy: Any, gd: Globals, output_table: str | None, source: str | None) -> None:
    """Create a table of the GPUs of all hosts."""
    call(plpy, gd, lambda db: gpu_configuration.write(db, output_table, source))


@report_errors
def report(plpy: Any, gd: Globals, source: str | None) -> str:
    """Return the GPUs of this host as JSON."""
    db = get_database(plpy)
    framework = require("source", source)
    return json.dumps(gpu_configuration.list_local_gpus(db, framework))
