"""The scales of an ONNX graph compute what Python computes, to the bit."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cerebro_db.export.onnx_scales import OPERATORS, add_scales
from cerebro_db.export.recipe.rows import RawRows
from cerebro_db.export.target_scale import STEPS

NUMBERS = st.floats(-1e9, 1e9)
CELLS = st.one_of(NUMBERS, st.sampled_from([math.nan, math.inf, -math.inf, 0.0, 1e300]))
STEP_FUNCTIONS: dict[str, Any] = {
    "Multiply": np.multiply,
    "Add": np.add,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
}


@st.composite
def recipes(draw: st.DrawFn) -> RawRows:
    features = [
        {
            "kind": "number",
            "column": f"c{number}",
            "family": draw(st.sampled_from(["integer", "float"])),
            "missing": draw(st.booleans()),
            "scale": {"center": draw(NUMBERS), "width": draw(st.floats(1e-6, 1e6))},
        }
        for number in range(draw(st.integers(1, 3)))
    ]
    return RawRows({"features": features})


def write_identity(path: Path, width: int) -> None:
    """Write the graph of a network that returns its input."""
    helper = onnx.helper
    names = ("numbers", "out")
    infos = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["rows", width])
        for name in names
    ]
    node = helper.make_node("Identity", ["numbers"], ["out"])
    graph = helper.make_graph([node], "network", infos[:1], infos[1:])
    opsets = [helper.make_operatorsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)


def run(path: Path, raw: np.ndarray) -> np.ndarray:
    (output,) = onnxruntime.InferenceSession(path).run(None, {"raw_numbers": raw})
    found: np.ndarray = output
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("graphs")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(recipes(), st.data())
def test_inputs_are_scaled_as_in_python(folder: Path, rows: RawRows, data: st.DataObject) -> None:
    scaled = rows.scaled_inputs["numbers"]
    cells = st.lists(CELLS, min_size=len(scaled.numbers), max_size=len(scaled.numbers))
    raw = np.array(data.draw(st.lists(cells, min_size=1, max_size=4)))
    write_identity(folder / "in.onnx", len(scaled.numbers) + len(scaled.missing_groups))
    add_scales(folder / "in.onnx", folder / "out.onnx", rows, None)
    np.testing.assert_array_equal(run(folder / "out.onnx", raw), scaled.scale(raw))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(NUMBERS, st.floats(1e-6, 1e6), st.floats(0, 1e6), st.lists(NUMBERS, min_size=1, max_size=4))
def test_numbers_of_the_target_have_its_steps_in_double_precision(
    folder: Path, low: float, deviation: float, width: float, cells: list[float]
) -> None:
    target = {"low": low, "high": low + width, "offset": width / 2, "deviation": deviation}
    scale = {"center": 0.0, "width": 1.0}
    feature = {"kind": "number", "column": "c", "family": "integer", "missing": False}
    rows = RawRows({"features": [{**feature, "scale": scale}]})
    write_identity(folder / "in.onnx", 1)
    add_scales(folder / "in.onnx", folder / "out.onnx", rows, target)
    raw = np.array(cells)[:, None]
    expected = rows.scaled_inputs["numbers"].scale(raw).astype(np.float64)
    for operation, constant in STEPS:
        expected = STEP_FUNCTIONS[operation](expected, target[constant])
    output = run(folder / "out.onnx", raw)
    assert output.dtype == np.float64
    np.testing.assert_array_equal(output, expected)


def test_each_step_of_the_target_has_an_operator() -> None:
    assert {operation for operation, _ in STEPS} == set(OPERATORS) == set(STEP_FUNCTIONS)
