"""The laws of configs whose epochs are made whole: by one worker, over all segments, in order.

If workers are bound to segments, the worker is that of the last segment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import groupby
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from simulated_runs import Simulation, assert_ordered, due, simulations

from cerebro_plpy.records import replace
from cerebro_plpy.scheduling.schedule.schedule import (
    ConfigProgress,
    Plan,
    Visit,
    VisitBatch,
    abandon,
    begin,
    complete,
    expire,
    start,
    stop,
)
from cerebro_plpy.scheduling.schedule.scheduling_policies import FixedOrder, LongestFirst
from cerebro_plpy.scheduling.schedule.visit_batches import (
    BatchLimit,
    build_whole_batch,
    choose_batches,
)
from cerebro_plpy.scheduling.schedule.worker_affinity import WorkerAffinity

Choice = Callable[..., tuple[tuple[int, VisitBatch], ...]]


@st.composite
def whole_simulations(draw: st.DrawFn) -> Simulation:
    """Runs in which some of the configs make whole epochs; they hop, or stay with workers.

    Workers that are bound to their segments are not shared by configs that stay.
    """
    simulation = draw(simulations().filter(lambda drawn: not drawn.plan.is_averaging))
    random = Random(draw(st.integers()))
    whole_keys = frozenset(key for key in simulation.keys if random.random() < 0.6)
    is_bound = draw(st.booleans())
    plan = replace(simulation.plan, whole_epoch_keys=whole_keys, is_segment_bound=is_bound)
    programs = {key: random.randrange(3) for key in simulation.keys}
    choices: list[Choice] = [choose_batches]
    if not is_bound:
        choices += [WorkerAffinity().choose_batches, WorkerAffinity(programs).choose_batches]
    return replace(simulation, plan=plan, choice=checked(draw(st.sampled_from(choices))))


def checked(choice: Choice) -> Choice:
    """Return the choice with a check of its batches."""

    def choose(*args: Any, **options: Any) -> tuple[tuple[int, VisitBatch], ...]:
        batches = choice(*args, **options)
        plan, configs, idle, *_ = args
        assert len({worker for worker, _ in batches}) == len(batches) <= len(idle)
        for worker, batch in batches:
            key = batch[0].mst_key
            if key in plan.whole_epoch_keys:
                check_whole(configs[key], batch, order_segments(plan, key))
                assert not plan.is_segment_bound or worker == plan.workers[batch[-1].segment_id]
        return batches

    return choose


def order_segments(plan: Plan, key: int) -> list[int]:
    """The ring of the segments, which ends at another one for each config of bound workers."""
    segments = sorted(plan.segments_of(key))
    begin = (key + 1) % len(segments) if plan.is_segment_bound else 0
    return [*segments[begin:], *segments[:begin]]


def check_whole(progress: ConfigProgress, batch: VisitBatch, segments: list[int]) -> None:
    """Each stage of a batch is complete, and in the order of the segments."""
    assert progress.waiting_segments == set(segments) and not progress.running_segments
    for _, stage in groupby(batch, lambda visit: (visit.epoch, visit.kind)):
        assert [visit.segment_id for visit in stage] == segments


@given(whole_simulations())
def test_whole_epochs_are_made_once_in_order_and_with_those_that_are_not_whole(
    simulation: Simulation,
) -> None:
    simulation.run()
    assert Counter(item.visit for item in simulation.log) == Counter(due(simulation))
    assert_ordered(simulation.log)


@given(whole_simulations(), st.integers())
def test_a_whole_epoch_that_fails_is_made_again_from_its_beginning(
    simulation: Simulation, seed: int
) -> None:
    random = Random(seed)
    simulation.fails = lambda visit: random.random() < 0.1
    simulation.run()
    done = Counter(item.visit for item in simulation.log if item.completed)
    assert done == Counter(due(simulation))
    assert_ordered(simulation.log)


@given(whole_simulations())
def test_no_worker_idles_while_a_whole_epoch_could_be_made(simulation: Simulation) -> None:
    plan = simulation.plan
    simulation.choice = checked(choose_batches)
    if isinstance(simulation.policy, FixedOrder):
        simulation.policy = LongestFirst()

    def check(configs: Mapping[int, ConfigProgress], idle: set[int]) -> None:
        for key in plan.whole_epoch_keys & configs.keys():
            if configs[key].waiting_segments and not configs[key].running_segments:
                home = plan.find_home_segment(key)
                able = plan.workers.values() if home is None else [plan.workers[home]]
                assert not idle & set(able)

    simulation.checks = check
    simulation.run()


@given(
    whole_simulations().filter(lambda drawn: drawn.plan.whole_epoch_keys),
    st.integers(0, 12),
    st.booleans(),
    st.booleans(),
    st.integers(),
)
def test_whatever_ends_a_config_its_epochs_are_whole(
    simulation: Simulation, moves: int, kept: bool, stops: bool, seed: int
) -> None:
    """Also if the end comes while an epoch is made, and if that epoch fails."""
    plan, random = simulation.plan, Random(seed)
    key = min(plan.whole_epoch_keys)
    segments = plan.segments_of(key)
    progress = start(plan, key)
    done: list[Visit] = []

    def settle(progress: ConfigProgress, batch: VisitBatch) -> ConfigProgress:
        if not progress.running_segments:  # the end has come before that of the batch
            return progress
        if random.random() < 0.3:
            return abandon(progress, batch)
        done.extend(batch)
        return complete(plan, progress, batch)

    for _ in range(moves):
        if progress.finished:
            break
        batch = build_whole_batch(plan, progress, simulation.limit)
        progress = settle(begin(progress, batch), batch)
    batch = ()
    if not progress.finished and random.random() < 0.5:
        batch = build_whole_batch(plan, progress, simulation.limit)
        progress = begin(progress, batch)

    def end(progress: ConfigProgress) -> ConfigProgress:
        if stops:
            return stop(plan, progress)
        trained = max((visit.epoch for visit in done if visit.kind == "train"), default=0)
        evaluated = any(visit == Visit(trained, key, min(segments), "evaluate") for visit in done)
        return expire(plan, progress, kept, evaluated)

    progress = end(progress)
    if batch:
        progress = end(settle(progress, batch))
    while not progress.finished:
        assert progress.kind == "evaluate" and not progress.awaits_decision
        batch = build_whole_batch(plan, progress, BatchLimit(1))
        progress = end(settle(begin(progress, batch), batch))
    stages = Counter((visit.epoch, visit.kind) for visit in done)
    assert set(stages.values()) <= {len(segments)}
    assert all(times == 1 for times in Counter(done).values())
