"""Predictions for the hold-out rows of a run, from its packed tables.

The source is not read.
"""

from __future__ import annotations

import json
import math
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.configs.train_spec import GroupLayout, TrainSpec
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session, Steps
from cerebro_plpy.database.sessions.spi import Row
from cerebro_plpy.operations.predict.model_predictor import describe_program
from cerebro_plpy.packing.packed_table import PackedTable, find_packed, read_packed
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.platform.job import Dataset, Job, StateSource
from cerebro_plpy.platform.state_tables import VALIDATION, StoredState, packed_table_name
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.recipe.target_scale import TargetScale
from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRows
from cerebro_plpy.run.workers.workers import (
    WorkerSet,
    open_scoring_workers,
    run_on_workers,
    score_with_retry,
)
from cerebro_plpy.tables.outputs.logged_run import LoggedRun

MODULE = "train"


class Network(NamedTuple):
    """A trained network, its state, and the recipe of its inputs."""

    recipe: Recipe
    classes: tuple[str, ...]  # empty for a regression
    architecture: str
    compile_params: str
    state: StateSource
    backend: str

    @classmethod
    def from_config(
        cls,
        config: Row,
        recipe: Recipe,
        classes: tuple[str, ...],
        state_key: str,
        state: StoredState,
    ) -> Network:
        """Return the network of a logged configuration with one of its states.

        Args:
            state_key: the name under which trainers keep the state.
        """
        return cls(
            recipe=recipe,
            classes=classes,
            architecture=config["architecture"],
            compile_params=config["compile_params"],
            state=StateSource("weights_of_chunks", state_key, 0, stored=state),
            backend=config["backend"],
        )


class HoldoutRequest(NamedTuple):
    """A network that predicts packed rows."""

    network: Network
    group: str | None = None  # only the rows of this group


Outputs = dict[int, Sequence[bytes]]
"""The chunks of outputs for rows, by segment."""


class HoldoutRows(NamedTuple):
    """The packed rows on which models are compared."""

    table: PackedTable
    classes: tuple[str, ...]  # in the order of the target's columns; empty for a regression
    groups: Mapping[str, GroupLayout]  # the buffers of each group
    scale: TargetScale | None  # of the labels


def read_holdout_rows(
    catalog: Catalog, reader: Session, run: LoggedRun, side: str = VALIDATION
) -> HoldoutRows | None:
    """Return the packed rows of a side of a run; None if they were removed."""
    assert run.spec.train is not None
    name = packed_table_name(run.run_id, side)
    if not has_packed_rows(reader, run.run_id, side):
        return None
    table = read_packed(catalog, reader, find_packed(catalog, name, side))
    return make_holdout_rows(table, run.spec.train)


def make_holdout_rows(table: PackedTable, train_spec: TrainSpec) -> HoldoutRows:
    """Return the packed rows of a table."""
    scale = Recipe.from_json(train_spec.recipe).target_scale
    return HoldoutRows(table, train_spec.classes, train_spec.grouping.layouts, scale)


def has_packed_rows(reader: Session, run_id: int, side: str) -> bool:
    """Return whether the packed rows of a side exist, with their summary."""
    names = [packed_table_name(run_id, side), packed_table_name(run_id, f"{side}_summary")]
    return len(reader.run(sql("features.data_tables"), (names,))) == len(names)


def predict_holdout(
    context: CallContext, rows: HoldoutRows, network: Network, group: str | None = None
) -> ScoredRows:
    """Return the outputs of a network for packed rows, in the order of the rows.

    Args:
        group: predict only the rows of this group.
    """
    ((scored_rows,),) = predict_in_parallel(context, rows, [[HoldoutRequest(network, group)]])
    return scored_rows


def predict_in_parallel(
    context: CallContext,
    rows: HoldoutRows,
    batches: Sequence[Sequence[HoldoutRequest]],
    deadline: float = math.inf,
) -> list[list[ScoredRows]]:
    """Return the outputs of networks for packed rows, by batch, in the order of the rows.

    Args:
        batches: those of a batch are predicted by one worker, which compiles their program once.
        deadline: no batch begins after it, by time.monotonic(); such a batch has no results.
    """
    results: list[list[ScoredRows]] = [[] for _ in batches]
    for backend in sorted({batch[0].network.backend for batch in batches}):
        own_batches = {
            place: batch
            for place, batch in enumerate(batches)
            if batch[0].network.backend == backend
        }
        outputs = _compute_outputs(context, rows, backend, own_batches, deadline)
        for place, parts in outputs.items():
            results[place] = [
                _read_rows(_join_chunks(part, rows, request), rows, request.network)
                for part, request in zip(parts, batches[place])
            ]
    return results


def _compute_outputs(
    context: CallContext,
    rows: HoldoutRows,
    backend: str,
    batches: Mapping[int, Sequence[HoldoutRequest]],
    deadline: float,
) -> dict[int, list[Outputs]]:
    """Return the outputs for each request of the batches that have begun in time.

    On PostgreSQL any worker takes the next batch. On Greenplum each worker takes all of them, and
    predicts the rows of its segment.
    """

    def open_workers() -> WorkerSet:
        return open_scoring_workers(context, backend, False, rows.table.segments, len(batches))

    def compute(workers: WorkerSet) -> dict[int, list[Outputs]]:
        outputs: dict[int, list[Outputs]] = {}
        shared_batches = iter(batches.items())
        steps = []
        for worker in workers.workers:
            own_batches = shared_batches if worker.is_replaceable else iter(batches.items())
            steps.append(_read_batches(workers, worker, rows, own_batches, deadline))
        for _, results in run_on_workers(context, workers, steps):
            for place, requests in (results or {}).items():
                parts = outputs.setdefault(place, [{} for _ in requests])
                for part, chunks in zip(parts, requests):
                    part.update(chunks)
        return outputs

    return score_with_retry(context, open_workers, compute)


def _join_chunks(outputs: Outputs, rows: HoldoutRows, request: HoldoutRequest) -> list[bytes]:
    """Return the chunks of all segments, in the order of the rows."""
    segments = [dataset.segment_id for dataset in _list_datasets(rows, request.group)]
    return [chunk for segment_id in segments for chunk in outputs[segment_id]]


def _read_batches(
    workers: WorkerSet,
    worker: Worker,
    rows: HoldoutRows,
    batches: Iterator[tuple[int, Sequence[HoldoutRequest]]],
    deadline: float,
) -> Steps[dict[int, list[Outputs]]]:
    """Compute the outputs of batches, one after another, as far as they begin in time."""
    results: dict[int, list[Outputs]] = {}
    for place, batch in batches:
        if time.monotonic() > deadline:
            break
        results[place] = []
        for request in batch:
            network = request.network
            program = describe_program(
                json.loads(network.architecture), network.compile_params, network.classes
            )
            job = Job("outputs", program, network.state.key)
            chunks: Outputs = {}
            for dataset in _list_datasets(rows, request.group):
                if worker.is_replaceable or dataset.segment_id == worker.segment_id:
                    chunks[dataset.segment_id] = yield from workers.visits.read_outputs(
                        worker, dataset, network.state, job
                    )
            results[place].append(chunks)
    return results


def _list_datasets(rows: HoldoutRows, group: str | None) -> Iterator[Dataset]:
    """Yield the partitions that contain the rows."""
    if group is None:
        for segment_id in rows.table.segments:
            yield Dataset(rows.table, segment_id)
    else:
        for segment_id, buffer_ids in sorted(rows.groups[group].validation.items()):
            yield Dataset(rows.table, segment_id, buffer_ids)


def _read_rows(chunks: Sequence[bytes], rows: HoldoutRows, network: Network) -> ScoredRows:
    """Read rows of single-precision numbers: a label, then the outputs.

    Numbers are in the units of the target; the rows and the network may have different scales.
    """
    width = 1 + (len(network.classes) or 1)
    labels: list[str] = []
    targets = array("d")
    columns = [array("d") for _ in range(width - 1)]
    for chunk in chunks:
        numbers = array("f")
        numbers.frombytes(chunk)
        # Lists: an array is only extended by arrays of its own type.
        codes, *outputs = (numbers[place::width].tolist() for place in range(width))
        if network.classes:
            labels += [rows.classes[int(code)] for code in codes]
        else:
            targets.extend(codes if rows.scale is None else map(rows.scale.number, codes))
        for column, part in zip(columns, outputs):
            column.extend(part)
    scale = network.recipe.target_scale
    if scale is not None and not network.classes:
        columns = [array("d", map(scale.prediction, columns[0]))]
    return ScoredRows(network.classes, columns, labels, targets)
