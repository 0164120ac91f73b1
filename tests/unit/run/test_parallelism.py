"""The best strategy to divide a run among workers is chosen, as brute force shows."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cerebro_plpy.run.log.form_timings import Timings
from cerebro_plpy.run.planning import parallelism
from cerebro_plpy.run.planning.parallelism import (
    SHORT_RUN_SECONDS,
    Comparison,
    choose_early_strategy,
    compare_strategies,
)
from cerebro_plpy.run.planning.workload import Trainers, TrainerSize, describe_work
from cerebro_plpy.run.request.run_request import Replay
from cerebro_plpy.scheduling.planning import run_plan
from cerebro_plpy.scheduling.planning.run_plan import (
    AVERAGE,
    MEASURED,
    MOP,
    TASK,
    TIMED,
    WIDE,
    WORTHWHILE_RATIO,
    PlanInputs,
    Program,
    Strategy,
)
from cerebro_plpy.scheduling.schedule.placement import assign_segments
from cerebro_plpy.scheduling.schedule.schedule import (
    AVERAGING,
    ConfigProgress,
    Plan,
    begin,
    complete,
    start,
)
from cerebro_plpy.scheduling.schedule.scheduling_policies import make_rotation
from cerebro_plpy.scheduling.schedule.visit_batches import BatchLimit, choose_batches
from cerebro_plpy.trainer_client import settings
from cerebro_plpy.trainer_client.process import host_resources

ROWS, EPOCHS = 1000, 2


def request(**more: Any) -> Any:
    """Return a request of two configurations, one of which trains nine times as many rows.

    Args:
        more: other fields of the request or of its spec; `asked` is the argument `workers`.
    """
    spec: dict[str, Any] = {
        "train": None,
        "search": None,
        "schedule": "longest",
        "dtype_policy": None,
        "copies": None,
        "copy_segments": (),
    }
    spec |= {"list_evaluations_until": lambda last: (), "evaluates_training": lambda epoch: False}
    arguments = SimpleNamespace(workers=more.pop("asked", None))
    spec_fields = {key: more.pop(key) for key in spec.keys() & more.keys()}
    segments = more.pop("segments", (0, 1))
    return SimpleNamespace(
        **{
            "spec": SimpleNamespace(arguments=arguments, **{**spec, **spec_fields}),
            "source": SimpleNamespace(rows=ROWS, segments=segments, targets=list),
            "validation": None,
            "configs": [config(1, 9), config(2, 1)],
            "architectures": {1: SimpleNamespace(json="[]")},
            "activations": {},
            "workers": 2,
            "gpus": (),
            "backends": {1: "tensorflow", 2: "tensorflow"},
            "replay": Replay(),
            "strategy": None,
            "search": None,
            "last_epoch": EPOCHS,
            "commit_seconds": 0,
            "segment_subsets": {},
            "whole_epoch_keys": frozenset(),
            "segments_of": lambda group: segments,
            "decoded_bytes": 100,
            **more,
        }
    )


def config(mst_key: int, passes: int, steps: int | None = None) -> Any:
    compiled = SimpleNamespace(to_json=dict)
    fit = SimpleNamespace(batch_size=8, passes=passes, steps_per_epoch=steps)
    return SimpleNamespace(mst_key=mst_key, model_id=1, compile=compiled, fit=fit, group=None)


class Call:
    """A call on a server with two cores, where wide trainers took half as long as narrow ones."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        *,
        local: bool = False,
        room: int = 100,
        shared: bool = True,
    ) -> None:
        self.is_local = local
        self.settings = None
        self.messages: list[str] = []
        self.platform = SimpleNamespace(
            trainer_threads=lambda n: {k: 2 // k for k in range(1, n + 1)} if shared else {}
        )
        self.db = SimpleNamespace(info=self.messages.append)
        self.control = SimpleNamespace(run=self.timings)
        monkeypatch.setattr(settings, "cache_bytes", lambda chosen, trainers: room)
        self.machine = host_resources.machine_prefix("tensorflow") + "2.21.0, Keras 3.15.1"

    def timings(self, text: str, values: Any) -> list[tuple[Any, ...]]:
        """Return timings from a log without runs."""
        if "form_timing" not in text:
            return []
        ((name,),) = values
        return [
            (self.machine, name, 8, *each, 0.0)
            for each in ((1, "graph_loop", 1e-2), (2, "graph_loop", 5e-3))
        ]

    def workers(self, request: Any) -> int:
        context: Any = self
        return parallelism.choose_worker_count(context, request)


def test_a_run_that_one_configuration_dominates_has_one_wide_trainer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call = Call(monkeypatch)
    assert call.workers(request()) == 1
    assert len(call.messages) == 1
    assert call.workers(request(configs=[config(1, 1), config(2, 1)])) == 2
    assert call.workers(request(configs=[config(1, 9, steps=7), config(2, 1)])) == 2
    assert len(call.messages) == 1


@pytest.mark.parametrize(
    "more",
    [
        {"asked": 2},
        {"train": "a budget"},
        {"search": "of many runs"},
        {"schedule": AVERAGING},
        {"strategy": MOP},
        {"gpus": (0,)},
        {"backends": {}},
        {"replay": Replay(threads=1)},
        {"replay": Replay(threads=2, orders={(1, 1): (0, 1)})},
        {"asked": 2, "replay": Replay(threads=2)},
    ],
)
def test_the_usual_number_of_workers_remains_if_it_was_requested_or_may_not_change(
    more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    call = Call(monkeypatch)
    if more.get("search"):
        more = {"spec": request(**more).spec}
    assert call.workers(request(**more)) == 2
    assert not call.messages


def test_a_replay_has_as_many_workers_as_there_are_cores_for_its_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Call(monkeypatch).workers(request(replay=Replay(threads=2))) == 1
    assert Call(monkeypatch).workers(request(replay=Replay(threads=64))) == 2, (
        "on a machine with fewer cores"
    )


def test_the_usual_number_remains_if_there_is_no_choice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Call(monkeypatch, local=True).workers(request()) == 2
    assert Call(monkeypatch, shared=False).workers(request()) == 2
    assert Call(monkeypatch, room=50).workers(request()) == 2, (
        "one trainer has no room for all rows"
    )
    elsewhere = Call(monkeypatch)
    elsewhere.machine = f"another, CPU:0, {elsewhere.machine}"
    assert elsewhere.workers(request()) == 2


class History:
    """Seconds per row by configuration and threads; each configuration has its own program."""

    def __init__(self, speeds: Mapping[int, Mapping[int, float]], source: str = TIMED) -> None:
        self._speeds, self._source = speeds, source

    def _programs(self, threads: int) -> list[Program]:
        return [
            Program(str(key), (key,), "jax", 8, self._source, speeds.get(threads))
            for key, speeds in self._speeds.items()
        ]

    def list_programs(self, threads: int, probed: Mapping[str, Any]) -> Iterator[Program]:
        yield from self._programs(threads)

    def read_prior_runs(self, programs: Sequence[Program], threads: int) -> list[object]:
        return []

    def apply_measurements(self, programs: Sequence[Program], threads: int) -> list[Program]:
        return list(programs)

    def convert_threads(
        self, programs: Sequence[Program], threads: int, other_threads: int
    ) -> list[Program]:
        return self._programs(other_threads)


SIZES = {number: TrainerSize(8 // number, 100) for number in range(1, 5)}
SECONDS = st.sampled_from([1.0, 2.0, 3.0, 5.0, 8.0])
SPEEDS = st.fixed_dictionaries(dict.fromkeys((8, 4, 2), SECONDS))
ALL_SPEEDS = st.lists(SPEEDS, min_size=1, max_size=5).map(lambda speeds: dict(enumerate(speeds, 1)))


def make_small_request(speeds: Mapping[int, object], usual: int, **more: Any) -> Any:
    """Return a request whose configurations train on one row of each of four segments."""
    configs = [config(key, 1, 1) for key in speeds]
    for small_config in configs:
        small_config.fit.batch_size = 1
    return request(configs=configs, workers=usual, **{"segments": tuple(range(4)), **more})


def simulate(seconds: Mapping[int, float], count: int) -> float:
    """Return the seconds that workers with segments of their own take, by the schedule alone.

    Of visits that end at the same moment, the one that began first ends first.

    Args:
        seconds: duration of a visit, by configuration.
        count: number of workers.
    """
    numbers = tuple(range(4))
    plan = Plan(EPOCHS, numbers, assign_segments(numbers, range(count)), frozenset())
    configs: dict[int, ConfigProgress] = {key: start(plan, key) for key in seconds}
    policy = make_rotation([*seconds], numbers)
    idle = set(range(count))
    now = 0.0
    events: list[tuple[float, int, int]] = []
    visit_numbers = itertools.count()
    running = {}
    while True:
        for worker, batch in choose_batches(
            plan, configs, tuple(idle), policy, lambda _: BatchLimit(1)
        ):
            idle.remove(worker)
            configs[batch[0].mst_key] = begin(configs[batch[0].mst_key], batch)
            running[worker] = batch
            heapq.heappush(events, (now + seconds[batch[0].mst_key], next(visit_numbers), worker))
        if not events:
            return now
        now, _, worker = heapq.heappop(events)
        idle.add(worker)
        batch = running.pop(worker)
        configs[batch[0].mst_key] = complete(plan, configs[batch[0].mst_key], batch)


@given(ALL_SPEEDS, st.integers(2, 4))
@example({1: {8: 5.0, 4: 8.0, 2: 1.0}, 2: {8: 5.0, 4: 8.0, 2: 1.0}}, 2)
def test_the_chosen_number_of_workers_is_the_fastest(
    speeds: dict[int, dict[int, float]], usual: int
) -> None:
    """Compare with a simulation of each number."""
    history: Any = History(speeds)
    sizes = {number: SIZES[number] for number in range(1, usual + 1)}
    strategy = choose_early_strategy(
        history, make_small_request(speeds, usual, schedule="rotation"), sizes
    )
    seconds = {
        number: simulate({key: speed[size.threads] for key, speed in speeds.items()}, number)
        for number, size in sizes.items()
    }
    best, expected = min(seconds.values()), seconds[usual]
    if expected <= SHORT_RUN_SECONDS or best > WORTHWHILE_RATIO * expected:
        assert strategy.workers == usual
    else:
        assert math.isclose(seconds[strategy.workers], best)


@given(ALL_SPEEDS, st.integers(2, 4))
def test_the_usual_number_remains_if_other_numbers_of_threads_have_no_timings(
    speeds: dict[int, dict[int, float]], usual: int
) -> None:
    sizes = {number: SIZES[number] for number in range(1, usual + 1)}
    narrow = SIZES[usual].threads
    one: Any = History({key: {narrow: speed[narrow]} for key, speed in speeds.items()})
    assert choose_early_strategy(one, make_small_request(speeds, usual), sizes).workers == usual
    none: Any = History({key: {} for key in speeds})
    assert choose_early_strategy(none, make_small_request(speeds, usual), sizes).workers == usual


def test_fewer_workers_are_compared_with_the_best_strategy_of_the_usual_number() -> None:
    """Four programs on three workers take 8 visits in sequence if they hop, and 9 if they stay."""
    sizes = {number: SIZES[number] for number in (1, 2, 3)}
    for wide, number in ((0.65, 3), (0.55, 1)):
        history: Any = History({key: {2: 2.0, 4: 9.0, 8: wide} for key in range(1, 5)}, MEASURED)
        small_request = make_small_request(dict.fromkeys(range(1, 5)), 3, segments=(0, 1, 2))
        mop, task, single = (
            run_plan.estimate_strategy(
                PlanInputs(describe_work(small_request)),
                [*history.list_programs(threads, {})],
                Strategy(name, workers, threads),
            )
            for name, workers, threads in ((MOP, 3, 2), (TASK, 3, 2), (WIDE, 1, 8))
        )
        took = [strategy.seconds or 0.0 for strategy in (mop, task, single)]
        assert took[2] <= WORTHWHILE_RATIO * took[1], "it is much faster than staying"
        assert (took[2] <= WORTHWHILE_RATIO * took[0]) == (number == 1)
        assert choose_early_strategy(history, small_request, sizes).workers == number


def make_comparison(
    speeds: Mapping[int, Mapping[int, float]], source: str = MEASURED, **more: Any
) -> Comparison:
    """Return a comparison of three workers with two threads each, or fewer with more threads."""
    history: Any = History(speeds, source)
    small_request = make_small_request(speeds, 3, **more)
    sizes = {number: SIZES[number] for number in (1, 2, 3)}
    inputs = PlanInputs(describe_work(small_request))
    return Comparison(
        small_request, Trainers(3, SIZES[3], {}, sizes), inputs, history._programs(2), history
    )


@given(ALL_SPEEDS)
def test_configurations_hop_if_that_is_much_faster(speeds: dict[int, dict[int, float]]) -> None:
    chosen, others = compare_strategies(make_comparison(speeds), include_all=True)
    strategies = {
        strategy.name: strategy for strategy in (chosen, *others) if strategy.workers == 3
    }
    mop, task = strategies[MOP], strategies[TASK]
    is_much_faster = (mop.seconds or 0.0) <= WORTHWHILE_RATIO * (task.seconds or 0.0)
    assert chosen is (mop if is_much_faster else task)
    assert {(other.name, other.workers) for other in others} >= {(WIDE, 1)}, (
        "the strategies that it was compared with are returned"
    )
    timed, _ = compare_strategies(make_comparison(speeds, TIMED), include_all=True)
    assert timed.name == TASK, "unless the time of hops is a guess"


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"strategy": MOP}, MOP),
        ({"strategy": TASK}, TASK),
        ({"strategy": TASK, "decoded_bytes": 101}, MOP),
        ({"decoded_bytes": 101}, MOP),
        ({"schedule": "rotation"}, MOP),
        ({"schedule": AVERAGING, "strategy": AVERAGE}, AVERAGE),
    ],
)
def test_a_requested_strategy_is_followed_if_it_is_possible(
    more: dict[str, Any], name: str
) -> None:
    for speeds in (
        {1: {2: 1.0}},
        {key: {2: 1.0} for key in range(1, 4)},
        {1: {2: 9.0}, 2: {2: 1.0}},
    ):
        chosen, others = compare_strategies(make_comparison(speeds, **more), include_all=True)
        assert chosen.name == name
        assert name not in {other.name for other in others if other.workers == 3}


def test_configurations_hop_if_each_worker_serves_one_segment() -> None:
    comparison = make_comparison({1: {2: 1.0}})
    bound = comparison._replace(
        trainers=comparison.trainers._replace(are_segment_bound=True, sizes={})
    )
    chosen, others = compare_strategies(bound, include_all=True)
    assert (chosen.name, others) == (MOP, [])


def test_speeds_are_those_of_this_machine_framework_program_and_batch_size() -> None:
    here = host_resources.machine_prefix("jax")
    rows = [
        (f"{here}0.9, Keras 3", "p", 8, 2, "scan", 3.0, 0.0),
        (f"{here}1.0, Keras 3", "p", 8, 2, "scan", 2.0, 0.0),
        (f"{here}1.0, Keras 3", "p", 8, 2, "jit_step", None, 0.0),
        (f"{here}1.0, Keras 3", "p", 8, 1, "scan", 4.0, 0.0),
        (f"{here}1.0, Keras 3", "p", 16, 1, "scan", 5.0, 0.0),
        (f"{here}1.0, Keras 3", "q", 8, 1, "scan", 6.0, 0.0),
        (f"{host_resources.machine_prefix('tensorflow')}2, Keras 3", "p", 8, 1, "scan", 7.0, 0.0),
        (f"another {here}1.0, Keras 3", "p", 8, 1, "scan", 8.0, 0.0),
    ]
    assert Timings(rows).collect_speeds(here, "p", 8) == {2: {"scan": 2.0}, 1: {"scan": 4.0}}
    assert Timings(rows).find_machine("jax") == f"{here}1.0, Keras 3"
    assert Timings().find_machine("jax") == here
