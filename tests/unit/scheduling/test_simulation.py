"""Simulated runs obey the laws of real runs; small ones are compared with the best schedule."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import count

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cerebro_plpy.records import replace
from cerebro_plpy.scheduling.planning import run_plan
from cerebro_plpy.scheduling.planning.run_duration import estimate_run, lower_bound
from cerebro_plpy.scheduling.planning.run_plan import (
    AVERAGE,
    MOP,
    TASK,
    UNKNOWN,
    PlanInputs,
    Program,
    Strategy,
    Work,
    choose_strategy,
    estimate_strategy,
)
from cerebro_plpy.scheduling.planning.simulation import Case, ConfigCost, simulate
from cerebro_plpy.scheduling.schedule.placement import assign_segments, divide_segments
from cerebro_plpy.scheduling.schedule.schedule import AVERAGING, Plan

UNITS = (2, 1, 1, 1, 2)
"""Of the five models of figure 5 of the paper on Cerebro, whose epochs take 6, 3, 3, 3 and 6 on
three workers.
"""
SECONDS = st.integers(1, 9).map(float)


def optimum(units: Sequence[int], workers: int) -> int:
    """The least makespan of one epoch, where each worker has a segment: by looking at all
    schedules.
    """
    seen: set[tuple[tuple[int, ...], ...]] = set()

    def possible(
        left: tuple[int, ...], workers_at: tuple[int, ...], configs_at: tuple[int, ...], limit: int
    ) -> bool:
        """Whether the visits that are left, segments by bits, can be over by then."""
        if not any(left):
            return True
        works = [
            sum(unit for unit, each in zip(units, left, strict=True) if each >> worker & 1)
            for worker in range(workers)
        ]
        own = [unit * each.bit_count() for unit, each in zip(units, left, strict=True)]
        if (
            max(map(sum, zip((*workers_at, *configs_at), (*works, *own), strict=True))) > limit
            or (left, workers_at, configs_at) in seen
        ):
            return False
        seen.add((left, workers_at, configs_at))
        return any(
            possible(
                (*left[:config], segments & ~(1 << worker), *left[config + 1 :]),
                (*workers_at[:worker], end, *workers_at[worker + 1 :]),
                (*configs_at[:config], end, *configs_at[config + 1 :]),
                limit,
            )
            for config, segments in enumerate(left)
            for worker in range(workers)
            if segments >> worker & 1
            for end in [max(workers_at[worker], configs_at[config]) + units[config]]
        )

    whole, nobody = tuple([(1 << workers) - 1] * len(units)), ((0,) * workers, (0,) * len(units))
    for limit in count(max(sum(units), workers * max(units))):
        seen.clear()
        if possible(whole, *nobody, limit):
            return limit
    raise AssertionError("some schedule is over at last")


def epoch(units: Sequence[int], workers: int) -> Case:
    """One epoch of configs that take so long on each segment, of which each worker has one."""
    segments = tuple(range(workers))
    costs = {key: ConfigCost(key, float(each)) for key, each in enumerate(units, 1)}
    return Case(Plan(1, segments, {segment: segment for segment in segments}), costs)


def test_the_toy_case_of_the_paper_is_solved() -> None:
    rows = dict(enumerate(UNITS, 1))
    work = Work(1, (), (0, 1, 2), rows, 0.0, "longest")
    programs = [Program(str(key), (key,), "jax", 1, UNKNOWN, row_seconds=1.0) for key in rows]
    mop, task = (
        estimate_strategy(PlanInputs(work), programs, Strategy(name, 3, 1)) for name in (MOP, TASK)
    )
    assert (optimum(UNITS, 3), mop.seconds, task.seconds) == (7, 7.0, 9.0)
    assert choose_strategy(task, [mop]) is mop


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.integers(1, 3))
def test_no_small_run_takes_twice_the_least(units: list[int], workers: int) -> None:
    """As the schedule lets no worker wait that could serve a config."""
    best, case = optimum(units, workers), epoch(units, workers)
    assert lower_bound(case) <= best <= simulate(case).seconds < 2 * best


COSTS = st.dictionaries(
    st.integers(1, 6),
    st.builds(ConfigCost, st.sampled_from("ab"), SECONDS, SECONDS, SECONDS, SECONDS, SECONDS),
    min_size=1,
)


def case_of(
    costs: Mapping[int, ConfigCost],
    epochs: int,
    shape: tuple[int, int],
    schedule: str,
    *,
    stays: bool,
) -> Case:
    """A run over so many segments with so many workers that is evaluated in the end."""
    segments, workers = shape
    numbers = tuple(range(segments))
    plan = Plan(epochs, numbers, assign_segments(numbers, range(workers)), frozenset({epochs}))
    return Case(plan, costs, schedule, stays)


SHAPES = st.integers(1, 4).flatmap(
    lambda segments: st.tuples(st.just(segments), st.integers(1, segments))
)
SCHEDULES = st.sampled_from(["longest", "rotation", "foremost"])


@given(COSTS, st.integers(1, 4), SHAPES, SCHEDULES, st.booleans())
def test_everything_is_done_once_and_no_sooner_than_it_can_be(
    costs: Mapping[int, ConfigCost], epochs: int, shape: tuple[int, int], schedule: str, stays: bool
) -> None:
    case = case_of(costs, epochs, shape, schedule, stays=stays and schedule != "rotation")
    found = simulate(case)
    segments, workers = shape
    assert found.visits == epochs * segments * len(costs)
    assert found.seconds >= lower_bound(case) * (1 - 1e-9)
    assert found.stores <= found.visits
    assert found.compilations <= workers * len({cost.program for cost in costs.values()})
    assert 0 <= found.idle_share < 1
    done = sum(segments * (epochs * cost.train + cost.evaluate) for cost in costs.values())
    assert sum(found.busy_seconds.values()) >= done * (1 - 1e-9)


@given(COSTS, st.integers(1, 4), SHAPES)
@example({1: ConfigCost("a", 9.0), 2: ConfigCost("a", 1.0)}, 1, (2, 2))
def test_a_run_is_bound_by_its_longest_configuration_or_by_all_work(
    costs: Mapping[int, ConfigCost], epochs: int, shape: tuple[int, int]
) -> None:
    case, (segments, workers) = case_of(costs, epochs, shape, "longest", stays=False), shape
    trained = {key: segments * epochs * cost.train for key, cost in costs.items()}
    done = sum(trained.values()) + segments * sum(cost.evaluate for cost in costs.values())
    if max(trained.values()) > done / workers:
        expected = (
            f"the longest configuration, mst_key={max(trained, key=lambda key: trained[key])}"
        )
    else:
        expected = "the work of all configurations together"
    assert run_plan.describe_bottleneck(case) == expected


@given(COSTS, st.integers(1, 4), st.integers(1, 4))
def test_a_single_worker_does_all_one_after_another(
    costs: Mapping[int, ConfigCost], epochs: int, segments: int
) -> None:
    free = {key: ConfigCost(cost.program, cost.train, cost.evaluate) for key, cost in costs.items()}
    case = case_of(free, epochs, (segments, 1), "longest", stays=False)
    done = sum(segments * (epochs * cost.train + cost.evaluate) for cost in free.values())
    assert math.isclose(simulate(case).seconds, done)


@given(COSTS, st.integers(3, 40), st.integers(1, 3))
def test_of_a_long_run_the_first_epochs_tell_the_rest(
    costs: Mapping[int, ConfigCost], epochs: int, segments: int
) -> None:
    free = {
        key: ConfigCost(cost.program, cost.train, cost.evaluate, compile=cost.compile)
        for key, cost in costs.items()
    }
    case = case_of(free, epochs, (segments, 1), "rotation", stays=False)
    short, long = estimate_run(case, 1), simulate(case)
    assert math.isclose(short.seconds, long.seconds)
    assert short.visits == long.visits
    assert estimate_run(case, 10**6) == long


def averaged(
    costs: Mapping[int, ConfigCost], epochs: int, shape: tuple[int, int], copies: int | None = None
) -> Case:
    """A run of which each config is the mean of copies, one for each segment where nobody says how
    many.
    """
    case = case_of(costs, epochs, shape, AVERAGING, stays=False)
    return replace(
        case,
        plan=replace(case.plan, copies=divide_segments(case.plan.segments, copies or shape[0])),
    )


@given(COSTS, st.integers(1, 4), SHAPES, st.integers(1, 4))
def test_what_averages_stores_a_copy_for_each_visit_and_a_mean_for_each_epoch(
    costs: Mapping[int, ConfigCost], epochs: int, shape: tuple[int, int], copies: int
) -> None:
    case = averaged(costs, epochs, shape, min(copies, shape[0]))
    found, segments = simulate(case), shape[0]
    assert found.visits == epochs * segments * len(costs)
    assert found.stores == found.visits + epochs * len(costs)
    assert found.seconds >= lower_bound(case) * (1 - 1e-9)
    assert sum(found.busy_seconds.values()) <= found.seconds * shape[1] * (1 + 1e-9)


@given(
    st.builds(ConfigCost, st.just("a"), SECONDS, SECONDS, SECONDS, SECONDS, SECONDS),
    st.integers(1, 9),
    st.integers(2, 4),
)
def test_copies_of_one_config_are_trained_at_once_and_wait_for_their_mean(
    cost: ConfigCost, epochs: int, workers: int
) -> None:
    """From the second epoch on most workers read the mean; in the end they read it to evaluate
    it.
    """
    found = simulate(averaged({1: cost}, epochs, (workers, workers)))
    mean = workers * cost.hop + cost.store
    trained = cost.compile + epochs * (cost.train + cost.store + mean) + (epochs - 1) * cost.hop
    assert math.isclose(found.seconds, trained + cost.hop + cost.evaluate)


def test_fewer_copies_take_longer_and_read_fewer_states() -> None:
    """Of eight segments at eight workers: each copy goes through two of them, and hops once, before
    there is a mean.
    """
    cost = {1: ConfigCost("a", 10.0, hop=1.0, store=1.0)}
    eight, four = (simulate(averaged(cost, 1, (8, 8), copies)) for copies in (8, 4))
    assert (eight.visits, eight.stores) == (four.visits, four.stores)
    evaluated = 1
    assert math.isclose(eight.seconds, 10 + 1 + (8 + 1) + evaluated)
    assert math.isclose(four.seconds, 2 * (10 + 1) + 1 + (4 + 1) + evaluated)


@pytest.mark.parametrize("copies", [2, 4])
def test_of_many_configs_that_average_means_are_counted_too(copies: int) -> None:
    case = averaged(
        {key: ConfigCost("a", 1.0, hop=0.1, store=0.1) for key in range(1, 66)}, 2, (4, 2), copies
    )
    crowded, found = estimate_run(case), simulate(case)
    assert (crowded.visits, crowded.stores) == (found.visits, found.stores)
    assert math.isclose(crowded.seconds, found.seconds, rel_tol=0.05)


def test_a_run_that_averages_is_foreseen() -> None:
    rows = {1: 100, 2: 100}
    work = Work(40, (40,), (0, 1), rows, 10.0, AVERAGING, copies=2)
    programs = [Program("a", (1, 2), "jax", 1, UNKNOWN, row_seconds=0.01, store=0.1)]
    found = estimate_strategy(PlanInputs(work), programs, Strategy(AVERAGE, 2, 1))
    assert found.seconds is not None and math.isclose(
        found.seconds, 40 * 2 * (1.0 + 0.1 + 0.1 / 2), rel_tol=0.1
    )
