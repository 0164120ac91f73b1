"""The costs of a template come from the newest run that had it, for networks without timings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.run.planning.template_costs import (
    TemplateBatch,
    TemplateCosts,
    TrainingTask,
    apply_template_costs,
    read_template_costs,
)
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.scheduling.planning.run_plan import (
    SAME_TEMPLATE,
    TASK,
    UNKNOWN,
    Data,
    Program,
    RunPlan,
    Strategy,
    Work,
)

TRAINING = TrainingTask('"public"."passengers"', "survived")
LINEAR, DENSE = TemplateBatch("linear", 32), TemplateBatch("realmlp", 32)
TEMPLATES = {1: "linear", 2: "realmlp", 3: "realmlp", 4: "realmlp"}


class LogSession:
    """A session with logs of runs, newest first: their plans, and seconds per row by program."""

    def __init__(self, *runs: tuple[str, dict[str, float]]) -> None:
        self._runs = runs
        self.read_runs: list[int] = []

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        if statement == sql("plan.trained"):
            assert values == (*TRAINING, 1)
            return [
                (number, plan, 12.0, json.dumps(TEMPLATES))
                for number, (plan, _) in enumerate(self._runs)
            ]
        if statement == sql("plan.visits"):
            self.read_runs.append(values[1])
            return [make_visits(name, row) for name, row in self._runs[values[1]][1].items()]
        return []


def make_visits(name: str, row: float) -> tuple[Any, ...]:
    """Return a row of `plan.visits`: two visits with ten rows each."""
    return name, 2, 20.0, 20 * row, 0.0, "scan", 0, 1, 8, 1, 0.0, 0, 0.0, 1, 0.0, 2, 0.2, 16.0


def make_plan(**programs: tuple[int, ...]) -> str:
    """Return the plan of a run with programs, each with its configurations."""
    keys = [key for configs in programs.values() for key in configs]
    work = Work(2, (2,), (0, 1), dict.fromkeys(keys, 1), 5.0, "longest")
    run_programs = tuple(
        Program(name, configs, "jax", 32, UNKNOWN) for name, configs in programs.items()
    )
    return json.dumps(
        RunPlan(
            work, run_programs, Strategy(TASK, 2, 1), (), Data(10, 20, 30, 40), startup_seconds=1.5
        ).to_json()
    )


def read_costs(session: LogSession, *required: TemplateBatch) -> TemplateCosts:
    return read_template_costs(cast(Session, session), TRAINING, 1, required)


def test_a_template_costs_the_mean_of_its_configurations() -> None:
    session = LogSession((make_plan(a=(1,), b=(2, 3), c=(4,)), {"a": 0.1, "b": 0.2, "c": 0.8}))
    result = read_costs(session, LINEAR, DENSE)
    assert result.programs[LINEAR].row_seconds == pytest.approx(0.1)
    dense = result.programs[DENSE]
    assert dense.row_seconds == pytest.approx(0.4)
    assert (dense.source, dense.state_bytes) == (SAME_TEMPLATE, 8)
    assert result.networks == {LINEAR: 1.0, DENSE: pytest.approx(2 / 3)}
    assert result.startup_seconds == 1.5 and 0 < result.extra_seconds < 12.0


def test_the_costs_of_a_template_come_from_the_newest_run_with_it() -> None:
    runs = [
        (make_plan(a=(1,)), {"a": 0.1}),
        ("{}", {}),
        (make_plan(a=(1,), b=(2,)), {"a": 0.5, "b": 0.2}),
        (make_plan(b=(2,)), {}),
    ]
    session = LogSession(*runs)
    result = read_costs(session, LINEAR, DENSE).programs
    assert [result[kind].row_seconds for kind in (LINEAR, DENSE)] == pytest.approx([0.1, 0.2])
    assert session.read_runs == [0, 2], "older runs are not needed"
    assert read_costs(LogSession(), LINEAR) == TemplateCosts({})


def test_only_programs_without_timings_get_the_costs_of_their_template() -> None:
    costs = read_costs(LogSession((make_plan(b=(2,)), {"b": 0.2})), DENSE)
    spec = SimpleNamespace(train=SimpleNamespace(templates=TEMPLATES))
    programs = [
        Program("own", (2,), "jax", 32, UNKNOWN, row_seconds=0.7),
        Program("new", (3, 4), "jax", 32, UNKNOWN),
        Program("other framework", (3,), "torch", 32, UNKNOWN),
        Program("other batch", (4,), "jax", 64, UNKNOWN),
        Program("other template", (1,), "jax", 32, UNKNOWN),
    ]
    result = apply_template_costs(cast(FitRequest, SimpleNamespace(spec=spec)), programs, costs)
    assert (result[1].name, result[1].configs) == ("new", (3, 4))
    assert result[1].row_seconds == pytest.approx(0.2)
    assert [result[0], *result[2:]] == [programs[0], *programs[2:]]
    without = cast(FitRequest, SimpleNamespace(spec=SimpleNamespace(train=None)))
    assert apply_template_costs(without, programs, costs) == programs
