"""Warm start: configurations continue from the states in an existing model table, by mst_key.

A configuration whose key the table has continues, with its optimizer's state if the optimizer is of
the same class. A new key starts fresh. A key that the model selection table no longer has
disappears from the output.
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
from cerebro_plpy.tables.architectures import suggest_weights
from cerebro_plpy.tables.outputs.weights import find_epochs, find_framework


class ExistingOutput(NamedTuple):
    """The output tables of an earlier call."""

    model: Relation
    summary: Relation
    states: Relation
    info: Relation | None  # None for a single model

    def list_tables(self) -> list[Relation]:
        """Return all tables."""
        return [table for table in self if table]


def find_existing_output(
    catalog: Catalog, name: str | None, suffixes: Sequence[str]
) -> ExistingOutput:
    """Return the output tables of an earlier call; check that the caller may rewrite them.

    Args:
        name: the model output table, to which `suffixes` are appended.
    """
    model = catalog.resolve_input(name, "model output")
    companions = {suffix: _find_companion(catalog, model, suffix) for suffix in suffixes}
    states = model_states.find(catalog, model, companions["_summary"])
    if states is None:
        raise UndefinedTable(
            f"{catalog.module} error: table '{model.spelling}' has no states to go on from.",
            hint=suggest_weights(catalog, model),
        )
    existing = ExistingOutput(model, companions["_summary"], states, companions.get("_info"))
    _check_rewritable(catalog, existing.list_tables())
    _refuse_foreign_code(catalog, existing.list_tables())
    _check_kind(catalog, existing)
    return existing


def _find_companion(catalog: Catalog, model: Relation, suffix: str) -> Relation:
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
    """Check that the tables are the output of the same function."""
    output = existing.model.spelling
    if existing.info and "metrics_iters" in catalog.read_columns(existing.info):
        raise WrongObjectType(
            f"{catalog.module} error: '{output}' is the output of madlib_automl(), which "
            "warm_start cannot go on with.",
            hint=suggest_weights(catalog, existing.model),
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


def _refuse_foreign_code(catalog: Catalog, tables: Sequence[Relation]) -> None:
    for row in catalog.db.rows(sql("warm.foreign_code"), [relation.oid for relation in tables]):
        raise InsufficientPrivilege(
            f"{catalog.module} error: table '{row['name']}' is of another role, and has triggers, "
            "rules, defaults, checks or expressions: they would run with your privileges.",
            hint="SET ROLE to its owner before the call, or let the owner make it without them.",
        )


def continue_training(reader: Session, existing: ExistingOutput, request: FitRequest) -> FitRequest:
    """Return the request with the states of an earlier call.

    Epochs are counted on from those of the earlier call, so that no batch order is repeated. A
    replay counts like its original run.
    """
    states = find_warm_states(reader, existing, request)
    request = replace(request, warm_states=states)
    if request.spec.schedule == "replay":
        return request
    epochs_before = {mst_key: state.epochs for mst_key, state in states.items()}
    return replace(request, spec=replace(request.spec, epochs_before=epochs_before))


def find_warm_states(
    reader: Session, existing: ExistingOutput, request: FitRequest
) -> dict[int, WarmState]:
    """Return the earlier states of configurations, by mst_key.

    A configuration that failed in the earlier call starts fresh.
    """
    models = _read_models(reader, existing)
    policy = read_summary_row(reader, existing.summary).get("dtype_policy")
    query = sql("warm.state", state=existing.states.quoted)
    states = {}
    for config in request.configs:
        model = models.get(config.mst_key)
        if model is None:
            continue
        architecture = request.architectures[config.model_id].json
        same_architecture = model.has_architecture(architecture)
        source = "weights_of_chunks"
        scaled = _scales_loss(policy, architecture)
        if scaled == _scales_loss(request.spec.dtype_policy, architecture):
            backend = request.backends.get(config.mst_key)
            fits = same_architecture and find_framework(model.header) == backend
            source = _choose_source(model, config, fits=fits)
        states[config.mst_key] = WarmState(
            source, query, (config.mst_key,), not same_architecture, find_epochs(model.header)
        )
    return states


class EarlierModel(NamedTuple):
    """A model of an existing output table."""

    compile_params: str
    architecture: str | None  # JSON
    header: bytes  # the first bytes of its state

    def has_architecture(self, architecture: str) -> bool:
        """Return True if the model has this architecture, given as JSON."""
        if self.architecture is None:
            return False
        return bool(json.loads(self.architecture) == json.loads(architecture))


def _choose_source(model: EarlierModel, config: Config, *, fits: bool) -> str:
    """Return the part of an earlier state to continue with.

    Args:
        fits: True if the architecture and the framework are the same as before.
    """
    source = choose_state_source(_parse_optimizer(model.compile_params), config.compile.optimizer)
    if source == "chunks" and not fits:
        return "warm"
    return source


def _parse_optimizer(compile_text: str) -> OptimizerSpec | None:
    """Return the optimizer of an earlier model; None if it is unknown."""
    try:
        return parse_compile_params(compile_text, ANY_FUNCTIONS).optimizer
    except CerebroError:
        return None


def _read_models(reader: Session, existing: ExistingOutput) -> dict[int, EarlierModel]:
    """Read the models that have states, by mst_key."""
    tables = {"model": existing.model.quoted, "state": existing.states.quoted}
    if existing.info:
        query = sql("warm.trained", info=existing.info.quoted, **tables)
    else:
        query = sql("warm.trained_single", summary=existing.summary.quoted, **tables)
    return {mst_key: EarlierModel(*columns) for mst_key, *columns in reader.run(query)}


def _scales_loss(policy: str | None, architecture: str) -> bool:
    """Return True if a dtype policy wraps optimizers in one that scales losses.

    Without a policy, that of the architecture counts.

    >>> _scales_loss("mixed_float16", "{}"), _scales_loss("float32", '{"dtype": "mixed_float16"}')
    (True, False)
    """
    return policy == "mixed_float16" or (policy is None and '"mixed_float16"' in architecture)
