"""Hyperband's schedule against the pseudo-code of the paper, with MADlib's rounding; promotions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.scheduling.search.hyperband import Diagonals, Hyperband, Round
from cerebro_plpy.scheduling.search.search_state import SearchState

numbers = st.floats() | st.integers(-3, 3).map(float)


@st.composite
def hyperbands(draw: st.DrawFn) -> Hyperband:
    eta = draw(st.integers(2, 7))
    found = Hyperband(draw(st.integers(eta, 2000)), eta, 0)
    return Hyperband(found.R, eta, draw(st.integers(0, found.s_max)))


def pseudo_code(R: int, eta: int, skip_last: int) -> list[Round]:
    """Algorithm 1 of the paper, round by round; the division in the size of a bracket is floored
    first.
    """
    s_max = max(s for s in range(R) if Fraction(eta) ** s <= R)
    made = []
    for s in reversed(range(s_max + 1)):
        n = math.ceil(Fraction(math.floor(Fraction(s_max + 1, s + 1))) * Fraction(eta) ** s)
        r = R * Fraction(eta) ** -s
        for i in range(s + 1 - skip_last):
            made.append(
                Round(s, i, math.floor(n * Fraction(eta) ** -i), round(r * Fraction(eta) ** i))
            )
    return made


@given(hyperbands())
def test_the_schedule_is_the_paper_s(found: Hyperband) -> None:
    assert list(found.schedule()) == pseudo_code(found.R, found.eta, found.skip_last)


@given(hyperbands())
def test_every_number_can_be_trained(found: Hyperband) -> None:
    found.check("module")
    assert all(each.configs >= 1 and 1 <= each.iterations <= found.R for each in found.schedule())


@given(hyperbands())
def test_brackets_are_halved_and_end_with_the_most_iterations(found: Hyperband) -> None:
    by_bracket: dict[int, list[Round]] = {}
    for each in found.schedule():
        by_bracket.setdefault(each.s, []).append(each)
    for rounds in by_bracket.values():
        assert [each.i for each in rounds] == list(range(len(rounds)))
        assert all(
            later.configs * found.eta == earlier.configs for earlier, later in pairwise(rounds)
        )
        if not found.skip_last:
            assert rounds[-1].iterations == found.R


@given(hyperbands())
def test_diagonals_hold_every_round_once_and_rounds_of_one_length(found: Hyperband) -> None:
    diagonals = found.diagonals()
    assert sorted(each for diagonal in diagonals for each in diagonal) == sorted(found.schedule())
    for diagonal in diagonals:
        assert len({each.iterations for each in diagonal}) == 1
    when = {each[:2]: number for number, diagonal in enumerate(diagonals) for each in diagonal}
    assert all(when[s, i] == when[s, i - 1] + 1 for s, i in when if i)


@given(hyperbands())
def test_brackets_share_the_keys_out(found: Hyperband) -> None:
    brackets = dict(found.brackets())
    first = {each.s: each.configs for each in found.schedule() if each.i == 0}
    assert {s: len(keys) for s, keys in brackets.items()} == first
    assert [key for keys in brackets.values() for key in keys] == list(
        range(1, sum(first.values()) + 1)
    )


def test_madlib_s_example() -> None:
    """With R=81 and eta=3 the paper has 81, 34, 15, 8, 5 configurations; MADlib's inner brackets
    are smaller.
    """
    assert [(each.s, each.configs) for each in Hyperband(81, 3, 0).schedule() if each.i == 0] == [
        (4, 81),
        (3, 27),
        (2, 9),
        (1, 6),
        (0, 5),
    ]


def test_a_power_of_eta_is_seen_as_one() -> None:
    """The logarithm of 243 to base 3 is a little less than 5 in floating point."""
    assert Hyperband(243, 3, 0).s_max == 5


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((9, 1, 0), "m: eta must be greater than 1"),
        ((9, -3, 0), "m: eta must be greater than 1"),
        ((2, 3, 0), "m: R should not be less than eta"),
        ((0, 3, 0), "m: R should not be less than eta"),
        ((9, 3, -1), "m: skip_last must be non-negative and less than 3"),
        ((9, 3, 3), "m: skip_last must be non-negative and less than 3"),
    ],
)
def test_wrong_numbers_are_refused_in_madlib_s_words(
    numbers: tuple[int, int, int], text: str
) -> None:
    with pytest.raises(InvalidParameter) as caught:
        Hyperband(*numbers).check("m")
    assert caught.value.message == text
    assert "Received" in str(caught.value.detail)


METHODS = st.sampled_from(
    [Hyperband(R, eta, skip) for R, eta in ((6, 3), (9, 3), (9, 2), (27, 3)) for skip in (0, 1)]
)


@given(
    METHODS, st.lists(numbers, min_size=60, max_size=60), st.sets(st.integers(1, 60), max_size=9)
)
def test_diagonals_are_trained_one_after_the_other(
    method: Hyperband, losses: list[float], failing: set[int]
) -> None:
    """With nobody failing they are those of the schedule; nobody who is out of a round was better
    than who went on.
    """
    keys, ends = range(1, method.configs + 1), method.ends()
    state = SearchState(Diagonals(method, keys), keys, 2, fixed=False)
    batches, begun = [*state.decide()], list[dict[tuple[int, int], list[int]]]()
    values: dict[int, float] = {}
    while state.is_running:
        coming = [key for key, trial in state.trials.items() if trial.is_running]
        places: dict[tuple[int, int], list[int]] = {}
        for key in coming:
            places.setdefault(method.locate(key, state.trials[key].max_epoch), []).append(key)
        begun.append(places)
        for key in coming:
            values[key] = losses[(key * 7 + state.trials[key].max_epoch) % len(losses)]
            if key in failing and len(begun) > key % 3:
                state.report_end(key, "it failed", failed=True)
            else:
                state.report_value(key, state.trials[key].max_epoch, values[key])
            batches += state.decide()
    if not failing and all(map(math.isfinite, losses)):
        planned = [{(r.s, r.i): r.configs for r in diagonal} for diagonal in method.diagonals()]
        assert [
            {place: len(found) for place, found in places.items()} for places in begun
        ] == planned
    for before, after in pairwise(begun):
        for (s, i), found in after.items():
            if i == 0:
                continue
            assert set(found) <= set(before[s, i - 1]), "nobody returns, or changes the bracket"
            end = ends[s][i - 1]
            worst = max((state.trials[key].values[end], key) for key in found)
            out = [
                key
                for key in before[s, i - 1]
                if key not in found and end in state.trials[key].values
            ]
            able = [
                key
                for key in out
                if not state.trials[key].finished and math.isfinite(state.trials[key].values[end])
            ]
            assert all((state.trials[key].values[end], key) > worst for key in able)
