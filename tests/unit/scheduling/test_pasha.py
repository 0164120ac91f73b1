"""PASHA: the ceiling rises only if rankings change from rung to rung, by more than epsilon."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.scheduling.search.pasha import Pasha
from cerebro_plpy.scheduling.search.promotion_rules import Asha, Rule, Trial, compute_rungs
from cerebro_plpy.scheduling.search.search_state import DecisionBatch, SearchState

Values = Callable[[int, int], float]
PICKS = st.lists(st.integers(0, 20), max_size=90)
EPOCHS = 27
ENDS = compute_rungs(EPOCHS, 3, 1)


def trained(
    state: SearchState, values: Values, picks: Sequence[int] = (), until: int = 10**6
) -> list[DecisionBatch]:
    """Report up to `until` values of a search, in the order of `picks`."""
    batches, order = [*state.decide()], iter(picks)
    while until > 0:
        coming = sorted(
            key
            for key, trial in state.trials.items()
            if trial.is_running and key not in state._results
        )
        if not coming:
            break
        key, until = coming[next(order, 0) % len(coming)], until - 1
        epoch = max(state._curves[key], default=0) + 1
        state.report_value(key, epoch, values(key, epoch))
        batches += state.decide()
    return batches


def searched(
    rule: Rule, values: Values, count: int, width: int, picks: Sequence[int]
) -> SearchState:
    state = SearchState(rule, range(count), width, fixed=False)
    trained(state, values, picks)
    return state


def find_ceiling(rule: Pasha, trials: Mapping[int, Trial]) -> int:
    """Return the epoch after which no config continues now."""
    return rule.decision_epochs[rule._find_top(trials)]


def upside_down(key: int, epoch: int) -> float:
    """Return values whose order reverses at the end of each rung.

    The values get closer, so that they cross by less than epsilon.
    """
    rung = sum(epoch > end for end in ENDS)
    return (key if rung % 2 == 0 else -key) / 10.0 ** (3 * rung)


@given(st.integers(1, 40), st.integers(1, 6), PICKS)
def test_one_order_never_raises_the_ceiling(count: int, width: int, picks: list[int]) -> None:
    """There is always a config that trains up to the ceiling."""
    state = searched(Pasha(EPOCHS), lambda key, epoch: key / epoch, count, width, picks)
    assert max(state.max_epochs.values()) == 3 and min(state.max_epochs.values()) >= 1
    assert 3 in state.trials[0].values, "the best is promoted at last"


@given(st.integers(18, 50), st.integers(1, 6), PICKS)
def test_where_the_order_always_turns_over_the_last_rung_is_come_to(
    count: int, width: int, picks: list[int]
) -> None:
    state = searched(Pasha(EPOCHS), upside_down, count, width, picks)
    assert max(state.max_epochs.values()) == EPOCHS == state.rule.decision_epochs[-1]


@given(
    st.integers(1, 30),
    st.integers(1, 27),
    st.integers(2, 4),
    st.integers(1, 6),
    PICKS,
    st.randoms(use_true_random=False),
)
def test_nobody_is_trained_but_by_rungs_of_asha(
    count: int, epochs: int, eta: int, width: int, picks: list[int], random: Random
) -> None:
    table = {
        (key, epoch): random.random() for key in range(count) for epoch in range(1, epochs + 1)
    }
    state = searched(Pasha(epochs, eta), lambda key, epoch: table[key, epoch], count, width, picks)
    ends = Asha(epochs, eta).decision_epochs
    assert state.rule.decision_epochs == ends and set(state.max_epochs.values()) <= set(ends)
    assert isinstance(state.rule, Pasha) and max(state.max_epochs.values()) == find_ceiling(
        state.rule, state.trials
    )


CURVES = st.lists(
    st.lists(st.integers(0, 4).map(float), min_size=EPOCHS, max_size=EPOCHS),
    min_size=1,
    max_size=14,
)


@given(CURVES, st.integers(1, 4), st.booleans(), PICKS, st.integers(0, 90))
def test_who_takes_a_search_up_decides_as_without(
    curves: list[list[float]], width: int, fixed: bool, picks: list[int], until: int
) -> None:
    def values(key: int, epoch: int) -> float:
        return curves[key][epoch - 1]

    whole, first, second = (
        SearchState(Pasha(EPOCHS), range(len(curves)), width, fixed=fixed) for _ in range(3)
    )
    decided = trained(whole, values, picks)
    begun = trained(first, values, picks, until)
    second.restore(begun, first._curves)
    assert second.trials == first.trials
    assert [*begun, *trained(second, values, picks[until:])] == decided


@given(CURVES, st.integers(1, 4), PICKS, PICKS)
def test_where_the_order_is_fixed_it_does_not_matter_whose_curve_is_ahead(
    curves: list[list[float]], width: int, picks: list[int], others: list[int]
) -> None:
    one, other = (
        SearchState(Pasha(EPOCHS), range(len(curves)), width, fixed=True) for _ in range(2)
    )
    decided = trained(one, lambda key, epoch: curves[key][epoch - 1], picks)
    assert decided == trained(other, lambda key, epoch: curves[key][epoch - 1], others)


def come(*curves: Sequence[float]) -> dict[int, Trial]:
    """Return configs with these values by epoch, which have reached the rungs among them."""
    by_epoch = [dict(enumerate(curve, 1)) for curve in curves]
    return {
        key: Trial(len(curve), {end: curve[end] for end in ENDS if end in curve}, curve=curve)
        for key, curve in enumerate(by_epoch)
    }


@pytest.mark.parametrize(
    ("curves", "epsilon"),
    [
        ([(1.0, 1.0, 1.0), (2.0, 2.0, 2.0)], 0.0),  # never cross
        ([(1.0, 1.0, 2.0), (2.0, 2.0, 1.0)], 0.0),  # cross, but not back
        ([(1.0, 2.0, 1.0), (2.0, 1.0, 1.5)], 0.5),  # and back
        ([(1.0, 2.0, 1.0), (2.0, 1.0, 1.0)], 0.0),  # back, and equal
        ([(1.0, 5.0, 1.0), (2.0, 3.0, 3.0), (3.0, 2.0, 4.0)], 2.8),  # gaps of 1, 2 and 3
        ([(1.0, 2.0, 1.0), (2.0, 1.0, float("nan"))], 0.0),  # who diverges says nothing of noise
    ],
)
def test_epsilon_is_what_curves_that_cross_to_and_fro_differ_by(
    curves: list[list[float]], epsilon: float
) -> None:
    assert Pasha(EPOCHS).estimate_epsilon(come(*curves), 1) == pytest.approx(epsilon)


@pytest.mark.parametrize(
    ("curves", "ceiling"),
    [
        ([(1.0, 1.0, 2.0), (2.0, 2.0, 1.0)], 9),  # another order, and no noise
        (
            [(1.0, 3.0, 2.0), (1.1, 2.0, 2.2), (5.0, 5.0, 2.1)],
            9,
        ),  # a noise of 0.2: the third one was not near the second
        ([(1.0, 3.0, 2.0), (1.1, 2.0, 2.2), (1.2, 5.0, 2.1)], 3),  # but here it was
        ([(1.0, 1.0, 2.0), (1.0, 2.0, 1.0)], 3),  # alike before
        ([(1.0, 1.0, 2.0), (2.0,)], 3),  # one alone
    ],
)
def test_the_ceiling_grows_where_somebody_leaves_its_like(
    curves: list[list[float]], ceiling: int
) -> None:
    assert find_ceiling(Pasha(EPOCHS), come(*curves)) == ceiling


def test_the_ceiling_stays_where_somebody_trains_already() -> None:
    """Later values do not matter."""
    trials = come((1.0, 1.0, 1.0), (2.0, 2.0, 2.0))
    assert find_ceiling(Pasha(EPOCHS), trials) == 3
    assert find_ceiling(Pasha(EPOCHS), {**trials, 0: trials[0]._replace(max_epoch=9)}) == 9
