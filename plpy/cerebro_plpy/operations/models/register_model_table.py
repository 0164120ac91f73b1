"""`cerebro.register`: name a model that a function of MADlib has trained.

The model becomes a version whose network takes arrays as they are. Everything happens in the
caller's transaction, in which model tables are created, too: both are committed, or neither.
"""

from __future__ import annotations

import json
import secrets
from contextlib import suppress
from typing import NamedTuple

from cerebro_plpy.configs.architecture.architecture import check_architecture
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.reading import DEFAULT_FORMATS, record
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.errors import (
    FeatureNotSupported,
    InvalidName,
    NullNotAllowed,
    ObjectNotReady,
    UndefinedTable,
)
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.operations.predict.model_predictor import COMPILE_PARAMS
from cerebro_plpy.operations.train_arguments import METRICS
from cerebro_plpy.packing.packed_summary import read_names, read_summary_row
from cerebro_plpy.platform.state_tables import version_table
from cerebro_plpy.preprocessing.kinds.plain_array import PlainArray
from cerebro_plpy.preprocessing.learning.schema_matching import match_recipe
from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION, REGRESSION
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.values.columns import read_columns
from cerebro_plpy.tables import model_states, model_summary
from cerebro_plpy.tables.architectures import suggest_weights
from cerebro_plpy.tables.models import column_types, model_grants, model_versions
from cerebro_plpy.tables.models.column_types import ColumnTypes
from cerebro_plpy.tables.models.model_registry import REGISTERED
from cerebro_plpy.tables.models.model_versions import Member
from cerebro_plpy.tables.models.trained_model import TrainedModel, read_model

MODULE = "register"
SPLIT = "random 0.2"
"""The split of later versions of the name that cerebro.train trains."""
LOSS = "loss"
ALTERNATIVE = "Predict with it by madlib_predict()."


class TableModel(NamedTuple):
    """A model of a model table, and the tables beside it."""

    trained: TrainedModel
    summary: Row
    metrics: Relation  # contains the metrics of each model
    states: Relation


class Target(NamedTuple):
    """The target of a model, and its metric on the validation rows."""

    task: str
    classes: tuple[str, ...]
    metric: str
    value: float | None  # None without validation rows


def register(db: Database, model: str | None, table_name: str | None, mst_key: int | None) -> int:
    """Add a trained model as a version of a name; return the version's number.

    The version is deployed if no other version of the name is.
    """
    if model is None:
        raise NullNotAllowed(f"{MODULE} error: model is NULL; expected a name.")
    if not model:
        raise NullNotAllowed(f"{MODULE} error: model is empty; expected a name.")
    db.platform.check_process(MODULE)
    catalog = Catalog(db, MODULE)
    stored = _find_model(catalog, table_name, mst_key)
    trained = stored.trained
    source = _find_source(catalog, stored)
    recipe = _make_recipe(db, stored, source)
    target = _find_target(db, stored)
    member = _make_member(trained, _copy_state(db, stored))
    target_types = read_names(stored.summary, "dependent_vartype") or ("text",)
    source_name = quote_identifier(trained.relation.name)
    if source is not None:
        source_name = source.quoted
    values = (
        target.task,
        source_name,
        trained.dependent[0],
        target_types[0],
        REGISTERED,
        member.params,
        target.metric,
        target.value,
        json.dumps(recipe.to_json()),
        list(target.classes),
        trained.backend,
        member.state_table,
        json.dumps(_describe_reading(db, source, target_types[0])),
    )
    with db.limited_lock_wait():
        db.rows(sql("version.add_model"), model, SPLIT, secrets.randbits(31), None, None)
        deployed = db.value(sql("version.lock_model"), model)
        version = int(db.value(sql("version.next"), model))
        key = (model, version)
        db.rows(sql("version.add_registered"), *key, member.run_id, member.mst_key, *values)
        model_versions.add_members(db, (*key, ""), (member,))
        if deployed is None:
            db.rows(sql("version.deploy"), version, model)
            model_grants.publish_deployed(LocalSession(db), model)
    outcome = "it predicts from now on"
    if deployed is not None:
        outcome = f"version {deployed} keeps predicting until you call cerebro.deploy"
    db.info(
        f"model {model!r}: version {version} is {trained.title} of {trained.relation.spelling}; "
        f"{outcome}"
    )
    return version


def _describe_reading(db: Database, source: Relation | None, target_type: str) -> JsonObject:
    """Return the record of how a version reads its source, with the types of its columns."""
    session = LocalSession(db)
    columns = {}
    if source is not None:
        columns = column_types.read_column_types(session, source.quoted)
    types = ColumnTypes(columns, column_types.read_base_type(session, target_type))
    return record(DEFAULT_FORMATS, **column_types.to_record(types))


def _make_member(trained: TrainedModel, run_id: int) -> Member:
    return Member(
        run_id=run_id,
        mst_key=trained.mst_key,
        template=REGISTERED,
        params=_make_params(trained),
        share=1.0,
        architecture=json.dumps(trained.architecture),
        compile_params=COMPILE_PARAMS,
        backend=trained.backend,
    )


def _make_params(trained: TrainedModel) -> str:
    params: JsonObject = {"table": trained.relation.quoted}
    if not trained.single:
        params["mst_key"] = trained.mst_key
    return json.dumps(params)


def _find_model(catalog: Catalog, table_name: str | None, mst_key: int | None) -> TableModel:
    """Return the model of a table.

    Raises:
        ObjectNotReady: the caller may not read the weights, or the table has no whole state.
    """
    reader = LocalSession(catalog.db)
    table = catalog.resolve_input(table_name, "model")
    if mst_key is None:
        mst_key = _find_single_key(catalog, reader, table)
    trained = read_model(catalog, reader, table, mst_key)
    if trained.sealed:
        raise ObjectNotReady(
            f"{MODULE} error: {table.spelling} may be used for predictions, but its weights may "
            "not be read.",
            hint="Its owner can register it, and let others predict by cerebro.grant_predict.",
        )
    summary = catalog.find_companion(table, "_summary")
    assert summary is not None, "read_model has found it"
    states = trained.states or model_states.find(catalog, table, summary)
    if states is None or not reader.run(
        sql("warm.has_state", state=states.quoted), (trained.mst_key,)
    ):
        raise ObjectNotReady(
            f"{MODULE} error: there is no whole state of {trained.title} beside {table.spelling}, "
            "only weights.",
            detail="Apache MADlib keeps none, and a table that was copied or restored by itself "
            "has none either.",
            hint=f"{suggest_weights(catalog, table, mst_key)} Register that table.",
        )
    metrics = summary
    if not trained.single:
        metrics = catalog.find_companion(table, "_info") or summary
    return TableModel(trained, model_summary.read(reader, summary), metrics, states)


def _find_single_key(catalog: Catalog, reader: LocalSession, table: Relation) -> int | None:
    """Return the key of the only model of a table; None for several models or a missing key."""
    info = catalog.find_companion(table, "_info")
    if info is None or "mst_key" not in catalog.read_columns(info):
        return None
    keys = reader.run(sql("score.keys", table=info.quoted))
    if len(keys) != 1:
        return None
    return int(keys[0][0])


def _copy_state(db: Database, stored: TableModel) -> int:
    """Copy the state into a table of the version; return the run id in the name of the table.

    The id is reserved like the id of a run.
    """
    is_taken = True
    while is_taken:
        row = db.row(sql("run.reserve"))
        run_id = int(row["run_id"])
        is_taken = bool(row["taken"])
    table = version_table(run_id, stored.trained.mst_key)
    with db.configured(client_min_messages="warning"):  # the statement drops a missing table
        db.rows(db.platform.state_table_sql(table))
    rows = sql("warm.state", state=stored.states.quoted)
    db.rows(db.platform.state_from_rows_sql(rows, table), stored.trained.mst_key)
    return run_id


def _find_source(catalog: Catalog, stored: TableModel) -> Relation | None:
    """Return the table that was packed, if it still exists."""
    with suppress(UndefinedTable, InvalidName, NullNotAllowed):
        packed = catalog.resolve_input(str(stored.summary.get("source_table")), "source")
        summary = catalog.find_companion(packed, "_summary")
        if summary is not None:
            fields = read_summary_row(LocalSession(catalog.db), summary)
            return catalog.resolve_input(str(fields.get("source_table")), "source")
    return None


def _make_recipe(db: Database, stored: TableModel, source: Relation | None) -> Recipe:
    """Return the recipe that passes the columns to the network as arrays.

    Raises:
        FeatureNotSupported: the network has inputs without a fixed shape.
        DatatypeMismatch: the columns of the source do not fit.
    """
    trained = stored.trained
    shapes = check_architecture(trained.architecture).input_shapes
    if len(shapes) != len(trained.independent) or not all(shape and all(shape) for shape in shapes):
        raise FeatureNotSupported(
            f"{MODULE} error: the network of {trained.title} takes inputs of shapes "
            f"{', '.join(map(str, shapes))}; expected a fixed one for each column.",
            hint=ALTERNATIVE,
        )
    arrays = (
        PlainArray(name, tuple(int(size or 0) for size in shape), trained.normalizing_const, False)
        for name, shape in zip(trained.independent, shapes)
    )
    recipe = Recipe(tuple(arrays))
    if source is None:
        return recipe
    return match_recipe(MODULE, recipe, read_columns(LocalSession(db), source.oid), source.spelling)


def _find_target(db: Database, stored: TableModel) -> Target:
    """Return the target of a model.

    Raises:
        FeatureNotSupported: models by name cannot have such a target.
    """
    trained = stored.trained
    units = check_architecture(trained.architecture).output_units
    class_values = trained.class_values[0]
    known_classes = "none"
    if class_values:
        known_classes = f"{list(class_values)}"
    classes = tuple(text for text in class_values or () if text is not None)
    if len(trained.dependent) > 1 or len(units) > 1:
        raise FeatureNotSupported(
            f"{MODULE} error: {trained.title} predicts {', '.join(trained.dependent)}; expected "
            "one target.",
            hint=ALTERNATIVE,
        )
    count = units[0] or "an unknown number of"
    if trained.float_targets[0]:
        if units != (1,):
            raise FeatureNotSupported(
                f"{MODULE} error: {trained.title} predicts "
                f"{count_nouns(count, 'number')} of each row; expected one.",
                hint=ALTERNATIVE,
            )
        return Target(REGRESSION, classes, *_find_metric(db, stored, REGRESSION))
    if len(classes) < 2 or not len(classes) == units[0] == len(class_values or ()):
        raise FeatureNotSupported(
            f"{MODULE} error: the network of {trained.title} has "
            f"{count_nouns(count, 'output')}, and the "
            f"classes that are known are {known_classes}; expected a text for each output.",
            detail="Of a target that was packed as an array nobody knows the classes; and NULL is "
            "none of a model by name.",
            hint="Pack the column that has the classes, without num_classes, and train on that.",
        )
    return Target(CLASSIFICATION, classes, *_find_metric(db, stored, CLASSIFICATION))


def _find_metric(db: Database, stored: TableModel, task: str) -> tuple[str, float | None]:
    """Return the first metric of the training and its value, else the loss.

    The loss is returned, too, if models by name are not compared by that metric.
    """
    table = stored.metrics.quoted
    if stored.trained.single:
        text = db.value(sql("version.told_of_single", table=table))
    else:
        text = db.value(sql("version.told_of_key", table=table), stored.trained.mst_key)
    fields = json.loads(text)
    keras_name = (fields.get("metrics_type") or [None])[0]
    for name, metric in METRICS[task].items():
        if keras_name in (name, metric) and metric != LOSS:
            return name, fields.get("validation_metrics_final")
    return LOSS, fields.get("validation_loss_final")
