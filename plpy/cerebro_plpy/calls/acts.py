"""Acts on a live run, as they are asked for: checked with the rights of whoever asks, and written down for the run.

Whether an act can still be done is known to the run alone, which refuses it in the log otherwise; what can be said
before is said here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from cerebro_plpy.database.caller import Database, Row
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import FeatureNotSupported, InvalidParameter, NullNotAllowed, ObjectNotReady, UndefinedObject

HINT = "SELECT run_id, name, status FROM cerebro.run;"
LIVE = ("running", "paused")
NOTHING: Mapping[str, Any] = {}


class Asked(NamedTuple):
    """What is asked, of which run, and of which configuration of it."""

    action: str
    run_id: int | None
    mst_key: int | None = None


def to_run(db: Database, asked: Asked, change: Mapping[str, Any] = NOTHING) -> int:
    """Ask something of a run; the id of the act."""
    if asked.run_id is None:
        raise NullNotAllowed(f"{asked.action} error: run_id is NULL.", hint=HINT)
    rows = db.glance(sql("act.run"), asked.run_id)
    if not rows:
        raise UndefinedObject(f"{asked.action} error: there is no run {asked.run_id} that you may see.", hint=HINT)
    _check_live(asked, rows[0])
    values = (asked.run_id, asked.action, asked.mst_key, json.dumps(change))
    return int(db.rows(sql("act.add"), *values)[0]["act_id"])


def to_config(db: Database, asked: Asked) -> int:
    """Ask something of one configuration; the id of the act."""
    if asked.mst_key is None:
        raise NullNotAllowed(f"{asked.action} error: mst_key is NULL; expected that of a configuration.")
    return _of_known_config(db, asked, NOTHING)


def set_epochs(db: Database, asked: Asked, epochs: int | None) -> int:
    """Ask for a number of epochs; the id of the act."""
    if epochs is None or epochs < 1:
        raise InvalidParameter(f"set_epochs error: n is {epochs}; expected a number of epochs, at least 1.")
    if asked.mst_key is None:
        return to_run(db, asked, {"epochs": epochs})
    return _of_known_config(db, asked, {"epochs": epochs})


def _of_known_config(db: Database, asked: Asked, change: Mapping[str, Any]) -> int:
    found = asked.run_id is None or db.glance(sql("act.config"), asked.run_id, asked.mst_key)
    if not found and db.glance(sql("act.run"), asked.run_id):
        raise UndefinedObject(
            f"{asked.action} error: run {asked.run_id} has no configuration with mst_key {asked.mst_key}.",
            hint=f"SELECT mst_key, status FROM cerebro.config WHERE run_id = {asked.run_id};",
        )
    return to_run(db, asked, change)


def _check_live(asked: Asked, run: Row) -> None:
    if run["status"] not in LIVE:
        hint = f"SELECT cerebro.resume({asked.run_id});" if run["status"] != "completed" else None
        raise ObjectNotReady(
            f"{asked.action} error: run {asked.run_id} is {run['status']}; it can be steered while it goes on.",
            hint=hint,
        )
    if run["averages"]:
        raise FeatureNotSupported(
            f"{asked.action} error: run {asked.run_id} trains a single model by madlib_fit().",
            hint=f"It can be cancelled: SELECT cerebro.cancel({asked.run_id});",
        )
