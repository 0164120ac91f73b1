"""docs/reference/limits.md has the maxima of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cerebro_plpy.configs import prior_trials
from cerebro_plpy.configs.templates import budget
from cerebro_plpy.limits import CONFIGS, EPOCHS
from cerebro_plpy.packing import packed_columns
from cerebro_plpy.preprocessing.kinds import array, category
from cerebro_plpy.preprocessing.learning import array_inference
from cerebro_plpy.preprocessing.recipe import recipe
from cerebro_plpy.preprocessing.rows import class_counts, groups
from cerebro_plpy.preprocessing.values import text_hashing
from cerebro_plpy.tables.outputs import model_rows

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "limits.md").read_text()


@pytest.mark.parametrize(
    ("row", "maxima"),
    [
        ("columns that are learned from", [recipe.MOST_FEATURES]),
        ("classes of a target", [class_counts.MOST_CLASSES, packed_columns.MAX_CLASSES]),
        ("values of a category", [category.MOST_CATEGORIES]),
        ("words of a text, per row", [text_hashing.MOST_WORDS]),
        ("a series", [array_inference.MOST_STEPS, array_inference.MOST_CHANNELS]),
        ("an image as an array", [array_inference.MOST_PIXELS]),
        ("elements of an array of unrelated numbers", [array.MOST_ELEMENTS]),
        ("groups of `group_by`", [groups.MOST_GROUPS]),
        ("configurations", [CONFIGS.maximum]),
        ("epochs", [budget.MAX_EPOCHS, EPOCHS.maximum]),
        ("weights of a model in one field", [model_rows.MAX_FIELD_BYTES >> 20]),
        ("earlier trials from which a sampler learns", [prior_trials.MAX_PRIOR_TRIALS]),
    ],
)
def test_the_page_has_the_maxima_of_the_code(row: str, maxima: list[int]) -> None:
    (line,) = re.findall(rf"^\| {re.escape(row)}.*$", PAGE, re.MULTILINE)
    numbers = {int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", line)}
    assert {*maxima} <= numbers, line
