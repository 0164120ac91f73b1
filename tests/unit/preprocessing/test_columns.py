"""The columns of a table that a call learns from."""

from __future__ import annotations

import pytest

from cerebro_plpy.errors import InvalidName, InvalidParameter, UndefinedColumn
from cerebro_plpy.preprocessing.values.columns import RawColumn, select_columns

ODD_NAME = 'odd, "name"'
COLUMNS = [RawColumn(name, "integer", "integer", False) for name in ("a", "b", ODD_NAME, "target")]


@pytest.mark.parametrize(
    ("selection", "names"),
    [
        (None, ("a", "b", ODD_NAME)),
        ("*", ("a", "b", ODD_NAME)),
        (" * ", ("a", "b", ODD_NAME)),
        ("b, a", ("a", "b")),
        ("* except b", ("a", ODD_NAME)),
        ("* EXCEPT target, a", ("b", ODD_NAME)),
        ('"odd, ""name""", a', ("a", ODD_NAME)),
        ("a, target", ("a",)),
    ],
)
def test_columns_are_selected_in_their_order_in_the_table(
    selection: str | None, names: tuple[str, ...]
) -> None:
    selected = select_columns("train", COLUMNS, selection, {"target"})
    assert tuple(column.name for column in selected) == names


@pytest.mark.parametrize(
    ("selection", "error"),
    [
        ("c", UndefinedColumn),
        ("a, b, c", UndefinedColumn),
        ("* except c", UndefinedColumn),
        ("target", InvalidParameter),
        ('* except a, b, "odd, ""name"""', InvalidParameter),
        ("a,,b", InvalidName),
    ],
)
def test_other_selections_are_refused(selection: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        select_columns("train", COLUMNS, selection, {"target"})
