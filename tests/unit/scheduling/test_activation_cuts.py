"""The choice of stored activations: never worse than any other choice, and within the budget."""

from __future__ import annotations

from itertools import chain, combinations

from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.scheduling.planning.activation_cuts import (
    ConfigCuts,
    Cut,
    Storage,
    choose_cut,
    choose_cuts,
    list_useful_cuts,
    total_cost,
)

MEANS = Storage(rows=100, row_bytes=400, budget=1 << 20, overhead=0)


@st.composite
def all_wishes(draw: st.DrawFn) -> list[ConfigCuts]:
    """Draw a few configurations; cuts of one digest have equal shapes and costs."""
    kinds = [
        Cut("", str(number), (draw(st.integers(1, 300)),), draw(st.integers(0, 30_000)))
        for number in range(draw(st.integers(0, 6)))
    ]
    found = []
    for key in range(1, draw(st.integers(1, 4)) + 1):
        chosen = draw(st.lists(st.sampled_from(kinds), unique=True)) if kinds else []
        own = tuple(cut._replace(layer=f"{key} {cut.digest}") for cut in chosen)
        found.append(ConfigCuts(key, own, draw(st.integers(1, 40))))
    return found


means = st.builds(
    Storage,
    st.integers(1, 1000),
    st.integers(4, 2000),
    st.integers(0, 400_000),
    st.integers(0, 10_000_000),
)


def total(configs: list[ConfigCuts], chosen: dict[int, Cut], of: Storage) -> int:
    """Return the cost of a run with this choice."""
    digests = {cut.digest: cut for cut in chosen.values()}
    passes = sum(wish.cost(chosen.get(wish.mst_key), of.row_bytes) for wish in configs)
    return sum(map(of.store_cost, digests.values())) + of.rows * passes


@given(all_wishes(), means)
def test_no_other_way_takes_less(configs: list[ConfigCuts], of: Storage) -> None:
    found = choose_cuts(configs, of)
    cuts = list({cut.digest: cut for wish in configs for cut in wish.cuts}.values())
    subsets = chain.from_iterable(combinations(cuts, size) for size in range(len(cuts) + 1))
    least = min(
        total_cost(configs, some, of) for some in subsets if sum(map(of.size_of, some)) <= of.budget
    )
    assert total(configs, found, of) == least


@given(all_wishes(), means)
def test_what_is_stored_fits_and_is_the_configurations_own(
    configs: list[ConfigCuts], of: Storage
) -> None:
    found = choose_cuts(configs, of)
    assert all(found[wish.mst_key] in wish.cuts for wish in configs if wish.mst_key in found)
    assert (
        sum(of.size_of(cut) for cut in {cut.digest: cut for cut in found.values()}.values())
        <= of.budget
    )


@given(all_wishes(), means)
def test_without_a_budget_nothing_is_stored(configs: list[ConfigCuts], of: Storage) -> None:
    assert choose_cuts(configs, of._replace(budget=0)) == {}


def test_what_is_computed_once_is_not_stored() -> None:
    """A single configuration with one pass gains nothing from stored activations; two may."""
    cut = Cut("pool", "a", (10,), 1_000_000)
    assert choose_cuts([ConfigCuts(1, (cut,), 1)], MEANS) == {}
    assert choose_cuts([ConfigCuts(1, (cut,), 1), ConfigCuts(2, (cut,), 2)], MEANS) == {
        1: cut,
        2: cut,
    }


def test_the_deepest_is_stored_unless_it_is_too_large() -> None:
    small, deep = Cut("early", "a", (10,), 1_000_000), Cut("late", "b", (100,), 3_000_000)
    configs = [ConfigCuts(key, (small, deep), 10) for key in (1, 2)]
    assert choose_cuts(configs, MEANS) == {1: deep, 2: deep}
    assert choose_cuts(configs, MEANS._replace(budget=100 * small.nbytes)) == {1: small, 2: small}
    assert (
        choose_cut(configs[0], {"a"}, MEANS) == small and choose_cut(configs[0], (), MEANS) is None
    )


def test_a_cut_that_another_outdoes_is_not_looked_at() -> None:
    wide, pooled = Cut("wide", "a", (1000,), 1_000_000), Cut("pooled", "b", (10,), 1_000_100)
    assert list_useful_cuts([ConfigCuts(1, (wide, pooled), 10)], MEANS) == [pooled]
