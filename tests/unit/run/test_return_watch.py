"""A run returns when its metric is perfect, or when it has waited long enough for a gain."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cerebro_plpy.configs.templates.registry import list_starts
from cerebro_plpy.run.loop.stopping import return_early
from cerebro_plpy.run.request.run_request import Deadline
from cerebro_plpy.run.state.limits import Limits
from cerebro_plpy.run.state.return_watch import ReturnWatch, make_return_rule
from cerebro_plpy.scheduling.search.early_return import (
    MAX_WAIT_SHARE,
    MIN_PERFECT_ROWS,
    ReturnRule,
)

BUDGETS = st.floats(1.0, 1e5)
DISTANCES = st.floats(1e-6, 1.0)
STARTS = frozenset({1, 2})
RULES = st.builds(
    ReturnRule,
    metric=st.sampled_from(["accuracy", "loss", "root_mean_squared_error", "r2_score"]),
    descending=st.booleans(),
    rows=st.integers(1, 10**6),
    budget=BUDGETS,
    starts=st.just(STARTS),
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
        watch.note_value(1, value_at(rule, distance), distance, now)
    end = now + rule.budget * MAX_WAIT_SHARE + 1e-3
    assert watch.find_reason(end, STARTS) is not None
    assert watch.find_reason(end, STARTS - {1}) is None, "a start is still to end"
    assert watch.next_moment <= end


@given(RULES, DISTANCES, st.floats(0, 100), st.floats(0, 1000))
def test_a_pause_is_no_wait(
    rule: ReturnRule, distance: float, seconds: float, pause: float
) -> None:
    watch = ReturnWatch(rule, 0.0)
    watch.note_value(1, value_at(rule, distance), 1.0, seconds)
    moment = watch.next_moment
    watch.postpone(pause)
    assert math.isclose(watch.next_moment, moment + pause, abs_tol=1e-6)


@given(RULES)
def test_a_perfect_value_ends_the_run_once_its_configuration_has_ended(rule: ReturnRule) -> None:
    watch = ReturnWatch(rule, 0.0)
    assert watch.find_reason(1e9, STARTS) is None, "nothing is known yet"
    watch.note_value(2, math.nan, math.nan, 1.0)
    assert watch.next_moment == math.inf
    watch.note_value(2, value_at(rule, 0.0), 0.5, 1.0)
    assert watch.find_reason(1.0, {1}) is None, "its loss may fall"
    is_sure = rule.rows >= MIN_PERFECT_ROWS
    assert (watch.find_reason(1.0, {2}) is None) != is_sure, "it may be chance"
    reason = watch.find_reason(1.0, STARTS)
    assert reason == f"{rule.metric} cannot get better"
    watch.end(reason)
    assert watch.find_reason(2.0, STARTS) is None
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


@given(RULES, st.floats(0.1, 1.0), st.floats(0.1, 0.9))
def test_a_lower_loss_is_a_gain_though_the_metric_is_none(
    rule: ReturnRule, loss: float, share: float
) -> None:
    """A metric such as accuracy has few values over few rows."""
    watch = ReturnWatch(rule, 0.0)
    watch.note_value(1, value_at(rule, 0.5), loss, 1.0)
    moment = watch.next_moment
    watch.note_value(1, value_at(rule, 0.5), loss * share, 2.0)
    assert (watch.next_moment > moment) == rule.is_loss_gain(loss * share, loss)


def test_a_run_without_a_rule_never_returns() -> None:
    watch = ReturnWatch(None, 0.0)
    watch.note_value(1, 1.0, 1.0, 1.0)
    assert watch.find_reason(1e9, STARTS) is None
    assert watch.next_moment == math.inf


def make_request(*, may_return: bool = True, start: object = None) -> Any:
    """Return a request of cerebro.train over 100 rows that are held back."""
    train = SimpleNamespace(
        may_return=may_return,
        start=start,
        split=SimpleNamespace(validation_rows=100),
        budget=60.0,
    )
    ranking = SimpleNamespace(metric="loss", descending=False)
    return SimpleNamespace(
        deadline=object(),
        starts=STARTS,
        replay=SimpleNamespace(endings={}),
        spec=SimpleNamespace(train=train, ranking=ranking),
    )


def test_only_calls_with_an_open_effort_may_return() -> None:
    rule = ReturnRule("loss", False, 100, 60.0, STARTS)
    assert make_return_rule(make_request()) == rule
    assert make_return_rule(make_request(may_return=False)) is None
    assert make_return_rule(make_request(start=object())) is None, "a refresh is carried out"
    replay = make_request()
    replay.replay.endings = {1: object()}
    assert make_return_rule(replay) is None, "a replay goes by the log"


TEMPLATES = st.lists(st.sampled_from(["linear", "boosting", "realmlp", "a user's network"]))


@given(TEMPLATES, st.integers(1, 10**6), st.integers(1, 10**6))
def test_more_rows_are_worth_more_starts(names: list[str], rows: int, more_rows: int) -> None:
    templates = dict(enumerate(names, 1))
    starts = list_starts(templates, rows)
    assert {templates[key] for key in starts} == set(names), "each template has one"
    assert all(key in starts for key in templates if names.index(templates[key]) == key - 1)
    assert starts <= list_starts(templates, rows + more_rows) <= templates.keys()


@given(st.floats(0.0, 100.0), st.floats(0.0, 100.0), st.floats(0.0, 100.0))
def test_a_run_counts_the_time_from_the_beginning_of_its_call(
    packing: float, starting: float, training: float
) -> None:
    """The same moments have the same consequences, wherever the run begins."""
    request = make_request()
    request.cost_limits = request.max_runtime = None
    request.deadline = Deadline(1e3, 1e3, 1e3, elapsed=packing).shift_earlier(starting)
    limits = Limits(request)
    best = limits.began + training
    limits.return_watch.note_value(1, 0.5, 0.5, best)
    rule = make_return_rule(request)
    assert rule is not None
    patience = rule.compute_patience(packing + starting + training)
    assert math.isclose(limits.return_watch.next_moment, best + patience, abs_tol=1e-6)


@pytest.mark.parametrize("waiting", [(1,), (2,), (3,), ()])
def test_a_run_waits_for_the_first_configuration_of_each_template(
    waiting: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.monotonic", lambda: 100.0)
    watch = ReturnWatch(make_return_rule(make_request()), 0.0)
    watch.note_value(1, 0.5, 0.5, 1.0)
    messages: list[str] = []
    progress = {key: SimpleNamespace(finished=key not in waiting) for key in (1, 2, 3)}
    run: Any = SimpleNamespace(
        request=make_request(),
        state=SimpleNamespace(
            limits=SimpleNamespace(is_ending=False, return_watch=watch), progress=progress
        ),
        context=SimpleNamespace(describe_time=lambda: "99 s of 60 s", notify=messages.append),
    )
    step = return_early(run)
    for act in (*step.changes, *step.notes):
        act()
    if set(waiting) & {1, 2}:
        assert watch.reason is None and messages == []
    else:
        assert watch.reason == "loss did not get better for 99 s"
        assert messages == [f"stopped after 99 s of 60 s: {watch.reason}"]
