"""One place compares the ways to divide a run among workers: by brute force it chooses the best of
them all.
"""

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
    """A request of two configurations, of which one trains nine times as many rows, and what else
    is said.
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
    about = {key: more.pop(key) for key in spec.keys() & more.keys()}
    segments = more.pop("segments", (0, 1))
    bytes_ = {"decoded_bytes": 100}
    return SimpleNamespace(
        **{
            "spec": SimpleNamespace(arguments=arguments, **{**spec, **about}),
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
            "segments_of": lambda group: segments,
            **bytes_,
            **more,
        }
    )


def config(mst_key: int, passes: int, steps: int | None = None) -> Any:
    compiled = SimpleNamespace(to_json=dict)
    fit = SimpleNamespace(batch_size=8, passes=passes, steps_per_epoch=steps)
    return SimpleNamespace(mst_key=mst_key, model_id=1, compile=compiled, fit=fit, group=None)


class Place:
    """A call on a server with two cores, where wide trainers took half as long as narrow ones."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        *,
        local: bool = False,
        room: int = 100,
        shared: bool = True,
    ) -> None:
        self.is_local, self.told, self.settings = local, list[str](), None
        self.platform = SimpleNamespace(
            trainer_threads=lambda n: {k: 2 // k for k in range(1, n + 1)} if shared else {}
        )
        self.db = SimpleNamespace(info=self.told.append)
        self.control = SimpleNamespace(run=self.timings)
        monkeypatch.setattr(settings, "cache_bytes", lambda chosen, trainers: room)
        self.machine = host_resources.machine_prefix("tensorflow") + "2.21.0, Keras 3.15.1"

    def timings(self, text: str, values: Any) -> list[tuple[Any, ...]]:
        """No run is in the log, but timings are."""
        if "form_timing" not in text:
            return []
        ((name,),) = values
        return [
            (self.machine, name, 8, *each, 0.0)
            for each in ((1, "graph_loop", 1e-2), (2, "graph_loop", 5e-3))
        ]

    def workers(self, request: Any) -> int:
        workplace: Any = self
        return parallelism.choose_worker_count(workplace, request)


def test_a_run_that_one_configuration_dominates_has_one_wide_trainer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = Place(monkeypatch)
    assert place.workers(request()) == 1
    assert len(place.told) == 1
    assert place.workers(request(configs=[config(1, 1), config(2, 1)])) == 2
    assert place.workers(request(configs=[config(1, 9, steps=7), config(2, 1)])) == 2
    assert len(place.told) == 1


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
def test_whoever_says_how_many_workers_there_are_is_heard(
    more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(monkeypatch)
    if more.get("search"):
        more = {"spec": request(**more).spec}
    assert place.workers(request(**more)) == 2
    assert not place.told


def test_a_run_goes_on_with_as_many_threads_and_the_workers_that_have_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Place(monkeypatch).workers(request(replay=Replay(threads=2))) == 1
    assert Place(monkeypatch).workers(request(replay=Replay(threads=64))) == 2, (
        "on a machine with fewer cores"
    )


def test_where_there_is_nothing_to_choose_the_usual_number_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Place(monkeypatch, local=True).workers(request()) == 2
    assert Place(monkeypatch, shared=False).workers(request()) == 2
    assert Place(monkeypatch, room=50).workers(request()) == 2, (
        "one trainer has no room for all rows"
    )
    elsewhere = Place(monkeypatch)
    elsewhere.machine = f"another, CPU:0, {elsewhere.machine}"
    assert elsewhere.workers(request()) == 2


class Known:
    """What is known: seconds for a row, by configuration and threads; each has a program of its
    own.
    """

    def __init__(self, speeds: Mapping[int, Mapping[int, float]], source: str = TIMED) -> None:
        self._speeds, self._source = speeds, source

    def _programs(self, threads: int) -> list[Program]:
        found = ((key, each.get(threads)) for key, each in self._speeds.items())
        return [Program(str(key), (key,), "jax", 8, self._source, row) for key, row in found]

    def list_programs(self, threads: int, probed: Mapping[str, Any]) -> Iterator[Program]:
        yield from self._programs(threads)

    def read_prior_runs(self, programs: Sequence[Program], threads: int) -> list[object]:
        return []

    def apply_measurements(self, programs: Sequence[Program], threads: int) -> list[Program]:
        return list(programs)

    def convert_threads(self, programs: Sequence[Program], here: int, there: int) -> list[Program]:
        return self._programs(there)


WIDTHS = {number: TrainerSize(8 // number, 100) for number in range(1, 5)}
SECONDS = st.sampled_from([1.0, 2.0, 3.0, 5.0, 8.0])
SPEEDS = st.fixed_dictionaries(dict.fromkeys((8, 4, 2), SECONDS))
EVERY = st.lists(SPEEDS, min_size=1, max_size=5).map(lambda found: dict(enumerate(found, 1)))


def asked(speeds: Mapping[int, object], usual: int, **more: Any) -> Any:
    """A request of configurations that train on one row of each of four segments in an epoch."""
    configs = [config(key, 1, 1) for key in speeds]
    for each in configs:
        each.fit.batch_size = 1
    return request(configs=configs, workers=usual, **{"segments": tuple(range(4)), **more})


def simulated(seconds: Mapping[int, float], count: int) -> float:
    """What so many workers take for configurations of which a visit takes so long, where each has
    segments of its own: the schedule as it is, and nothing beside it. Of visits that end at the
    same moment the one that began first is over first."""
    numbers = tuple(range(4))
    plan = Plan(EPOCHS, numbers, assign_segments(numbers, range(count)), frozenset())
    configs: dict[int, ConfigProgress] = {key: start(plan, key) for key in seconds}
    policy = make_rotation([*seconds], numbers)
    idle, now, events, begun = (
        set(range(count)),
        0.0,
        list[tuple[float, int, int]](),
        itertools.count(),
    )
    under_way = {}
    while True:
        for worker, tour in choose_batches(
            plan, configs, tuple(idle), policy, lambda _: BatchLimit(1)
        ):
            idle.remove(worker)
            configs[tour[0].mst_key] = begin(configs[tour[0].mst_key], tour)
            under_way[worker] = tour
            heapq.heappush(events, (now + seconds[tour[0].mst_key], next(begun), worker))
        if not events:
            return now
        now, _, worker = heapq.heappop(events)
        idle.add(worker)
        tour = under_way.pop(worker)
        configs[tour[0].mst_key] = complete(plan, configs[tour[0].mst_key], tour)


@given(EVERY, st.integers(2, 4))
@example({1: {8: 5.0, 4: 8.0, 2: 1.0}, 2: {8: 5.0, 4: 8.0, 2: 1.0}}, 2)
def test_the_number_of_workers_is_the_best_of_all(
    speeds: dict[int, dict[int, float]], usual: int
) -> None:
    """By brute force over all numbers, each simulated apart."""
    known: Any = Known(speeds)
    widths = {number: WIDTHS[number] for number in range(1, usual + 1)}
    found = choose_early_strategy(known, asked(speeds, usual, schedule="rotation"), widths)
    seconds = {
        number: simulated({key: each[width.threads] for key, each in speeds.items()}, number)
        for number, width in widths.items()
    }
    best, expected = min(seconds.values()), seconds[usual]
    if expected <= SHORT_RUN_SECONDS or best > WORTHWHILE_RATIO * expected:
        assert found.workers == usual
    else:
        assert math.isclose(seconds[found.workers], best)


@given(EVERY, st.integers(2, 4))
def test_where_nothing_is_known_of_other_widths_the_usual_number_stays(
    speeds: dict[int, dict[int, float]], usual: int
) -> None:
    widths = {number: WIDTHS[number] for number in range(1, usual + 1)}
    narrow = WIDTHS[usual].threads
    one: Any = Known({key: {narrow: each[narrow]} for key, each in speeds.items()})
    assert choose_early_strategy(one, asked(speeds, usual), widths).workers == usual
    none: Any = Known({key: {} for key in speeds})
    assert choose_early_strategy(none, asked(speeds, usual), widths).workers == usual


def test_fewer_workers_are_compared_with_what_the_usual_number_would_follow() -> None:
    """Four configurations with a program each on three workers: 8 visits after one another, 9 where
    they stay.
    """
    widths = {number: WIDTHS[number] for number in (1, 2, 3)}
    for wide, number in ((0.65, 3), (0.55, 1)):
        known: Any = Known({key: {2: 2.0, 4: 9.0, 8: wide} for key in range(1, 5)}, MEASURED)
        wanted = asked(dict.fromkeys(range(1, 5)), 3, segments=(0, 1, 2))
        mop, task, single = (
            run_plan.estimate_strategy(
                PlanInputs(describe_work(wanted)),
                [*known.list_programs(threads, {})],
                Strategy(name, workers, threads),
            )
            for name, workers, threads in ((MOP, 3, 2), (TASK, 3, 2), (WIDE, 1, 8))
        )
        took = [each.seconds or 0.0 for each in (mop, task, single)]
        assert took[2] <= WORTHWHILE_RATIO * took[1], (
            "it is much sooner than where configurations stay"
        )
        assert (took[2] <= WORTHWHILE_RATIO * took[0]) == (number == 1)
        assert choose_early_strategy(known, wanted, widths).workers == number


def comparison(
    speeds: Mapping[int, Mapping[int, float]], source: str = MEASURED, **more: Any
) -> Comparison:
    """Three workers of two threads each, which could be fewer with more."""
    known: Any = Known(speeds, source)
    wanted = asked(speeds, 3, **more)
    widths = {number: WIDTHS[number] for number in (1, 2, 3)}
    settled = PlanInputs(describe_work(wanted))
    return Comparison(
        wanted, Trainers(3, WIDTHS[3], {}, widths), settled, known._programs(2), known
    )


@given(EVERY)
def test_configurations_hop_where_that_is_much_sooner(speeds: dict[int, dict[int, float]]) -> None:
    chosen, others = compare_strategies(comparison(speeds), every=True)
    found = {each.name: each for each in (chosen, *others) if each.workers == 3}
    mop, task = found[MOP].seconds or 0.0, found[TASK].seconds or 0.0
    assert chosen is (found[MOP] if mop <= WORTHWHILE_RATIO * task else found[TASK])
    assert {(each.name, each.workers) for each in others} >= {(WIDE, 1)}, (
        "it is said what it was compared with"
    )
    timed, _ = compare_strategies(comparison(speeds, TIMED), every=True)
    assert timed.name == TASK, "unless what hops take is a guess"


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
def test_whoever_names_a_strategy_has_it_where_it_is_possible(
    more: dict[str, Any], name: str
) -> None:
    for speeds in (
        {1: {2: 1.0}},
        {key: {2: 1.0} for key in range(1, 4)},
        {1: {2: 9.0}, 2: {2: 1.0}},
    ):
        chosen, others = compare_strategies(comparison(speeds, **more), every=True)
        assert chosen.name == name
        assert name not in {each.name for each in others if each.workers == 3}


def test_workers_that_serve_a_segment_each_let_configurations_hop() -> None:
    wanted = comparison({1: {2: 1.0}})
    apart = wanted._replace(trainers=wanted.trainers._replace(are_segment_bound=True, sizes={}))
    chosen, others = compare_strategies(apart, every=True)
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
