"""The columns of a table that a call learns from."""

from __future__ import annotations

from typing import Any

import pytest

from cerebro_plpy.errors import InvalidName, InvalidParameter, UndefinedColumn
from cerebro_plpy.preprocessing.values.columns import RawColumn, read_columns
from cerebro_plpy.preprocessing.values.selected_columns import select_columns

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


NUMBER = ("integer", "int4", "b", "N", False)
KEY = (True, "integer")
VALUE = (False, "integer")


def columns_of(*rows: tuple[Any, ...]) -> dict[str, RawColumn]:
    """Return the columns that are made of rows of the catalog, by name."""

    class Catalog:
        def run(self, text: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
            return list(rows)

    catalog: Any = Catalog()
    return {column.name: column for column in read_columns(catalog, 1)}


def test_a_key_names_rows_although_other_columns_are_secret() -> None:
    columns = columns_of(
        ("id", *NUMBER, *KEY, True, True, False), ("secret", *NUMBER, *VALUE, False, False, False)
    )
    assert columns["id"].key and columns["id"].names_row and not columns["secret"].readable


@pytest.mark.parametrize("readable", [(True, False), (False, True), (False, False)])
def test_a_key_with_a_secret_column_names_no_row(readable: tuple[bool, bool]) -> None:
    columns = columns_of(
        ("store", *NUMBER, *KEY, readable[0], False, False),
        ("number", *NUMBER, *KEY, readable[1], False, False),
    )
    assert not any(column.key for column in columns.values())
