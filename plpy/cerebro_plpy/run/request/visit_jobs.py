"""The job of a visit for its trainer, and the state that the visit starts from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from cerebro_plpy.configs.architecture.boosted_trees import is_boosted_trees
from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.database.queries import sql
from cerebro_plpy.platform.job import Dataset, Job, StateSource
from cerebro_plpy.platform.state_tables import HOPPING, StoredState, replaced_table, state_table
from cerebro_plpy.platform.visit_protocol import EvaluateVisit, TrainVisit
from cerebro_plpy.records import dataclass, replace
from cerebro_plpy.run.request.early_stopping import restores_best
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.scheduling.schedule.schedule import Visit, VisitBatch

TENSORBOARD_NAMES = {"training": "train", "validation": "validation"}
"""The names of data sets in TensorBoard."""
SHARE_BESIDE_SAMPLE = 0.5
"""The part of a trainer's cache for rows that boosted trees do not sample: the sample must fit."""


@dataclass(frozen=True)
class Attempt:
    """One attempt at a training visit."""

    visit_no: int  # number among the visits of the configuration
    number: int  # of the attempt
    remaining_rows: int  # rows that the program has still to train
    timings: Mapping[str, Any]  # known timings of execution modes
    state_number: int  # number of stored states, this one included
    free_tables: Collection[str] = ()  # have no state of the visit's segment
    empty_tables: Collection[str] = ()  # have no state at all
    table_count: int = HOPPING  # tables that hold the states in turn
    compilation: str | None = None  # name of the compiled code
    grown_segments: Sequence[int] = ()  # segments over whose rows this visit grows trees
    grow_until: float | None = None  # time at which the trees end to grow, in seconds since 1970


def derive_seed(seed: int, key: int) -> int:
    """Return the seed of a configuration's initial weights and generators.

    Configurations of groups have the seed of the model whose architecture they share: they start
    from the same weights, which a trainer creates once.

    >>> derive_seed(1, 2) == derive_seed(1, 2), derive_seed(1, 2) == derive_seed(1, 3)
    (True, False)
    """
    digest = hashlib.sha256(f"{seed}/{key}".encode()).digest()
    return int.from_bytes(digest[:4], "little") >> 1


def describe_program(request: FitRequest, config: Config) -> dict[str, Any]:
    """Return the program of a configuration as the trainer reads it."""
    program = describe_whole_program(request, config)
    activations = request.activations.get(config.mst_key)
    if activations is not None:
        program["cut"] = activations.cut.layer
    return program


def describe_whole_program(request: FitRequest, config: Config) -> dict[str, Any]:
    """Return the program of a configuration that trains on rows, not on stored layer outputs."""
    return {
        "architecture": _parse_architecture(request.architectures[config.model_id].json),
        "compile": config.compile.to_json(),
        "targets": request.source.targets(),
        "dtype_policy": request.spec.dtype_policy,
    }


@lru_cache(maxsize=256)
def _parse_architecture(text: str) -> Any:
    return json.loads(text)


def make_program_key(run_id: int, mst_key: int) -> str:
    """Return the name of a configuration's program for trainers that have cached it."""
    return f"{run_id}/{mst_key}"


def make_initial_state(request: FitRequest, config: Config, run_id: int) -> StateSource:
    """Return the first state of a configuration.

    It is that of an earlier run, or has weights of the architecture table or random ones.
    """
    seed_key = config.mst_key if config.group is None else config.model_id
    seed = derive_seed(request.spec.seed, seed_key)
    key = make_state_key(run_id, config.mst_key, 0)
    warm = request.warm_states.get(config.mst_key)
    if warm:
        return StateSource(warm.source, key, seed, warm.sql, warm.values)
    if request.architecture_table and request.architectures[config.model_id].has_weights:
        text = sql("visit.weights_source", table=request.architecture_table.quoted)
        return StateSource("weights", key, seed, text, (config.model_id,))
    return StateSource("new", key, seed)


def make_later_state(
    run_id: int, mst_key: int, visit_no: int, stored: StoredState | None
) -> StateSource:
    """Return the state after a visit; if it is not stored, only the visit's trainer has it."""
    return StateSource("chunks", make_state_key(run_id, mst_key, visit_no), 0, stored=stored)


def make_averaged_state(states: Sequence[tuple[StateSource, int]]) -> StateSource:
    """Return the mean of states, each with its weight in rows."""
    key = "+".join(state.key for state, _ in states)
    return StateSource("averaged", key, 0, of=tuple(states))


def make_state_key(run_id: int, mst_key: int, visit_no: int) -> str:
    """Return the name of the state after a visit of a configuration; visit 0 is its start."""
    return f"{run_id}/{mst_key}/{visit_no}"


def select_training_rows(request: FitRequest, config: Config, segment_id: int) -> Dataset:
    """Return the rows of a segment that a configuration is trained on.

    Boosted trees learn from a sample if a trainer cannot hold all rows.
    """
    buffers = None if config.group is None else request.groups[config.group].training[segment_id]
    table, _ = request.tables_of(config.mst_key)
    period = request.spec.tree_period
    if period == 1:
        return Dataset(table, segment_id, buffers)
    if is_boosted_trees(request.architectures[config.model_id].json):
        return Dataset(table, segment_id, buffers, period)
    return Dataset(table, segment_id, buffers, cache_share=SHARE_BESIDE_SAMPLE)


def select_evaluation_rows(
    request: FitRequest, config: Config, visit: Visit
) -> Iterator[tuple[str, Dataset]]:
    """Yield the rows of a segment on which a configuration is evaluated, with their data set."""
    segment_id = visit.segment_id
    evaluates_training = request.spec.evaluates_training(visit.epoch)
    if evaluates_training:
        yield "training", select_training_rows(request, config, segment_id)
    _, validation = request.tables_of(config.mst_key)
    if validation is None:
        return
    if config.group is None:
        cache_share = 1.0 if request.spec.tree_period == 1 else SHARE_BESIDE_SAMPLE
        yield "validation", Dataset(validation, segment_id, cache_share=cache_share)
        return
    buffers = request.groups[config.group].validation
    if segment_id in buffers or not evaluates_training:
        yield "validation", Dataset(validation, segment_id, buffers.get(segment_id, ()))


def make_train_visit(
    request: FitRequest,
    config: Config,
    run_id: int,
    visit: Visit,
    attempt: Attempt,
    state: StateSource,
) -> TrainVisit:
    """Return a training visit, or one that averages states of other visits."""
    key = config.mst_key
    is_of_trees = is_boosted_trees(request.architectures[config.model_id].json)
    table = state_table(run_id, key, attempt.state_number, attempt.table_count)
    callbacks = None
    block_rows = None
    recorded_form = request.replay.forms.get((key, visit.epoch, visit.segment_id))
    if visit.kind == "train":
        callbacks = _describe_callbacks(config, run_id, visit, {})
        if config.group is None and not is_of_trees:
            block_rows = request.block_rows
    job = Job(
        visit.kind,
        describe_program(request, config),
        make_state_key(run_id, key, attempt.visit_no),
        make_program_key(run_id, key),
        compilation=attempt.compilation,
        fit=config.fit,
        order={
            "seed": request.spec.seed,
            "mst_key": key,
            "epoch": request.spec.epochs_before.get(key, 0) + visit.epoch,
            "segment_id": visit.segment_id,
        },
        forms={
            "use": recorded_form,
            "remaining_rows": attempt.remaining_rows,
            "known": attempt.timings,
        },
        callbacks=callbacks,
        block_rows=block_rows,
        scale=request.spec.target_scale,
        grows=[
            select_training_rows(request, config, segment).key for segment in attempt.grown_segments
        ]
        or None,
        grow_until=attempt.grow_until if attempt.grown_segments else None,
    )
    return TrainVisit(
        run_id=run_id,
        epoch=visit.epoch,
        mst_key=key,
        visit_no=attempt.visit_no,
        attempt=attempt.number,
        dataset=select_training_rows(request, config, visit.segment_id),
        state=state,
        job=job,
        state_table=table,
        must_empty=table not in attempt.free_tables,
        is_fresh=table in attempt.empty_tables,
        replaced_table=replaced_table(run_id, key, attempt.state_number, attempt.table_count),
    )


def _describe_callbacks(
    config: Config, run_id: int, visit: Visit, datasets: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return what a trainer writes for TensorBoard, or None without that callback."""
    board = config.fit.callbacks.tensorboard
    if board is None:
        return None
    return {
        "folder": board.folder(visit.segment_id, run_id, config.mst_key),
        "epoch": visit.epoch,
        "histograms": board.wants_histograms(visit.epoch),
        "graph": board.write_graph and visit.epoch == 1,
        "metrics": list(config.compile.metrics),
        "datasets": dict(datasets),
    }


def make_evaluate_visit(
    request: FitRequest,
    config: Config,
    run_id: int,
    batch: VisitBatch,
    attempt: int,
    state: StateSource,
) -> EvaluateVisit:
    """Return an evaluation of the training and validation partitions of segments."""
    visit = batch[0]
    partitions = tuple(
        pair for segment in batch for pair in select_evaluation_rows(request, config, segment)
    )
    datasets = {TENSORBOARD_NAMES[name]: dataset.key for name, dataset in partitions}
    job = Job(
        "evaluate",
        describe_program(request, config),
        state.key,
        make_program_key(run_id, config.mst_key),
        callbacks=_describe_callbacks(config, run_id, visit, datasets),
        scale=request.spec.target_scale,
    )
    return EvaluateVisit(
        run_id=run_id,
        epoch=visit.epoch,
        mst_key=config.mst_key,
        attempt=attempt,
        partitions=partitions,
        state=state,
        job=job,
    )


def make_batch_evaluation(
    request: FitRequest, config: Config, visit: EvaluateVisit
) -> EvaluateVisit:
    """Return an evaluation that covers its whole epoch, as part of a batch of visits."""
    total: dict[str, list[str]] = {}
    # The order is fixed, because sums depend on it, and early stopping depends on sums.
    for name, dataset in sorted(visit.partitions, key=lambda pair: pair[1].segment_id):
        total.setdefault(name, []).append(dataset.key)
    return replace(
        visit,
        job=replace(visit.job, total=total),
        metrics=tuple(name for name, _ in config.metrics),
        is_candidate=restores_best(config, request),
    )
