"""Which of a table's columns a call learns from."""

from __future__ import annotations

import pytest

from cerebro_plpy.errors import InvalidName, InvalidParameter, UndefinedColumn
from cerebro_plpy.preprocessing.values.columns import RawColumn, select_columns

NAMES = ("a", "b", 'odd, "name"', "target")
COLUMNS = [RawColumn(name, "integer", "integer", False) for name in NAMES]


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (None, NAMES[:3]), ("*", NAMES[:3]), (" * ", NAMES[:3]), ("b, a", ("a", "b")),
        ("* except b", ("a", NAMES[2])),
        ("* EXCEPT target, a", NAMES[1:3]), ('"odd, ""name""", a', ("a", NAMES[2])), ("a, target",
        ("a",)),
    ],
)  # fmt: skip
def test_columns_are_selected_in_their_own_order(
    wanted: str | None, names: tuple[str, ...]
) -> None:
    assert (
        tuple(column.name for column in select_columns("train", COLUMNS, wanted, {"target"}))
        == names
    )


@pytest.mark.parametrize(
    ("wanted", "error"),
    [("c", UndefinedColumn), ("a, b, c", UndefinedColumn), ("* except c", UndefinedColumn),
     ("target", InvalidParameter), ('* except a, b, "odd, ""name"""', InvalidParameter), ("a,,b",
     InvalidName)],
)  # fmt: skip
def test_others_are_refused(wanted: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        select_columns("train", COLUMNS, wanted, {"target"})
