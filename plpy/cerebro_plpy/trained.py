"""Reads a trained model back from the tables that fit made: what evaluate and predict need."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from cerebro_plpy import backends, model_grants, object_table
from cerebro_plpy.architecture import read_architecture
from cerebro_plpy.catalog import Catalog
from cerebro_plpy.dispatch import Session
from cerebro_plpy.errors import (
    InvalidParameter,
    NullNotAllowed,
    ObjectNotReady,
    UndefinedColumn,
    UndefinedObject,
    WrongObjectType,
)
from cerebro_plpy.functions import UNSEEN
from cerebro_plpy.names import quote_identifier
from cerebro_plpy.packed import OLD_CLASSES, classes_column, names, read_summary_row, strip_padding
from cerebro_plpy.params import CompileParams, parse_compile_params
from cerebro_plpy.platform import StateSource
from cerebro_plpy.queries import sql
from cerebro_plpy.records import Relation

ANY_LOSS = "mean_squared_error"  # which suits every output
NEEDED = ("dependent_varname", "independent_varname", "normalizing_const", "dependent_vartype")


@dataclass(frozen=True)
class TrainedModel:
    """One model of a model table; of each target `class_values`, None where it came encoded or is a float.

    `states` is the table of whole states, for a model whose weights are too large for a field of the model table;
    `sealed` the quoted name of the function that fills a job for who may not read the weights. `objects` names the
    object table of custom functions, which `compile` has without their digests.
    """

    relation: Relation
    mst_key: int
    architecture: object
    compile: CompileParams
    independent: tuple[str, ...]
    dependent: tuple[str, ...]
    class_values: tuple[tuple[str | None, ...] | None, ...]
    float_targets: tuple[bool, ...]
    normalizing_const: float
    dtype_policy: str | None
    backend: str
    compile_text: str
    objects: str | None
    states: Relation | None = None
    sealed: str | None = None

    def program(self, targets: list[dict[str, Any]]) -> dict[str, Any]:
        """The program as the trainer wants it described."""
        return {
            "architecture": self.architecture, "compile": self.compile.to_json(), "targets": targets,
            "dtype_policy": self.dtype_policy,
        }  # fmt: skip

    def state(self) -> StateSource:
        """Where the weights are read from: the model table itself, or else the table of states."""
        if self.sealed is not None:
            text = sql("grant.begin", function=self.sealed)
            return StateSource("sealed", f"{self.relation.oid}/{self.mst_key}", 0, text, (self.mst_key,))
        if self.states is not None:
            text = sql("warm.state", state=self.states.quoted)
            return StateSource("weights_of_chunks", f"{self.states.oid}/{self.mst_key}", 0, text, (self.mst_key,))
        text = sql("score.weights", table=self.relation.quoted)
        return StateSource("weights", f"{self.relation.oid}/{self.mst_key}", 0, text, (self.mst_key,))


def measurable(catalog: Catalog, model: TrainedModel) -> TrainedModel:
    """The model with its custom functions, as they are registered now."""
    if model.compile.custom is None:
        return model
    functions = object_table.functions(catalog, model.objects)
    return replace(model, compile=parse_compile_params(model.compile_text, functions))


def predictable(model: TrainedModel) -> TrainedModel:
    """The model without its custom functions: nothing of a prediction depends on loss and metrics."""
    if model.compile.custom is None:
        return model
    return replace(model, compile=replace(model.compile, loss=ANY_LOSS, metrics=(), weighted_metrics=None, custom=None))


def read_model(catalog: Catalog, reader: Session, relation: Relation, mst_key: int | None) -> TrainedModel:
    """The model with that key."""
    _check_model_table(catalog, relation)
    info, summary = catalog.companion(relation, "_info"), catalog.companion(relation, "_summary")
    if info is None or summary is None:
        raise WrongObjectType(
            f"{catalog.module}: Missing summary and/or info tables for {relation.given}",
            hint="Name the output table of madlib_fit_multiple_model().",
        )
    key, compile_text, backend = _info(catalog, reader, info, mst_key)
    sealed = None if model_grants.may_read(catalog, relation) else model_grants.granted(catalog, relation)
    if sealed is None:
        architecture, states = _stored(catalog, reader, relation, key)
    else:
        architecture, states = _sealed(catalog, reader, (relation, info), key), None
    row = _summary(reader, summary)
    dependent = names(row, "dependent_varname")
    classes = tuple(_class_values(reader, summary, row, name) for name in dependent)
    return TrainedModel(
        relation=relation, mst_key=key, architecture=read_architecture(architecture),
        compile=parse_compile_params(compile_text, UNSEEN), independent=names(row, "independent_varname"),
        dependent=dependent, class_values=classes, float_targets=float_targets(classes, _numbers(row, dependent[0])),
        normalizing_const=float(row["normalizing_const"] or 1.0), dtype_policy=row.get("dtype_policy"),
        backend=backend, compile_text=compile_text, objects=row.get("object_table"), states=states, sealed=sealed,
    )  # fmt: skip


def _stored(catalog: Catalog, reader: Session, relation: Relation, mst_key: int) -> tuple[str, Relation | None]:
    """The architecture of a model, and the table of states where that and not the model table has its weights."""
    stored = reader.run(sql("score.model", table=relation.quoted), (mst_key,))
    if stored and stored[0][1]:
        return stored[0][0], None
    states = catalog.companion(relation, "_state") if stored else None
    if states is None or not reader.run(sql("warm.has_state", state=states.quoted), (mst_key,)):
        raise _no_weights(catalog, relation, mst_key)
    return stored[0][0], states


def _sealed(catalog: Catalog, reader: Session, tables: tuple[Relation, Relation], mst_key: int) -> str:
    """The architecture of a model whose weights the caller may use but not read."""
    relation, info = tables
    rows = reader.run(sql("grant.model", table=relation.quoted, info=info.quoted), (mst_key,))
    if not rows:
        raise _no_weights(catalog, relation, mst_key)
    return str(rows[0][0])


def _no_weights(catalog: Catalog, relation: Relation, mst_key: int) -> ObjectNotReady:
    return ObjectNotReady(
        f"{catalog.module} error: the model with mst_key {mst_key} has no weights in table '{relation.given}'.",
        hint="It failed in training (see cerebro.leaderboard for the reason), or was not the best of a search by"
        " madlib_automl(), which keeps the weights of the best alone.",
    )


def _info(catalog: Catalog, reader: Session, info: Relation, mst_key: int | None) -> tuple[int, str, str]:
    """The key of the model that is meant, its compile parameters, and the framework that trained it."""
    if mst_key is None:
        raise NullNotAllowed(
            f"{catalog.module}: Multi-model needs to pass mst_key",
            hint=f"SELECT mst_key, training_loss_final FROM {info.quoted} ORDER BY 2;",
        )
    rows = reader.run(sql("score.info", table=info.quoted), (mst_key,))
    if not rows:
        raise UndefinedObject(
            f"{catalog.module}: mst_key {mst_key} does not exist in the info table",
            hint=f"SELECT mst_key FROM {info.quoted};",
        )
    return mst_key, str(rows[0][0]), str(rows[0][1] or backends.BACKENDS[0])


def _summary(reader: Session, summary: Relation) -> dict[str, Any]:
    row = read_summary_row(reader, summary)
    missing = [name for name in NEEDED if name not in row]
    if missing:
        raise UndefinedColumn(
            f"One or more expected columns missing in model summary table ('{summary.name}').",
            detail=f"Missing: {', '.join(missing)}.",
        )
    return row


def _numbers(row: dict[str, Any], target: str) -> list[int | None] | None:
    """The numbers of classes. MADlib knows classes only, and before 1.18 left them out where they came encoded."""
    old = classes_column(row, target) == OLD_CLASSES
    numbers: list[int | None] | None = row.get("num_classes")
    return [] if old and numbers is None else numbers


def _class_values(reader: Session, summary: Relation, row: dict[str, Any], name: str) -> tuple[str | None, ...] | None:
    """The classes of a target as PostgreSQL writes them, where it has any."""
    column = classes_column(row, name)
    if not row.get(column):
        return None
    text = sql("read.class_values", table=summary.quoted, column=quote_identifier(column))
    return strip_padding(reader.run(text)[0][0])


def float_targets(
    classes: tuple[tuple[str | None, ...] | None, ...], numbers: list[int | None] | None
) -> tuple[bool, ...]:
    """Which targets are floats: see `outputs.num_classes`.

    >>> float_targets((None,), None), float_targets((None,), []), float_targets((("a", "b"), None, None), [2, None, 3])
    ((True,), (False,), (False, True, False))
    """
    if len(classes) == 1 or numbers is None:
        return tuple(values is None and numbers is None for values in classes)
    return tuple(values is None and number is None for values, number in zip(classes, numbers))


def _check_model_table(catalog: Catalog, relation: Relation) -> None:
    columns = catalog.columns(relation)
    for name in ("model_weights", "model_arch"):
        if name not in columns:
            raise UndefinedColumn(
                f"{catalog.module} error: column '{name}' does not exist in model table '{relation.given}'.",
                hint="Name the output table of madlib_fit_multiple_model().",
            )
    if "mst_key" not in columns:
        raise InvalidParameter(
            f"{catalog.module} error: table '{relation.given}' holds a single model; expected the output of"
            " madlib_fit_multiple_model()."
        )
