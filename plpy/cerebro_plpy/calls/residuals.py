"""What a new model says of the rows that were held back, row by row: how far off its numbers are, as a rule."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import ceil
from typing import Any, NamedTuple

from cerebro_plpy.calls.prediction_table import fetched
from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.features.columns import raw_columns
from cerebro_plpy.features.encoding import encode
from cerebro_plpy.features.recipe import Recipe
from cerebro_plpy.features.table import held_back, input_names
from cerebro_plpy.platform.job import Job, RawRows, StateSource
from cerebro_plpy.platform.workplace import Workplace
from cerebro_plpy.run.workers import crew_for, together

COVERED = 0.9
BLOCK_ROWS = 4096
KINDS = {"numbers": "float32", "codes": "int32"}


class Network(NamedTuple):
    """A trained network: its program as a trainer wants it, its state, and the framework that runs it."""

    program: dict[str, Any]
    state: StateSource
    backend: str


def margin_of(distances: list[float], covered: float = COVERED) -> float | None:
    """How far such a share of all numbers lie from their predictions, at most, by the distances of a sample.

    That of split conformal prediction (Lei et al., 2018, section 2.2): a quantile a little above that of the sample;
    None where the sample is too small for one.

    >>> margin_of([float(n) for n in range(1, 20)]), margin_of([1.0, 2.0])
    (18.0, None)
    """
    place = ceil((len(distances) + 1) * covered)
    return sorted(distances)[place - 1] if place <= len(distances) else None


def distances(workplace: Workplace, module: str, spec: TrainSpec, source: Relation, network: Network) -> list[float]:
    """The distances of the numbers of the rows that were held back from what a network says."""
    held = held_back(module, raw_columns(workplace.control, source.oid), spec)
    recipe = Recipe.from_json(spec.recipe)
    names = input_names(recipe)
    inputs = [getattr(encode(recipe), name).inlined() for name in names]
    rows = RawRows(
        f"(SELECT t.* FROM {source.quoted} t WHERE {held.side.inlined()})",
        f"({held.label.inlined()})::text",
        f"ARRAY[{', '.join(f'cerebro.array_bytes({each})' for each in inputs)}]",
    )
    placed = workplace.platform.raw_rows(workplace.control, source.oid, rows)
    crew = crew_for(workplace, network.backend, False, placed.segments)
    arrays = [{"kind": KINDS[name], "column": name} for name in names]
    request = {"block": BLOCK_ROWS, "request": {"arrays": arrays, "want": {"kind": "prob"}, "classes": [0]}}
    job = Job("predict", network.program, network.state.key)
    steps = [crew.visits.predict(worker, placed, network.state, job, request) for worker in crew.workers]
    found: list[float] = []
    for worker, declare in together(workplace, crew, steps):
        if declare is not None:
            for ids, values in fetched(workplace, worker.session, declare):
                found += _distances(ids, values["value"])
            finish = crew.visits.predicted(worker)
            worker.session.run(finish.sql, finish.values)
    return found


def _distances(ids: str, values: str) -> Iterator[float]:
    """Of the numbers of a block, and the predictions as an array literal."""
    predicted = map(float, values.strip("{}").split(","))
    return (abs(float(number) - value) for number, value in zip(json.loads(ids), predicted))
