"""The outputs of networks for the rows that a run holds back, as the run has packed them: no source
is read.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import NamedTuple

from cerebro_plpy.configs.train_spec import GroupLayout
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session, Steps
from cerebro_plpy.operations.predict.model_predictor import describe_program
from cerebro_plpy.packing.packed_table import PackedTable, find_packed, read_packed
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.platform.job import Dataset, Job, StateSource
from cerebro_plpy.platform.state_tables import VALIDATION, packed_table_name
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.scoring.metrics import ScoredRow
from cerebro_plpy.run.workers.workers import (
    WorkerSet,
    open_scoring_workers,
    run_on_workers,
    score_with_retry,
)
from cerebro_plpy.tables.outputs.logged_run import LoggedRun

MODULE = "train"
COVERED = 0.9


class Network(NamedTuple):
    """A trained network: what makes its inputs, the texts of its classes (none of a regression),
    and what runs it.
    """

    recipe: Recipe
    classes: tuple[str, ...]
    architecture: str
    compile_params: str
    state: StateSource
    backend: str


class HoldoutRows(NamedTuple):
    """Packed rows that models are compared by."""

    table: PackedTable
    classes: tuple[str, ...]  # in the order of the target's columns; none of a regression
    groups: Mapping[str, GroupLayout]  # the buffers of each group


def compute_margin(distances: Sequence[float], covered: float = COVERED) -> float | None:
    """Return how far such a share of all numbers lie from their predictions, at most, by the
    distances of a sample.

    That of split conformal prediction (Lei et al., 2018, section 2.2): a quantile a little above
    that of the sample; None if the sample is too small for one.

    >>> compute_margin([float(n) for n in range(1, 20)]), compute_margin([1.0, 2.0])
    (18.0, None)
    """
    place = ceil((len(distances) + 1) * covered)
    return sorted(distances)[place - 1] if place <= len(distances) else None


def read_holdout_rows(
    catalog: Catalog, reader: Session, run: LoggedRun, side: str = VALIDATION
) -> HoldoutRows | None:
    """Return the rows that a run has packed of a side; None if they were removed."""
    assert run.spec.train is not None
    name = packed_table_name(run.run_id, side)
    if not has_packed_rows(reader, run.run_id, side):
        return None
    table = read_packed(catalog, reader, find_packed(catalog, name, side))
    return HoldoutRows(table, run.spec.train.classes, run.spec.train.groups)


def has_packed_rows(reader: Session, run_id: int, side: str) -> bool:
    """Return whether the packed rows of a side are there, with their summary."""
    names = [packed_table_name(run_id, side), packed_table_name(run_id, f"{side}_summary")]
    return len(reader.run(sql("features.data_tables"), (names,))) == len(names)


def predict_holdout(
    workplace: CallContext, rows: HoldoutRows, network: Network, group: str | None = None
) -> list[ScoredRow]:
    """Return the outputs of a network for packed rows, or for those of a group, in the order in
    which they lie.
    """
    datasets = list(_datasets(rows, group))
    job = Job(
        "outputs",
        describe_program(json.loads(network.architecture), network.compile_params, network.classes),
        network.state.key,
    )

    def compute(crew: WorkerSet) -> dict[int, Sequence[bytes]]:
        chunks: dict[int, Sequence[bytes]] = {}
        steps = [
            _outputs(crew, worker, _share(crew, worker, datasets), network.state, job)
            for worker in crew.workers
        ]
        for _, parts in run_on_workers(workplace, crew, steps):
            chunks.update(parts or {})
        return chunks

    chunks = score_with_retry(
        workplace,
        lambda: open_scoring_workers(workplace, network.backend, False, rows.table.segments),
        compute,
    )
    return [
        row
        for each in datasets
        for row in _read(chunks[each.segment_id], rows.classes, network.classes)
    ]


def _datasets(rows: HoldoutRows, group: str | None) -> Iterator[Dataset]:
    """Yield the partitions in which the rows lie."""
    if group is None:
        yield from (Dataset(rows.table, segment_id) for segment_id in rows.table.segments)
    else:
        places = rows.groups[group].validation
        yield from (
            Dataset(rows.table, segment_id, places[segment_id]) for segment_id in sorted(places)
        )


def _share(crew: WorkerSet, worker: Worker, datasets: Sequence[Dataset]) -> Sequence[Dataset]:
    """Return the partitions that a worker goes over: those of its segment, or every so manyth."""
    if worker.is_replaceable:
        return datasets[worker.number :: len(crew.workers)]
    return [each for each in datasets if each.segment_id == worker.segment_id]


def _outputs(
    crew: WorkerSet, worker: Worker, share: Sequence[Dataset], state: StateSource, job: Job
) -> Steps[dict[int, Sequence[bytes]]]:
    """Compute the outputs for the rows of partitions, one partition after another; by segment."""
    chunks: dict[int, Sequence[bytes]] = {}
    for dataset in share:
        chunks[dataset.segment_id] = yield from crew.visits.read_outputs(
            worker, dataset, state, job
        )
    return chunks


def _read(
    chunks: Sequence[bytes], labels: Sequence[str], classes: Sequence[str]
) -> Iterator[ScoredRow]:
    """Read lines of real numbers: a target, which is the place of one of the labels or a number,
    and the outputs.
    """
    width = 1 + (len(classes) or 1)
    for chunk in chunks:
        numbers = array("f")
        numbers.frombytes(chunk)
        for start in range(0, len(numbers), width):
            target, *outputs = numbers[start : start + width]
            label = labels[int(target)] if labels else repr(target)
            yield (
                ScoredRow(label, dict(zip(classes, outputs)))
                if classes
                else ScoredRow(label, {}, outputs[0])
            )
