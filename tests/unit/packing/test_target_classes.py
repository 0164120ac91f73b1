"""Classes of a target: as many as its one-hot arrays have places for, and no more than those may
have.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.packing.packed_columns import MAX_CLASSES, Column, with_classes

CLASSES = st.lists(st.none() | st.text("abc", max_size=3), max_size=5, unique=True).map(tuple)


@given(CLASSES, st.integers(0, 9) | st.sampled_from([MAX_CLASSES - 5, MAX_CLASSES - 4]))
def test_classes_come_first_and_fill_the_array(classes: tuple[str | None, ...], more: int) -> None:
    column, padded = Column("kind", "text", "onehot", True), min(MAX_CLASSES, len(classes) + more)
    found = with_classes(column, classes, padded, classes).classes
    assert found is not None and len(found) == padded
    assert found[: len(classes)] == classes and {*found[len(classes) :]} <= {None}


def test_a_key_that_was_taken_for_a_target_is_told() -> None:
    with pytest.raises(
        InvalidParameter, match=f"'kind' would be .* more than {MAX_CLASSES} classes"
    ) as refused:
        with_classes(
            Column("kind", "text", "onehot", True), ("a", "b"), MAX_CLASSES + 1, ("a", "b")
        )
    assert refused.value.hint
