"""The laws of the schedule, checked on every event of simulated runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise, product
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_runs import (
    KEYS,
    Logged,
    Seconds,
    Simulation,
    assert_ordered,
    due,
    group,
    overlapping,
    plan_of,
    plans,
    simulations,
)
from trials import trials

from cerebro_plpy.records import dataclass, field, replace
from cerebro_plpy.scheduling.schedule.schedule import (
    ConfigProgress,
    Kind,
    Plan,
    Visit,
    VisitBatch,
    abandon,
    begin,
    complete,
    end,
    expire,
    is_epoch_complete,
    is_run_finished,
    resume,
    rotate_copies,
    start,
    stop,
)
from cerebro_plpy.scheduling.schedule.scheduling_policies import (
    FixedOrder,
    LongestFirst,
    Prioritised,
    RemainingVisits,
    count_remaining_visits,
    make_foremost,
    make_replay,
    make_rotation,
)
from cerebro_plpy.scheduling.schedule.visit_batches import (
    BatchLimit,
    Policy,
    Preference,
    choose_batches,
)
from cerebro_plpy.scheduling.schedule.worker_affinity import WorkerAffinity


def assert_exclusive(log: list[Logged], plan: Plan) -> None:
    """One visit at a time per worker and segment; nothing of a config beside a visit that changes
    its state.
    """
    assert not any(overlapping(items) for items in group(log, lambda item: item.worker))
    assert not any(overlapping(items) for items in group(log, lambda item: item.visit.segment_id))
    for items in group(log, lambda item: item.visit.mst_key):
        for one, two in product(items, items):
            beside = one is not two and one.started < two.ended and two.started < one.ended
            assert not beside or (
                one.visit.kind == two.visit.kind and one.visit.epoch == two.visit.epoch
            )
            assert (
                not beside
                or one.visit.kind == "evaluate"
                or (plan.is_averaging and one.visit.kind == "train")
            )


@given(plans().filter(lambda plan: plan.is_averaging), KEYS, st.integers())
def test_each_copy_visits_its_segments_in_turn_whatever_takes_long(
    plan: Plan, keys: tuple[int, ...], seed: int
) -> None:
    random = Random(seed)
    simulation = Simulation(plan, keys, lambda visit: random.choice([0.1, 1, 7]), LongestFirst())
    simulation.fails = lambda visit: random.random() < 0.2
    simulation.run()
    trained = [item for item in simulation.log if item.visit.kind == "train"]
    for items in group(trained, lambda item: (item.visit.mst_key, item.visit.epoch)):
        for copy in rotate_copies(plan.copies, items[0].visit.mst_key):
            own = sorted(
                (item for item in items if item.visit.segment_id in copy),
                key=lambda item: item.started,
            )
            assert not overlapping(own)
            assert [item.visit.segment_id for item in own if item.completed] == [*copy]


@given(simulations())
def test_every_config_visits_every_segment_once_and_alone(simulation: Simulation) -> None:
    simulation.run()
    assert Counter(item.visit for item in simulation.log) == Counter(due(simulation))
    assert_exclusive(simulation.log, simulation.plan)
    assert_ordered(simulation.log)
    assert is_run_finished(simulation.left)


@given(simulations(), st.integers())
def test_failures_and_stopped_configs_hold_up_nothing(simulation: Simulation, seed: int) -> None:
    random = Random(seed)
    gone: set[int] = set()

    def vanishes(visit: Visit) -> bool:
        if random.random() < 0.05:
            gone.add(visit.mst_key)
        return visit.mst_key in gone

    simulation.fails = lambda visit: random.random() < 0.2
    simulation.vanishes = vanishes
    simulation.run()
    done = Counter(item.visit for item in simulation.log if item.completed)
    assert all(times == 1 for times in done.values())
    assert {visit for visit in due(simulation) if visit.mst_key not in gone} <= done.keys()
    assert_exclusive(simulation.log, simulation.plan)
    assert_ordered(simulation.log)


def could_start(plan: Plan, progress: ConfigProgress, worker: int) -> bool:
    """Told from the definition, not from the scheduler: a state at rest, and a segment of the
    worker due.
    """
    if progress.kind == "train" and plan.is_averaging:
        copies = [
            copy
            for copy in rotate_copies(plan.copies, progress.mst_key)
            if not progress.running_segments & {*copy}
        ]
        following = [
            [segment for segment in copy if segment in progress.waiting_segments][:1]
            for copy in copies
        ]
        return any(plan.workers[segment] == worker for each in following for segment in each)
    moving = progress.kind == "train" and progress.running_segments
    return not moving and any(
        plan.workers[segment] == worker for segment in progress.waiting_segments
    )


@given(simulations())
def test_no_worker_idles_while_a_config_could_run_there(simulation: Simulation) -> None:
    plan = simulation.plan

    def check(configs: Mapping[int, ConfigProgress], idle: set[int]) -> None:
        if not isinstance(simulation.policy, FixedOrder):
            assert not any(
                could_start(plan, item, worker) for item in configs.values() for worker in idle
            )

    simulation.checks = check
    simulation.run()


@given(simulations())
def test_a_worker_that_has_trained_a_state_to_be_evaluated_goes_on_with_that(
    simulation: Simulation,
) -> None:
    if isinstance(simulation.policy, FixedOrder):
        return  # there ranks say who goes first
    simulation.run()
    last: dict[tuple[int, int], Visit] = {}
    for item in simulation.log:
        if item.visit.kind != "evaluate" and item.visit.epoch in simulation.plan.evaluate_epochs:
            last[item.visit.mst_key, item.visit.epoch] = item.visit
    for items in group(simulation.log, lambda item: item.worker):
        for one, two in pairwise(items):
            if one.visit in last.values():
                assert (two.visit.kind, two.visit.mst_key) == ("evaluate", one.visit.mst_key)


@given(simulations())
def test_the_same_question_has_the_same_answer(simulation: Simulation) -> None:
    plan, keys = simulation.plan, simulation.keys
    configs = {key: start(plan, key) for key in keys}
    shuffled = {key: configs[key] for key in reversed(keys)}
    workers = sorted(set(plan.workers.values()))
    answer = choose_batches(
        plan, configs, workers, simulation.policy, lambda progress: simulation.limit
    )
    assert answer == choose_batches(
        plan, shuffled, workers[::-1], simulation.policy, lambda progress: simulation.limit
    )
    for _, batch in answer:
        kinds = [kind for kind, _ in groupby(visit.kind for visit in batch)]
        assert (
            1
            <= len([visit for visit in batch if visit.kind == batch[0].kind])
            <= simulation.limit.visits
        )
        assert kinds[0] == "evaluate" or kinds.count("evaluate") <= simulation.limit.evaluations


@given(simulations())
def test_a_fixed_order_is_followed(simulation: Simulation) -> None:
    simulation.run()
    if simulation.plan.is_averaging:
        return
    logged = orders_of(simulation.log)
    if isinstance(simulation.policy, FixedOrder):
        for (key, epoch), segments in logged.items():
            assert segments == visited(simulation.plan, key, simulation.policy.order(key, epoch))
    again = Simulation(simulation.plan, simulation.keys, lambda visit: 1.0, make_replay(logged))
    again.run()
    assert orders_of(again.log) == logged


def visited(plan: Plan, key: int, order: Sequence[int]) -> list[int]:
    """What of an order a config keeps to: the segments that it visits."""
    return [segment for segment in order if segment in plan.segments_of(key)]


def wanted(plan: Plan, progress: ConfigProgress, order: Sequence[int]) -> set[int]:
    """Told from the definition: the segments that a config could use at once, were all workers
    idle.
    """
    if progress.kind == "evaluate":
        return set(progress.waiting_segments)
    return (
        set()
        if progress.running_segments
        else set([s for s in order if s in progress.waiting_segments][:1])
    )


@given(simulations())
def test_the_foremost_keep_the_orders_of_rotation_and_wait_for_nobody_behind_them(
    simulation: Simulation,
) -> None:
    """At each choice: no idle worker is one that some config wants, and none that a config wants
    serves a later one.
    """
    plan, keys = replace(simulation.plan, copies=()), simulation.keys
    ring = make_rotation(keys, plan.segments)
    asked: list[tuple[Mapping[int, ConfigProgress], set[int]]] = []

    class Watched:
        def prefer(self, plan: Plan, configs: Mapping[int, ConfigProgress]) -> Preference:
            asked.append((dict(configs), set()))
            return make_foremost(keys, plan.segments).prefer(plan, configs)

    def check(configs: Mapping[int, ConfigProgress], idle: set[int]) -> None:
        before = asked[-1][0]
        taken = {
            key: configs[key].running_segments - before[key].running_segments for key in configs
        }
        for key in configs:
            wants = wanted(plan, before[key], ring.order(key, before[key].epoch)) - taken[key]
            workers = {plan.workers[segment] for segment in wants}
            assert not workers & idle, "a fixed order keeps as few workers idle as it can"
            behind = {
                plan.workers[segment]
                for other in configs
                if other > key
                for segment in taken[other]
            }
            assert not workers & behind, "who is foremost goes first"

    run = Simulation(plan, keys, simulation.seconds, Watched(), checks=check)
    run.run()
    assert orders_of(run.log) == {
        (key, epoch): visited(plan, key, ring.order(key, epoch))
        for key, epoch in product(keys, range(1, plan.epochs + 1))
    }
    again = Simulation(plan, keys, lambda visit: 1.0, make_replay(orders_of(run.log)))
    again.run()
    assert orders_of(again.log) == orders_of(run.log)


@pytest.mark.parametrize(
    ("segments", "configs", "epochs"), [(1, 8, 3), (2, 8, 3), (4, 16, 5), (4, 20, 10)]
)
def test_half_way_some_of_the_foremost_are_done_and_none_by_rotation(
    segments: int, configs: int, epochs: int
) -> None:
    plan, keys = plan_of(segments, epochs), tuple(range(configs))

    def done(policy: Policy) -> list[int]:
        simulation = Simulation(plan, keys, jittered(1), policy)
        half = simulation.run() / 2
        ends = {
            key: max(item.ended for item in simulation.log if item.visit.mst_key == key)
            for key in keys
        }
        return [key for key in keys if ends[key] <= half]

    assert done(make_rotation(keys, plan.segments)) == []
    found = done(make_foremost(keys, plan.segments))
    assert found == list(range(len(found))) and len(found) >= configs // 4


@given(simulations(), st.integers())
def test_a_config_that_stays_keeps_to_its_order_and_to_one_worker(
    simulation: Simulation, seed: int
) -> None:
    """And no worker idles while a config waits that is its own, or nobody's."""
    plan, keys, random = replace(simulation.plan, copies=()), simulation.keys, Random(seed)

    def check(configs: Mapping[int, ConfigProgress], idle: set[int]) -> None:
        homes = {item.visit.mst_key: item.worker for item in run.log}
        at_rest = [
            key
            for key, each in configs.items()
            if each.waiting_segments and not each.running_segments
        ]
        assert not idle & {homes[key] for key in at_rest if key in homes}
        assert not idle or all(key in homes for key in at_rest)

    run = Simulation(
        plan,
        keys,
        simulation.seconds,
        make_foremost(keys, plan.segments),
        choice=WorkerAffinity().choose_batches,
    )
    run.limit = BatchLimit(random.choice([1, 2, 9]), random.choice([0, 1, 9]))
    run.checks, run.fails = check, lambda visit: random.random() < 0.2
    run.run()
    done = [item for item in run.log if item.completed]
    assert Counter(item.visit for item in done) == Counter(due(replace(simulation, plan=plan)))
    assert_ordered(run.log)
    assert all(
        len({item.worker for item in items}) == 1
        for items in group(run.log, lambda item: item.visit.mst_key)
    )
    assert not any(overlapping(items) for items in group(run.log, lambda item: item.worker))
    ring = make_rotation(keys, plan.segments)
    assert orders_of(done) == {
        (key, epoch): visited(plan, key, ring.order(key, epoch))
        for key, epoch in product(keys, range(1, plan.epochs + 1))
    }


@given(simulations(), st.integers())
def test_configs_side_by_side_go_on_where_they_are(simulation: Simulation, seed: int) -> None:
    """No worker idles while a config waits; who has begun an epoch goes on with it; and who finds
    one with a program of its own compiles no other's."""
    plan, keys, random = replace(simulation.plan, copies=()), simulation.keys, Random(seed)
    programs = {key: random.randrange(4) for key in keys}
    orders = {key: random.sample(plan.segments, len(plan.segments)) for key in keys}
    policies: list[Policy] = [LongestFirst(), FixedOrder(lambda mst_key, epoch: orders[mst_key])]

    def check(configs: Mapping[int, ConfigProgress], idle: set[int]) -> None:
        assert not idle or not any(
            each.waiting_segments and not each.running_segments for each in configs.values()
        )

    run = Simulation(
        plan,
        keys,
        simulation.seconds,
        random.choice(policies),
        choice=WorkerAffinity(programs).choose_batches,
    )
    run.limit = BatchLimit(random.choice([1, 2, 9]), random.choice([0, 1, 9]))
    run.checks, run.fails = check, lambda visit: random.random() < 0.2
    run.run()
    done = [item for item in run.log if item.completed]
    assert Counter(item.visit for item in done) == Counter(due(replace(simulation, plan=plan)))
    assert_ordered(run.log)
    assert not any(overlapping(items) for items in group(run.log, lambda item: item.worker))
    trained = [item for item in run.log if item.visit.kind == "train"]
    assert not any(overlapping(items) for items in group(trained, lambda item: item.visit.mst_key))
    if isinstance(run.policy, FixedOrder):
        assert all(
            order == visited(plan, key, orders[key]) for (key, _), order in orders_of(done).items()
        )


@given(simulations(), st.integers(), st.booleans())
def test_who_is_to_go_first_does_wherever_it_may_be_trained(
    simulation: Simulation, seed: int, stays: bool
) -> None:
    """A worker takes another one only if those that are to go first are with others, or are at
    home elsewhere and stay there.
    """
    plan, keys, random = replace(simulation.plan, copies=()), simulation.keys, Random(seed)
    first = random.sample(keys, random.randint(0, len(keys)))
    affinity = WorkerAffinity(None if stays else {key: random.randrange(4) for key in keys})

    def choose(
        plan: Plan, configs: Mapping[int, ConfigProgress], idle: Sequence[int], *more: Any
    ) -> tuple[tuple[int, VisitBatch], ...]:
        homes = {key: affinity.home_of(key) for key in first}
        batches = affinity.choose_batches(plan, configs, idle, *more)
        taken = {batch[0].mst_key for _, batch in batches}
        passed_over = [key for key in first if key not in taken and configs[key].startable_segments]
        others = {worker for worker, batch in batches if batch[0].mst_key not in first}
        if others:
            assert stays or not passed_over
            assert all(homes[key] not in {None, *others} for key in passed_over)
        return batches

    policy = make_foremost(keys, plan.segments) if stays else simulation.policy
    run = Simulation(plan, keys, simulation.seconds, Prioritised(policy, first), choice=choose)
    run.limit = BatchLimit(random.choice([1, 2, 9]), random.choice([0, 1, 9]))
    run.run()
    done = [item for item in run.log if item.completed]
    assert Counter(item.visit for item in done) == Counter(due(replace(simulation, plan=plan)))
    configs = {key: start(plan, key) for key in keys}
    ranked = [each.mst_key for each in Prioritised(policy, first).prefer(plan, configs).ranked]
    usual = [each.mst_key for each in policy.prefer(plan, configs).ranked]
    assert ranked == [*first, *(key for key in usual if key not in first)]


def test_workers_with_as_much_to_do_share_no_program_and_move_no_config() -> None:
    plan, programs = plan_of(2, epochs=3), {key: key % 4 for key in range(8)}
    run = Simulation(
        plan,
        tuple(programs),
        lambda visit: 1.0,
        LongestFirst(),
        choice=WorkerAffinity(programs).choose_batches,
    )
    assert run.run() == 24
    assert all(
        len({item.worker for item in items}) == 1
        for items in group(run.log, lambda v: v.visit.mst_key)
    )
    assert all(
        len({item.worker for item in items}) == 1
        for items in group(run.log, lambda v: programs[v.visit.mst_key])
    )
    for items in group(run.log, lambda item: item.worker):
        assert all(
            one.visit.mst_key == two.visit.mst_key
            for one, two in zip(items[::2], items[1::2], strict=True)
        )


@pytest.mark.parametrize("evens", [0, 1])
def test_who_has_a_program_from_an_earlier_run_goes_on_with_it(evens: int) -> None:
    programs = {key: key % 2 for key in range(6)}
    home = WorkerAffinity(programs, {evens: [0], 1 - evens: [1]})
    run = Simulation(
        plan_of(2, 2),
        tuple(programs),
        lambda visit: 1.0,
        LongestFirst(),
        choice=home.choose_batches,
    )
    run.run()
    assert all(
        item.worker == (evens if item.visit.mst_key % 2 == 0 else 1 - evens) for item in run.log
    )


@pytest.mark.parametrize("lost", [False, True])
def test_what_only_a_lost_worker_had_compiled_goes_to_anybody(lost: bool) -> None:
    """Until then who has another program leaves it alone, though its config is the first in
    turn.
    """
    plan, home = plan_of(2, 2), WorkerAffinity({1: "a", 2: "b"}, {0: ["a"], 1: ["b"]})
    home.assign(1, 0)
    if lost:
        home.remove_worker(0)
    configs = {key: start(plan, key) for key in (1, 2)}
    ((worker, batch),) = home.choose_batches(
        plan, configs, [1], make_rotation((1, 2), plan.segments), lambda progress: BatchLimit(1)
    )
    assert (worker, batch[0].mst_key) == (1, 1 if lost else 2)


def test_who_has_nothing_left_takes_what_is_at_home_with_others() -> None:
    """As soon as one of its configs waits: so neither ends much later than the other."""
    seconds = {key: 9.0 if key < 3 else 1.0 for key in range(9)}
    home = WorkerAffinity({key: key < 3 for key in seconds})
    run = Simulation(
        plan_of(2, 2),
        tuple(seconds),
        lambda v: seconds[v.mst_key],
        LongestFirst(),
        choice=home.choose_batches,
    )
    assert run.run() <= 4 * sum(seconds.values()) / 2 + max(seconds.values())


def orders_of(log: list[Logged]) -> dict[tuple[int, int], list[int]]:
    """The segments that each config trained on, in the order in which it did, by (mst_key,
    epoch).
    """
    orders: dict[tuple[int, int], list[int]] = {}
    for item in log:
        if item.visit.kind == "train":
            orders.setdefault((item.visit.mst_key, item.visit.epoch), []).append(
                item.visit.segment_id
            )
    return orders


@given(simulations(), st.integers(0, 60))
def test_a_resumed_config_goes_on_where_it_was(simulation: Simulation, cut: int) -> None:
    simulation.run()
    completed = [item.visit for item in simulation.log[:cut]]
    for key in simulation.keys:
        progress = resume(simulation.plan, key, completed)
        own = {visit for visit in completed if visit.mst_key == key}
        remaining = {visit for visit in due(simulation) if visit.mst_key == key} - own
        assert sum(count_remaining_visits(simulation.plan, progress)) == len(
            [v for v in remaining if v.kind != "average"]
        )
        stage = {
            visit.segment_id
            for visit in remaining
            if (visit.epoch, visit.kind) == (progress.epoch, progress.kind)
        }
        assert progress.waiting_segments == stage and not progress.running_segments


@given(simulations())
def test_remaining_visits_count_down_to_nothing(simulation: Simulation) -> None:
    plan, key = simulation.plan, simulation.keys[0]
    progress = start(plan, key)
    expected = Counter(visit.kind for visit in due(simulation) if visit.mst_key == key)
    while not progress.finished:
        assert count_remaining_visits(plan, progress) == RemainingVisits(
            expected["train"], expected["evaluate"]
        )
        visit = Visit(progress.epoch, key, max(progress.startable_segments), progress.kind)
        running = begin(progress, (visit,))
        assert count_remaining_visits(plan, running) == count_remaining_visits(plan, progress)
        assert abandon(running, (visit,)) == progress
        progress = complete(plan, running, (visit,))
        expected[visit.kind] -= 1
    assert count_remaining_visits(plan, progress) == RemainingVisits(0, 0)


@given(simulations(), st.integers(0, 60))
def test_a_config_that_stops_ends_with_a_whole_state(simulation: Simulation, cut: int) -> None:
    """Where states are averaged, those of an epoch that was begun are; nothing begins after it."""
    plan, key = simulation.plan, simulation.keys[0]
    progress = start(plan, key)
    done: list[Visit] = []

    def step(progress: ConfigProgress) -> ConfigProgress:
        done.append(Visit(progress.epoch, key, max(progress.startable_segments), progress.kind))
        return complete(plan, begin(progress, (done[-1],)), (done[-1],))

    while not progress.finished and len(done) < cut:
        progress = step(progress)
    begun, (progress, before) = (
        {v.epoch for v in done if v.kind == "train"},
        (stop(plan, progress), len(done)),
    )
    while not progress.finished:
        progress = step(progress)
    assert {v.epoch for v in done if v.kind == "train"} == begun
    if plan.is_averaging:
        assert {v.epoch for v in done if v.kind == "average"} == begun
    else:
        assert all(v.kind == "evaluate" for v in done[before:])


@dataclass
class Lone:
    """A config alone with its plan, worked through visit by visit; `kept` is whether a model of it
    is kept.
    """

    plan: Plan
    progress: ConfigProgress
    random: Random
    kept: bool
    done: list[Visit] = field(default_factory=list)
    over: bool = False

    @property
    def newest(self) -> int:
        """The epoch of the newest state, 0 without any."""
        kind = "average" if self.plan.is_averaging else "train"
        return max((visit.epoch for visit in self.done if visit.kind == kind), default=0)

    def evaluated(self, epoch: int) -> bool:
        return sum(v.kind == "evaluate" and v.epoch == epoch for v in self.done) == len(
            self.plan.segments_of(self.progress.mst_key)
        )

    def expire(self) -> None:
        self.over = True
        before, self.progress = self.progress, self.expired()
        for segment in before.running_segments - self.progress.running_segments:
            if self.random.random() < 0.5:  # it comes to its end all the same
                self.done.append(Visit(before.epoch, before.mst_key, segment, before.kind))

    def expired(self) -> ConfigProgress:
        return expire(self.plan, self.progress, self.kept, self.evaluated(self.newest))

    def begin(self) -> None:
        visit = Visit(
            self.progress.epoch,
            self.progress.mst_key,
            max(self.progress.startable_segments),
            self.progress.kind,
        )
        assert visit.kind != "train" or not self.over, "no training visit begins"
        self.progress = begin(self.progress, (visit,))

    def move(self, failing: float) -> None:
        """Begin a visit, or see one end, which may fail."""
        progress = self.progress
        if not progress.running_segments or (
            progress.startable_segments and self.random.random() < 0.5
        ):
            return self.begin()
        visit = Visit(
            progress.epoch, progress.mst_key, min(progress.running_segments), progress.kind
        )
        if self.random.random() < failing:
            self.progress = abandon(progress, (visit,))
        else:
            self.done.append(visit)
            self.progress = complete(self.plan, progress, (visit,))


@given(simulations(), st.integers(0, 60), st.booleans(), st.sampled_from([0, 0.3]), st.integers())
def test_after_the_last_visit_a_config_comes_to_its_end(
    simulation: Simulation, cut: int, kept: bool, failing: float, seed: int
) -> None:
    """It trains no further; its newest state is evaluated once, or it has a model, or it has done
    nothing.
    """
    plan, key = simulation.plan, simulation.keys[0]
    lone = Lone(plan, start(plan, key), Random(seed), kept)
    while not lone.progress.finished and cut:
        lone.move(failing)
        cut -= 1
    before = list(lone.done)
    lone.expire()
    while not lone.progress.finished:
        assert lone.expired() == lone.progress
        lone.move(failing)
        lone.expire()
    trained = [v for v in lone.done[len(before) :] if v.kind == "train"]
    assert len(trained) <= (len(plan.segments) if plan.is_averaging else 1), (
        "what ran may have ended by itself"
    )
    assert all(times == 1 for times in Counter(lone.done).values())
    if lone.newest == 0:
        assert not any(v.kind == "evaluate" for v in lone.done)
    elif not kept and plan.evaluations and lone.newest < plan.epochs:
        assert lone.evaluated(lone.newest)
    late = {v.epoch for v in lone.done[len(before) :] if v.kind == "evaluate"}
    assert not kept or late <= plan.evaluate_epochs, "beside a model only what is due is evaluated"
    assert end(lone.progress) == lone.progress


def test_a_visit_does_not_count_if_a_model_is_kept_and_the_epoch_cannot_be_completed() -> None:
    plan = plan_of(3, epochs=2, evaluate=frozenset({1}))
    running = begin(start(plan, 1), (Visit(1, 1, 0, "train"),))
    assert expire(plan, running, has_retained_state=True, evaluated=False) == end(running)
    assert expire(plan, running, has_retained_state=False, evaluated=True) == running
    done = complete(plan, running, (Visit(1, 1, 0, "train"),))
    partial = expire(plan, done, has_retained_state=False, evaluated=False)
    assert partial == ConfigProgress(1, 1, "evaluate", frozenset({0, 1, 2}), stopping=True)


def makespan(durations: Mapping[int, float], plan: Plan, policy: Policy) -> float:
    return Simulation(plan, tuple(durations), lambda visit: durations[visit.mst_key], policy).run()


def lower_bound(durations: Mapping[int, float], plan: Plan) -> float:
    """No schedule without barriers ends earlier: workers' work, and the longest config's own
    work.
    """
    segments = len(plan.segments)
    return plan.epochs * max(sum(durations.values()), segments * max(durations.values()))


@pytest.mark.parametrize(("segments", "configs", "epochs"), [
    (1, 5, 2), (3, 3, 1), (4, 4, 3), (5, 5, 2), (8, 8, 2), (8, 16, 2), (4, 12, 3), (7, 21, 1), (5,
    2, 3)
])  # fmt: skip
def test_rotation_is_optimal_for_equal_times(segments: int, configs: int, epochs: int) -> None:
    durations, plan = dict.fromkeys(range(configs), 1.0), plan_of(segments, epochs)
    assert makespan(durations, plan, make_rotation(tuple(durations), plan.segments)) == lower_bound(
        durations, plan
    )


def test_configs_spread_over_the_segments_from_their_own_places() -> None:
    plan, keys = plan_of(3), (30, 20, 10)
    spread = [(0, 10, 0), (1, 20, 1), (2, 30, 2)]
    for policy in (
        LongestFirst(),
        make_rotation(keys, plan.segments),
        make_rotation(keys[::-1], plan.segments),
    ):
        chosen = choose_batches(
            plan,
            {key: start(plan, key) for key in keys},
            (2, 1, 0),
            policy,
            lambda progress: BatchLimit(1),
        )
        assert (
            sorted((worker, visit.mst_key, visit.segment_id) for worker, (visit,) in chosen)
            == spread
        )


def test_workers_do_not_begin_with_the_same_program() -> None:
    """In whatever order the keys are; who has more to do goes first all the same."""
    plan, programs = plan_of(3), {1: "a", 2: "a", 3: "a", 4: "b", 5: "b", 6: "c"}
    begun = {key: start(plan, key) for key in programs}

    def first(seconds: Mapping[tuple[int, Kind], float]) -> set[int]:
        chosen = choose_batches(
            plan, begun, (0, 1, 2), LongestFirst(seconds, programs), lambda progress: BatchLimit(1)
        )
        return {batch[0].mst_key for _, batch in chosen}

    assert first({}) == {1, 4, 6}
    assert first({(2, "train"): 9.0, (3, "train"): 9.0, (1, "train"): 1.0}) == {2, 3, 4}


def test_rotation_never_trains_twice_running_on_a_segment() -> None:
    plan = plan_of(4, epochs=3)
    simulation = Simulation(
        plan, (5, 6, 7), lambda visit: 1.0, make_rotation((5, 6, 7), plan.segments)
    )
    simulation.run()
    for items in group(simulation.log, lambda item: item.visit.mst_key):
        visited = [item.visit.segment_id for item in items]
        assert all(one != two for one, two in pairwise(visited))
        assert visited[:4] == visited[4:8]


def measured(durations: Mapping[int, float]) -> LongestFirst:
    return LongestFirst({(key, "train"): seconds for key, seconds in durations.items()})


@pytest.mark.parametrize("workers", [4, 8])
def test_longest_on_short_and_long_configs(workers: int) -> None:
    durations, plan = dict(enumerate([1.0] * 38 + [8.0] * 10)), plan_of(workers)
    assert makespan(durations, plan, measured(durations)) <= 1.1 * lower_bound(durations, plan)


def test_longest_solves_the_toy_case() -> None:
    """Five configs on three workers (Nakandala et al., VLDB 2020, figure 5): 7 units is the
    least.
    """
    durations, plan = dict(enumerate([2.0, 1.0, 1.0, 1.0, 2.0])), plan_of(3)
    assert makespan(durations, plan, measured(durations)) == lower_bound(durations, plan) == 7


@trials(40)
@given(st.integers(2, 6), st.integers(2, 5), st.integers())
def test_longest_is_near_the_bound_with_many_configs(segments: int, times: int, seed: int) -> None:
    random = Random(seed)
    durations = {key: random.uniform(1, 8) for key in range(2 * times * segments)}
    plan = plan_of(segments, epochs=2)
    assert makespan(durations, plan, measured(durations)) <= 1.1 * lower_bound(durations, plan)


def jittered(seed: int) -> Seconds:
    random = Random(seed)
    return lambda visit: 1 + 0.2 * random.random()


def test_longest_spreads_few_configs_over_many_segments() -> None:
    """Without a place of its own each config would run into the one before it: 10.5 seconds and
    more.
    """
    plan = plan_of(8)
    ends = [
        Simulation(plan, tuple(range(6)), jittered(seed), LongestFirst()).run()
        for seed in range(10)
    ]
    assert sum(ends) / len(ends) < 10


def test_unmeasured_configs_count_as_the_mean() -> None:
    policy = LongestFirst({(1, "train"): 2.0, (2, "train"): 4.0})
    assert [policy.expected_seconds(key, "train") for key in (1, 2, 3)] == [2.0, 4.0, 3.0]
    assert policy.expected_seconds(1, "evaluate") == 1.0


def test_fewer_workers_than_segments_share_the_work() -> None:
    durations, plan = dict.fromkeys(range(6), 1.0), plan_of(4, workers=2)
    assert makespan(durations, plan, measured(durations)) == 12


def test_an_evaluation_runs_on_all_segments_at_once() -> None:
    plan = plan_of(4, evaluate=frozenset({1}))
    simulation = Simulation(plan, (1,), lambda visit: 1.0, LongestFirst())
    assert simulation.run() == 5


def test_epochs_complete_with_their_evaluation() -> None:
    plan = plan_of(1, epochs=2, evaluate=frozenset({1}))
    configs = {1: start(plan, 1)}
    for kind, completed in (("train", False), ("evaluate", True)):
        visit = Visit(1, 1, 0, kind)  # type: ignore[arg-type]
        configs[1] = complete(plan, begin(configs[1], (visit,)), (visit,))
        assert is_epoch_complete(configs, 1) is completed
    assert not is_epoch_complete(configs, 2) and not is_run_finished(configs)
    last = Visit(2, 1, 0, "train")
    configs[1] = complete(plan, begin(configs[1], (last,)), (last,))
    assert is_epoch_complete(configs, 2) and is_run_finished(configs)


def test_impossible_transitions_are_refused() -> None:
    plan = plan_of(2)
    waiting, visit = start(plan, 1), Visit(1, 1, 0, "train")
    running = begin(waiting, (visit,))
    for other in (visit, visit._replace(segment_id=1), visit._replace(kind="evaluate")):
        with pytest.raises(ValueError, match="cannot start"):
            begin(running, (other,))
    with pytest.raises(ValueError, match="is not running"):
        complete(plan, waiting, (visit,))
    with pytest.raises(ValueError, match="is not running"):
        abandon(waiting, (visit,))


def test_impossible_plans_and_orders_are_refused() -> None:
    for segments, epochs in (((), 1), ((1,), 0), ((1, 1), 1)):
        with pytest.raises(ValueError, match="distinct segments"):
            Plan(epochs, segments, {1: 1})
    with pytest.raises(ValueError, match="without a worker"):
        Plan(1, (1, 2), {1: 1})
    with pytest.raises(ValueError, match="leaves out"):
        choose_batches(
            plan_of(2),
            {1: start(plan_of(2), 1)},
            (0, 1),
            make_replay({(1, 1): [0]}),
            lambda progress: BatchLimit(1),
        )
