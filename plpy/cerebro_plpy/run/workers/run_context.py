"""What a run needs of the call that it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.records import dataclass
from cerebro_plpy.run.log.step_log import DecisionRow
from cerebro_plpy.run.request.run_request import Evaluation
from cerebro_plpy.run.workers.admission import RunSlots
from cerebro_plpy.run.workers.sampler import Suggest, suggest_nothing
from cerebro_plpy.scheduling.quota.cost_limits import Usage


class SideWork(Protocol):
    """What the caller's session does during a run, while no worker needs it."""

    def report_trained(self, run_id: int, mst_key: int) -> None:
        """Note that a configuration with a stored state trains no further; it may still fail."""

    def report_finished(self, mst_key: int) -> None:
        """Note that such a configuration has nothing left to do."""

    def do_piece(self) -> bool:
        """Work for some 20 ms; return False if there is nothing to do. May raise."""
        ...


class NoSideWork:
    """See `SideWork`: the session only waits."""

    def report_trained(self, run_id: int, mst_key: int) -> None:
        """Ignore the configuration."""

    def report_finished(self, mst_key: int) -> None:
        """Ignore the configuration."""

    def do_piece(self) -> bool:
        """Return False: there is nothing to do."""
        return False


ReportDecisions = Callable[[Sequence[DecisionRow], Iterable[Evaluation]], None]


def ignore_decisions(rows: Sequence[DecisionRow], evaluations: Iterable[Evaluation]) -> None:
    """Report no decision."""


def ignore_phase(phase: str) -> None:
    """Report no phase."""


def describe_no_time() -> str:
    """Return a text for a run that counts no time."""
    return "some time"


def ignore_wait(seconds: float) -> None:
    """Report no wait."""


@dataclass(frozen=True)
class RunContext:
    """The callbacks of a run."""

    check: Callable[[], None]
    """Called often; raises if the statement is cancelled."""
    report_epoch: Callable[[int, float, Sequence[Evaluation], Mapping[int, float]], None]
    """Takes an epoch that every configuration has completed: its number, its seconds, all
    evaluations so far, and the mean training losses by mst_key."""
    report_failure: Callable[[int, str], None]
    """Takes the mst_key of a configuration that failed, and the reason."""
    notify: Callable[[str], None]
    """Takes other messages for the caller."""
    reopen: Callable[[Worker], bool]
    """Gives a worker a new session after it lost its own; returns False if that is impossible."""
    enter_phase: Callable[[str], None] = ignore_phase
    """Takes what the run does from now on; a constant of `call_status`."""
    exclude_wait: Callable[[float], None] = ignore_wait
    """Takes seconds that the budget does not count, because the run was paused."""
    describe_time: Callable[[], str] = describe_no_time
    """Returns the time that the call has taken, such as `12 s of 300 s`."""
    side_work: SideWork = NoSideWork()
    report_decisions: ReportDecisions = ignore_decisions
    """Takes decisions, and all evaluations so far."""
    suggest: Suggest = suggest_nothing
    """Returns points of the search space to try next."""
    read_usage: Callable[[], Usage] = Usage
    """Returns what the run has cost so far."""
    count_usage: Callable[[], object] = bool
    """Counts that cost for the quota of the role, now and then."""
    slots: RunSlots | None = None
    """The slots that the run shares with others; None if it shares with nobody."""
