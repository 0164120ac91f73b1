"""Classes of a target: padded to the width of its one-hot arrays, which is limited."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.packing.packed_columns import MAX_CLASSES, Column, add_classes

CLASSES = st.lists(st.none() | st.text("abc", max_size=3), max_size=5, unique=True).map(tuple)


@given(CLASSES, st.integers(0, 9) | st.sampled_from([MAX_CLASSES - 5, MAX_CLASSES - 4]))
def test_classes_come_first_and_fill_the_array(classes: tuple[str | None, ...], more: int) -> None:
    column = Column("kind", "text", "onehot", True)
    width = min(MAX_CLASSES, len(classes) + more)
    padded = add_classes(column, classes, width, classes).classes
    assert padded is not None and len(padded) == width
    assert padded[: len(classes)] == classes
    assert {*padded[len(classes) :]} <= {None}


def test_a_key_that_was_taken_for_a_target_is_refused() -> None:
    with pytest.raises(
        InvalidParameter, match=f"'kind' would be .* more than {MAX_CLASSES} classes"
    ) as refused:
        add_classes(Column("kind", "text", "onehot", True), ("a", "b"), MAX_CLASSES + 1, ("a", "b"))
    assert refused.value.hint
