"""Several selections in one run: each goes as it would alone, and none has all the room."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.hopping.brackets import halving
from cerebro_plpy.hopping.course import Course
from cerebro_plpy.hopping.pasha import Pasha
from cerebro_plpy.hopping.rules import Asha, Median, Rule, Stepwise
from cerebro_plpy.hopping.selections import Selections

EPOCHS = 9


def rules(keys: Sequence[int]) -> list[Rule]:
    evaluated = tuple(range(1, EPOCHS + 1))
    return [Stepwise(evaluated), Median(evaluated, 1, 2), halving(keys, EPOCHS, 3, 1), Asha(EPOCHS), Pasha(EPOCHS)]


def limits(rule: Rule, keys: Sequence[int], values: dict[tuple[int, int], float], width: int) -> dict[int, int]:
    """How far each config of a search trains, in which results come in a fixed order."""
    course = Course(rule, keys, width, fixed=True)
    while list(course.due()) or course.under_way:
        for key, trial in list(course.trials.items()):
            if trial.under_way:
                course.heard(key, trial.limit, values[key, trial.limit])
    return dict(course.limits)


@given(st.lists(st.integers(1, 7), min_size=1, max_size=4), st.integers(0, 3), st.integers())
def test_with_room_for_all_each_selection_goes_as_it_would_alone(sizes: list[int], place: int, seed: int) -> None:
    random, first, shares = Random(seed), 1, list[list[int]]()
    for size in sizes:
        shares.append(list(range(first, first + size)))
        first += size
    keys = [key for share in shares for key in share]
    values = {(key, epoch): random.random() for key in keys for epoch in range(1, EPOCHS + 1)}
    together = Selections([(frozenset(share), rules(share)[place]) for share in shares])
    found = limits(together, keys, values, 1000)
    for share in shares:
        alone = limits(rules(share)[place], share, values, 1000)
        assert {key: found[key] for key in share} == alone


@given(st.integers(2, 5), st.integers(2, 6), st.integers(1, 4))
def test_where_there_is_little_room_all_selections_begin_alike(groups: int, size: int, width: int) -> None:
    shares = [list(range(1 + group * size, 1 + (group + 1) * size)) for group in range(groups)]
    rule = Selections([(frozenset(share), Asha(EPOCHS)) for share in shares])
    course = Course(rule, [key for share in shares for key in share], width, fixed=True)
    list(course.due())
    begun = [sum(course.limits[key] > 0 for key in share) for share in shares]
    assert sum(begun) == min(width, groups * size) and max(begun) - min(begun) <= 1
