"""The processor time of roles, which quotas limit: counted in a table that no role can write.

A run reports its seconds through the session that writes its log. The function runs as the
extension's owner; the ticket proves the run to be the caller's own, as for the queue.
"""

from __future__ import annotations

import math

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import InvalidParameter, NullNotAllowed
from cerebro_plpy.trainer_client.process import host_resources

MODULE = "count_time"


def count_time(db: Database, run_id: int | None, ticket: str | None, seconds: float | None) -> bool:
    """Count the seconds for the owner of the run, but no more than the processors can have done.

    Returns False if the ticket is not the run's, or no call is at work for the run.
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
