"""The kinds that the argument `types` can give to a column."""

from __future__ import annotations

import re

import pytest

from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.preprocessing.learning.type_inference import check_types
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.families import ARRAYS, BYTES, JSON, MOMENTS, NUMBERS, TEXT

TABLE = Relation("t", "public", "t", 1, '"public"."t"')
KINDS = {"number", "category", "text", "moment", "vector", "series", "image"}
POSSIBLE: dict[str | None, frozenset[str]] = {
    TEXT: frozenset({"category", "text", "number", "moment"}),
    BYTES: frozenset({"image"}),
    None: frozenset(),
    **dict.fromkeys((*NUMBERS, JSON), frozenset({"number", "category"})),
    **dict.fromkeys(MOMENTS, frozenset({"moment", "category"})),
    **dict.fromkeys(ARRAYS, frozenset({"vector", "series", "image"})),
}


@pytest.mark.parametrize("family", POSSIBLE)
def test_a_column_can_have_the_kinds_of_its_family(family: str | None) -> None:
    """And the error for any other kind lists them."""
    columns = [RawColumn("c", "a type", family, False)]
    for kind in POSSIBLE[family]:
        check_types("train", columns, {"c": kind}, TABLE)
    for kind in KINDS - POSSIBLE[family]:
        with pytest.raises(InvalidParameter) as error:
            check_types("train", columns, {"c": kind}, TABLE)
        _, _, listed = str(error.value).partition("expected")
        assert KINDS & {*re.findall(r"\w+", listed)} == POSSIBLE[family]


def test_types_of_a_column_that_is_not_there_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="'d'"):
        check_types("train", [RawColumn("c", "integer", "integer", False)], {"d": "number"}, TABLE)
