"""Runs that a role forges by hand: a row in the log and the lock of an orchestrator, for which no
trainer works.
"""

from __future__ import annotations

from typing import NamedTuple

from workbench import Workbench

TAKE = "SELECT cerebro_internal.take_places(%s, %s, %s, %s)"
ENTER = "SELECT cerebro_internal.enter_queue(%s, %s, %s, %s, %s, %s)"


class Forged(NamedTuple):
    """A run that lives as long as the session of its owner."""

    session: Workbench
    run_id: int
    ticket: str

    def enter(self, fewest: int = 1, most: int = 8, configs: int = 1, steady: bool = False) -> None:
        """Wait for places behind all others."""
        self.session.rows(ENTER, self.run_id, self.ticket, fewest, most, configs, steady)

    def take(self, wanted: int, had: int = 0) -> int:
        """Take places beside those that it had; how many it has then."""
        return int(self.session.value(TAKE, self.run_id, self.ticket, wanted, had))


def forge(session: Workbench) -> Forged:
    """Log a run by hand and hold its lock."""
    run = int(session.value("SELECT nextval('cerebro.run_log_run_id_seq')"))
    ticket = f"ticket {run}"
    session.rows(
        "INSERT INTO cerebro.run_log (run_id, status, spec, pid, epochs, segments, ticket) "
        "OVERRIDING SYSTEM VALUE VALUES (%s, 'running', '{}', pg_backend_pid(), 1, '{0}', %s)",
        run,
        ticket,
    )
    session.rows("SELECT pg_advisory_lock((1667590770::bigint << 32) # %s)", run)
    return Forged(session, run, ticket)


def let_a_minute_pass(administrator: Workbench) -> None:
    """As if nobody had shown for two minutes that they work or wait."""
    administrator.rows("UPDATE cerebro.queue_log SET seen_at = seen_at - interval '2 minutes'")
