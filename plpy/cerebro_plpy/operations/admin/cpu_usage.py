"""The CPU time of roles, which quotas limit; a table that no role can write contains it.

A run reports its seconds through the session that writes its log. The function runs as the
extension's owner. The ticket proves that the run is the caller's own, as for the queue.
"""

from __future__ import annotations

import math

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import InvalidParameter, NullNotAllowed
from cerebro_plpy.trainer_client.process import host_resources

MODULE = "count_time"


def count_time(db: Database, run_id: int | None, ticket: str | None, seconds: float | None) -> bool:
    """Add CPU seconds to the owner of a run, but no more than its CPUs can have worked.

    Args:
        ticket: proof that the run is the caller's own.

    Returns:
        False if the ticket belongs to another run, or if no call works on the run.
    """
    if run_id is None or ticket is None or seconds is None:
        raise NullNotAllowed(f"{MODULE} error: run_id, ticket and seconds must not be NULL.")
    if not (math.isfinite(seconds) and seconds >= 0):
        raise InvalidParameter(
            f"{MODULE} error: seconds is {seconds}; expected a finite number of at least 0."
        )
    owners = db.rows(sql("used_time.owner"), run_id, ticket)
    if not owners:
        return False
    owner = owners[0]["owner"]
    times = db.row(sql("used_time.call"), run_id, owner)
    if times["began"] is None:
        return False
    cores = host_resources.count_cores() * db.platform.count_machines(db)
    db.rows(sql("used_time.forget"), owner)
    db.rows(sql("used_time.upsert"), owner, seconds, cores, times["began"], times["now"])
    return True
