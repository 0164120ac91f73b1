"""`cerebro.predict_row`: predict one row, passed as a JSON object, by the name of a model.

The session keeps the prepared statements, the program and the weights of a model for later calls.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from cerebro_plpy.database.effective_role import effective_role
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.reading import PINNED, SettingValues
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sessions.spi import Database, Globals, Row
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.errors import CerebroError, InvalidParameter, InvalidText, NullNotAllowed
from cerebro_plpy.operations.predict.interval_level import check_level, find_margin
from cerebro_plpy.operations.predict.model_predictor import (
    GROUP_COLUMN,
    UNKNOWN_COLUMN,
    FindGroupVersion,
    find_group_versions,
    find_unknown,
    list_inputs,
    make_row_predictor,
    report_unknown,
    select_expressions,
    split_answer,
)
from cerebro_plpy.preprocessing.kinds.category import family_of_record, record_type
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.recipe.unknown_values import UnknownValues
from cerebro_plpy.preprocessing.rows.groups import group_text
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.records import dataclass, replace
from cerebro_plpy.tables.models import granted_versions, model_versions
from cerebro_plpy.tables.models.granted_versions import GrantedVersion, ModelName, UsableVersion
from cerebro_plpy.trainer_client.predictor import Predictor

MODULE = "predict_row"
CACHE_KEY = "cerebro_record_models"
MAX_MODELS = 8
FORMAT_INDEPENDENT_TYPES = {
    "text",
    "boolean",
    "smallint",
    "integer",
    "bigint",
    "numeric",
    "real",
    "double precision",
    "jsonb",
    "bytea",
    "uuid",
    "numeric[]",
    "real[]",
    "double precision[]",
    "character varying",
    "character",
    "bpchar",
}
"""Types whose values are read from JSON in the same way under all formats."""
OTHER_COLUMNS = (GROUP_COLUMN, UNKNOWN_COLUMN, "keys", "mark")
"""Results of the statement that reads a record that are not sent to the trainer."""
Statement = Callable[..., list[Row]]


@dataclass(frozen=True)
class CachedModel:
    """A model with which this session has predicted rows."""

    change_mark: str  # differs after the model was changed
    version: UsableVersion
    predictor: Predictor
    types: Mapping[str, str]  # column types of a record
    encode: Statement  # reads the inputs of the network from a record
    format_answer: Statement
    constants: tuple[object, ...]  # first values of `encode`
    find_group_version: FindGroupVersion
    group_predictors: dict[str, Predictor]  # of the groups that were predicted
    formats: SettingValues  # under which a record is read; empty if its types ignore them
    unknown: UnknownValues  # of the columns of a record


def predict_record(
    db: Database, gd: Globals, model: ModelName, record: str | None, level: float | None
) -> str:
    """Return the prediction for a row, as JSON.

    Args:
        level: see `check_level`.
    """
    db.platform.check_process(MODULE)
    cached = _find_cached_model(gd, model) or _cache_model(db, gd, model)
    if record is None:
        raise NullNotAllowed(
            f"{MODULE} error: record is NULL.", hint="Pass a row as JSON, such as to_jsonb(t)."
        )
    row = _encode(db, cached, model, record)
    mark = granted_versions.read_change_mark(db, model) if row is None else row["mark"]
    if not mark or mark != cached.change_mark:
        cached = _cache_model(db, gd, model)
        row = _encode(db, cached, model, record)
    if row is None:
        raise _make_record_error(db, cached, record)
    level = check_level(MODULE, cached.version, level)
    columns = [value for name, value in row.items() if name not in OTHER_COLUMNS]
    _report_missing_columns(db, cached, row["keys"])
    unknown = cached.unknown.without_counts()
    unknown.add([row[UNKNOWN_COLUMN]])
    report_unknown(db, cached.version, unknown)
    version, predictor = _choose_version(db, gd, cached, row[GROUP_COLUMN])
    try:
        predictor.send_block(1, columns)
        answer = predictor.receive_block()
    finally:
        predictor.end()
    margin = find_margin(version, level)
    (formatted,) = cached.format_answer(margin, *split_answer(version, answer))
    return str(formatted["told"])


def predict_blank_row(db: Database, gd: Globals, version: UsableVersion) -> None:
    """Predict a row without content, which shows that a version can predict."""
    loaded = _load_model(db, gd, version, "")
    name = ModelName(version.model, None)
    blanks = {feature.column: feature.blank_value for feature in version.recipe.inputs}
    record = json.dumps(blanks)
    row = _encode(db, loaded, name, record)
    if row is None:
        raise _make_record_error(db, loaded, record)
    columns = [row[item.name] for item in list_inputs(version, version.recipe)]
    try:
        loaded.predictor.send_block(1, columns)
        loaded.predictor.receive_block()
    finally:
        loaded.predictor.end()


def _choose_version(
    db: Database, gd: Globals, cached: CachedModel, group: str | None
) -> tuple[UsableVersion, Predictor]:
    """Return the version that predicts a row, and its predictor.

    Args:
        group: the text of the row's group; None if it has none.
    """
    if group is None:
        return cached.version, cached.predictor
    version = cached.find_group_version(group)
    if version is None:
        db.notice(
            f"{MODULE}: no model of its own for {cached.version.group_by} {group!r}: that of all "
            "rows predicts it"
        )
        return cached.version, cached.predictor
    if group not in cached.group_predictors:
        cached.group_predictors[group] = make_row_predictor(db, gd, version)
    return version, cached.group_predictors[group]


def _encode(db: Database, cached: CachedModel, model: ModelName, record: str) -> Row | None:
    """Return the inputs of the network; None if the record is invalid for the model."""
    with _set_formats(db, cached):
        rows = db.skip_invalid_values(lambda: cached.encode(*cached.constants, *model, record))
    return next(iter(rows or ()), None)


def _set_formats(db: Database, cached: CachedModel) -> AbstractContextManager[None]:
    """Set the formats of the version, so that a record is read like the rows of a table."""
    if not cached.formats:
        return nullcontext()
    return db.configured(**cached.formats)


def _get_cache(gd: Globals) -> dict[tuple[int, ModelName], CachedModel]:
    """Return the session's models, by role and name."""
    cache: dict[Any, CachedModel] = gd.setdefault(CACHE_KEY, {})
    return cache


def _find_cached_model(gd: Globals, model: ModelName) -> CachedModel | None:
    """Return the model from the session's cache; it may have another version by now."""
    cache = _get_cache(gd)
    key = (effective_role(), model)
    if key in cache:
        cache[key] = cache.pop(key)  # the least recently used model comes first
    return cache.get(key)


def _cache_model(db: Database, gd: Globals, model: ModelName) -> CachedModel:
    """Load the model into the session's cache."""
    mark = granted_versions.read_change_mark(db, model)
    loaded = _load_model(db, gd, granted_versions.find(db, MODULE, model), mark)
    cache = _get_cache(gd)
    cache[effective_role(), model] = loaded
    while len(cache) > MAX_MODELS:
        del cache[next(iter(cache))]
    return loaded


def _load_model(db: Database, gd: Globals, version: UsableVersion, mark: str) -> CachedModel:
    source_types = _read_source_types(db, version)
    recipe, types = _fit_recipe_to_record(version.recipe, source_types)
    group = _make_group_text(version, types, source_types)
    unknown = find_unknown(version, recipe, None)
    expressions = {item.name: item.sent for item in list_inputs(version, recipe)}
    expressions |= {GROUP_COLUMN: group, UNKNOWN_COLUMN: unknown.selected}
    inputs = select_expressions(expressions)
    columns = ", ".join(f"{quote_identifier(name)} {type_}" for name, type_ in types.items())
    constants = inputs.values
    statement = sql("predict.record", inputs=inputs.text, columns=columns, mark=sql("granted.mark"))
    blank_answer = [b"" for _ in split_answer(version, [b"", b"", b""])]
    formats: SettingValues = {}
    has_settings = any(feature.has_settings for feature in recipe.inputs)
    if has_settings or not FORMAT_INDEPENDENT_TYPES.issuperset(types.values()):
        formats = {**PINNED, **version.formats}
    return CachedModel(
        change_mark=mark,
        version=version,
        predictor=make_row_predictor(db, gd, version),
        types=types,
        encode=db.prepare(statement, *constants, "", "", ""),
        format_answer=db.prepare(sql("predict.told"), 0.0, *blank_answer),
        constants=constants,
        find_group_version=find_group_versions(db, gd, MODULE, version)[0],
        group_predictors={},
        unknown=unknown,
        formats=formats,
    )


def _read_source_types(db: Database, version: UsableVersion) -> Mapping[str, str]:
    """Return the types that the columns had at training."""
    if isinstance(version, GrantedVersion):
        return version.types
    return model_versions.find_column_types(LocalSession(db), version).columns


def _fit_recipe_to_record(
    recipe: Recipe, source_types: Mapping[str, str]
) -> tuple[Recipe, dict[str, str]]:
    """Return the recipe over a JSON record, and the types of the record's columns.

    A column has the type of the training table only if its values need it to have the same text,
    which identifies a category. Numbers are read as numeric, which is exact for all of them.
    """
    types = {
        feature.column: feature.record_type(source_types.get(feature.column))
        for feature in recipe.inputs
    }
    features = []
    for feature in recipe.features:
        if feature.is_input:
            feature = feature.over_record(types[feature.column])
        features.append(feature)
    return replace(recipe, features=tuple(features)), types


def _make_group_text(
    version: UsableVersion, types: dict[str, str], source_types: Mapping[str, str]
) -> Expression:
    """Return the text of the group of a record, whose columns get that of groups.

    Args:
        types: the types of the record's columns.
    """
    column = version.group_by
    if column is None:
        return Expression("NULL::text")
    form = version.recipe.group
    types.setdefault(column, record_type(form, source_types.get(column)))
    return group_text(column, family_of_record(types[column]), form)


def _report_missing_columns(db: Database, cached: CachedModel, keys: Collection[str]) -> None:
    missing = [repr(name) for name in cached.types if name not in keys]
    if missing:
        db.notice(f"{MODULE}: record has no {', '.join(missing)}: taken for NULL")


def _make_record_error(db: Database, cached: CachedModel, record: str) -> CerebroError:
    """Return the error of a record that is not an object or has a value of the wrong type."""
    json_type = db.value(sql("predict.kind"), record)
    if json_type != "object":
        return InvalidParameter(
            f"{MODULE} error: record is JSON of type {json_type}; expected an object with the "
            "columns of a row.",
            hint="Pass a row such as to_jsonb(t).",
        )
    features = {feature.column: feature for feature in cached.version.recipe.inputs}
    for name, type_ in cached.types.items():
        cast = partial(db.rows, sql("predict.castable", type=type_), record, name)
        with _set_formats(db, cached):
            rows = db.skip_invalid_values(cast)
        if rows is None:
            value = db.value(sql("predict.value"), record, name)
            expected = f"a value of type {type_}"
            if name in features:
                expected = features[name].expected_values
            return InvalidText(
                f"{MODULE} error: column {name!r} of record is {value:.100}; expected {expected}.",
                hint=f"It is read as {type_}. An unknown value may be null or left out.",
            )
    return InvalidText(f"{MODULE} error: record has a value that cannot be read: {record:.100}")
