"""The leaderboard of a page: its order, its filter, its addresses, and comparisons."""

from __future__ import annotations

from urllib.parse import quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams

from cerebro_db.dashboard.leaderboard import (
    COLUMNS,
    MAX_COMPARED,
    BoardOrder,
    compare_parameters,
    describe_by_template,
    read_compared,
    read_order,
    sort_standings,
)
from cerebro_db.errors import InvalidParameter
from cerebro_db.records import Parameter, Standing

ORDERS = st.builds(
    BoardOrder,
    sort=st.sampled_from(sorted(COLUMNS)),
    is_descending=st.booleans(),
    filter=st.text(max_size=8).map(str.strip),
    shows_all=st.booleans(),
)
STANDINGS = st.lists(
    st.builds(
        Standing,
        run_id=st.just(1),
        rank=st.integers(1, 5),
        mst_key=st.integers(1, 50),
        params=st.dictionaries(st.sampled_from(["lr", "depth"]), st.integers(1, 3), min_size=1),
        epochs=st.integers(0, 9),
        status=st.sampled_from(["running", "stopped"]),
        dataset=st.just("validation"),
        metric=st.just("accuracy"),
        value=st.none() | st.floats(0, 1),
        training_time=st.none(),
        reason=st.none(),
        template=st.none() | st.sampled_from(["linear", "cnn"]),
        training=st.none() | st.floats(0, 1),
    ),
    max_size=9,
    unique_by=lambda standing: standing.mst_key,
)


@given(ORDERS)
def test_an_address_brings_its_order_back(order: BoardOrder) -> None:
    assert read_order(QueryParams(order.make_query().removeprefix("?"))) == order


@given(ORDERS, st.sampled_from(sorted(COLUMNS)))
def test_a_heading_sorts_and_reverses(order: BoardOrder, column: str) -> None:
    first = read_order(QueryParams(order.make_sort_query(column).removeprefix("?")))
    second = read_order(QueryParams(first.make_sort_query(column).removeprefix("?")))
    assert first.sort == second.sort == column
    assert first.is_descending != second.is_descending
    assert (first.filter, first.shows_all) == (order.filter, order.shows_all)
    assert {first.describe_sort(column), second.describe_sort(column)} == {
        "ascending",
        "descending",
    }


@given(STANDINGS, ORDERS)
def test_configurations_without_a_value_are_last(
    standings: list[Standing], order: BoardOrder
) -> None:
    ordered = sort_standings(standings, order)
    assert sorted(map(id, ordered)) == sorted(map(id, standings))
    values = [getattr(standing, COLUMNS[order.sort]) for standing in ordered]
    present = [value for value in values if value is not None]
    assert values == [*present, *[None] * (len(values) - len(present))]
    assert present == sorted(present, reverse=order.is_descending)


@given(STANDINGS)
def test_what_all_of_a_template_share_is_not_repeated(standings: list[Standing]) -> None:
    texts = describe_by_template(standings)
    assert texts.keys() == {standing.mst_key for standing in standings}
    for standing in standings:
        peers = [other for other in standings if other.template == standing.template]
        for name, value in standing.params.items():
            is_shared = all(other.params.get(name) == value for other in peers)
            is_named = f"{name}={value}" in texts[standing.mst_key].split(", ")
            assert is_named == (not is_shared or len(peers) == 1)


PARAMETERS = st.dictionaries(
    st.tuples(st.integers(1, 3), st.sampled_from(["lr", "depth", "width"])), st.integers(0, 1)
)


@given(PARAMETERS, st.permutations([1, 2, 3]))
def test_a_comparison_has_each_parameter_once(
    values: dict[tuple[int, str], int], keys: list[int]
) -> None:
    parameters = [
        Parameter(run_id=1, mst_key=key, name=name, value=value)
        for (key, name), value in values.items()
    ]
    differing, equal = compare_parameters(keys[:2], parameters)
    names = [name for name, _ in (*differing, *equal)]
    assert sorted(names) == sorted({name for key, name in values if key in keys[:2]})
    for name, (left, right) in (*differing, *equal):
        assert left == values.get((keys[0], name)) and right == values.get((keys[1], name))
    assert all(left != right for _, (left, right) in differing)
    assert all(left == right for _, (left, right) in equal)


@given(st.lists(st.integers(0, 10**9 - 1), max_size=MAX_COMPARED + 3))
def test_two_to_eight_are_compared(keys: list[int]) -> None:
    query = QueryParams({"keys": ",".join(map(str, keys))})
    distinct = list(dict.fromkeys(keys))
    if 2 <= len(distinct) <= MAX_COMPARED:
        assert read_compared(query) == distinct
    else:
        with pytest.raises(InvalidParameter, match="expected 2 to 8 numbers"):
            read_compared(query)


@given(st.text(max_size=20).filter(lambda text: not text.replace(",", "").isascii()))
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidParameter):
        read_compared(QueryParams(f"keys={quote_plus(text)}"))
