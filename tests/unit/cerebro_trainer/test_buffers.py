"""Datasets are kept whole within their limit, and specs share a program exactly when they may."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_trainer.data.buffers import Buffer, Dataset, parse_buffer
from cerebro_trainer.models.program_spec import ProgramSpec


def buffer(nbytes: int) -> Buffer:
    return Buffer(0, 1, (), (), nbytes)


@given(st.lists(st.integers(0, 10)), st.integers(0, 50))
def test_kept_whole_or_not_at_all(sizes: list[int], limit: int) -> None:
    dataset = Dataset(limit)
    for size in sizes:
        dataset.add(buffer(size))
    dataset.is_closed = True
    assert dataset.is_complete == (sum(sizes) <= limit)
    assert len(dataset.buffers) == (len(sizes) if dataset.is_complete else 0)
    assert dataset.summarize() == {
        "buffers": len(sizes),
        "rows": len(sizes),
        "bytes": sum(sizes),
        "cached": dataset.is_complete,
        "limit": limit,
    }
    assert dataset.cached_bytes <= limit


def test_arrays_are_views_of_the_payload() -> None:
    payload = np.arange(32, dtype=np.uint8)
    header = {
        "buffer_id": 7,
        "arrays": [
            {"role": "y", "dtype": "int16", "shape": [2, 4]},
            {"role": "x", "dtype": "float32", "shape": [2, 2]},
        ],
    }
    found = parse_buffer(header, payload)
    assert (found.buffer_id, found.rows, found.nbytes) == (7, 2, 32)
    assert found.inputs[0].shape == (2, 2) and found.targets[0].shape == (2, 4)
    assert all(np.shares_memory(array, payload) for array in (*found.inputs, *found.targets))


def spec(optimizer: dict[str, Any], **changes: Any) -> ProgramSpec:
    program = {
        "architecture": {"a": 1, "b": 2},
        "compile": {"optimizer": optimizer, "loss": "mse"},
        "targets": [{"kind": "float"}],
        **changes,
    }
    return ProgramSpec.from_header({"program": program})


ADAM = {"class_name": "Adam", "config": {"learning_rate": 0.1, "beta_1": 0.9}}


def test_plain_numbers_share_a_program() -> None:
    slower = {"class_name": "Adam", "config": {"beta_1": 0.8, "learning_rate": 1}}
    assert spec(ADAM).key == spec(slower).key
    assert spec(ADAM).split.hyperparameters == {"learning_rate": 0.1, "beta_1": 0.9}
    assert spec(slower).split.hyperparameters == {"learning_rate": 1.0, "beta_1": 0.8}


@pytest.mark.parametrize(
    "other",
    [
        spec({"class_name": "SGD", "config": {"learning_rate": 0.1, "beta_1": 0.9}}),
        spec(
            {"class_name": "Adam", "config": {"learning_rate": 0.1, "beta_1": 0.9, "clipnorm": 1.0}}
        ),
        spec({"class_name": "Adam", "config": {"beta_1": 0.9}}),
        spec(
            {"class_name": "Adam", "config": {"learning_rate": {"class_name": "X"}, "beta_1": 0.9}}
        ),
        spec(ADAM, architecture={"a": 1}),
        spec(ADAM, targets=[{"kind": "onehot", "classes": 3}]),
        spec(ADAM, compile={"optimizer": ADAM, "loss": "mae"}),
    ],
)
def test_what_changes_the_graph_does_not(other: ProgramSpec) -> None:
    assert other.key != spec(ADAM).key


def test_order_of_keys_in_json_does_not_matter() -> None:
    other = spec(ADAM, architecture={"b": 2, "a": 1})
    assert (other.key, other.architecture_hash) == (spec(ADAM).key, spec(ADAM).architecture_hash)
