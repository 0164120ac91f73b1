"""Boosted trees as LightGBM's text and as ONNX: the predictions of the trainer."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import onnx
import onnxruntime
import pytest
import tree_tables
from tree_tables import make_architecture

from cerebro_db.errors import DataCorrupted, FeatureNotSupported, InvalidParameter
from cerebro_db.export.model_files import write_keras, write_safetensors
from cerebro_db.export.onnx_files import CONVERTER, write_onnx
from cerebro_db.export.recipe.rows import RawRows
from cerebro_db.export.recipe.text_hashing import hash_word
from cerebro_db.export.stored_models import StoredModel, StoredTrees
from cerebro_db.export.trees.lightgbm_files import write_lightgbm
from cerebro_db.export.trees.onnx_graph import add_trees, describe_inputs
from cerebro_db.export.trees.stored_trees import name_columns, read_single_trees, read_trees
from cerebro_trainer.boosting.family import BoostedTrees
from cerebro_trainer.data.buffers import Buffer

ROWS = 400
LEVELS = [6, 40]
SCALE = {"center": 0.5, "width": 2.0}
FEATURES: list[dict[str, Any]] = [
    {"kind": "number", "column": "a b", "family": "float", "missing": True, "scale": SCALE},
    {"kind": "number", "column": "a_b", "family": "integer", "missing": False, "scale": SCALE},
    {"kind": "category", "column": "kind", "family": "text",
     "values": [str(code) for code in range(1, LEVELS[0])]},
    {"kind": "category", "column": "town", "family": "text",
     "values": [str(code) for code in range(1, LEVELS[1])]},
    {"kind": "array", "column": "blank", "shape": [3], "divisor": 1.0},
    {"kind": "array", "column": "signal", "shape": [2], "divisor": 2.0},
    {"kind": "text", "column": "note", "words": 3, "buckets": 8},
]  # fmt: skip
"""Columns of a table: a number that may be missing, another, categories, arrays of which trees
read the last one only, and a text.
"""
WORDS = ("new", "old", "blue", "fresh", "rare")
COUNTED = sorted({hash_word(word, 8) for word in WORDS[:3]})
INPUTS = {
    "numbers": 2,
    "indicators": 1,
    "missing": [[0, 2]],
    "cardinalities": LEVELS,
    "vectors": [0, 2, 0],
    "words": [[], [], COUNTED],
}
TARGET = {"low": -3.0, "offset": 4.0, "deviation": 2.5, "high": 6.0}


def make_rows(rows: int, seed: int) -> dict[str, list[Any]]:
    """Rows of the table, with values that the recipe does not know."""
    generator = np.random.default_rng(seed)
    numbers = generator.normal(size=rows).tolist()
    return {
        "a b": [None if index % 5 == 0 else number for index, number in enumerate(numbers)],
        "a_b": generator.integers(-3, 4, rows).tolist(),
        "kind": [str(code) for code in generator.integers(1, LEVELS[0] + 1, rows)],
        "town": [str(code) for code in generator.integers(1, LEVELS[1] + 1, rows)],
        "blank": [[0.0, 1.0, 2.0]] * rows,
        "signal": generator.normal(size=(rows, 2)).tolist(),
        "note": [
            None if index % 9 == 0 else " ".join(generator.choice(WORDS, generator.integers(6)))
            for index in range(rows)
        ],
    }


def describe(units: int) -> dict[str, Any]:
    """The description of a version, as it is read from the database."""
    task = "regression" if units == 1 else "classification"
    description: dict[str, Any] = {"features": FEATURES, "task": task, "model": "m"}
    description |= {"margin": None, "target_type": "double precision"}
    description["classes"] = [f"class {unit}" for unit in range(units)]
    if units == 1:
        description["target_scale"] = TARGET
    return description


def make_stored(units: int, architecture: str, weights: Any, *shares: float) -> StoredModel:
    """A version of one member, or of one for each share."""
    trees = [StoredTrees(architecture, list(weights), share) for share in shares or (1.0,)]
    return StoredModel("", describe(units), [], trees=trees)


@cache
def make_trained(units: int, link: str | None = None) -> tuple[StoredModel, BoostedTrees]:
    """Trees that have grown over such rows, as they are stored, and in the trainer."""
    values: dict[str, Any] = {
        "inputs": INPUTS, "units": units, "low": -1.0, "category_levels": 39
    }  # fmt: skip
    if units > 1:
        values["low"] = None
    if link is not None:
        values |= {"link": link, "high": 2.0}
    learner = BoostedTrees(tree_tables.make_program(**values), 1)
    arrays = tuple(RawRows(describe(units)).inputs(make_rows(ROWS, 1)).values())
    score = arrays[0][:, 0] + (arrays[1][:, 0] > 3) + (arrays[1][:, 1] % 3) + arrays[3][:, 1]
    score = score + (arrays[4] == COUNTED[0]).sum(axis=1)
    target = score[:, np.newaxis].astype(np.float32)
    if units > 1:
        target = np.eye(units, dtype=np.int16)[np.digitize(score, np.linspace(0, 3, units - 1))]
    tree_tables.grow(learner, [Buffer(0, ROWS, arrays, (target,), 1)])
    architecture = json.dumps(make_architecture(**values))
    return make_stored(units, architecture, learner.read()), learner


UNITS = pytest.mark.parametrize("units", (1, 2, 3))
KINDS = pytest.mark.parametrize(("units", "link"), [(1, None), (1, "log"), (2, None), (3, None)])
pytestmark = pytest.mark.filterwarnings(
    "ignore:column .* which the model does not know:UserWarning"
)


@KINDS
def test_files_predict_what_the_trainer_predicts(
    units: int, link: str | None, tmp_path: Path
) -> None:
    """Of rows that are new, by LightGBM and by ONNX, from raw columns."""
    stored, learner = make_trained(units, link)
    table = make_rows(300, 2)
    (expected,) = learner.predict([*RawRows(stored.description).inputs(table).values()])

    path, description = write_onnx(stored, tmp_path / "m.onnx", False)
    rows = RawRows.of(description.read_text())
    (outputs,) = onnxruntime.InferenceSession(path).run(None, rows.raw(table))
    # Leaves are added in double precision, in another order; outputs are in single precision.
    if units == 1:
        numbers = TARGET["low"] + (TARGET["offset"] + TARGET["deviation"] * expected.astype(float))
        numbers = np.clip(numbers, TARGET["low"], TARGET["high"])
        assert np.abs(outputs - numbers).max() < 1e-6 and outputs.dtype == np.float64
    else:
        assert np.abs(outputs - expected).max() < 1e-6
    assert json.loads(description.read_text())[CONVERTER] == "cerebro_db"

    path, description = write_lightgbm(stored, tmp_path / "m.txt", False)
    rows = RawRows.of(description.read_text())
    booster = lightgbm.Booster(model_file=path)
    scores = np.asarray(booster.predict(rows.matrix(table)))
    if link is not None:
        scores = np.minimum(scores - 1.0, 2.0)
    if units == 1:
        scores = np.maximum(scores, -1.0)
    if units == 2:
        scores = np.stack([1 - scores, scores], axis=1)
    assert np.abs(scores.reshape(expected.shape) - expected).max() < 1e-6
    names = ["a_b", "a_b_2", "kind", "town", "signal.1", "signal.2"]
    names += [f"note.{number}" for number in COUNTED]
    assert booster.feature_name() == [*names, "note.words"]


def write_network(path: Path, inputs: Any, units: int) -> None:
    """Write a graph of a network whose output is a constant, with shaped inputs."""
    helper = onnx.helper
    types = {"float32": onnx.TensorProto.FLOAT, "int32": onnx.TensorProto.INT32}
    infos = [
        helper.make_tensor_value_info(entry["name"], types[entry["dtype"]],
                                      ["rows", *(size or 3 for size in entry["shape"])])
        for entry in inputs
    ]  # fmt: skip
    name = inputs[0]["name"]
    first = onnx.numpy_helper.from_array(np.zeros((3, units), np.float32), "zeros")
    bias = onnx.numpy_helper.from_array(np.full(units, 0.25, np.float32), "bias")
    nodes = [helper.make_node("MatMul", [name, "zeros"], ["product"]),
             helper.make_node("Add", ["product", "bias"], ["prediction"])]  # fmt: skip
    output = helper.make_tensor_value_info("prediction", onnx.TensorProto.FLOAT, ["rows", units])
    graph = helper.make_graph(nodes, "network", infos, [output], [first, bias])
    opsets = [helper.make_operatorsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)


@UNITS
@pytest.mark.parametrize("has_network", (True, False))
def test_members_add_up_in_one_graph(units: int, has_network: bool, tmp_path: Path) -> None:
    """Trees beside a network, and two sets of trees: their outputs times their shares."""
    stored, learner = make_trained(units)
    (trees,) = stored.trees
    mixture = make_stored(units, trees.architecture, trees.weights, 0.5, 0.25)
    rows = RawRows(stored.description)
    members = list(map(read_trees, mixture.trees))
    inputs = describe_inputs(rows, members[0].spec)
    path = tmp_path / "m.onnx"
    if has_network:
        write_network(path, inputs, units)
    add_trees(path, members, inputs)
    arrays = rows.inputs(make_rows(300, 3))
    (outputs,) = onnxruntime.InferenceSession(path).run(None, dict(arrays))
    (expected,) = learner.predict([*arrays.values()])
    assert np.abs(outputs - 0.75 * expected - 0.25 * has_network).max() < 1e-6


def test_files_need_their_suffix_and_are_not_overwritten(tmp_path: Path) -> None:
    stored, _ = make_trained(1)
    with pytest.raises(InvalidParameter, match=r"ends in \.txt"):
        write_lightgbm(stored, tmp_path / "m.model", False)
    with pytest.raises(FeatureNotSupported, match="boosted trees, which are not a model of Keras"):
        write_keras(stored, tmp_path / "m.keras", False)
    with pytest.raises(FeatureNotSupported, match="boosted trees, which are not a model of Keras"):
        write_safetensors(stored, tmp_path / "m", False)
    network = StoredModel('{"class_name": "Sequential"}', stored.description, [])
    with pytest.raises(FeatureNotSupported, match="the model is a network"):
        write_lightgbm(network, tmp_path / "m.txt", False)
    (trees,) = stored.trees
    mixture = make_stored(1, trees.architecture, trees.weights, 0.5, 0.5)
    with pytest.raises(FeatureNotSupported, match="adds up several members"):
        write_lightgbm(mixture, tmp_path / "m.txt", False)
    assert not list(tmp_path.iterdir())


def test_arrays_of_strangers_are_checked(tmp_path: Path) -> None:
    """A text that would crash LightGBM is not written."""
    stored, _ = make_trained(1)
    (trees,) = stored.trees
    weights = [np.array(array) for array in trees.weights]
    weights[5][0, 0] = 9999
    damaged = make_stored(1, trees.architecture, weights)
    for write, name in ((write_lightgbm, "m.txt"), (write_onnx, "m.onnx")):
        with pytest.raises(DataCorrupted, match="child of a node is missing"):
            write(damaged, tmp_path / name, False)
    assert not list(tmp_path.iterdir())


def test_names_of_columns_are_unique() -> None:
    stored, _ = make_trained(1)
    names = name_columns(RawRows(stored.description), read_single_trees(stored).spec)
    assert len({*names}) == len(names) and not any(" " in name for name in names)


def test_trees_without_a_split_are_a_file(tmp_path: Path) -> None:
    """Trees that have not grown, and trees of one leaf."""
    stored, _ = make_trained(3)
    (trees,) = stored.trees
    arrays = [np.zeros_like(array) for array in trees.weights]
    arrays[1] += [0.1, 0.2, 0.3]
    states = [arrays, [np.array(array) for array in arrays]]
    states[1][0] += 1
    states[1][2][:3] = 1
    states[1][9][:3, 0] = [1.0, 2.0, 3.0]
    table = make_rows(4, 2)
    for number, state in enumerate(states):
        model = make_stored(3, trees.architecture, state)
        learner_of_state = BoostedTrees(tree_tables.make_program(
            inputs=INPUTS, units=3, category_levels=39), 1)  # fmt: skip
        learner_of_state.write(state)
        inputs = [*RawRows(stored.description).inputs(table).values()]
        (expected,) = learner_of_state.predict(inputs)
        path, description = write_onnx(model, tmp_path / f"m{number}.onnx", False)
        rows = RawRows.of(description.read_text())
        (outputs,) = onnxruntime.InferenceSession(path).run(None, rows.raw(table))
        assert np.abs(outputs - expected).max() < 1e-6
