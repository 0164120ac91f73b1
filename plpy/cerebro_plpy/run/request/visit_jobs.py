"""What a visit asks of the trainer, and where its state comes from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.database.queries import sql
from cerebro_plpy.platform.job import Dataset, Job, StateSource
from cerebro_plpy.platform.state_tables import HOPPING, StoredState, replaced_table, state_table
from cerebro_plpy.platform.visit_protocol import EvaluateVisit, TrainVisit
from cerebro_plpy.records import dataclass, replace
from cerebro_plpy.run.request.early_stopping import restores_best
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.scheduling.schedule.schedule import Visit, VisitBatch


@dataclass(frozen=True)
class Attempt:
    """One attempt at a training visit: which of the configuration's visits it is, and what its
    trainer is told about forms: the rows that its program has still to train, and the timings
    known; `compilation` names what is compiled for it. `turn` counts the states that are stored,
    and this one; `tables` hold them in turn; those that are `free` have nothing of its segment, and
    those that are `fresh` nothing at all."""

    visit_no: int
    number: int
    remaining_rows: int
    timings: Mapping[str, Any]
    state_number: int
    free_tables: Collection[str] = ()
    empty_tables: Collection[str] = ()
    table_count: int = HOPPING
    compilation: str | None = None


def derive_seed(seed: int, key: int) -> int:
    """The seed of a configuration's initial weights and generators: the same for the same run seed
    and key.

    Those of groups have that of the model whose architecture they share: they begin alike, and a
    trainer draws once.

    >>> derive_seed(1, 2) == derive_seed(1, 2), derive_seed(1, 2) == derive_seed(1, 3)
    (True, False)
    """
    digest = hashlib.sha256(f"{seed}/{key}".encode()).digest()
    return int.from_bytes(digest[:4], "little") >> 1


def describe_program(request: FitRequest, config: Config) -> dict[str, Any]:
    """The program that a configuration runs, as the trainer wants it described."""
    features = request.activations.get(config.mst_key)
    return {
        **describe_whole_program(request, config),
        **({"cut": features.cut.layer} if features else {}),
    }


def describe_whole_program(request: FitRequest, config: Config) -> dict[str, Any]:
    """The same where it is trained on the rows themselves."""
    return {
        "architecture": _architecture(request.architectures[config.model_id].json),
        "compile": config.compile.to_json(),
        "targets": request.source.targets(),
        "dtype_policy": request.spec.dtype_policy,
    }


@lru_cache(maxsize=256)
def _architecture(text: str) -> Any:
    return json.loads(text)


def make_program_key(run_id: int, mst_key: int) -> str:
    """The name of a configuration's program, which is enough for a trainer that has it already."""
    return f"{run_id}/{mst_key}"


def make_initial_state(request: FitRequest, config: Config, run_id: int) -> StateSource:
    """Where a configuration starts: an earlier run, weights of the architecture table, or
    nothing.
    """
    seed = derive_seed(
        request.spec.seed, config.mst_key if config.group is None else config.model_id
    )
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
    """The state that a visit left; only the trainer has it where it is not stored."""
    return StateSource("chunks", make_state_key(run_id, mst_key, visit_no), 0, stored=stored)


def make_averaged_state(states: Sequence[tuple[StateSource, int]]) -> StateSource:
    """The mean of states, each with the rows that it counts for."""
    return StateSource("averaged", "+".join(state.key for state, _ in states), 0, of=tuple(states))


def make_state_key(run_id: int, mst_key: int, visit_no: int) -> str:
    """The name of a state: that after so many visits of a configuration."""
    return f"{run_id}/{mst_key}/{visit_no}"


def select_training_rows(request: FitRequest, config: Config, segment_id: int) -> Dataset:
    """What a configuration is trained on of a segment."""
    buffers = None if config.group is None else request.groups[config.group].training[segment_id]
    return Dataset(request.tables_of(config.mst_key)[0], segment_id, buffers)


def select_evaluation_rows(
    request: FitRequest, config: Config, visit: Visit
) -> Iterator[tuple[str, Dataset]]:
    """What a configuration is evaluated on of a segment after an epoch, with what messages call
    it.
    """
    segment_id, training = visit.segment_id, request.spec.evaluates_training(visit.epoch)
    if training:
        yield "training", select_training_rows(request, config, segment_id)
    _, validation = request.tables_of(config.mst_key)
    if validation is None:
        return
    if config.group is None:
        yield "validation", Dataset(validation, segment_id)
    elif segment_id in (placed := request.groups[config.group].validation) or not training:
        yield "validation", Dataset(validation, segment_id, placed.get(segment_id, ()))


def make_train_visit(
    request: FitRequest,
    config: Config,
    run_id: int,
    visit: Visit,
    attempt: Attempt,
    state: StateSource,
) -> TrainVisit:
    """A training visit, or one that averages the states of others."""
    key, tables = config.mst_key, attempt.table_count
    table = state_table(run_id, key, attempt.state_number, tables)
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
            "use": request.replay.forms.get((key, visit.epoch, visit.segment_id)),
            "remaining_rows": attempt.remaining_rows,
            "known": attempt.timings,
        },
        callbacks=_callbacks(config, run_id, visit, {}) if visit.kind == "train" else None,
        block_rows=request.block_rows if visit.kind == "train" and config.group is None else None,
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
        replaced_table=replaced_table(run_id, key, attempt.state_number, tables),
    )


def _callbacks(
    config: Config, run_id: int, visit: Visit, datasets: Mapping[str, str]
) -> dict[str, Any] | None:
    """What a trainer is to write for TensorBoard; nothing without the callback. The graph comes
    first.
    """
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
    tour: VisitBatch,
    attempt: int,
    state: StateSource,
) -> EvaluateVisit:
    """An evaluation of the training partitions of segments, and of the validation partitions beside
    them.
    """
    visit = tour[0]
    named = tuple(
        pair for segment in tour for pair in select_evaluation_rows(request, config, segment)
    )
    shown = {"train" if name == "training" else name: dataset.key for name, dataset in named}
    job = Job(
        "evaluate",
        describe_program(request, config),
        state.key,
        make_program_key(run_id, config.mst_key),
        callbacks=_callbacks(config, run_id, visit, shown),
    )
    return EvaluateVisit(
        run_id=run_id,
        epoch=visit.epoch,
        mst_key=config.mst_key,
        attempt=attempt,
        partitions=named,
        state=state,
        job=job,
    )


def make_batch_evaluation(
    request: FitRequest, config: Config, visit: EvaluateVisit
) -> EvaluateVisit:
    """An evaluation that is all there is of its epoch, as part of a tour."""
    total: dict[str, list[str]] = {}
    # In an order that is always the same: sums depend on it, and who is stopped on them.
    for name, dataset in sorted(visit.partitions, key=lambda each: each[1].segment_id):
        total.setdefault(name, []).append(dataset.key)
    names = tuple(name for name, _ in config.metrics)
    kept = restores_best(config, request)
    return replace(visit, job=replace(visit.job, total=total), metrics=names, is_candidate=kept)
