"""Whether a run goes on by the strategy that it has: asked when all configurations have completed
an epoch.

Its plan is compared with what the log has of the visits so far. A change is logged before anything
follows from it; it changes who trains what where, and nothing of what is learned.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.records import replace
from cerebro_plpy.run.log import program_costs
from cerebro_plpy.run.state.run_state import Roster
from cerebro_plpy.run.state.runtime_stats import Measurements
from cerebro_plpy.run.workers.workers import can_stay, list_compilations
from cerebro_plpy.scheduling.planning import replanning
from cerebro_plpy.scheduling.planning.replanning import Replan, StrategyChange
from cerebro_plpy.scheduling.planning.run_plan import MOP, STRATEGY_TEXTS, TASK, RunPlan, Strategy
from cerebro_plpy.scheduling.schedule.scheduling_policies import LONGEST, count_remaining_visits
from cerebro_plpy.scheduling.schedule.worker_affinity import make_affinity

AGAIN = 1.2
"""The run is looked at again when it has gone on for so many times as long as by the last time: a
long one of short epochs is not kept from them by looks."""
Tell = Callable[[str], None]


class Introspection:
    """That of one run, whose `workers` are those that it began with."""

    def __init__(
        self,
        roster: Roster,
        measurements: Measurements,
        workers: Sequence[Worker],
        begun: int,
        tell: Tell,
    ) -> None:
        """By then all configurations have `begun` epochs behind them."""
        self._roster, self._measurements, self._tell = roster, measurements, tell
        self._compiled, self._completed = list_compilations(workers), begun
        self._begun, self._began, self._next = begun, time.monotonic(), 0.0
        self._plan = roster.request.plan if self._open(workers) else None

    def _open(self, workers: Sequence[Worker]) -> bool:
        """Whether configurations may hop or stay, as measured times say; what a search comes to, or
        a run with a budget, nobody knows beforehand, and whoever fixes an order, or names a
        strategy, is heard."""
        request = self._roster.request
        limited = request.search or request.spec.train or request.deadline or request.cost_limits
        asked = request.strategy and not request.replans
        return (
            not (limited or asked)
            and request.spec.schedule == LONGEST
            and can_stay(request, workers)
        )

    def look(self, workers: int) -> None:
        """Hear that visits were stored; so many workers are there."""
        plan, committed = self._plan, self._roster.positions.committed
        if plan is None or not committed or plan.strategy.name not in (MOP, TASK):
            return
        completed = min(
            each.epoch - 1 if not each.finished else self._last for each in committed.values()
        )
        if completed <= self._completed:
            return
        self._completed, took = completed, time.monotonic() - self._began
        if took < self._next:
            return
        self._next = AGAIN * took
        left = {
            key: count_remaining_visits(self._roster.positions.plan, each).train
            for key, each in committed.items()
        }
        alive = {key: visits for key, visits in left.items() if visits}
        if completed < self._last and alive and alive.keys() <= plan.work.rows.keys():
            self._compare(plan, alive, workers, took / (completed - self._begun))

    @property
    def _last(self) -> int:
        return self._roster.positions.plan.epochs

    def _compare(self, plan: RunPlan, visits: Mapping[int, int], workers: int, pace: float) -> None:
        log = self._roster.log.read_costs(plan)
        programs = [program_costs.apply_costs(program, log) for program in plan.programs]
        if not replanning.is_surprising(plan, programs):
            return
        work = replanning.remaining_work(
            replace(plan.work, epochs=self._last), self._completed, visits
        )
        now = Strategy(plan.strategy.name, workers, plan.strategy.threads)
        change = replanning.propose_change(work, programs, self._known(), now, pace)
        self._plan = replace(
            plan, programs=tuple(programs), strategy=change.proposed if change else now
        )
        self._plan = replace(
            self._plan, error=max((each.spread or 0.0 for each in programs), default=0.0)
        )
        if change:
            self._follow(change)

    def _known(self) -> Mapping[int, frozenset[str]]:
        """What workers have compiled, before this run and in it."""
        here = self._measurements.compiled
        return {
            worker: self._compiled.get(worker, frozenset()) | here.get(worker, set())
            for worker in self._compiled.keys() | here.keys()
        }

    def _follow(self, change: StrategyChange) -> None:
        request, log, positions, training = self._roster[:4]
        log.last_decision += 1
        visits = sum(each.visits for each in training.values())
        why = (
            f"the rest is expected to take {change.proposed.seconds:.3g} s instead of "
            f"{change.current.seconds:.3g} s, by what visits have taken in {self._completed} "
            "iterations"
        )
        after = change.proposed.name
        log.log_replan(Replan(log.last_decision, after, self._completed, visits, self._last, why))
        programs = {key: each.compilation for key, each in training.items()}
        stays = (
            make_affinity(request.spec.schedule, programs, self._known())
            if change.proposed.is_stationary
            else None
        )
        positions.residence = stays
        self._tell(f"from now on {STRATEGY_TEXTS[after]}: {why}")
