"""Boosted trees and rows for them: configs, buffers, grown learners, and strategies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from cerebro_trainer.boosting.family import BoostedTrees
from cerebro_trainer.boosting.growing import make_seed
from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.models.program_spec import ProgramSpec, Target

INPUTS: dict[str, Any] = {
    "numbers": 3,
    "indicators": 2,
    "missing": [[0, 3]],
    "cardinalities": [6, 40],
    "vectors": [2, 0, 0],
    "words": [[], [], [3, 5, 20]],
}
"""Numbers with and without missing values, an indicator of its own, categories that are split by
sets and by order, an array, one that trees do not read, and a text of which some words are counted.
"""
CONFIG: dict[str, Any] = {
    "inputs": INPUTS,
    "units": 1,
    "low": None,
    "high": None,
    "trees": 12,
    "epochs": 3,
    "leaves": 6,
    "learning_rate": 0.2,
    "min_rows": 4,
    "l2": 1.0,
    "row_share": 0.8,
    "column_share": 0.9,
    "max_bins": 31,
    "category_levels": 20,
}
COLUMNS = [
    [[0, 3], [], [], [], []],
    [[1], [], [], [], []],
    [[2], [], [], [], []],
    [[4], [], [], [], []],
    [[], [0], [], [], []],
    [[], [1], [], [], []],
    [[], [], [0, 1], [], []],
    [[], [], [], [0, 1, 2], []],
    [[], [], [], [], [0, 1, 2, 3, 4, 5]],
]
"""Positions of the columns of the table in these inputs."""


def make_architecture(**values: Any) -> dict[str, Any]:
    """Return an architecture with other values than `CONFIG` has."""
    return {"class_name": "BoostedTrees", "config": {**CONFIG, **values}}


def make_program(
    units: int = 1, metrics: Sequence[str] | None = None, **values: Any
) -> ProgramSpec:
    """Return the specification of a program of boosted trees."""
    has_classes = units > 1
    usual_metric = "accuracy" if has_classes else "root_mean_squared_error"
    return ProgramSpec(
        architecture=make_architecture(units=units, **values),
        compile={
            "optimizer": "sgd",
            "loss": "categorical_crossentropy" if has_classes else "mean_squared_error",
            "metrics": [usual_metric] if metrics is None else list(metrics),
        },
        targets=(Target(units if has_classes else 0),),
    )


def make_buffer(
    rows: int, units: int = 1, seed: int = 0, *, classes: int | None = None, weighted: bool = False
) -> Buffer:
    """Return rows whose target depends on all columns.

    Args:
        classes: classes that the rows have; the others have no row.
    """
    generator = np.random.default_rng(seed)
    first = generator.normal(size=(rows, 5)).astype(np.float32)
    first[:, 3] = generator.random(rows) < 0.2
    first[:, 4] = generator.random(rows) < 0.5
    first[:, 2] = 0  # a constant column
    first[first[:, 3] == 1, 0] = 0
    codes = np.stack([generator.integers(0, 6, rows), generator.integers(0, 40, rows)], axis=1)
    vector = generator.normal(size=(rows, 2)).astype(np.float32)
    picture = np.zeros((rows, 3), np.float32)
    words = generator.integers(0, 7, (rows, 6))
    score = first[:, 0] + 2 * np.isin(codes[:, 0], (2, 5)) + (codes[:, 1] % 4 == 1)
    score += vector[:, 1] * first[:, 1] - first[:, 4] + (words == 5).sum(axis=1)
    target = score[:, np.newaxis].astype(np.float32)
    if units > 1:
        bounds = np.linspace(-1, 2, (classes or units) - 1)
        target = np.eye(units, dtype=np.int16)[np.digitize(score, bounds)]
    weights = generator.uniform(0.5, 2, rows).astype(np.float32) if weighted else None
    arrays = (first, codes.astype(np.float32), vector, picture, words.astype(np.float32))
    nbytes = sum(array.nbytes for array in arrays) + target.nbytes
    return Buffer(seed, rows, arrays, (target,), nbytes, sample_weights=weights)


def grow(
    learner: BoostedTrees, buffers: Sequence[Buffer], epochs: int = 3, rounds: int = 4
) -> list[float | None]:
    """Grow trees over all buffers in some visits; return the losses."""
    losses = []
    for epoch in range(epochs):
        learner.collect("rows", buffers)
        losses.append(learner.grow(["rows"], rounds, make_seed(1, epoch)))
    return losses


def make_grown(
    units: int = 1, rows: int = 300, *, threads: int = 1, **values: Any
) -> tuple[BoostedTrees, list[Buffer]]:
    """Return a learner with grown trees, and the buffers that they have grown over."""
    learner = BoostedTrees(make_program(units, **values), threads)
    buffers = [make_buffer(rows, units, seed=1), make_buffer(rows // 2, units, seed=2)]
    grow(learner, buffers)
    return learner, buffers


@st.composite
def units_and_buffers(draw: st.DrawFn) -> tuple[int, list[Buffer]]:
    """Draw a number of units, and buffers: of few rows, of one class, with and without weights."""
    units = draw(st.sampled_from((1, 2, 3)))
    count = draw(st.integers(1, 3))
    buffers = [
        make_buffer(
            draw(st.sampled_from((0, 1, 3, 7, 60))),
            units,
            seed,
            classes=draw(st.integers(1, units)),
            weighted=draw(st.booleans()),
        )
        for seed in range(count)
    ]
    return units, buffers
