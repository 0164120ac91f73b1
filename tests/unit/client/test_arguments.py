"""Conversion of Python values to arguments of SQL functions, and the data of the demo."""

from __future__ import annotations

import ast
import doctest
import importlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from cerebro_db import errors
from cerebro_db.arguments import encode_architecture, flatten_weights, format_grid
from cerebro_db.demo import digits, walkthrough

LITERALS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(min_size=1), st.lists(LITERALS, max_size=3), max_size=4))
def test_a_grid_is_a_python_literal_of_itself(grid: dict[str, Any]) -> None:
    assert ast.literal_eval(format_grid(grid)) == grid
    assert format_grid(format_grid(grid)) == format_grid(grid)


@given(st.lists(arrays.arrays("<f4", arrays.array_shapes(max_dims=3, max_side=4)), max_size=4))
def test_weights_are_flat_float32_in_order(weights: list[np.ndarray[Any, Any]]) -> None:
    flat = np.frombuffer(flatten_weights(weights), dtype="<f4")
    expected = np.concatenate([np.zeros(0, "<f4"), *(array.ravel() for array in weights)])
    np.testing.assert_array_equal(flat, expected)


def test_an_architecture_may_be_a_model_a_dict_or_its_json() -> None:
    architecture = digits.make_architectures()["mlp"]
    text = json.dumps(architecture)
    model = SimpleNamespace(to_json=lambda: text)
    assert (
        encode_architecture(model)
        == encode_architecture(architecture)
        == encode_architecture(text)
        == text
    )


def test_the_demo_holds_out_a_sixth_of_the_images_with_every_digit() -> None:
    rows = digits.read_rows()
    held_out = [digit for number, _, digit in rows if digits.is_held_out(number)]
    assert (len(rows), len(held_out)) == (1797, 300)
    assert set(held_out) == set(range(digits.CLASSES))
    assert {len(pixels) for _, pixels, _ in rows} == {digits.PIXELS}
    assert max(max(pixels) for _, pixels, _ in rows) == digits.GREY_LEVELS


def test_the_demo_looks_for_its_folder_before_it_works(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(errors.ObjectNotReady) as caught:
        walkthrough.main(
            "postgresql://127.0.0.1:1/nowhere",
            walkthrough.Plan(folder=tmp_path / "file" / "pictures"),
        )
    assert "pictures" in caught.value.message


@pytest.mark.parametrize(
    "module", ["arguments", "driver", "errors", "result_set", "display.boards", "display.charts"]
)
def test_the_examples_in_docstrings_hold(module: str) -> None:
    result = doctest.testmod(importlib.import_module(f"cerebro_db.{module}"))
    assert result.attempted > 0
    assert result.failed == 0
