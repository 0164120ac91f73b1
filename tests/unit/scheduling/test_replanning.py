"""Replanning changes the strategy if measured times differ from the plan, and only if it pays."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.records import replace
from cerebro_plpy.scheduling.planning.replanning import (
    is_surprising,
    propose_change,
    remaining_work,
)
from cerebro_plpy.scheduling.planning.run_plan import (
    MEASURED,
    MOP,
    TASK,
    UNKNOWN,
    WORTHWHILE_RATIO,
    Data,
    PlanInputs,
    Program,
    RunPlan,
    Strategy,
    Work,
    estimate_strategy,
)

UNITS = (2, 1, 1, 1, 2)
"""Seconds of the toy case of the paper on Cerebro: see test_simulation.py."""
WORKERS = 3
SECONDS = st.integers(1, 9).map(float)
COSTS = st.fixed_dictionaries({name: st.integers(0, 9).map(float) for name in ("compile", "hop")})


def work_of(configs: int, epochs: int, evaluated: tuple[int, ...] = ()) -> Work:
    """Return the work of configs that train on one row of each segment."""
    return Work(
        epochs,
        evaluated,
        tuple(range(WORKERS)),
        dict.fromkeys(range(1, configs + 1), 1),
        0.0,
        "longest",
    )


def programs_of(
    rows: Sequence[float | None], compile: float = 0.0, hop: float = 0.0
) -> list[Program]:
    """Return a program for each config; storing a state takes as long as reading it."""
    return [
        Program(
            f"p{key}",
            (key,),
            "jax",
            1,
            MEASURED,
            row_seconds=row,
            spread=0.05,
            compile=compile,
            hop=hop,
            store=hop,
        )
        for key, row in enumerate(rows, 1)
    ]


def test_the_toy_case_of_the_paper_goes_over_to_hopping() -> None:
    """It stays for the first epoch, for nobody knows then how long visits take; the second one
    takes 7 and not 9.
    """
    rest = remaining_work(work_of(5, 2), 1, dict.fromkeys(range(1, 6), WORKERS))
    now, programs = Strategy(TASK, WORKERS, 1), programs_of([*map(float, UNITS)])
    found = propose_change(rest, programs, {}, now)
    assert found is not None
    assert [(each.name, each.seconds) for each in found] == [(TASK, 9.0), (MOP, 7.0)]
    assert propose_change(rest, programs, {}, now, pace=7.0) is None, "there is nothing to gain"


@given(
    st.lists(SECONDS, min_size=1, max_size=5),
    COSTS,
    st.integers(2, 6),
    st.sampled_from([MOP, TASK]),
    st.data(),
)
def test_a_run_changes_where_and_only_where_the_other_strategy_is_much_sooner(
    rows: list[float], costs: dict[str, float], epochs: int, name: str, data: st.DataObject
) -> None:
    done, programs = data.draw(st.integers(1, epochs - 1)), programs_of([*rows], **costs)
    alive = data.draw(st.sets(st.sampled_from(range(1, len(rows) + 1)), min_size=1))
    compiled = {
        worker: frozenset(data.draw(st.sets(st.sampled_from([each.name for each in programs]))))
        for worker in (0, 1)
    }
    rest = remaining_work(
        work_of(len(rows), epochs, (1, epochs)),
        done,
        dict.fromkeys(alive, (epochs - done) * WORKERS),
    )
    assert (rest.epochs, rest.evaluate_epochs, {*rest.rows}) == (
        epochs - done,
        (epochs - done,),
        alive,
    )
    own = [each for each in programs if alive.intersection(each.configs)]
    took = {
        each: estimate_strategy(
            PlanInputs(rest, {}, compiled), own, Strategy(each, WORKERS, 1)
        ).seconds
        or 0.0
        for each in (MOP, TASK)
    }
    other = MOP if name == TASK else TASK
    found = propose_change(rest, programs, compiled, Strategy(name, WORKERS, 1))
    if took[other] <= WORTHWHILE_RATIO * took[name]:
        assert found is not None
        assert (found.proposed.name, found.proposed.seconds, found.current.seconds) == (
            other,
            took[other],
            took[name],
        )
    else:
        assert found is None


@given(st.lists(SECONDS, min_size=1, max_size=4), st.floats(0, 1), st.floats(-1.9, 1.9))
def test_what_was_expected_is_no_surprise(rows: list[float], error: float, off: float) -> None:
    programs = programs_of([*rows])
    plan = RunPlan(
        work_of(len(rows), 2),
        tuple(programs),
        Strategy(TASK, WORKERS, 1),
        (),
        Data(1, 1, 1, 1),
        error=error,
    )
    assert not is_surprising(plan, programs)
    if 1 + off > 0 and not math.isclose(abs(off), error, abs_tol=1e-9):
        assert is_surprising(
            plan, [replace(programs[0], row_seconds=rows[0] * (1 + off)), *programs[1:]]
        ) == (abs(off) > error)
    unknown = replace(
        plan, programs=tuple(replace(each, row_seconds=None, source=UNKNOWN) for each in programs)
    )
    assert is_surprising(unknown, programs), "nobody knew anything"
    assert not is_surprising(unknown, unknown.programs), "and nobody knows yet"


def test_what_nobody_has_measured_changes_nothing() -> None:
    rest = remaining_work(work_of(5, 3), 1, dict.fromkeys(range(1, 6), 2 * WORKERS))
    assert propose_change(rest, programs_of([None] * 5), {}, Strategy(TASK, WORKERS, 1)) is None


def test_who_is_ahead_has_less_to_do() -> None:
    work = replace(work_of(2, 4), rows={1: 100, 2: 100})
    assert remaining_work(work, 1, {1: 9, 2: 3}).rows == {1: 100, 2: 33}
    assert remaining_work(replace(work, segment_subsets={1: (0, 2)}), 1, {1: 6}).rows == {1: 100}
    assert remaining_work(work, 3, {2: 1}).rows == {2: 33}
