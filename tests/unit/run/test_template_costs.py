"""What templates cost is told by the newest run that had each, and only where nobody has timed a
network itself.
"""

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

GOAL = TrainingTask('"public"."passengers"', "survived")
LINEAR, DENSE = TemplateBatch("linear", 32), TemplateBatch("realmlp", 32)
TEMPLATES = {1: "linear", 2: "realmlp", 3: "realmlp", 4: "realmlp"}


class Logged:
    """A session that has the logs of runs, newest first: for each its plan, and seconds for a row
    by program.
    """

    def __init__(self, *runs: tuple[str, dict[str, float]]) -> None:
        self._runs = runs
        self.asked: list[int] = []

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        if statement == sql("plan.trained"):
            assert values == (*GOAL, 1)
            return [
                (number, plan, 12.0, json.dumps(TEMPLATES))
                for number, (plan, _) in enumerate(self._runs)
            ]
        if statement == sql("plan.visits"):
            self.asked.append(values[1])
            return [visits(name, row) for name, row in self._runs[values[1]][1].items()]
        return []


def visits(name: str, row: float) -> tuple[Any, ...]:
    """Of a query: two of ten rows each."""
    return name, 2, 20.0, 20 * row, 0.0, "scan", 0, 1, 8, 1, 0.0, 0, 0.0, 1, 0.0, 2, 0.2, 16.0


def plan(**programs: tuple[int, ...]) -> str:
    """That of a run with these programs, by their configurations."""
    keys = [key for configs in programs.values() for key in configs]
    work = Work(2, (2,), (0, 1), dict.fromkeys(keys, 1), 5.0, "longest")
    made = tuple(Program(name, configs, "jax", 32, UNKNOWN) for name, configs in programs.items())
    return json.dumps(
        RunPlan(
            work, made, Strategy(TASK, 2, 1), (), Data(10, 20, 30, 40), startup_seconds=1.5
        ).to_json()
    )


def known(session: Logged, *wanted: TemplateBatch) -> TemplateCosts:
    return read_template_costs(cast(Session, session), GOAL, 1, wanted)


def test_a_template_costs_the_mean_of_its_configurations() -> None:
    session = Logged((plan(a=(1,), b=(2, 3), c=(4,)), {"a": 0.1, "b": 0.2, "c": 0.8}))
    found = known(session, LINEAR, DENSE)
    assert found.programs[LINEAR].row_seconds == pytest.approx(0.1)
    dense = found.programs[DENSE]
    assert dense.row_seconds == pytest.approx(0.4)
    assert (dense.source, dense.state_bytes) == (SAME_TEMPLATE, 8)
    assert found.networks == {LINEAR: 1.0, DENSE: pytest.approx(2 / 3)}
    assert found.startup_seconds == 1.5 and 0 < found.extra_seconds < 12.0


def test_the_newest_run_that_had_a_template_tells_of_it() -> None:
    runs = [
        (plan(a=(1,)), {"a": 0.1}),
        ("{}", {}),
        (plan(a=(1,), b=(2,)), {"a": 0.5, "b": 0.2}),
        (plan(b=(2,)), {}),
    ]
    session = Logged(*runs)
    found = known(session, LINEAR, DENSE).programs
    assert [found[kind].row_seconds for kind in (LINEAR, DENSE)] == pytest.approx([0.1, 0.2])
    assert session.asked == [0, 2], "what older ones tell is not needed"
    assert known(Logged(), LINEAR) == TemplateCosts({})


def test_only_what_nobody_has_timed_is_expected_to_cost_what_others_do() -> None:
    like = known(Logged((plan(b=(2,)), {"b": 0.2})), DENSE)
    spec = SimpleNamespace(train=SimpleNamespace(templates=TEMPLATES))
    programs = [
        Program("own", (2,), "jax", 32, UNKNOWN, row_seconds=0.7),
        Program("new", (3, 4), "jax", 32, UNKNOWN),
        Program("other framework", (3,), "torch", 32, UNKNOWN),
        Program("other batch", (4,), "jax", 64, UNKNOWN),
        Program("other template", (1,), "jax", 32, UNKNOWN),
    ]
    found = apply_template_costs(cast(FitRequest, SimpleNamespace(spec=spec)), programs, like)
    assert (found[1].name, found[1].configs) == ("new", (3, 4))
    assert found[1].row_seconds == pytest.approx(0.2)
    assert [found[0], *found[2:]] == [programs[0], *programs[2:]]
    without = cast(FitRequest, SimpleNamespace(spec=SimpleNamespace(train=None)))
    assert apply_template_costs(without, programs, like) == programs
