"""A model that functions of MADlib's have trained, under a name: a version whose network takes
arrays as they are.

Everything is done in the caller's own transaction, for so are model tables: both appear, or neither
does.
"""

from __future__ import annotations

import json
import secrets
from contextlib import suppress
from typing import NamedTuple

from cerebro_plpy.configs.architecture.architecture import check_architecture
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.errors import (
    FeatureNotSupported,
    InvalidName,
    NullNotAllowed,
    ObjectNotReady,
    UndefinedTable,
)
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
from cerebro_plpy.tables.models import model_grants
from cerebro_plpy.tables.models.model_registry import REGISTERED
from cerebro_plpy.tables.models.trained_model import TrainedModel, read_model

MODULE = "register"
SPLIT = "random 0.2"
"""How rows are held back where cerebro.train makes a further version of the name."""
LOSS = "loss"
OTHERWISE = "Predict with it by madlib_predict()."


class Model(NamedTuple):
    """A model of a model table, and what the tables beside that tell: its summary, and of each
    model its metrics.
    """

    found: TrainedModel
    summary: Row
    metrics: Relation
    states: Relation


class Target(NamedTuple):
    """What a model predicts, and the metric that it came to over rows that it was not trained on,
    if any were.
    """

    task: str
    classes: tuple[str, ...]
    metric: str
    value: float | None


def register(db: Database, model: str | None, table_name: str | None, mst_key: int | None) -> int:
    """Make a version of a trained model; its number. It predicts where no other version of the name
    does.
    """
    if not model:
        raise NullNotAllowed(
            f"{MODULE} error: model is {'NULL' if model is None else 'empty'}; expected a name."
        )
    db.platform.check_process(MODULE)
    catalog = Catalog(db, MODULE)
    trained = _trained(catalog, table_name, mst_key)
    found, source = trained.found, _source(catalog, trained)
    recipe, target = _recipe(db, trained, source), _target(db, trained)
    table, run_id = _kept(db, trained)
    described = (
        *(
            target.task,
            source.quoted if source else quote_identifier(found.relation.name),
            found.dependent[0],
        ),
        *(
            (read_names(trained.summary, "dependent_vartype") or ("text",))[0],
            REGISTERED,
            _params(found),
        ),
        *(target.metric, target.value, json.dumps(recipe.to_json()), list(target.classes)),
        *(json.dumps(found.architecture), COMPILE_PARAMS, found.backend, table),
    )
    with db.limited_lock_wait():
        db.rows(sql("version.add_model"), model, SPLIT, secrets.randbits(31), None, None)
        deployed = db.value(sql("version.lock_model"), model)
        version = int(db.value(sql("version.next"), model))
        db.rows(sql("version.add_registered"), model, version, run_id, found.mst_key, *described)
        if deployed is None:
            db.rows(sql("version.deploy"), version, model)
            model_grants.publish_deployed(LocalSession(db), model)
    others = f"version {deployed} goes on to predict, until cerebro.deploy says otherwise"
    said = "it predicts from now on" if deployed is None else others
    db.info(
        f"model {model!r}: version {version} is {found.title} of {found.relation.spelling}; {said}"
    )
    return version


def _params(found: TrainedModel) -> str:
    key = {} if found.single else {"mst_key": found.mst_key}
    return json.dumps({"table": found.relation.quoted, **key})


def _trained(catalog: Catalog, table_name: str | None, mst_key: int | None) -> Model:
    """The model, if it is one of which there is a whole state that the caller may read."""
    reader, table = LocalSession(catalog.db), catalog.resolve_input(table_name, "model")
    found = read_model(
        catalog, reader, table, _only_key(catalog, reader, table) if mst_key is None else mst_key
    )
    if found.sealed:
        raise ObjectNotReady(
            f"{MODULE} error: {table.spelling} may be used for predictions, but its weights may "
            "not be read.",
            hint="Its owner can register it, and let others predict by cerebro.grant_predict.",
        )
    summary = catalog.find_companion(table, "_summary")
    assert summary is not None, "read_model has found it"
    states = found.states or model_states.find(catalog, table, summary)
    if states is None or not reader.run(
        sql("warm.has_state", state=states.quoted), (found.mst_key,)
    ):
        raise ObjectNotReady(
            f"{MODULE} error: there is no whole state of {found.title} beside {table.spelling}, "
            "only weights.",
            detail="Apache MADlib keeps none, and a table that was copied or restored by itself "
            "has none either.",
            hint="Train on from it by warm_start => TRUE, and register what comes of that.",
        )
    info = None if found.single else catalog.find_companion(table, "_info")
    return Model(found, model_summary.read(reader, summary), info or summary, states)


def _only_key(catalog: Catalog, reader: LocalSession, table: Relation) -> int | None:
    """The key of the model of a table that has no others; None where it has, or where models have
    no keys.
    """
    info = catalog.find_companion(table, "_info")
    if info is None or "mst_key" not in catalog.read_columns(info):
        return None
    keys = reader.run(sql("score.keys", table=info.quoted))
    return int(keys[0][0]) if len(keys) == 1 else None


def _kept(db: Database, trained: Model) -> tuple[str, int]:
    """A table with the state, which the name has for itself, and the number that it is called by,
    as runs have them.
    """
    taken = True
    while taken:
        row = db.row(sql("run.reserve"))
        run_id, taken = int(row["run_id"]), bool(row["taken"])
    table = version_table(run_id, trained.found.mst_key)
    with db.configured(client_min_messages="warning"):  # there is none to drop
        db.rows(db.platform.state_table_sql(table))
    rows = sql("warm.state", state=trained.states.quoted)
    db.rows(db.platform.state_from_rows_sql(rows, table), trained.found.mst_key)
    return table, run_id


def _source(catalog: Catalog, model: Model) -> Relation | None:
    """The table that was packed, where it is still there."""
    with suppress(UndefinedTable, InvalidName, NullNotAllowed):
        packed = catalog.resolve_input(str(model.summary.get("source_table")), "source")
        summary = catalog.find_companion(packed, "_summary")
        if summary is not None:
            raw = read_summary_row(LocalSession(catalog.db), summary)
            return catalog.resolve_input(str(raw.get("source_table")), "source")
    return None


def _recipe(db: Database, model: Model, source: Relation | None) -> Recipe:
    """The columns as the network takes them; raises DatatypeMismatch where those of the source are
    something else.
    """
    shapes, found = check_architecture(model.found.architecture).input_shapes, model.found
    if len(shapes) != len(found.independent) or not all(shape and all(shape) for shape in shapes):
        raise FeatureNotSupported(
            f"{MODULE} error: the network of {found.title} takes inputs of shapes "
            f"{', '.join(map(str, shapes))}; expected a fixed one for each column.",
            hint=OTHERWISE,
        )
    sizes = [tuple(int(size or 0) for size in shape) for shape in shapes]
    arrays = (
        PlainArray(name, shape, found.normalizing_const, False)
        for name, shape in zip(found.independent, sizes)
    )
    recipe = Recipe(tuple(arrays))
    if source is None:
        return recipe
    return match_recipe(MODULE, recipe, read_columns(LocalSession(db), source.oid), source.spelling)


def _target(db: Database, model: Model) -> Target:
    """What is predicted; raises FeatureNotSupported for what models by name do not predict."""
    found, units = model.found, check_architecture(model.found.architecture).output_units
    known, floats = found.class_values[0], found.float_targets[0]
    classes = tuple(text for text in known or () if text is not None)
    if len(found.dependent) > 1 or len(units) > 1:
        raise FeatureNotSupported(
            f"{MODULE} error: {found.title} predicts {', '.join(found.dependent)}; expected one "
            "target.",
            hint=OTHERWISE,
        )
    if floats and units != (1,):
        raise FeatureNotSupported(
            f"{MODULE} error: {found.title} predicts {units[0]} numbers of each row; expected one.",
            hint=OTHERWISE,
        )
    if not floats and (len(classes) < 2 or not len(classes) == units[0] == len(known or ())):
        raise FeatureNotSupported(
            f"{MODULE} error: the network of {found.title} has {units[0]} outputs, and the classes "
            f"that are known are {list(known) if known else 'none'}; expected a text for each "
            "output.",
            detail="Of a target that was packed as an array nobody knows the classes; and NULL is "
            "none of a model by name.",
            hint="Pack the column that has the classes, without num_classes, and train on that.",
        )
    task = REGRESSION if floats else CLASSIFICATION
    return Target(task, classes, *_metric(db, model, task))


def _metric(db: Database, model: Model, task: str) -> tuple[str, float | None]:
    """The first metric that it was trained with, where models by name are compared by that too;
    else its loss.
    """
    name, key = (
        ("told_of_single", ()) if model.found.single else ("told_of_key", (model.found.mst_key,))
    )
    told = json.loads(db.value(sql(f"version.{name}", table=model.metrics.quoted), *key))
    keras = (told.get("metrics_type") or [None])[0]
    ours = next(
        (
            name
            for name, theirs in METRICS[task].items()
            if keras in (name, theirs) and theirs != LOSS
        ),
        None,
    )
    return (
        (LOSS, told.get("validation_loss_final"))
        if ours is None
        else (ours, told.get("validation_metrics_final"))
    )
