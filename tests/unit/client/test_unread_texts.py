"""An exported recipe warns of texts that are not in the format of their column."""

from __future__ import annotations

import json
import warnings

import pytest

from cerebro_db.export.recipe.rows import RawRows
from cerebro_plpy.preprocessing.kinds.moment import Moment
from cerebro_plpy.preprocessing.kinds.number import Number
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.values.scale import Scale

SCALE = Scale(0.0, 1.0)
RECIPE = Recipe(
    (
        Number("income", "text as 1,234.50", SCALE, True),
        Moment("day", "text as DD.MM.YYYY", {"epoch": SCALE}, True),
    )
)


def test_texts_in_no_format_are_counted() -> None:
    rows = RawRows.of(json.dumps(RECIPE.to_json()))
    income = ["1,000", "<100", "", None, " 7 ", "n/a", "<100", 12.5]
    days = ["31.01.2024", " ", None, "31.02.2024", "1.1.2024", "01.01.2024", None, "2024-01-01"]
    with pytest.warns(UserWarning, match="which the model does not know") as raised:
        rows.inputs({"income": income, "day": days})
    assert sorted(str(warning.message).partition(", which")[0] for warning in raised) == [
        "column day has 1 value, such as '31.02.2024'",
        "column income has 3 values, such as '<100', 'n/a'",
    ]


def test_blank_texts_and_true_values_are_known() -> None:
    rows = RawRows.of(json.dumps(RECIPE.to_json()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows.inputs({"income": ["", None, 3, float("nan")], "day": ["\t", None, None, "1.1.2024"]})
