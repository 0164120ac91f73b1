"""A trained model, read from the output tables of fit for evaluate and predict."""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.configs.architecture.architecture import read_architecture
from cerebro_plpy.configs.params import frameworks
from cerebro_plpy.configs.params.compile_params import CompileParams, parse_compile_params
from cerebro_plpy.configs.params.custom_functions import ANY_FUNCTIONS
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.database.sessions.spi import Row
from cerebro_plpy.database.sql.identifiers import Names
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.errors import (
    InvalidParameter,
    NullNotAllowed,
    ObjectNotReady,
    UndefinedColumn,
    UndefinedObject,
    WrongObjectType,
)
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.packing.packed_summary import ClassValues, read_names
from cerebro_plpy.platform.job import StateSource
from cerebro_plpy.records import dataclass, replace
from cerebro_plpy.tables import model_states, model_summary, object_table
from cerebro_plpy.tables.model_selection_table import SINGLE_KEY
from cerebro_plpy.tables.models import grants

UNUSED_LOSS = "mean_squared_error"
"""A loss that suits every output, for predictions, which do not depend on it."""


@dataclass(frozen=True)
class TrainedModel:
    """A model of a model table."""

    relation: Relation
    mst_key: int
    architecture: object
    compile: CompileParams  # custom functions have no digests
    independent: Names
    dependent: Names
    class_values: tuple[ClassValues | None, ...]  # per target; None if encoded before, or float
    float_targets: tuple[bool, ...]
    normalizing_const: float
    dtype_policy: str | None
    backend: str
    compile_text: str
    objects: str | None  # name of the object table of its custom functions
    states: Relation | None = None  # table of states, if the weights are too large for a field
    sealed: bool = False  # the caller may use the weights, but not read them
    single: bool = False  # the table has only this model, without a key

    @property
    def title(self) -> str:
        """The name of the model in messages."""
        if self.single:
            return f"table {self.relation.spelling}"
        return f"mst_key {self.mst_key}"

    def describe_program(self, targets: list[JsonObject]) -> JsonObject:
        """Return the program in the form of a request to the trainer."""
        return {
            "architecture": self.architecture,
            "compile": self.compile.to_json(),
            "targets": targets,
            "dtype_policy": self.dtype_policy,
        }

    def find_state(self) -> StateSource:
        """Return where the weights are read from: the model table, else the table of states."""
        table = self.relation
        if self.sealed:
            query = sql("grant.begin", model=str(table.oid))
            return self._make_source("sealed", table, query)
        if self.states is not None:
            query = sql("warm.state", state=self.states.quoted)
            return self._make_source("weights_of_chunks", self.states, query)
        if self.single:
            query = sql("score.single_weights", table=table.quoted)
            return StateSource("weights", f"{table.oid}/{self.mst_key}", 0, query)
        query = sql("score.weights", table=table.quoted)
        return self._make_source("weights", table, query)

    def _make_source(self, kind: str, table: Relation, query: str) -> StateSource:
        return StateSource(kind, f"{table.oid}/{self.mst_key}", 0, query, (self.mst_key,))


class _StoredModel(NamedTuple):
    """The texts that are stored of a model."""

    mst_key: int
    architecture: str
    compile_params: str
    backend: str


def load_functions(catalog: Catalog, model: TrainedModel) -> TrainedModel:
    """Return the model with its custom functions as they are registered now."""
    if model.compile.custom is None:
        return model
    functions = object_table.find_functions(catalog, model.objects)
    return replace(model, compile=parse_compile_params(model.compile_text, functions))


def remove_functions(model: TrainedModel) -> TrainedModel:
    """Return the model without custom functions: predictions do not depend on loss and metrics."""
    if model.compile.custom is None:
        return model
    compile_params = replace(
        model.compile, loss=UNUSED_LOSS, metrics=(), weighted_metrics=None, custom=None
    )
    return replace(model, compile=compile_params)


def read_model(
    catalog: Catalog, reader: Session, relation: Relation, mst_key: int | None
) -> TrainedModel:
    """Return the model with that key; without a key, the only or the best model of its table."""
    if _is_single(catalog, relation, mst_key):
        return _read_single(catalog, reader, relation)
    info = catalog.find_companion(relation, "_info")
    summary = catalog.find_companion(relation, "_summary")
    if info is None or summary is None:
        raise _missing_tables(catalog, relation, "madlib_fit_multiple_model()")
    if mst_key is None:
        mst_key = _find_best(catalog, reader, info)
    key, compile_text, backend = _read_info(catalog, reader, info, mst_key)
    states = None
    sealed = not grants.can_read_weights(catalog, relation)
    if sealed:
        grants.check_granted(catalog, relation)
        architecture = _read_sealed_architecture(catalog, reader, relation, info, key)
    else:
        architecture, states = _read_architecture(catalog, reader, relation, summary, key)
    stored = _StoredModel(key, architecture, compile_text, backend)
    row = model_summary.read(reader, summary)
    model = _make_model(reader, relation, summary, row, stored)
    return replace(model, states=states, sealed=sealed)


def _read_single(catalog: Catalog, reader: Session, relation: Relation) -> TrainedModel:
    """Return the model of a table that madlib_fit made, or MADlib's madlib_keras_fit."""
    summary = catalog.find_companion(relation, "_summary")
    if summary is None:
        raise _missing_tables(catalog, relation, "madlib_fit()")
    row = model_summary.read(reader, summary, "compile_params")
    rows = reader.run(sql("score.single", table=relation.quoted))
    if len(rows) != 1:
        raise WrongObjectType(
            f"{catalog.module} error: model table '{relation.spelling}' has "
            f"{count_nouns(len(rows), 'row')}; expected one."
        )
    compile_text = _require_text(summary, "compile_params", row["compile_params"])
    backend = str(row.get("backend") or frameworks.BACKENDS[0])
    architecture, has_weights = rows[0]
    stored = _StoredModel(
        SINGLE_KEY, _require_text(relation, "model_arch", architecture), compile_text, backend
    )
    model = replace(_make_model(reader, relation, summary, row, stored), single=True)
    if has_weights:
        return model
    states = _find_states(catalog, reader, relation, summary, SINGLE_KEY)
    if states is None:
        raise _no_weights(catalog, "of madlib_fit()", relation)
    return replace(model, states=states)


def _make_model(
    reader: Session,
    relation: Relation,
    summary: Relation,
    row: Row,
    stored: _StoredModel,
) -> TrainedModel:
    """Return a model from its stored texts and the row of its summary."""
    dependent = read_names(row, "dependent_varname")
    classes = tuple(
        model_summary.read_class_values(reader, summary, row, name) for name in dependent
    )
    class_counts = model_summary.read_class_counts(row, dependent[0])
    return TrainedModel(
        relation=relation,
        mst_key=stored.mst_key,
        architecture=read_architecture(stored.architecture),
        compile=parse_compile_params(stored.compile_params, ANY_FUNCTIONS),
        independent=read_names(row, "independent_varname"),
        dependent=dependent,
        class_values=classes,
        float_targets=model_summary.find_float_targets(classes, class_counts),
        normalizing_const=float(row["normalizing_const"] or 1.0),
        dtype_policy=row.get("dtype_policy"),
        backend=stored.backend,
        compile_text=stored.compile_params,
        objects=row.get("object_table"),
    )


def _read_architecture(
    catalog: Catalog, reader: Session, relation: Relation, summary: Relation, mst_key: int
) -> tuple[str, Relation | None]:
    """Return the architecture of a model, and the table of states if only that has its weights."""
    rows = reader.run(sql("score.model", table=relation.quoted), (mst_key,))
    if not rows:
        raise _no_weights(catalog, f"with mst_key {mst_key}", relation)
    architecture, has_weights = rows[0]
    states = None
    if not has_weights:
        states = _find_states(catalog, reader, relation, summary, mst_key)
        if states is None:
            raise _no_weights(catalog, f"with mst_key {mst_key}", relation)
    return _require_text(relation, "model_arch", architecture), states


def _find_states(
    catalog: Catalog, reader: Session, relation: Relation, summary: Relation, mst_key: int
) -> Relation | None:
    """Return the table of states beside a model table if it has a state of this model."""
    states = model_states.find(catalog, relation, summary)
    if states and reader.run(sql("warm.has_state", state=states.quoted), (mst_key,)):
        return states
    return None


def _read_sealed_architecture(
    catalog: Catalog, reader: Session, relation: Relation, info: Relation, mst_key: int
) -> str:
    """Return the architecture of a model whose weights the caller may use, but not read."""
    query = sql("grant.model", table=relation.quoted, info=info.quoted)
    rows = reader.run(query, (mst_key,))
    if not rows:
        raise _no_weights(catalog, f"with mst_key {mst_key}", relation)
    return _require_text(relation, "model_arch", rows[0][0])


def _require_text(table: Relation, column: str, value: str | None) -> str:
    """Check that a required column of a model is not NULL."""
    if value is None:
        raise NullNotAllowed(
            f"{column} of the model is NULL in table '{table.spelling}'",
            hint="Name the output table of a fit function.",
        )
    return value


def _missing_tables(catalog: Catalog, relation: Relation, function: str) -> WrongObjectType:
    return WrongObjectType(
        f"{catalog.module}: Missing summary and/or info tables for {relation.spelling}",
        hint=f"Name the output table of {function}.",
    )


def _no_weights(catalog: Catalog, model: str, relation: Relation) -> ObjectNotReady:
    return ObjectNotReady(
        f"{catalog.module} error: the model {model} has no weights in table '{relation.spelling}'.",
        hint="It failed in training, or a search has dropped its state because others did better: "
        "see cerebro.leaderboard for the reason.",
    )


def _find_best(catalog: Catalog, reader: Session, info: Relation) -> int | None:
    """Return the best model of a search that has weights; None in tables of other functions."""
    if "metrics_iters" not in catalog.read_columns(info):
        return None
    return next((int(key) for (key,) in reader.run(sql("score.best", table=info.quoted))), None)


def _read_info(
    catalog: Catalog, reader: Session, info: Relation, mst_key: int | None
) -> tuple[int, str, str]:
    """Return the key of a model, its compile parameters, and the framework that trained it."""
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
    compile_text, backend = rows[0]
    compile_text = _require_text(info, "compile_params", compile_text)
    return mst_key, compile_text, str(backend or frameworks.BACKENDS[0])


def _is_single(catalog: Catalog, relation: Relation, mst_key: int | None) -> bool:
    """Return whether a model table holds a single model, which has no key."""
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
