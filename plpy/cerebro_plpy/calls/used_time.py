"""The processor time of roles, which quotas limit: counted in a table that no role can write.

A run reports its seconds through the session that writes its log. `count_time` runs as the caller and sees by row
security whose run it is; `add_time` runs as the extension's owner and writes. The request passes between them inside
the process, where no SQL reaches it: neither an argument nor the name of the session decides for whom is counted.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from cerebro_plpy.database.caller import Database
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import InsufficientPrivilege, InvalidParameter, NullNotAllowed
from cerebro_plpy.trainer import machine

MODULE = "count_time"
PENDING = "cerebro_used_time"


class UsedTime(NamedTuple):
    """Processor seconds that a run of a role has used since they were counted last."""

    owner: str
    run_id: int
    seconds: float


def count_time(db: Database, gd: dict[str, Any], run_id: int | None, seconds: float | None) -> bool:
    """Count the seconds for the role that calls; return False if the run is not its own, or is not alive."""
    if run_id is None or seconds is None:
        raise NullNotAllowed(f"{MODULE} error: run_id and seconds must not be NULL.")
    if not (math.isfinite(seconds) and seconds >= 0):
        raise InvalidParameter(f"{MODULE} error: seconds is {seconds}; expected a finite number of at least 0.")
    owners = db.rows(sql("used_time.owner"), run_id)
    if not owners:
        return False
    gd[PENDING] = UsedTime(owners[0]["owner"], run_id, seconds)
    try:
        return bool(db.value(sql("used_time.add")))
    finally:
        gd.pop(PENDING, None)


def add_time(db: Database, gd: dict[str, Any]) -> bool:
    """Add the seconds that `count_time` has left in this process, but no more than the processors can have done.

    Returns False if no call is at work for the run.
    """
    used: UsedTime | None = gd.pop(PENDING, None)
    if used is None:
        raise InsufficientPrivilege("cerebro.add_time counts for cerebro.count_time, and for nobody else")
    times = db.row(sql("used_time.call"), used.run_id, used.owner)
    if times["began"] is None:
        return False
    cores = machine.cores() * db.platform.machines(db)
    db.rows(sql("used_time.forget"), used.owner)
    db.rows(sql("used_time.upsert"), used.owner, used.seconds, cores, times["began"], times["now"])
    return True
