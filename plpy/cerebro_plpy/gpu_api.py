"""The SQL functions that tell which GPUs there are; see `api` and `segment_api`."""

from __future__ import annotations

import json
from typing import Any

from cerebro_plpy import given, gpu_configuration
from cerebro_plpy.api import Globals, call
from cerebro_plpy.db import Database, raise_to_sql


def write(plpy: Any, session: Globals, output_table: str | None, source: str | None) -> None:
    """Make a table of the GPUs of all hosts."""
    call(plpy, session, lambda db: gpu_configuration.write(db, output_table, source))


def report(plpy: Any, session: Globals, source: str | None) -> str:
    """The GPUs of this host, as JSON."""

    def found() -> str:
        return json.dumps(gpu_configuration.of_this_host(Database(plpy), given.needed("source", source)))

    return raise_to_sql(plpy, found)
