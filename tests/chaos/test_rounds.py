"""What is drawn from a seed: every kind of fault and call before one comes again; a round alone is
as in its loop.
"""

from __future__ import annotations

from itertools import islice

import pytest
from faults import FAULTS
from hypothesis import given
from hypothesis import strategies as st
from rounds import FORMS, crashes, rounds

SEEDS = st.integers(0, 10**6).map(str)


@given(seed=SEEDS)
def test_no_fault_comes_twice_before_each_has_come_once(seed: str) -> None:
    dealt: list[set[str]] = [
        {each.fault for each in drawn.misfortunes} for drawn in islice(rounds(seed), len(FAULTS))
    ]
    before: set[str] = set()
    for hand in dealt:
        if before | hand == set(FAULTS):
            break  # those of the next turn may be in the same hand
        assert not before & hand
        before |= hand
    assert before | hand == set(FAULTS)


@given(seed=SEEDS)
def test_each_way_to_call_comes_as_often(seed: str) -> None:
    ways = [(each.schedule, each.background) for each in islice(rounds(seed), 2 * len(FORMS))]
    assert all(ways.count(form) == 2 for form in FORMS)


@given(seed=SEEDS, number=st.integers(1, 30))
def test_a_round_alone_is_that_of_its_loop(seed: str, number: int) -> None:
    assert list(rounds(f"{seed}/{number}")) == [next(islice(rounds(seed), number - 1, None))]


@given(seed=SEEDS)
def test_what_befalls_a_run_does_so_while_it_goes_on(seed: str) -> None:
    for drawn in islice(rounds(seed), 10):
        assert all(-1 <= each.visits < drawn.visits for each in drawn.misfortunes)
        assert 1 <= drawn.workers <= drawn.segments
        assert [each.visits for each in drawn.misfortunes] == sorted(
            each.visits for each in drawn.misfortunes
        )
        assert drawn.misfortunes and drawn.optimizers


@pytest.mark.parametrize("seed", ["1", "2"])
def test_seeds_differ(seed: str) -> None:
    assert str(next(rounds(seed))) != str(next(rounds("3")))


@given(seed=SEEDS, number=st.integers(1, 30))
def test_a_crash_is_drawn_alike_alone_and_meets_a_search_with_acts(seed: str, number: int) -> None:
    (alone,) = crashes(f"{seed}/{number}")
    assert alone == next(islice(crashes(seed), number - 1, None))
    assert alone.search and alone.acts and len(alone.misfortunes) == 1
    assert alone.schedule != "rotation" or {act for _, act in alone.acts} == {"pause_run"}
