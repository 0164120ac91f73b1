"""Warm start: configurations go on from the states in an existing model table, found by mst_key.

Known keys go on, with their optimizer's state where the optimizer is of the same class; new keys
start fresh; keys that the model selection table no longer has vanish from the output.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.custom_functions import ANY_FUNCTIONS
from cerebro_plpy.configs.params.optimizers import OptimizerSpec, choose_state_source
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.errors import CerebroError, InsufficientPrivilege, UndefinedTable, WrongObjectType
from cerebro_plpy.packing.packed_summary import read_summary_row
from cerebro_plpy.records import replace
from cerebro_plpy.run.request.run_request import FitRequest, WarmState
from cerebro_plpy.tables import model_states
from cerebro_plpy.tables.outputs.weights import find_epochs, find_framework

# MADlib's own output holds weights and no states of optimizers. The statement is one that Greenplum
# runs too, where a function is not called for the rows of a table.
FROM_WEIGHTS = (
    "To go on from the weights of a model of MADlib's: SELECT load_keras_model('your_models', "
    "(SELECT model_arch FROM {0} WHERE mst_key = ...), (SELECT model_weights FROM {0} WHERE "
    "mst_key = ...)); then train that model_id without warm_start, into another table."
)


class ExistingOutput(NamedTuple):
    """The output tables of an earlier call; a single model has no info table."""

    model: Relation
    summary: Relation
    states: Relation
    info: Relation | None

    def relations(self) -> list[Relation]:
        """All of them."""
        return [table for table in self if table]


def find_existing_output(
    catalog: Catalog, given: str | None, suffixes: Sequence[str]
) -> ExistingOutput:
    """The output tables, all but the first of which have a suffix; they must exist and be the
    caller's to rewrite.
    """
    model = catalog.resolve_input(given, "model output")
    companions = {suffix: _companion(catalog, model, suffix) for suffix in suffixes}
    states = model_states.find(catalog, model, companions["_summary"])
    if states is None:
        raise UndefinedTable(
            f"{catalog.module} error: table '{model.spelling}' has no states to go on from.",
            hint=FROM_WEIGHTS.format(model.quoted),
        )
    existing = ExistingOutput(model, companions["_summary"], states, companions.get("_info"))
    _check_rewritable(catalog, existing.relations())
    _refuse_code_of_others(catalog, existing.relations())
    _check_kind(catalog, existing)
    return existing


def _companion(catalog: Catalog, model: Relation, suffix: str) -> Relation:
    companion = catalog.find_companion(model, suffix)
    if companion is None:
        raise UndefinedTable(
            f"{catalog.module} error: table '{model.spelling}{suffix}' does not exist; warm_start "
            "goes on from the output tables of an earlier call.",
            hint="Name the output of madlib_fit_multiple_model(), or leave warm_start out.",
        )
    return companion


def _check_rewritable(catalog: Catalog, tables: Iterable[Relation]) -> None:
    for relation in tables:
        if not catalog.db.value(sql("warm.may_rewrite"), relation.oid):
            raise InsufficientPrivilege(
                f"{catalog.module} error: permission denied to rewrite table "
                f"'{relation.spelling}'.",
                hint="warm_start replaces the rows of the output tables: it takes SELECT, INSERT "
                "and DELETE on them.",
            )


def _check_kind(catalog: Catalog, existing: ExistingOutput) -> None:
    """They are what the same function has made."""
    output = existing.model.spelling
    if existing.info and "metrics_iters" in catalog.read_columns(existing.info):
        raise WrongObjectType(
            f"{catalog.module} error: '{output}' is the output of madlib_automl(), which "
            "warm_start cannot go on with.",
            hint="Load the best model's weights beside its architecture by load_keras_model(), "
            "and train from these.",
        )
    if {"mst_key", "part", "chunk"} - catalog.read_columns(existing.states).keys():
        raise WrongObjectType(
            f"{catalog.module} error: table '{existing.states.spelling}' holds no states of models."
        )
    if not existing.info and "mst_key" in catalog.read_columns(existing.model):
        raise WrongObjectType(
            f"{catalog.module} error: '{output}' is not the output of this function, but of"
            " madlib_fit_multiple_model() or madlib_automl().",
            hint="Leave warm_start out, and name a table that does not exist.",
        )


def _refuse_code_of_others(catalog: Catalog, tables: Sequence[Relation]) -> None:
    for row in catalog.db.rows(sql("warm.foreign_code"), [relation.oid for relation in tables]):
        raise InsufficientPrivilege(
            f"{catalog.module} error: table '{row['name']}' is of another role, and has triggers, "
            "rules, defaults, checks or expressions: they would run with your privileges.",
            hint="SET ROLE to its owner before the call, or let the owner make it without them.",
        )


def continue_training(reader: Session, existing: ExistingOutput, request: FitRequest) -> FitRequest:
    """The request of a call that goes on from an earlier one: epochs are counted on, so that no
    batch comes twice.

    A replay counts as the run did that it repeats.
    """
    states = find_warm_states(reader, existing, request)
    before = {key: warm.epochs for key, warm in states.items()}
    spec = (
        request.spec
        if request.spec.schedule == "replay"
        else replace(request.spec, epochs_before=before)
    )
    return replace(request, warm_states=states, spec=spec)


def find_warm_states(
    reader: Session, existing: ExistingOutput, request: FitRequest
) -> dict[int, WarmState]:
    """Where each configuration that was trained before goes on; those that failed then start
    fresh.
    """
    before = _trained(reader, existing)
    policy = read_summary_row(reader, existing.summary).get("dtype_policy")
    states = {}
    text = sql("warm.state", state=existing.states.quoted)
    for config in request.configs:
        if config.mst_key in before:
            model, architecture = (
                before[config.mst_key],
                request.architectures[config.model_id].json,
            )
            same = model.architecture is not None and json.loads(model.architecture) == json.loads(
                architecture
            )
            scaled = [
                scales_loss(each, architecture) for each in (policy, request.spec.dtype_policy)
            ]
            alike = same and find_framework(model.beginning) == request.backends.get(config.mst_key)
            source = (
                _source(model, config, alike=alike)
                if scaled[0] == scaled[1]
                else "weights_of_chunks"
            )
            epochs = find_epochs(model.beginning)
            states[config.mst_key] = WarmState(source, text, (config.mst_key,), not same, epochs)
    return states


class TrainedBefore(NamedTuple):
    """What a model was made of: its compile parameters, its architecture as JSON, and how its state
    begins.
    """

    compile_params: str
    architecture: str | None
    beginning: bytes


def _source(model: TrainedBefore, config: Config, *, alike: bool) -> str:
    """What of its state a configuration goes on with, where losses are scaled, or not, as then;
    `alike` is whether its architecture and framework are those of then."""
    before = _optimizer(model.compile_params)
    source = choose_state_source(before, config.compile.optimizer)
    return "warm" if source == "chunks" and not alike else source


def _optimizer(compile_text: str) -> OptimizerSpec | None:
    """The optimizer of then; None where it cannot be told."""
    try:
        return parse_compile_params(compile_text, ANY_FUNCTIONS).optimizer
    except CerebroError:
        return None


def _trained(reader: Session, existing: ExistingOutput) -> dict[int, TrainedBefore]:
    """The models that have states, by mst_key."""
    tables = {"model": existing.model.quoted, "state": existing.states.quoted}
    text = (
        sql("warm.trained", info=existing.info.quoted, **tables)
        if existing.info
        else sql("warm.trained_single", summary=existing.summary.quoted, **tables)
    )
    return {mst_key: TrainedBefore(*texts) for mst_key, *texts in reader.run(text)}


def scales_loss(policy: str | None, architecture: str) -> bool:
    """Whether a dtype policy, or without one the architecture's own, wraps optimizers in one that
    scales losses.

    >>> scales_loss("mixed_float16", "{}"), scales_loss("float32", '{"dtype": "mixed_float16"}')
    (True, False)
    """
    return policy == "mixed_float16" or (policy is None and '"mixed_float16"' in architecture)
