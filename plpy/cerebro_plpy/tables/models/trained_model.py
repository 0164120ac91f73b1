"""Reads a trained model back from the tables that fit made: what evaluate and predict need."""

from __future__ import annotations

from typing import Any, NamedTuple

from cerebro_plpy.configs.architecture.architecture import read_architecture
from cerebro_plpy.configs.params import frameworks
from cerebro_plpy.configs.params.compile_params import CompileParams, parse_compile_params
from cerebro_plpy.configs.params.custom_functions import UNSEEN
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.errors import (
    InvalidParameter,
    NullNotAllowed,
    ObjectNotReady,
    UndefinedColumn,
    UndefinedObject,
    WrongObjectType,
)
from cerebro_plpy.packing.packed_table import names
from cerebro_plpy.platform.job import StateSource
from cerebro_plpy.records import dataclass, replace
from cerebro_plpy.tables import model_states, model_summary, object_table
from cerebro_plpy.tables.model_selection_table import SINGLE_KEY
from cerebro_plpy.tables.models import grants

ANY_LOSS = "mean_squared_error"  # which suits every output


@dataclass(frozen=True)
class TrainedModel:
    """One model of a model table; of each target `class_values`, None where it came encoded or is a
    float.

    `states` is the table of whole states, for a model whose weights are too large for a field of
    the model table; `sealed` says that the caller may use the weights but not read them. `objects`
    names the object table of custom functions, which `compile` has without their digests. `single`
    says that its table holds one model, which has no key there.
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
    sealed: bool = False
    single: bool = False

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"table {self.relation.spelling}" if self.single else f"mst_key {self.mst_key}"

    def program(self, targets: list[dict[str, Any]]) -> dict[str, Any]:
        """The program as the trainer wants it described."""
        return {
            "architecture": self.architecture,
            "compile": self.compile.to_json(),
            "targets": targets,
            "dtype_policy": self.dtype_policy,
        }

    def state(self) -> StateSource:
        """Where the weights are read from: the model table itself, or else the table of states."""
        if self.sealed:
            text = sql("grant.begin", model=str(self.relation.oid))
            return StateSource(
                "sealed", f"{self.relation.oid}/{self.mst_key}", 0, text, (self.mst_key,)
            )
        if self.states is not None:
            text = sql("warm.state", state=self.states.quoted)
            return StateSource(
                "weights_of_chunks", f"{self.states.oid}/{self.mst_key}", 0, text, (self.mst_key,)
            )
        name = f"{self.relation.oid}/{self.mst_key}"
        if self.single:
            return StateSource(
                "weights", name, 0, sql("score.single_weights", table=self.relation.quoted)
            )
        return StateSource(
            "weights", name, 0, sql("score.weights", table=self.relation.quoted), (self.mst_key,)
        )


def measurable(catalog: Catalog, model: TrainedModel) -> TrainedModel:
    """The model with its custom functions, as they are registered now."""
    if model.compile.custom is None:
        return model
    functions = object_table.functions(catalog, model.objects)
    return replace(model, compile=parse_compile_params(model.compile_text, functions))


def predictable(model: TrainedModel) -> TrainedModel:
    """The model without its custom functions: nothing of a prediction depends on loss and
    metrics.
    """
    if model.compile.custom is None:
        return model
    return replace(
        model,
        compile=replace(
            model.compile, loss=ANY_LOSS, metrics=(), weighted_metrics=None, custom=None
        ),
    )


def read_model(
    catalog: Catalog, reader: Session, relation: Relation, mst_key: int | None
) -> TrainedModel:
    """The model with that key; without one, the only model of its table."""
    if _holds_single(catalog, relation, mst_key):
        return _read_single(catalog, reader, relation)
    info, summary = (
        catalog.find_companion(relation, "_info"),
        catalog.find_companion(relation, "_summary"),
    )
    if info is None or summary is None:
        raise _missing_tables(catalog, relation, "madlib_fit_multiple_model()")
    chosen = _best(catalog, reader, info) if mst_key is None else mst_key
    key, compile_text, backend = _info(catalog, reader, info, chosen)
    sealed = not grants.may_read(catalog, relation)
    if sealed:
        grants.check_granted(catalog, relation)
        architecture, states = _sealed(catalog, reader, (relation, info), key), None
    else:
        architecture, states = _stored(catalog, reader, (relation, summary), key)
    stored = StoredText(key, architecture, compile_text, backend)
    model = _described(
        reader, relation, Summary(summary, model_summary.read(reader, summary)), stored
    )
    return replace(model, states=states, sealed=sealed)


class Summary(NamedTuple):
    """The summary table of a model, and its row."""

    table: Relation
    row: dict[str, Any]


class StoredText(NamedTuple):
    """What is stored of a model as text."""

    mst_key: int
    architecture: str
    compile_params: str
    backend: str


def _read_single(catalog: Catalog, reader: Session, relation: Relation) -> TrainedModel:
    """The model of a table that madlib_fit has made, or MADlib's madlib_keras_fit."""
    summary = catalog.find_companion(relation, "_summary")
    if summary is None:
        raise _missing_tables(catalog, relation, "madlib_fit()")
    row, stored = (
        model_summary.read(reader, summary, "compile_params"),
        reader.run(sql("score.single", table=relation.quoted)),
    )
    if len(stored) != 1:
        raise WrongObjectType(
            f"{catalog.module} error: model table '{relation.spelling}' has {len(stored)} rows; "
            "expected one."
        )
    text, backend = (
        _text(summary, "compile_params", row["compile_params"]),
        str(row.get("backend") or frameworks.BACKENDS[0]),
    )
    texts = StoredText(SINGLE_KEY, _text(relation, "model_arch", stored[0][0]), text, backend)
    model = replace(_described(reader, relation, Summary(summary, row), texts), single=True)
    if stored[0][1]:
        return model
    states = model_states.find(catalog, relation, summary)
    if states is None or not reader.run(sql("warm.has_state", state=states.quoted), (SINGLE_KEY,)):
        raise _no_weights(catalog, "of madlib_fit()", relation)
    return replace(model, states=states)


def _described(
    reader: Session, relation: Relation, summary: Summary, stored: StoredText
) -> TrainedModel:
    """A model by what is stored of it, with what its summary says."""
    row = summary.row
    dependent = names(row, "dependent_varname")
    classes = tuple(
        model_summary.class_values(reader, summary.table, row, name) for name in dependent
    )
    floats = model_summary.float_targets(classes, model_summary.numbers(row, dependent[0]))
    return TrainedModel(
        relation=relation,
        mst_key=stored.mst_key,
        architecture=read_architecture(stored.architecture),
        compile=parse_compile_params(stored.compile_params, UNSEEN),
        independent=names(row, "independent_varname"),
        dependent=dependent,
        class_values=classes,
        float_targets=floats,
        normalizing_const=float(row["normalizing_const"] or 1.0),
        dtype_policy=row.get("dtype_policy"),
        backend=stored.backend,
        compile_text=stored.compile_params,
        objects=row.get("object_table"),
    )


def _stored(
    catalog: Catalog, reader: Session, tables: tuple[Relation, Relation], mst_key: int
) -> tuple[str, Relation | None]:
    """The architecture of a model, and the table of states where that and not the model table has
    its weights.
    """
    relation, summary = tables
    stored = reader.run(sql("score.model", table=relation.quoted), (mst_key,))
    if stored and stored[0][1]:
        return _text(relation, "model_arch", stored[0][0]), None
    states = model_states.find(catalog, relation, summary) if stored else None
    if states is None or not reader.run(sql("warm.has_state", state=states.quoted), (mst_key,)):
        raise _no_weights(catalog, f"with mst_key {mst_key}", relation)
    return _text(relation, "model_arch", stored[0][0]), states


def _sealed(
    catalog: Catalog, reader: Session, tables: tuple[Relation, Relation], mst_key: int
) -> str:
    """The architecture of a model whose weights the caller may use but not read."""
    relation, info = tables
    rows = reader.run(sql("grant.model", table=relation.quoted, info=info.quoted), (mst_key,))
    if not rows:
        raise _no_weights(catalog, f"with mst_key {mst_key}", relation)
    return _text(relation, "model_arch", rows[0][0])


def _text(table: Relation, column: str, value: str | None) -> str:
    """What a model cannot do without."""
    if value is None:
        raise NullNotAllowed(
            f"{column} of the model is NULL in table '{table.spelling}'",
            hint="Name the output table of a fit function.",
        )
    return value


def _missing_tables(catalog: Catalog, relation: Relation, maker: str) -> WrongObjectType:
    return WrongObjectType(
        f"{catalog.module}: Missing summary and/or info tables for {relation.spelling}",
        hint=f"Name the output table of {maker}.",
    )


def _no_weights(catalog: Catalog, which: str, relation: Relation) -> ObjectNotReady:
    return ObjectNotReady(
        f"{catalog.module} error: the model {which} has no weights in table '{relation.spelling}'.",
        hint="It failed in training, or a search has dropped its state because others did better: "
        "see cerebro.leaderboard for the reason.",
    )


def _best(catalog: Catalog, reader: Session, info: Relation) -> int | None:
    """The key of the best model of a search; None where none has weights, and in other tables."""
    if "metrics_iters" not in catalog.read_columns(info):
        return None
    best = reader.run(sql("score.best", table=info.quoted))
    return int(best[0][0]) if best else None


def _info(
    catalog: Catalog, reader: Session, info: Relation, mst_key: int | None
) -> tuple[int, str, str]:
    """The key of the model that is meant, its compile parameters, and the framework that trained
    it.
    """
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
    return (
        mst_key,
        _text(info, "compile_params", rows[0][0]),
        str(rows[0][1] or frameworks.BACKENDS[0]),
    )


def _holds_single(catalog: Catalog, relation: Relation, mst_key: int | None) -> bool:
    """Whether a model table holds a single model, which has no key."""
    columns = catalog.read_columns(relation)
    for name in ("model_weights", "model_arch"):
        if name not in columns:
            raise UndefinedColumn(
                f"{catalog.module} error: column '{name}' does not exist in model table "
                f"'{relation.spelling}'.",
                hint="Name the output table of madlib_fit_multiple_model().",
            )
    if "mst_key" not in columns and mst_key is not None:
        raise InvalidParameter(
            f"{catalog.module}: Single model should not pass mst_key",
            detail=f"Table '{relation.spelling}' holds one model; received {mst_key}.",
            hint="Leave mst_key out.",
        )
    return "mst_key" not in columns
