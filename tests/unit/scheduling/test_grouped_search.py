"""Several selections in one run: each decides as it would alone, and they share the capacity."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.search_space.search_rules import (
    HALVING,
    PARAMETERS,
    RuleContext,
    SearchRule,
    make_grouped_rule,
)
from cerebro_plpy.configs.train_spec import GroupLayout
from cerebro_plpy.scheduling.search.grouped_search import GroupedRules
from cerebro_plpy.scheduling.search.pasha import Pasha
from cerebro_plpy.scheduling.search.promotion_rules import Asha, EpochBudget, Median, Rule, Stepwise
from cerebro_plpy.scheduling.search.search_state import NO_GROUPS, Groups, SearchState
from cerebro_plpy.scheduling.search.successive_halving import make_halving

EPOCHS = 9


def rules(keys: Sequence[int]) -> list[Rule]:
    evaluated = tuple(range(1, EPOCHS + 1))
    return [
        Stepwise(evaluated),
        Median(evaluated, 1, 2),
        make_halving(keys, EPOCHS, 3, 1),
        Asha(EPOCHS),
        Pasha(EPOCHS),
    ]


def named(shares: Sequence[Sequence[int]]) -> dict[int, str]:
    """Return the groups of configs; the first share has no group."""
    return {key: str(place) for place, share in enumerate(shares) if place for key in share}


def limits(
    rule: Rule,
    keys: Sequence[int],
    values: dict[tuple[int, int], float],
    width: int,
    groups: Groups = NO_GROUPS,
) -> dict[int, int]:
    """Return the last epoch of each config of a search with a fixed order."""
    state = SearchState(rule, keys, width, fixed=True, groups=groups)
    while list(state.decide()) or state.is_running:
        for key, trial in list(state.trials.items()):
            if trial.is_running:
                state.report_value(key, trial.max_epoch, values[key, trial.max_epoch])
    return dict(state.max_epochs)


@given(st.lists(st.integers(1, 7), min_size=1, max_size=4), st.integers(0, 3), st.integers())
def test_with_room_for_all_each_selection_goes_as_it_would_alone(
    sizes: list[int], place: int, seed: int
) -> None:
    random, first, shares = Random(seed), 1, list[list[int]]()
    for size in sizes:
        shares.append(list(range(first, first + size)))
        first += size
    keys = [key for share in shares for key in share]
    values = {(key, epoch): random.random() for key in keys for epoch in range(1, EPOCHS + 1)}
    together = GroupedRules(
        {str(n) if n else None: rules(share)[place] for n, share in enumerate(shares)}
    )
    found = limits(together, keys, values, 1000, Groups(named(shares)))
    for share in shares:
        alone = limits(rules(share)[place], share, values, 1000)
        assert {key: found[key] for key in share} == alone


@given(st.lists(st.integers(1, 7), min_size=2, max_size=4), st.integers(0, 30), st.integers())
def test_each_group_may_make_as_many_visits_as_a_search_over_its_rows_alone(
    sizes: list[int], visits: int, seed: int
) -> None:
    """The rows of the group in place n are on n segments, all rows on as many as there are
    groups.
    """
    random, count, keys = Random(seed), len(sizes), iter(range(1, sum(sizes) + 1))
    shares = [[next(keys) for _ in range(size)] for size in sizes]
    rule = SearchRule(HALVING, PARAMETERS[HALVING], max_visits=count + visits)
    places = {
        str(n): GroupLayout((), {segment: () for segment in range(n)}, {}) for n in range(1, count)
    }
    values = {
        (key, epoch): random.random()
        for key in range(1, sum(sizes) + 1)
        for epoch in range(1, EPOCHS + 1)
    }
    groups = {key: str(n) if n else None for n, share in enumerate(shares) for key in share}
    span = RuleContext(EPOCHS, (), segments=count)
    found = limits(
        make_grouped_rule(rule, groups, span, places),
        [*groups],
        values,
        1000,
        Groups(named(shares)),
    )
    for n, share in enumerate(shares):
        alone = limits(
            rule.make_rule(share, span._replace(segments=n or count)), share, values, 1000
        )
        assert {key: found[key] for key in share} == alone


@given(st.integers(2, 5), st.integers(2, 6), st.integers(1, 4))
def test_where_there_is_little_room_all_selections_begin_alike(
    groups: int, size: int, width: int
) -> None:
    shares = [list(range(1 + group * size, 1 + (group + 1) * size)) for group in range(groups)]
    rule = GroupedRules({str(n) if n else None: Asha(EPOCHS) for n in range(groups)})
    of = Groups(named(shares))
    state = SearchState(
        rule, [key for share in shares for key in share], width, fixed=True, groups=of
    )
    list(state.decide())
    begun = [sum(state.max_epochs[key] > 0 for key in share) for share in shares]
    assert sum(begun) == min(width, groups * size) and max(begun) - min(begun) <= 1


DRAWING: list[Rule] = [Asha(EPOCHS), Stepwise((EPOCHS,)), EpochBudget(Asha(EPOCHS), 12)]


def drawn_through(
    sizes: Sequence[int], draws: int, width: int, rule: Rule, seed: int
) -> list[tuple[int, str | None]]:
    """Return the sampled groups in order, if each selection begins with some configs."""
    groups = [str(n) if n else None for n in range(len(sizes))]
    of = {
        n: group
        for n, group in enumerate(
            g for size, g in zip(sizes, groups, strict=True) for _ in range(size)
        )
    }
    named = {key: group for key, group in of.items() if group is not None}
    left = {group: draws for group in groups if group is not None}
    selections = GroupedRules(dict.fromkeys(groups, rule))
    state = SearchState(
        selections, of, width, fixed=True, sample_count=draws, groups=Groups(named, left)
    )
    random, found = Random(seed), list[tuple[int, str | None]]()
    while True:
        for batches in state.decide():
            assert len(sizes) == 1 or batches.sample_count in (0, 1)
            for _ in range(batches.sample_count):
                found.append((len(of) + len(found), batches.group))
                state.add_config(*found[-1])
        going = [
            key
            for key, trial in state.trials.items()
            if trial.is_running and key not in state._results
        ]
        if not going:
            break
        for key in going:
            state.report_value(key, state.trials[key].max_epoch, random.random())
    assert {key: state.trials[key].group for key, _ in found} == dict(found), (
        "each is of the group it was drawn for"
    )
    assert all(trial.max_epoch for trial in state.trials.values()) or isinstance(rule, EpochBudget)
    return found


@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=4),
    st.integers(0, 5),
    st.integers(1, 6),
    st.sampled_from(DRAWING),
    st.integers(),
)
def test_each_selection_draws_its_own_in_a_fixed_order(
    sizes: list[int], draws: int, width: int, rule: Rule, seed: int
) -> None:
    found = drawn_through(sizes, draws, width, rule, seed)
    assert found == drawn_through(sizes, draws, width, rule, seed)
    for place in range(len(sizes)):
        count = sum(group == (str(place) if place else None) for _, group in found)
        assert count == draws or (isinstance(rule, EpochBudget) and count < draws), (
            "it has epochs left"
        )
