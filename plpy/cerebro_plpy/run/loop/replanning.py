"""Replanning: may a run continue with another strategy? Checked when all configurations complete an
epoch.

The plan is compared with the logged times of the visits so far. A change of strategy is logged
before it takes effect. It decides which worker trains what, and has no influence on the models.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.records import replace
from cerebro_plpy.run.log import program_costs
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.run.loop.step import Step
from cerebro_plpy.run.state.run_state import RunState
from cerebro_plpy.run.state.runtime_stats import RuntimeStats
from cerebro_plpy.run.workers.workers import can_stay, list_compilations
from cerebro_plpy.scheduling.planning import replanning
from cerebro_plpy.scheduling.planning.replanning import Replan, StrategyChange
from cerebro_plpy.scheduling.planning.run_plan import MOP, STRATEGY_TEXTS, TASK, RunPlan, Strategy
from cerebro_plpy.scheduling.schedule.scheduling_policies import LONGEST, count_remaining_visits
from cerebro_plpy.scheduling.schedule.worker_affinity import make_affinity

CHECK_FACTOR = 1.2
"""A run is checked again when it has lasted longer by this factor: checks must not delay a long run
of short epochs."""


class Replanner:
    """The strategy of one run.

    Args:
        workers: the workers with which the run begins.
        epochs: the epochs that all configurations have completed before.
    """

    def __init__(
        self,
        state: RunState,
        stats: RuntimeStats,
        log: RunLog,
        workers: Sequence[Worker],
        epochs: int,
        notify: Callable[[str], None],
    ) -> None:
        self._state = state
        self._stats = stats
        self._log = log
        self._notify = notify
        self._compilations = list_compilations(workers)
        self._first_epochs = epochs
        self._epochs = epochs
        self._began = time.monotonic()
        self._next_check = 0.0  # seconds since the run began
        self._plan = state.request.plan if self._may_replan(workers) else None

    def _may_replan(self, workers: Sequence[Worker]) -> bool:
        """Return True if measured times may decide whether configurations hop or stay.

        Nobody knows the remaining work of a search, or of a run with a budget. A user who sets an
        order or a strategy decides.
        """
        request = self._state.request
        if request.search or request.spec.train or request.deadline or request.cost_limits:
            return False
        if request.strategy and not request.replans:
            return False
        return request.spec.schedule == LONGEST and can_stay(request, workers)

    def check(self, workers: int) -> Step:
        """Compare the plan with the log if all configurations have completed one more epoch.

        Args:
            workers: number of workers now.
        """
        plan = self._plan
        if plan is None or plan.strategy.name not in (MOP, TASK):
            return Step()
        committed = self._state.committed
        if not committed:
            return Step()
        last = self._state.plan.epochs
        epochs = min(
            last if progress.finished else progress.epoch - 1 for progress in committed.values()
        )
        if epochs <= self._epochs:
            return Step()
        self._epochs = epochs
        seconds = time.monotonic() - self._began
        if seconds < self._next_check:
            return Step()
        self._next_check = CHECK_FACTOR * seconds
        remaining = {
            key: count_remaining_visits(self._state.plan, progress).train
            for key, progress in committed.items()
        }
        visits = {key: count for key, count in remaining.items() if count}
        if epochs >= last or not visits or not visits.keys() <= plan.work.rows.keys():
            return Step()
        return self._compare(plan, visits, workers, seconds / (epochs - self._first_epochs))

    def _compare(
        self, plan: RunPlan, visits: Mapping[int, int], workers: int, epoch_seconds: float
    ) -> Step:
        log = self._log.read_costs(plan)
        programs = [program_costs.apply_costs(program, log) for program in plan.programs]
        if not replanning.is_surprising(plan, programs):
            return Step()
        work = replanning.remaining_work(
            replace(plan.work, epochs=self._state.plan.epochs), self._epochs, visits
        )
        current = Strategy(plan.strategy.name, workers, plan.strategy.threads)
        change = replanning.propose_change(
            work, programs, self._list_compiled(), current, epoch_seconds
        )
        self._plan = replace(
            plan,
            programs=tuple(programs),
            strategy=change.proposed if change else current,
            error=max((program.spread or 0.0 for program in programs), default=0.0),
        )
        return self._follow(change) if change else Step()

    def _list_compiled(self) -> Mapping[int, frozenset[str]]:
        """Return what each worker has compiled, before this run and in it."""
        compiled = self._stats.compiled
        return {
            worker: self._compilations.get(worker, frozenset()) | compiled.get(worker, set())
            for worker in self._compilations.keys() | compiled.keys()
        }

    def _follow(self, change: StrategyChange) -> Step:
        state = self._state
        number = state.decisions + 1
        visits = sum(config.visits for config in state.configs.values())
        strategy = change.proposed.name
        reason = (
            f"the rest is expected to take {change.proposed.seconds:.3g} s instead of "
            f"{change.current.seconds:.3g} s, by what visits have taken in "
            f"{count_nouns(self._epochs, 'epoch')}"
        )
        residence = None
        if change.proposed.is_stationary:
            programs = {key: config.compilation for key, config in state.configs.items()}
            schedule = state.request.spec.schedule
            residence = make_affinity(schedule, programs, self._list_compiled())
        replan = Replan(number, strategy, self._epochs, visits, state.plan.epochs, reason)
        return Step(
            log=[self._log.log_replan(replan)],
            changes=[partial(state.count_decisions, 1), partial(state.set_residence, residence)],
            notes=[partial(self._notify, f"from now on {STRATEGY_TEXTS[strategy]}: {reason}")],
        )
