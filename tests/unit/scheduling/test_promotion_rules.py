"""Search rules against the tables and algorithms of their papers; and the order of results."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import median

from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.scheduling.search.pasha import Pasha
from cerebro_plpy.scheduling.search.promotion_rules import (
    Asha,
    Capacity,
    EpochBudget,
    Median,
    ReplayedEpochs,
    Rule,
    Stepwise,
    Trial,
    Trials,
    UntilTarget,
    compute_rungs,
)
from cerebro_plpy.scheduling.search.search_state import DecisionBatch, SearchState
from cerebro_plpy.scheduling.search.successive_halving import Brackets, make_halving, make_hyperband

Values = Callable[[int, int], float]
VALUES = st.floats(allow_nan=True, allow_infinity=True) | st.integers(-3, 3).map(float)


def worked_through(
    state: SearchState,
    values: Values,
    picks: Sequence[int] = (),
    fails: Mapping[int, int] | None = None,
    until: int = 10**6,
) -> list[DecisionBatch]:
    """Report the results of a search in the order of `picks`, and return the decisions.

    Args:
        until: largest number of results.
    """
    batches = [*state.decide()]
    order = iter(picks)
    while until > 0:
        coming = sorted(
            key
            for key, trial in state.trials.items()
            if trial.is_running and key not in state._results
        )
        if not coming:
            break
        key, until = coming[next(order, 0) % len(coming)], until - 1
        limit = state.trials[key].max_epoch
        if fails and fails.get(key, math.inf) <= limit:
            state.report_end(key, "it failed")
        else:
            state.report_value(key, limit, values(key, limit))
        batches += state.decide()
    return batches


def came_to(state: SearchState) -> Counter[int]:
    """Count the configs that have a value after each epoch."""
    return Counter(epoch for trial in state.trials.values() for epoch in trial.values)


RULES: dict[str, Callable[[Sequence[int], int], Rule]] = {
    "asha": lambda keys, epochs: Asha(epochs, 3, 1),
    "pasha": lambda keys, epochs: Pasha(epochs, 2, 1),
    "halving": lambda keys, epochs: make_halving(keys, epochs, 2, 1),
    "hyperband": lambda keys, epochs: make_hyperband(keys, epochs, 3),
    "median": lambda keys, epochs: Median(range(1, epochs + 1), 1, 2),
    "grid": lambda keys, epochs: Stepwise((epochs,)),
    "replay": lambda keys, epochs: ReplayedEpochs({key: 1 + key % epochs for key in keys}),
}


@st.composite
def searches(draw: st.DrawFn) -> tuple[Callable[[], SearchState], Values, dict[int, int]]:
    keys = range(1, draw(st.integers(1, 14)) + 1)
    epochs, kind = draw(st.integers(1, 12)), draw(st.sampled_from(sorted(RULES)))
    width, fixed = draw(st.integers(1, 5)), draw(st.booleans())
    table = draw(st.lists(VALUES, min_size=len(keys), max_size=len(keys)))
    fails = draw(st.dictionaries(st.sampled_from(keys), st.integers(1, epochs), max_size=3))
    return (
        lambda: SearchState(RULES[kind](keys, epochs), keys, width, fixed=fixed),
        lambda key, epoch: table[key - 1] / epoch,
        fails,
    )


PICKS = st.lists(st.integers(0, 20), max_size=60)


def test_hyperband_is_the_table_of_the_paper() -> None:
    """Table 1 of arXiv 1603.06560, with R = 81 and eta = 3."""
    table = {
        81: [(1, 81), (3, 27), (9, 9), (27, 3), (81, 1)],
        34: [(3, 34), (9, 11), (27, 3), (81, 1)],
    }
    table |= {15: [(9, 15), (27, 5), (81, 1)], 8: [(27, 8), (81, 2)], 5: [(81, 5)]}
    state = SearchState(make_hyperband(range(143), 81, 3), range(143), 4, fixed=False)
    assert isinstance(state.rule, Brackets)
    worked_through(state, lambda key, epoch: float(key))
    for keys, _ in state.rule.brackets:
        found = Counter(epoch for key in keys for epoch in state.trials[key].values)
        assert sorted(found.items()) == table[len(keys)]


@given(st.integers(1, 60), st.integers(2, 5), st.integers(1, 40))
def test_halving_lets_the_best_go_on(count: int, eta: int, epochs: int) -> None:
    state = SearchState(make_halving(range(count), epochs, eta, 1), range(count), 1, fixed=False)
    worked_through(state, lambda key, epoch: float(-key))
    for number, end in enumerate(compute_rungs(epochs, eta, 1)):
        best = max(1, count // eta**number)
        assert {key for key, trial in state.trials.items() if end in trial.values} == set(
            range(count - best, count)
        )


def finite(value: float) -> float:
    return value if math.isfinite(value) else math.inf


def plain_job(trials: Trials, ends: Sequence[int], eta: int) -> tuple[int, int] | None:
    """Algorithm 2 of arXiv 1810.05934, `get_job`, over configs that are drawn in the order of their
    keys.
    """
    for k in reversed(range(len(ends) - 1)):
        came = [(key, trial) for key, trial in trials.items() if ends[k] in trial.values]
        came.sort(key=lambda each: (finite(each[1].values[ends[k]]), each[0]))
        top = came[: len(came) // eta]
        promotable = [
            key for key, trial in top if not trial.finished and trial.max_epoch == ends[k]
        ]
        if promotable:
            return promotable[0], ends[k + 1]
    fresh = [key for key, trial in trials.items() if not trial.max_epoch and not trial.finished]
    return (min(fresh), ends[0]) if fresh else None


TRIALS = st.dictionaries(
    st.integers(1, 20),
    st.tuples(
        st.sampled_from((0, 1, 3, 9)),
        st.lists(VALUES, min_size=3, max_size=3),
        st.booleans(),
        st.booleans(),
    ),
    max_size=20,
)


def by_epoch(values: Sequence[float], epochs: Sequence[int]) -> list[tuple[int, float]]:
    return list(zip(epochs, values, strict=True))


@given(TRIALS)
def test_asha_takes_the_job_of_the_paper(
    drawn: Mapping[int, tuple[int, list[float], bool, bool]],
) -> None:
    trials = {
        key: Trial(
            limit, {e: v for e, v in by_epoch(values, (1, 3, 9)) if e < limit + reported}, over
        )
        for key, (limit, values, reported, over) in drawn.items()
    }
    wanted, found = plain_job(trials, (1, 3, 9), 3), Asha(9).decide(trials, Capacity(1), None)
    if wanted:
        assert [(each.mst_key, each.max_epoch) for each in found] == [wanted]
    else:
        busy = any(trial.is_running for trial in trials.values())
        ended = any(trial.max_epoch == 9 for trial in trials.values())
        assert not found or not (busy or ended), "the best alone, where nothing else is left"


@given(st.integers(1, 30), st.integers(1, 6), PICKS)
def test_asha_begins_all_and_one_comes_to_the_end(count: int, width: int, picks: list[int]) -> None:
    state = SearchState(Asha(9), range(count), width, fixed=False)
    worked_through(state, lambda key, epoch: float(key), picks)
    came = came_to(state)
    assert came[1] == count and came[9] >= 1
    assert 9 in state.trials[0].values, "the best of each rung is promoted at last"


@given(st.integers(1, 30), st.integers(1, 6), PICKS)
def test_who_ends_by_itself_on_the_way_to_the_end_has_come_there(
    count: int, width: int, picks: list[int]
) -> None:
    """Early stopping does so; otherwise, all others would be tried in its place."""
    whole, state = (SearchState(Asha(9), range(count), width, fixed=False) for _ in range(2))
    worked_through(whole, lambda key, epoch: float(key), picks)
    worked_through(state, lambda key, epoch: float(key), picks, dict.fromkeys(range(count), 9))
    assert state.max_epochs == whole.max_epochs


@given(TRIALS)
def test_the_median_rule_stops_whom_the_paper_stops(
    drawn: Mapping[int, tuple[int, list[float], bool, bool]],
) -> None:
    trials = {
        key: Trial(3, dict(by_epoch(values, (1, 2, 3)))) for key, (_, values, _, _) in drawn.items()
    }
    rule = Median((1, 2, 3, 4), 1, 2)
    for key in trials:
        (found,) = rule.decide(trials, Capacity(1), key)
        others = [trial.values for other, trial in trials.items() if other != key]
        means = [sum(finite(v) / len(each) for v in each.values()) for each in others]
        own = min(map(finite, trials[key].values.values()))
        stops = len(others) >= 2 and own > median(means)
        assert (found.action, found.max_epoch) == (("stop", 3) if stops else ("continue", 4))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.integers(0, 9), PICKS)
def test_a_target_ends_all(values: list[int], target: int, picks: list[int]) -> None:
    state = SearchState(UntilTarget(Asha(9), float(target)), range(len(values)), 3, fixed=False)
    decided = worked_through(state, lambda key, epoch: float(values[key]), picks)
    reached = [key for key, trial in state.trials.items() if values[key] <= target and trial.values]
    stopped = [each for batches in decided for each in batches.decisions if each.action == "stop"]
    assert bool(reached) == bool(stopped) == (min(values) <= target)
    assert not state.is_running and all(f"mst_key={reached[0]}" in each.reason for each in stopped)
    assert len(reached) <= 1, "nobody goes on after the first"


@given(st.integers(1, 20), st.integers(1, 250), st.booleans(), PICKS, st.data())
def test_no_more_epochs_are_decided_than_may_be(
    count: int, most: int, fixed: bool, picks: list[int], data: st.DataObject
) -> None:
    """With enough epochs, the decisions are those without a budget."""
    rules: list[Rule] = [Asha(9), make_halving(range(count), 9, 3, 1), Stepwise((1, 3, 9))]
    rule = data.draw(st.sampled_from(rules))
    state = SearchState(EpochBudget(rule, most), range(count), 3, fixed=fixed)
    worked_through(state, lambda key, epoch: float(key), picks)
    assert sum(state.max_epochs.values()) <= most
    assert any(state.max_epochs.values()), "one epoch may always be made"
    whole = SearchState(rule, range(count), 3, fixed=fixed)
    worked_through(whole, lambda key, epoch: float(key), picks)
    if most >= 9 * count:
        assert state.max_epochs == whole.max_epochs


@given(
    st.integers(0, 12),
    st.integers(1, 5),
    PICKS,
    st.sampled_from([Asha(9), Stepwise((9,)), Median((1, 3, 9))]),
)
def test_others_are_drawn_when_there_is_room(
    draws: int, width: int, picks: list[int], rule: Rule
) -> None:
    """All are sampled in the end, but never more at a time than could begin."""
    state = SearchState(rule, range(2), width, fixed=False, sample_count=draws)
    known, coming = list(range(2)), 0
    order = iter(picks)
    while True:
        for batches in state.decide():
            if batches.sample_count:
                assert batches.sample_count <= width - sum(
                    trial.is_running for trial in state.trials.values()
                )
                for _ in range(batches.sample_count):
                    known.append(len(known))
                    state.add_config(known[-1])
        under_way = [
            key
            for key, trial in state.trials.items()
            if trial.is_running and key not in state._results
        ]
        if not under_way:
            break
        key = under_way[next(order, 0) % len(under_way)]
        state.report_value(key, state.trials[key].max_epoch, float(key))
        coming += 1
    assert len(known) == 2 + draws and not state.remaining_samples
    assert all(trial.max_epoch for trial in state.trials.values())
    assert any(trial.max_epoch == 9 for trial in state.trials.values())


@given(searches(), PICKS)
def test_a_search_ends_and_limits_only_grow(
    search: tuple[Callable[[], SearchState], Values, dict[int, int]], picks: list[int]
) -> None:
    new, values, fails = search
    state = new()
    limits: dict[int, int] = {}
    for batches in worked_through(state, values, picks, fails):
        assert batches.cause is None or batches.decisions[0].mst_key == batches.cause
        assert len({each.mst_key for each in batches.decisions}) == len(batches.decisions)
        for each in batches.decisions:
            grows = each.action in ("start", "continue", "promote")
            assert (
                (each.max_epoch > limits.get(each.mst_key, 0))
                if grows
                else (each.max_epoch == limits[each.mst_key])
            )
            limits[each.mst_key] = each.max_epoch
    assert not state.is_running and limits == {
        key: limit for key, limit in state.max_epochs.items() if limit
    }


@given(searches(), PICKS, PICKS)
def test_where_the_order_is_fixed_it_does_not_matter_who_comes_first(
    search: tuple[Callable[[], SearchState], Values, dict[int, int]],
    picks: list[int],
    others: list[int],
) -> None:
    new, values, fails = search
    one, other = new(), new()
    if one._fixed:
        assert worked_through(one, values, picks, fails) == worked_through(
            other, values, others, fails
        )


@given(searches(), PICKS, st.integers(0, 40))
def test_a_search_that_is_taken_up_goes_on_as_it_would_have(
    search: tuple[Callable[[], SearchState], Values, dict[int, int]], picks: list[int], until: int
) -> None:
    new, values, fails = search
    whole, first, second = new(), new(), new()
    decided = worked_through(whole, values, picks, fails)
    begun = worked_through(first, values, picks, fails, until)
    known = {key: {epoch: values(key, epoch) for epoch in range(1, 13)} for key in whole.trials}
    logged = {
        key: {
            e: v
            for e, v in by_epoch.items()
            if e in first.trials[key].values or unheard(first, key, e)
        }
        for key, by_epoch in known.items()
    }
    second.restore(begun, logged)
    for key in fails:
        if first.trials[key].finished or (key in first._results and first._results[key].end_reason):
            second.report_end(key, "it failed")
    assert repr(second.trials) == repr(first.trials) and second._start_times == first._start_times
    if second._fixed:
        assert [*begun, *worked_through(second, values, (), fails)] == decided


def unheard(state: SearchState, mst_key: int, epoch: int) -> bool:
    """Return True if the rule has not received a result yet."""
    waiting = state._results.get(mst_key)
    return (
        waiting is not None
        and waiting.value is not None
        and state.trials[mst_key].max_epoch == epoch
    )
