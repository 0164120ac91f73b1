"""How a run is divided among workers: the one place that compares strategies by what they would
take, and chooses.

It is asked before trainers start, for their number and width cannot be changed then; and when they
have started, for then it is known what they have compiled and how much room they have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.records import replace
from cerebro_plpy.run.planning.workload import ProgramHistory, Trainers, TrainerSize, describe_work
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
"""A run of so many seconds keeps its number of workers: what was measured of one is mostly rough,
and little can be gained."""


class Comparison(NamedTuple):
    """What strategies are compared by: the run and its trainers, what is known of its programs with
    as many threads, and what the log has beside."""

    request: FitRequest
    trainers: Trainers
    inputs: PlanInputs
    programs: Sequence[Program]
    history: ProgramHistory

    @property
    def usual_strategy(self) -> Strategy:
        """The one that is followed where no other promises much more: where configurations may stay
        they do.
        """
        trainers = self.trainers
        return run_plan.estimate_strategy(
            self.inputs,
            self.programs,
            make_usual_strategy(self.request, trainers, trainers.worker_count, trainers.size),
        )

    def list_alternatives(self, usual: Strategy) -> Iterator[Strategy]:
        """The others, each with what it would take; of other numbers of workers those that are
        known, the one that has all cores, and the largest."""
        request, trainers = self.request, self.trainers
        if usual.name in (MOP, TASK) and can_stay(request, trainers, trainers.size):
            other = replace(usual, name=MOP if usual.name == TASK else TASK)
            yield run_plan.estimate_strategy(self.inputs, self.programs, other)
        for number, width in self._widths().items():
            there = self.history.convert_threads(
                self.programs, trainers.size.threads, width.threads
            )
            other = make_usual_strategy(request, trainers, number, width)
            priced = run_plan.estimate_strategy(self.inputs._replace(compiled={}), there, other)
            if priced.seconds is not None or number in (1, max(trainers.sizes)):
                yield priced

    def _widths(self) -> Mapping[int, TrainerSize]:
        """Other numbers of workers that have room for all rows; of those with as many threads the
        largest.
        """
        found: dict[int, tuple[int, TrainerSize]] = {}
        for number, width in sorted(self.trainers.sizes.items()):
            room = number * width.cache_bytes >= self.request.decoded_bytes or number == max(
                self.trainers.sizes
            )
            if width.threads != self.trainers.size.threads and room:
                found[width.threads] = number, width
        return dict(found.values())


def choose_worker_count(workplace: CallContext, request: FitRequest) -> int:
    """As many as the request has; or fewer with more threads each, where these are expected to be
    done sooner, or where the run had so many threads before."""
    usual, wanted = request.workers, request.replay.threads
    threads = (
        {}
        if workplace.is_local or request.spec.arguments.workers
        else workplace.platform.trainer_threads(usual)
    )
    if not threads or request.replay.orders:
        return usual
    if wanted:
        return count_workers_with_threads(threads, wanted, usual)
    if usual == 1 or not may_choose_workers(request):
        return usual
    found = choose_early_strategy(
        ProgramHistory(workplace.control, request), request, compute_sizes(workplace, threads)
    )
    if found.workers != usual:
        wide = f"{found.workers} of {usual} workers, with {found.threads} threads each"
        workplace.db.info(
            f"{wide}: they are expected to be done sooner, by the times of earlier runs"
        )
    return found.workers


def compute_sizes(workplace: CallContext, threads: Mapping[int, int]) -> dict[int, TrainerSize]:
    """What each trainer would have where there are so many, with as many threads each."""
    return {
        number: TrainerSize(each, settings.cache_bytes(workplace.settings, number))
        for number, each in threads.items()
    }


def count_workers_with_threads(threads: Mapping[int, int], wanted: int, usual: int) -> int:
    """How many workers there are cores for, where each trainer has as many threads as `wanted`.

    >>> threads = {1: 8, 2: 4, 3: 2, 4: 2}
    >>> count_workers_with_threads(threads, 4, 4), count_workers_with_threads(threads, 2, 4)
    (2, 4)
    """
    return max((number for number, each in threads.items() if each >= wanted), default=usual)


def may_choose_workers(request: FitRequest) -> bool:
    """Whether measured times may decide on the number of workers. Not where all segments train at
    once, or on a GPU; a search has as many workers in all of its runs, and a budget was planned for
    the usual number; nor where somebody has said how configurations are divided among them."""
    spec = request.spec
    limited = spec.train or spec.search or request.gpus
    return not (limited or spec.schedule == AVERAGING or request.strategy) and bool(
        request.backends
    )


def choose_early_strategy(
    knowledge: ProgramHistory, request: FitRequest, widths: Mapping[int, TrainerSize]
) -> Strategy:
    """The strategy of a run whose trainers are still to be started, of the usual number or of
    another one.
    """
    usual = widths[request.workers]
    trainers, settled = (
        Trainers(request.workers, usual, {}, widths),
        PlanInputs(describe_work(request)),
    )
    programs: Sequence[Program] = [*knowledge.list_programs(usual.threads, {})]
    others = {width.threads for width in widths.values()} - {usual.threads}
    if not any(_known(knowledge, programs, usual.threads, threads) for threads in others):
        return make_usual_strategy(request, trainers, request.workers, usual)
    programs = knowledge.apply_measurements(programs, usual.threads)
    here, found = compare_strategies(
        Comparison(request, trainers, settled, programs, knowledge), every=True
    )
    if here.seconds is None or here.seconds <= SHORT_RUN_SECONDS:
        return here
    return run_plan.choose_strategy(
        here, [each for each in found if each.workers != request.workers]
    )


def _known(knowledge: ProgramHistory, programs: Sequence[Program], here: int, there: int) -> bool:
    """Whether anything may be told of another number of threads."""
    timed = all(
        program.row_seconds is not None
        for program in knowledge.convert_threads(programs, here, there)
    )
    return timed or bool(knowledge.read_prior_runs(programs, there))


def compare_strategies(
    comparison: Comparison, *, every: bool
) -> tuple[Strategy, Sequence[Strategy]]:
    """The strategy that a run with its trainers is to follow, and others, as far as they may be
    chosen, or `every` one is asked for, or the run is a long one.

    Where configurations may stay they do, unless the run is expected to be over much sooner where
    they hop, and that by what earlier runs have measured. What a search comes to, or a run with a
    budget, nobody knows beforehand.
    """
    request, settled, programs, usual = (
        comparison.request,
        comparison.inputs,
        comparison.programs,
        comparison.usual_strategy,
    )
    known = all(program.source == MEASURED for program in programs)
    undecided = (
        known
        and usual.name == TASK
        and not (request.search or request.spec.train or request.strategy)
    )
    every = every or (usual.seconds or 0.0) > SHORT_RUN_SECONDS
    if not every and not (undecided and run_plan.may_improve(settled, programs, usual)):
        return usual, ()
    others = list(comparison.list_alternatives(usual))
    hopping = [each for each in others if each.name == MOP and each.workers == usual.workers]
    chosen = run_plan.choose_strategy(usual, hopping if undecided else ())
    return chosen, [each for each in (usual, *others) if each is not chosen]


def make_usual_strategy(
    request: FitRequest, trainers: Trainers, number: int, width: TrainerSize
) -> Strategy:
    """The strategy that so many workers usually follow, or are told to."""
    if request.spec.schedule == AVERAGING:
        return Strategy(LATE if request.spec.copies else AVERAGE, number, width.threads)
    if request.strategy == MOP:
        return Strategy(MOP, number, width.threads)
    cores = max((each.threads for each in trainers.sizes.values()), default=width.threads)
    wide = number == 1 and width.threads == cores > 1
    return Strategy(
        WIDE if wide else TASK if can_stay(request, trainers, width) else MOP, number, width.threads
    )


def can_stay(request: FitRequest, trainers: Trainers, width: TrainerSize) -> bool:
    """Whether configurations may stay with workers that have as much each."""
    return not trainers.are_segment_bound and has_cache_memory(request, width.cache_bytes)


def explain_ignored_strategy(request: FitRequest, trainers: Trainers) -> str | None:
    """Return why a strategy that was asked for is not followed, or None if it is."""
    if request.strategy != TASK or request.plan is None or request.plan.strategy.is_stationary:
        return None
    why = (
        "each trainer has the rows of its own segment"
        if trainers.are_segment_bound
        else "not every trainer has room for all rows"
    )
    return f"strategy {TASK!r} is not followed: configurations hop, for {why}"
