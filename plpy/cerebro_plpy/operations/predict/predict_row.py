"""Predict by the name of a model: one row, which is given as an object of JSON.

The statements, the program and the weights of a model stay with the session from one call to the
next.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from cerebro_plpy.database.effective_role import effective_role
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.errors import CerebroError, InvalidParameter, InvalidText, NullNotAllowed
from cerebro_plpy.operations.predict.model_predictor import (
    ModelOf,
    columns_told,
    inputs,
    models_of_groups,
    predictor,
)
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.records import dataclass
from cerebro_plpy.tables.models import granted_versions
from cerebro_plpy.tables.models.granted_versions import GrantedVersion, ModelName, UsableVersion
from cerebro_plpy.trainer_client.predictor import Predictor

MODULE = "predict_row"
KEPT = "cerebro_record_models"
MOST_KEPT = 8
PLAIN = (
    "text", "boolean", "smallint", "integer", "bigint", "numeric", "real", "double precision",
    "jsonb", "bytea", "uuid",
    "numeric[]", "real[]", "double precision[]", "character varying", "character", "bpchar",
)  # fmt: skip
"""Types whose values are read from JSON alike under all formats."""
Statement = Callable[..., list[Row]]


@dataclass(frozen=True)
class Kept:
    """A model that rows were predicted with in this session; `mark` is another one when the model
    is another one.

    It may have others for groups of rows, see `model_of`, with `tellers` for those that were asked.
    """

    mark: str
    version: UsableVersion
    teller: Predictor
    types: Mapping[str, str]
    encoded: Statement
    told: Statement
    constants: tuple[object, ...]
    model_of: ModelOf
    tellers: dict[str, Predictor]
    formats: Mapping[
        str, str
    ]  # under which a record is read; none if they do not matter for its types

    def group_of(self, record: str) -> str | None:
        """The text of the group of a row, if it is of one."""
        column = self.version.group_by
        value = None if column is None else json.loads(record).get(column)
        text = json.dumps(value) if isinstance(value, bool) else str(value)
        return None if value is None else text


def predict_record(db: Database, gd: dict[str, Any], wanted: ModelName, record: str | None) -> str:
    """The prediction for a row, as JSON."""
    db.platform.check_process(MODULE)
    kept = _kept(gd, wanted) or _keep(db, gd, wanted)
    if record is None:
        raise NullNotAllowed(
            f"{MODULE} error: record is NULL.", hint="Pass a row as JSON, such as to_jsonb(t)."
        )
    row = _encoded(db, kept, wanted, record)
    mark = granted_versions.read_change_mark(db, wanted) if row is None else row["mark"]
    if not mark or mark != kept.mark:
        kept = _keep(db, gd, wanted)
        row = _encoded(db, kept, wanted, record)
    if row is None:
        raise _refused(db, kept, record)
    *columns, keys, _ = row.values()
    _tell_missing(db, kept, keys)
    version, teller = _of_row(db, gd, kept, record)
    try:
        teller.send_block(1, columns)
        answer = teller.receive_block()
    finally:
        teller.end()
    (said,) = kept.told(version.margin, *columns_told(version, answer))
    return str(said["told"])


def _of_row(
    db: Database, gd: dict[str, Any], kept: Kept, record: str
) -> tuple[UsableVersion, Predictor]:
    """The model that predicts a row, and what asks it."""
    group = kept.group_of(record)
    version = None if group is None else kept.model_of(group)
    if group is None or version is None:
        return kept.version, kept.teller
    if group not in kept.tellers:
        kept.tellers[group] = predictor(db, gd, version)
    return version, kept.tellers[group]


def _encoded(db: Database, kept: Kept, wanted: ModelName, record: str) -> Row | None:
    """The columns of the record; None where it cannot be read as the model wants it."""
    with _formats(db, kept):
        rows = db.skip_invalid_values(lambda: kept.encoded(*kept.constants, *wanted, record))
    return rows[0] if rows else None


def _formats(db: Database, kept: Kept) -> AbstractContextManager[None]:
    """Read a record under the formats of the version, as its other readings are."""
    return db.configured(**kept.formats) if kept.formats else nullcontext()


def _kept(gd: dict[str, Any], wanted: ModelName) -> Kept | None:
    """The model as this session has it, which another version may have taken the place of."""
    known: dict[tuple[int, ModelName], Kept] = gd.setdefault(KEPT, {})
    key = effective_role(), wanted
    if key in known:
        known[key] = known.pop(key)
    return known.get(key)


def _keep(db: Database, gd: dict[str, Any], wanted: ModelName) -> Kept:
    """The model as it is now, which stays with the session."""
    mark = granted_versions.read_change_mark(db, wanted)
    kept = _made(db, gd, granted_versions.find(db, MODULE, wanted), mark)
    known: dict[tuple[int, ModelName], Kept] = gd.setdefault(KEPT, {})
    known[effective_role(), wanted] = kept
    while len(known) > MOST_KEPT:
        del known[next(iter(known))]
    return kept


def _made(db: Database, gd: dict[str, Any], version: UsableVersion, mark: str) -> Kept:
    recipe, types = _typed(version.recipe, _source_types(db, version))
    made = [(each.name, each.sent) for each in inputs(version, recipe)]
    text = ", ".join(f"{expression.text} AS {name}" for name, expression in made)
    columns = ", ".join(f"{quote_identifier(name)} {type_}" for name, type_ in types.items())
    constants = tuple(value for _, expression in made for value in expression.values)
    blank = columns_told(version, [b"", b"", b""])
    statement = sql("predict.record", inputs=text, columns=columns, mark=sql("granted.mark"))
    return Kept(
        mark=mark,
        version=version,
        teller=predictor(db, gd, version),
        types=types,
        encoded=db.prepare(statement, *constants, "", "", ""),
        told=db.prepare(sql("predict.told"), 0.0, *(b"" for _ in blank)),
        constants=constants,
        model_of=models_of_groups(db, gd, MODULE, version)[0],
        tellers={},
        formats=version.formats if any(type_ not in PLAIN for type_ in types.values()) else {},
    )


def _source_types(db: Database, version: UsableVersion) -> Mapping[str, str]:
    """The types of the columns of the table that the model was trained on."""
    if isinstance(version, GrantedVersion):
        return version.types
    return {row["name"]: row["type"] for row in db.rows(sql("predict.types"), version.source)}


def _typed(recipe: Recipe, source: Mapping[str, str]) -> tuple[Recipe, dict[str, str]]:
    """The recipe over a row that came as JSON, and the types of its columns there.

    They are those of the table that the model was trained on where only so a value has the text
    that it had there, by which a category is told. Numbers are exact in numeric, whatever came.
    """
    types = {
        feature.column: feature.record_type(source.get(feature.column)) for feature in recipe.inputs
    }
    features = [
        feature.over_record(types[feature.column]) if feature.is_input else feature
        for feature in recipe.features
    ]
    return Recipe(tuple(features)), types


def _tell_missing(db: Database, kept: Kept, keys: Collection[str]) -> None:
    missing = kept.types.keys() - keys
    if missing:
        listed = ", ".join(repr(name) for name in kept.types if name in missing)
        db.notice(f"{MODULE}: record has no {listed}; taken for NULL")


def _refused(db: Database, kept: Kept, record: str) -> CerebroError:
    """The error of a record that cannot be read: it is no object, or a column has a value that
    cannot be cast.
    """
    shape = db.value(sql("predict.kind"), record)
    if shape != "object":
        return InvalidParameter(
            f"{MODULE} error: record is JSON of type {shape}; expected an object with the columns "
            "of a row.",
            hint="Pass a row such as to_jsonb(t).",
        )
    features = {each.column: each for each in kept.version.recipe.inputs}
    for name, type_ in kept.types.items():
        with _formats(db, kept):
            is_refused = (
                db.skip_invalid_values(
                    partial(db.rows, sql("predict.castable", type=type_), record, name)
                )
                is None
            )
        if is_refused:
            value = db.value(sql("predict.value"), record, name)
            return InvalidText(
                f"{MODULE} error: column {name!r} of record is {value:.100}; expected "
                f"{features[name].expected_values}.",
                hint=f"It is read as {type_}. What is not known may be null, or be left out.",
            )
    return InvalidText(f"{MODULE} error: record has a value that cannot be read: {record:.100}")
