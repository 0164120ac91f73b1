"""The page of a model: its columns by their importance, and the fields that predict a row."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from cerebro_db.dashboard.model_pages import MAX_CHOICES, list_inputs, sort_features
from cerebro_db.dashboard.queries import Reader

FEATURES = st.lists(
    st.fixed_dictionaries(
        {
            "column_name": st.text(max_size=3),
            "kind": st.sampled_from(["number", "category", "left out"]),
            "importance": st.none() | st.floats(-1, 1),
            "constants": st.none()
            | st.fixed_dictionaries({"values": st.lists(st.text(max_size=2), max_size=3)}),
        }
    ),
    max_size=8,
)


@given(FEATURES)
def test_the_most_important_column_is_first(features: list[dict[str, Any]]) -> None:
    ordered = sort_features(features)
    assert sorted(map(id, ordered)) == sorted(map(id, features))
    used = [feature for feature in ordered if feature["kind"] != "left out"]
    assert ordered[: len(used)] == used
    measured = [f["importance"] for f in used if f["importance"] is not None]
    assert [f["importance"] for f in used[: len(measured)]] == measured
    assert measured == sorted(measured, reverse=True)
    assert [entry.name for entry in list_inputs(ordered)] == [f["column_name"] for f in used]


@pytest.mark.parametrize("count", [0, 1, MAX_CHOICES, MAX_CHOICES + 1])
def test_known_values_are_choices_if_all_of_them_fit(count: int) -> None:
    values = [str(number) for number in range(count)]
    feature = {"column_name": "x", "kind": "category", "constants": {"values": values}}
    (entry,) = list_inputs([feature])
    assert list(entry.choices) == values[:MAX_CHOICES]
    assert entry.has_all_choices == (0 < count <= MAX_CHOICES)


def test_a_granted_model_has_the_fields_of_its_outline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of stored JSON stay as they are when columns of views get other names."""
    reader = Reader(sa.create_engine("sqlite://"))
    features = [{"column": "a", "kind": "number"}, {"column": "b", "kind": "left out"}]
    outline = {"recipe": {"features": features}}
    monkeypatch.setattr(reader, "read_rows", lambda query: [{"outline": outline}])
    (entry,) = list_inputs(reader.read_granted_features("ann", "m"))
    assert (entry.name, list(entry.choices)) == ("a", [])
