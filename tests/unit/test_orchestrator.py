"""The epoch loop against a platform in which anything may fail at any time."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, cycle, product, repeat
from itertools import count as naturals
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cerebro_plpy.dispatch import DONE, READ, Rows, Statement, Steps
from cerebro_plpy.errors import CerebroError, ConfigFailure, ConnectionFailure, OutOfMemory, TrainerFailure
from cerebro_plpy.fit_params import parse_fit_params
from cerebro_plpy.orchestrator import MAX_ATTEMPTS, Orchestrator, Surroundings
from cerebro_plpy.params import parse_compile_params
from cerebro_plpy.platform import Dataset, EvaluateVisit, StateSource, TrainVisit, Worker
from cerebro_plpy.records import Config, Evaluation, FitRequest, PackedTable, Relation, StoredModel, VisitResult
from cerebro_plpy.run_log import RunLog

RUN_ID = 7
ALWAYS_READABLE = os.open("/dev/null", os.O_RDONLY)
TABLE = Relation("t", "public", "t", 1, "public.t")
COMPILE = "optimizer='SGD',loss='mse',metrics=['mae']"
TIMING = {"seconds_per_row": 1.0, "compile_seconds": 1.0}
PASSING = (TrainerFailure, ConnectionFailure, OutOfMemory)
Fault: TypeAlias = type[CerebroError] | None


class Session:
    """Answers each statement after a few looks; always readable, so that nobody really waits."""

    def __init__(self, looks: Sequence[int]) -> None:
        self._looks = cycle(looks)
        self._left = 0

    def start(self, statement: str, values: Sequence[object] = ()) -> None:
        self._left = next(self._looks)

    def wants(self) -> int:
        self._left -= 1
        return READ if self._left > 0 else DONE

    def result(self) -> Rows:
        return []

    def fileno(self) -> int:
        return ALWAYS_READABLE

    def run(self, statement: str, values: Sequence[object] = ()) -> Rows:
        return []

    def close(self) -> None:
        """Nothing is held."""


@dataclass
class Unreliable:
    """A platform that keeps the laws' account and fails where it was told to."""

    faults: Iterator[Fault]
    places: dict[str, set[int]] = field(default_factory=lambda: {"configs": set(), "workers": set()})
    trained: list[tuple[int, int, int]] = field(default_factory=list)
    evaluated: list[tuple[int, int, int]] = field(default_factory=list)
    attempts: Counter[tuple[object, ...]] = field(default_factory=Counter)
    visits: Counter[int] = field(default_factory=Counter)
    ahead: float = math.inf

    def start(self, worker: Worker) -> Steps[None]:
        yield Statement("start")

    def train(self, worker: Worker, visit: TrainVisit) -> Steps[VisitResult]:
        key = visit.mst_key
        self._check_forms(visit.job["forms"])
        assert visit.state.key == f"{RUN_ID}/{key}/{self.visits[key]}", "the state of the last success"
        assert visit.visit_no == self.visits[key] + 1
        with self._alone("configs", key), self._alone("workers", worker.number):
            yield from self._work(("train", key, visit.epoch, visit.dataset.segment_id), visit.attempt)
        self.visits[key] += 1
        self.trained.append((key, visit.epoch, visit.dataset.segment_id))
        return VisitResult(
            rows=2, loss=float(visit.epoch), seconds=1.0, state_table=visit.state_table, timings={"f": {**TIMING}}
        )

    def _check_forms(self, forms: Mapping[str, Any]) -> None:
        """What one visit measured, later ones are told; the work ahead, this visit included, never grows."""
        assert forms["use"] is None and 0 <= forms["remaining_rows"] <= self.ahead
        self.ahead = forms["remaining_rows"]
        assert forms["known"] == ({"f": TIMING} if self.trained else {})

    def evaluate(self, worker: Worker, visit: EvaluateVisit) -> Steps[dict[str, Any]]:
        segment = visit.datasets[0].segment_id
        assert visit.mst_key not in self.places["configs"], "weights stand still while they are evaluated"
        with self._alone("workers", worker.number):
            yield from self._work(("evaluate", visit.mst_key, visit.epoch, segment), visit.attempt)
        self.evaluated.append((visit.mst_key, visit.epoch, segment))
        return {"training": {"rows": 1, "sums": [[1.0, float(segment)]]}}

    def probe(self, worker: Worker, dataset: Dataset, state: StateSource, job: dict[str, Any]) -> Steps[dict[str, Any]]:
        raise NotImplementedError("frameworks are chosen before there is an epoch loop")

    def results(self, worker: Worker, request: dict[str, Any]) -> Steps[dict[str, Any]]:
        with self._alone("workers", worker.number):
            yield from self._work(("results",), 1)
        ((count, total),) = request["sums"]["training"]
        return {"training": {"loss": total, "metrics": [count + request["rows"]["training"]]}}

    def _work(self, task: tuple[object, ...], attempt: int) -> Iterator[Statement]:
        if task[0] != "results":
            self.attempts[task] += 1
            assert attempt == self.attempts[task] <= MAX_ATTEMPTS
        yield Statement("work")
        fault = next(self.faults)
        if fault:
            raise fault(f"{fault.__name__} in {task}")

    @contextmanager
    def _alone(self, kind: str, who: int) -> Iterator[None]:
        busy = self.places[kind]
        assert who not in busy
        busy.add(who)
        try:
            yield
        finally:
            busy.remove(who)


@dataclass(frozen=True)
class Told:
    """One call of announce."""

    epoch: int
    losses: Mapping[int, float]
    evaluated: frozenset[int]


def requested(configs: int, segments: int, epochs: int, evaluated: set[int], schedule: str) -> FitRequest:
    """A request over that many configs and segments."""
    source = PackedTable(
        relation=TABLE, independent=("x",), dependent=("y",), dependent_types=("real",), class_values=(None,),
        class_types=("real[]",), num_classes=None, normalizing_const=1.0, buffer_size=1, input_shapes=((1,),),
        target_shapes=((1,),), float_targets=(True,), segments=tuple(range(segments)), key="k", rows=segments,
    )  # fmt: skip
    parsed = (parse_compile_params(COMPILE), parse_fit_params("batch_size=1"))
    return FitRequest(
        source=source, validation=None, configs=tuple(Config(key, 1, "", "", *parsed) for key in range(configs)),
        architectures={1: StoredModel(1, "{}", False)}, architecture_table=TABLE, epochs=epochs,
        evaluate_epochs=tuple(sorted(e for e in evaluated if e <= epochs)), seed=1, schedule=schedule, workers=1,
        gpus=(), dtype_policy=None, warm_states={}, orders={}, forms={}, threads=None,
        backends=dict.fromkeys(range(configs), "tensorflow"), name=None, spec={},
    )  # fmt: skip


@dataclass(frozen=True)
class Trial:
    """A request worked through on an unreliable platform."""

    request: FitRequest
    platform: Unreliable
    orchestrator: Orchestrator
    told: list[Told]

    @property
    def alive(self) -> set[int]:
        """The configs that were not given up."""
        return {config.mst_key for config in self.request.configs} - self.orchestrator.failed.keys()


def tried(request: FitRequest, workers: int, faults: Iterator[Fault], looks: Sequence[int]) -> Trial:
    """Work through a request; that no config is left must be the reason where the run fails."""
    platform = Unreliable(faults)
    crew = [Worker(number, Session(looks)) for number in range(workers)]
    told: list[Told] = []
    failed: dict[int, str] = {}

    def announce(epoch: int, _: float, found: Sequence[Evaluation], losses: Mapping[int, float]) -> None:
        told.append(Told(epoch, dict(losses), frozenset(e.mst_key for e in found if e.epoch == epoch)))

    def reopen(worker: Worker) -> None:
        worker.session = Session(looks)

    around = Surroundings(lambda: None, announce, failed.__setitem__, lambda text: None, reopen)
    orchestrator = Orchestrator(platform, request, crew, RunLog(Session(looks), RUN_ID), around)
    trial = Trial(request, platform, orchestrator, told)
    try:
        orchestrator.run()
    except ConfigFailure:
        assert not trial.alive
    assert failed == orchestrator.failed
    return trial


REQUESTS = st.builds(
    requested, configs=st.integers(1, 4), segments=st.integers(1, 4), epochs=st.integers(1, 3),
    evaluated=st.sets(st.integers(1, 3)), schedule=st.sampled_from(["longest", "rotation"]),
)  # fmt: skip
WORKERS = st.integers(1, 4)
LOOKS = st.lists(st.integers(1, 5), min_size=1, max_size=10)
MANY = st.lists(st.sampled_from((None, ConfigFailure, *PASSING)), max_size=30)
FEW = st.dictionaries(st.integers(0, 60), st.sampled_from(PASSING), max_size=MAX_ATTEMPTS - 1)


@given(REQUESTS, WORKERS, MANY, LOOKS)
@settings(max_examples=200, deadline=None)
def test_every_config_is_trained_whole_or_given_up_whatever_fails(
    request: FitRequest, workers: int, faults: list[Fault], looks: list[int]
) -> None:
    trial = tried(request, workers, chain(faults, repeat(None)), looks)
    trained, alive = trial.platform.trained, trial.alive
    epochs = range(1, request.epochs + 1)
    assert len(trained) == len(set(trained)), "nothing twice"
    assert {v for v in trained if v[0] in alive} == set(product(alive, epochs, request.source.segments))
    found = [e for e in trial.orchestrator.evaluations if e.mst_key in alive]
    assert sorted((e.mst_key, e.epoch) for e in found) == sorted(product(alive, request.evaluate_epochs))
    count = len(request.source.segments)
    assert all((e.loss, e.metrics) == (sum(range(count)), (2.0 * count,)) for e in found), "sums over all segments"
    assert trial.orchestrator.states.keys() == alive


@given(REQUESTS, WORKERS, MANY, LOOKS)
@settings(max_examples=200, deadline=None)
def test_epochs_are_announced_in_order_with_their_own_numbers(
    request: FitRequest, workers: int, faults: list[Fault], looks: list[int]
) -> None:
    trial = tried(request, workers, chain(faults, repeat(None)), looks)
    epochs = [tell.epoch for tell in trial.told]
    assert epochs == list(range(1, request.epochs + 1))[: len(epochs)]
    assert len(epochs) == request.epochs or not trial.alive
    for tell in trial.told:
        assert trial.alive <= tell.losses.keys() and set(tell.losses.values()) == {float(tell.epoch)}
        assert tell.epoch not in request.evaluate_epochs or trial.alive <= tell.evaluated


@given(REQUESTS, WORKERS, FEW, LOOKS)
@settings(max_examples=200, deadline=None)
def test_what_may_succeed_when_tried_again_costs_no_config(
    request: FitRequest, workers: int, faults: dict[int, Fault], looks: list[int]
) -> None:
    trial = tried(request, workers, (faults.get(n) for n in naturals()), looks)
    assert trial.orchestrator.failed == {}


def test_a_fault_of_nobody_s_ends_the_run() -> None:
    request = requested(2, 2, 1, set(), "longest")
    with pytest.raises(CerebroError, match="CerebroError in"):
        tried(request, 1, iter([None, CerebroError]), [1])
