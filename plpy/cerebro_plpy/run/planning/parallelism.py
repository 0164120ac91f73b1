"""The choice of how a run is divided among workers, by comparing estimates of strategies.

A strategy is chosen twice: before the trainers start, because their number and threads cannot be
changed afterwards; and when they have started, because only then it is known which programs they
have compiled and how much memory they have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.records import replace
from cerebro_plpy.run.planning.workload import (
    ProgramHistory,
    Trainers,
    TrainerSize,
    describe_work,
)
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.run.workers.workers import has_cache_memory
from cerebro_plpy.scheduling.planning import run_plan
from cerebro_plpy.scheduling.planning.run_plan import (
    AVERAGE,
    LATE,
    MEASURED,
    MOP,
    TASK,
    WIDE,
    PlanInputs,
    Program,
    Strategy,
)
from cerebro_plpy.scheduling.schedule.schedule import AVERAGING
from cerebro_plpy.trainer_client import settings

SHORT_RUN_SECONDS = 10.0
"""A shorter run keeps its number of workers: measurements of one are rough, and the gain small."""


class Comparison(NamedTuple):
    """Everything from which the durations of strategies are estimated."""

    request: FitRequest
    trainers: Trainers
    inputs: PlanInputs
    programs: Sequence[Program]  # with costs for the threads of the trainers
    history: ProgramHistory

    def list_alternatives(self, usual: Strategy) -> Iterator[Strategy]:
        """Yield the other strategies with their estimated durations.

        Of those with other numbers of workers, these are the ones with a known duration, the one
        with all cores, and the largest.
        """
        trainers = self.trainers
        if usual.name in (MOP, TASK) and can_stay(self.request, trainers, trainers.size):
            name = MOP if usual.name == TASK else TASK
            strategy = replace(usual, name=name)
            yield run_plan.estimate_strategy(self.inputs, self.programs, strategy)
        inputs = self.inputs._replace(compiled={})
        for workers, size in self._list_other_sizes().items():
            programs = self.history.convert_threads(
                self.programs, trainers.size.threads, size.threads
            )
            strategy = make_usual_strategy(self.request, trainers, workers, size)
            strategy = run_plan.estimate_strategy(inputs, programs, strategy)
            if strategy.seconds is not None or workers in (1, max(trainers.sizes)):
                yield strategy

    def _list_other_sizes(self) -> Mapping[int, TrainerSize]:
        """Return other numbers of workers whose caches hold all rows, with their trainers' sizes.

        Of several numbers with as many threads per trainer, the largest is taken.
        """
        largest = max(self.trainers.sizes, default=0)
        workers_by_threads: dict[int, int] = {}
        for workers, size in sorted(self.trainers.sizes.items()):
            fits = workers * size.cache_bytes >= self.request.decoded_bytes
            if size.threads != self.trainers.size.threads and (fits or workers == largest):
                workers_by_threads[size.threads] = workers
        return {workers: self.trainers.sizes[workers] for workers in workers_by_threads.values()}


def choose_worker_count(context: CallContext, request: FitRequest) -> int:
    """Return the number of workers of a run whose trainers are still to be started.

    It is that of the request, or smaller with more threads per trainer if this is expected to be
    faster. A replay takes the number for the threads that its run had.
    """
    usual = request.workers
    if context.is_local or request.spec.arguments.workers or request.replay.orders:
        return usual
    threads = context.platform.trainer_threads(usual)
    if not threads:
        return usual
    if request.replay.threads:
        return count_workers_with_threads(threads, request.replay.threads, usual)
    if usual == 1 or not may_choose_workers(request):
        return usual
    history = ProgramHistory(context.control, request)
    strategy = choose_early_strategy(history, request, compute_sizes(context, threads))
    if strategy.workers != usual:
        context.db.info(
            f"{strategy.workers} of {count_nouns(usual, 'worker')}, with "
            f"{count_nouns(strategy.threads, 'thread')} each: by the "
            "times of earlier runs, that is expected to be done sooner"
        )
    return strategy.workers


def compute_sizes(context: CallContext, threads: Mapping[int, int]) -> dict[int, TrainerSize]:
    """Return the sizes of trainers from their threads, both by number of workers."""
    return {
        workers: TrainerSize(count, settings.cache_bytes(context.settings, workers))
        for workers, count in threads.items()
    }


def count_workers_with_threads(threads: Mapping[int, int], required: int, usual: int) -> int:
    """Return the largest number of workers whose trainers have the required threads.

    >>> threads = {1: 8, 2: 4, 3: 2, 4: 2}
    >>> count_workers_with_threads(threads, 4, 4), count_workers_with_threads(threads, 2, 4)
    (2, 4)
    """
    return max((workers for workers, count in threads.items() if count >= required), default=usual)


def may_choose_workers(request: FitRequest) -> bool:
    """Return whether measured times may decide on the number of workers."""
    spec = request.spec
    if spec.search:  # all of its runs have as many
        return False
    if spec.train:  # its budget was planned for the usual number
        return False
    if spec.schedule == AVERAGING:  # all segments train at once
        return False
    return not request.gpus and not request.strategy and bool(request.backends)


def choose_early_strategy(
    history: ProgramHistory, request: FitRequest, sizes: Mapping[int, TrainerSize]
) -> Strategy:
    """Return the strategy of a run whose trainers are still to be started.

    Args:
        sizes: sizes of trainers, by number of workers.
    """
    size = sizes[request.workers]
    trainers = Trainers(request.workers, size, {}, sizes)
    programs: Sequence[Program] = [*history.list_programs(size.threads, {})]
    other_threads = {other_size.threads for other_size in sizes.values()} - {size.threads}
    if not any(_has_costs(history, programs, size.threads, count) for count in other_threads):
        return make_usual_strategy(request, trainers, request.workers, size)
    programs = history.apply_measurements(programs, size.threads)
    inputs = PlanInputs(describe_work(request))
    comparison = Comparison(request, trainers, inputs, programs, history)
    best, alternatives = compare_strategies(comparison, include_all=True)
    if best.seconds is None or best.seconds <= SHORT_RUN_SECONDS:
        return best
    return run_plan.choose_strategy(
        best, [strategy for strategy in alternatives if strategy.workers != request.workers]
    )


def _has_costs(
    history: ProgramHistory, programs: Sequence[Program], threads: int, other_threads: int
) -> bool:
    """Return whether costs with another number of threads may be known."""
    converted = history.convert_threads(programs, threads, other_threads)
    if all(program.row_seconds is not None for program in converted):
        return True
    return bool(history.read_prior_runs(programs, other_threads))


def compare_strategies(
    comparison: Comparison, *, include_all: bool
) -> tuple[Strategy, Sequence[Strategy]]:
    """Return the strategy that a run with its trainers should follow, and the other ones.

    Configurations stay with workers if they can, unless hopping is expected to be much faster, by
    measurements of earlier runs. The duration of a search or of a run with a budget cannot be
    predicted.

    Args:
        include_all: return all other strategies, also of a short run that cannot choose them.
    """
    request = comparison.request
    trainers = comparison.trainers
    inputs = comparison.inputs
    programs = comparison.programs
    usual = make_usual_strategy(request, trainers, trainers.worker_count, trainers.size)
    usual = run_plan.estimate_strategy(inputs, programs, usual)
    is_predictable = not (request.search or request.spec.train)
    may_hop = (
        is_predictable
        and not request.strategy
        and usual.name == TASK
        and all(program.source == MEASURED for program in programs)
    )
    is_long = (usual.seconds or 0.0) > SHORT_RUN_SECONDS
    if not include_all and not is_long:
        may_improve = may_hop and run_plan.may_improve(inputs, programs, usual)
        if not may_improve:
            return usual, ()
    strategies = [usual, *comparison.list_alternatives(usual)]
    hopping = [
        strategy
        for strategy in strategies[1:]
        if may_hop and strategy.name == MOP and strategy.workers == usual.workers
    ]
    best = run_plan.choose_strategy(usual, hopping)
    return best, [strategy for strategy in strategies if strategy is not best]


def make_usual_strategy(
    request: FitRequest, trainers: Trainers, workers: int, size: TrainerSize
) -> Strategy:
    """Return the strategy that a number of workers follows unless another one is faster."""
    cores = max((any_size.threads for any_size in trainers.sizes.values()), default=size.threads)
    if request.spec.schedule == AVERAGING:
        name = LATE if request.spec.copies else AVERAGE
    elif request.strategy == MOP:
        name = MOP
    elif workers == 1 and 1 < size.threads == cores:
        name = WIDE
    elif can_stay(request, trainers, size):
        name = TASK
    else:
        name = MOP
    return Strategy(name, workers, size.threads)


def can_stay(request: FitRequest, trainers: Trainers, size: TrainerSize) -> bool:
    """Return whether configurations can stay with workers that have trainers of this size."""
    return not trainers.are_segment_bound and has_cache_memory(request, size.cache_bytes)


def explain_ignored_strategy(request: FitRequest, trainers: Trainers) -> str | None:
    """Return why a requested strategy is not followed, or None if it is."""
    if request.strategy != TASK or request.plan is None or request.plan.strategy.is_stationary:
        return None
    reason = "not every trainer has room for all rows"
    if trainers.are_segment_bound:
        reason = "each trainer has the rows of its own segment"
    return f"strategy {TASK!r} is not followed: configurations hop, for {reason}"
