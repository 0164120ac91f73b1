"""A run returns when its metric is perfect, or when it has waited long enough for a gain."""

from __future__ import annotations

import math

from hypothesis import assume, given
from hypothesis import strategies as st

from cerebro_plpy.run.state.return_watch import ReturnWatch
from cerebro_plpy.scheduling.search.early_return import MAX_WAIT_SHARE, ReturnRule

BUDGETS = st.floats(1.0, 1e5)
DISTANCES = st.floats(1e-6, 1.0)
RULES = st.builds(
    ReturnRule,
    metric=st.sampled_from(["accuracy", "loss", "root_mean_squared_error", "r2_score"]),
    descending=st.booleans(),
    rows=st.integers(1, 10**6),
    budget=BUDGETS,
)


def value_at(rule: ReturnRule, distance: float) -> float:
    """Return the value that is so far from the best one."""
    return 1.0 - distance if rule.descending else distance


@given(RULES, st.floats(0, 1e4), st.lists(st.tuples(st.floats(0, 100), DISTANCES), min_size=1))
def test_no_run_waits_in_vain_for_more_than_a_third_of_its_budget(
    rule: ReturnRule, began: float, values: list[tuple[float, float]]
) -> None:
    watch = ReturnWatch(rule, began)
    now = began
    for seconds, distance in values:
        now += seconds
        watch.note_value(value_at(rule, distance), now)
    end = now + rule.budget * MAX_WAIT_SHARE + 1e-3
    assert watch.find_reason(end, are_baselines_done=True) is not None
    assert watch.find_reason(end, are_baselines_done=False) is None, "a template is still to end"
    assert watch.next_moment <= end


@given(RULES, DISTANCES, st.floats(0, 100), st.floats(0, 1000))
def test_a_pause_is_no_wait(
    rule: ReturnRule, distance: float, seconds: float, pause: float
) -> None:
    watch = ReturnWatch(rule, 0.0)
    watch.note_value(value_at(rule, distance), seconds)
    moment = watch.next_moment
    watch.postpone(pause)
    assert math.isclose(watch.next_moment, moment + pause, abs_tol=1e-6)


@given(RULES)
def test_a_perfect_value_ends_the_run_at_once_and_only_once(rule: ReturnRule) -> None:
    watch = ReturnWatch(rule, 0.0)
    assert watch.find_reason(1e9, are_baselines_done=True) is None, "nothing is known yet"
    watch.note_value(math.nan, 1.0)
    assert watch.next_moment == math.inf
    watch.note_value(value_at(rule, 0.0), 1.0)
    reason = watch.find_reason(1.0, are_baselines_done=False)
    assert reason == f"{rule.metric} cannot get better"
    watch.end(reason)
    assert watch.find_reason(2.0, are_baselines_done=True) is None
    assert watch.next_moment == math.inf


@given(RULES, DISTANCES, st.floats(0, 1))
def test_a_gain_is_an_improvement_and_noise_is_none(
    rule: ReturnRule, best: float, share: float
) -> None:
    assume(0.0 < best < 1.0)
    distance = best * share
    assert not rule.is_gain(best, best)
    if rule.is_gain(distance, best):
        assert distance < best
        assert all(rule.is_gain(distance * lower, best) for lower in (0.9, 0.5, 0.0))
    many_rows = rule._replace(rows=10**12)
    assert many_rows.is_gain(distance, best) == (distance < best) or math.isclose(
        distance, best, rel_tol=1e-5
    )


def test_a_run_without_a_rule_never_returns() -> None:
    watch = ReturnWatch(None, 0.0)
    watch.note_value(1.0, 1.0)
    assert watch.find_reason(1e9, are_baselines_done=True) is None
    assert watch.next_moment == math.inf
