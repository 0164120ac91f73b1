"""The columns of a table, as the catalog describes them."""

from __future__ import annotations

from typing import Any

import pytest

from cerebro_plpy.preprocessing.values.columns import RawColumn, read_columns

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
    columns = columns_of(("id", *NUMBER, *KEY, True), ("secret", *NUMBER, *VALUE, False))
    assert columns["id"].key and not columns["secret"].readable


@pytest.mark.parametrize("readable", [(True, False), (False, True), (False, False)])
def test_a_key_with_a_secret_column_names_no_row(readable: tuple[bool, bool]) -> None:
    columns = columns_of(
        ("store", *NUMBER, *KEY, readable[0]), ("number", *NUMBER, *KEY, readable[1])
    )
    assert not any(column.key for column in columns.values())
