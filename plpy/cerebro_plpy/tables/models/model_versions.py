"""Versions of models, read by the names of the models.

The owner may have changed the rows that a version is read from, so they are checked first.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from itertools import groupby

from cerebro_plpy.configs.params.frameworks import BACKENDS
from cerebro_plpy.configs.params.keras_names import near_matches
from cerebro_plpy.database.platform_protocol import Caller, Reader, Row
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.reading import read_recorded
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import DataCorrupted, NullNotAllowed, ObjectNotReady, UndefinedObject
from cerebro_plpy.platform.state_tables import version_table
from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION, TASKS
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.scoring.calibration import Calibration
from cerebro_plpy.records import asdict, dataclass, fields, replace
from cerebro_plpy.tables.models import column_types
from cerebro_plpy.tables.models.column_types import ColumnTypes

GROUP_COLUMNS = ("run_id", "mst_key", "margin", "backend")
"""Fields in which the model of a group differs from its version."""


MEMBER_COLUMNS = (
    *("group_value", "run_id", "mst_key", "template", "params", "share", "architecture"),
    *("compile_params", "backend", "refit_run_id"),
)
"""Columns of the query version.members."""


@dataclass(frozen=True)
class Member:
    """A network, or boosted trees, whose share of the prediction a version adds up."""

    run_id: int
    mst_key: int
    template: str
    params: str  # JSON: fields of the template
    share: float
    architecture: str
    compile_params: str
    backend: str  # the framework that has trained it
    refit_run_id: int | None = None  # the run that has trained it again, on all rows

    @property
    def state_table(self) -> str:
        """The quoted name of the table with the state that predicts."""
        return version_table(self.refit_run_id or self.run_id, self.mst_key)


Members = tuple[Member, ...]


@dataclass(frozen=True)
class PredictingVersion:
    """The fields of a version that every role may see that predicts with it."""

    owner: str
    model: str
    version: int
    task: str
    recipe: Recipe
    classes: tuple[str, ...]  # texts in the order of the outputs; empty for regression
    margin: float | None  # nine tenths of the hold-out errors are at most this large
    backend: str
    formats: Mapping[str, str]  # settings under which rows were read for training


@dataclass(frozen=True)
class Version(PredictingVersion):
    """A trained model under a name, with all that predictions need.

    If it has a column `group_by`, it is the model of all rows; `read_group_versions` returns the
    models of groups.
    """

    target: str
    target_type: str
    run_id: int
    mst_key: int  # of the first member
    source: str  # quoted
    metric: str
    seed: int
    group_by: str | None
    column_types: ColumnTypes | None  # at training; None for versions of older releases
    calibration: Calibration
    members: Members  # at least one
    holdout_calibration: Calibration | None = None  # that of the rows held back, if it is another

    @property
    def before_refit(self) -> Version:
        """The version with the states that have never seen the hold-out rows."""
        members = tuple(replace(member, refit_run_id=None) for member in self.members)
        calibration = self.calibration
        if self.holdout_calibration is not None:
            calibration = self.holdout_calibration
        return replace(self, members=members, calibration=calibration)


def get_deployed(db: Database, module: str, model: str | None) -> Version:
    """Return the deployed version of the caller's own model of that exact name.

    Raises:
        UndefinedObject: the caller has no such model.
        ObjectNotReady: no version is deployed, or its weights are gone.
        DataCorrupted: the stored version is invalid.
    """
    version = find_deployed(db, module, model)
    if version is not None:
        return version
    names = [row["model"] for row in db.peek(sql("predict.names"))]
    raise UndefinedObject(
        f"{module} error: you have no model named {model!r}.", hint=suggest_models(model, names)
    )


def suggest_models(model: str | None, names: list[str]) -> str:
    """Return a hint with the names that are similar to a model's."""
    if not names:
        return "You have none yet; cerebro.train makes one."
    return near_matches(str(model), names)


def find_deployed(db: Database, module: str, model: str | None) -> Version | None:
    """Return the deployed version like `get_deployed`; None if the caller has no such model."""
    if model is None:
        raise NullNotAllowed(
            f"{module} error: model is NULL.", hint="Name a model; cerebro.model lists them."
        )
    rows = db.peek(sql("predict.deployed"), model)
    if not rows:
        return None
    (row,) = rows
    if row["version"] is None:
        raise ObjectNotReady(
            f"{module} error: no version of model {model!r} is deployed.",
            hint="Train one, or deploy one by cerebro.deploy; cerebro.model_version lists them.",
        )
    return load_version(db, module, row)


def load_version(db: Caller, module: str, row: Row) -> Version:
    """Return the version of a row of cerebro.version_log, after checking that it has weights."""
    key = (row["owner"], row["model"], row["version"])
    version = read_version(row, parse_members(db.peek(sql("version.members"), *key, "")))
    _check_weights(db, module, version)
    return version


def _check_weights(db: Caller, module: str, version: Version) -> None:
    for member in version.members:
        if not db.value(sql("predict.state"), member.state_table, version.owner):
            raise ObjectNotReady(
                f"{module} error: the weights of model {version.model!r} are gone.",
                detail=f"Version {version.version} has them in table {member.state_table}.",
                hint="Train the model again, or deploy another version.",
            )


def parse_members(rows: Iterable[Row]) -> Members:
    """Return the members in rows of the query version.members.

    Raises:
        DataCorrupted: the share of a member is not a positive number.
    """
    members = []
    for row in rows:
        if not 0 < row["share"] < math.inf:
            raise DataCorrupted(
                f"a member of a model is damaged: share is {row['share']!r}",
                hint="Train the model again.",
            )
        members.append(Member(**{field.name: row[field.name] for field in fields(Member)}))
    return tuple(members)


def add_members(db: Caller, key: tuple[str, int, str], members: Members) -> None:
    """Add members that no run of this database has trained.

    Args:
        key: the model, the number of its version, and the group, '' for all rows.
    """
    for position, member in enumerate(members, 1):
        db.rows(
            sql("version.add_untrained_member"),
            *(*key, position, member.run_id, member.mst_key, member.template, member.params),
            *(member.share, member.architecture, member.compile_params, member.backend),
            member.state_table,
        )


def parse_group_members(rows: Iterable[Row]) -> dict[str, Members]:
    """Return the members of several models of a version by the group, '' for all rows."""
    return {
        group: parse_members(group_rows)
        for group, group_rows in groupby(rows, key=lambda row: row["group_value"])
    }


def read_group_versions(db: Database, module: str, version: Version) -> dict[str, Version]:
    """Return the models of a version's groups, by the text of the group's value."""
    if version.group_by is None:
        return {}
    key = (version.owner, version.model, version.version)
    rows = db.peek(sql("version.groups"), *key)
    members = parse_group_members(db.peek(sql("version.members"), *key, None))
    groups = {}
    for row in rows:
        check_outputs({**asdict(version), **row})
        group = replace(
            version,
            **{name: row[name] for name in GROUP_COLUMNS},
            calibration=read_calibration({**asdict(version), **row}),
            members=members.get(row["group_value"], ()),
        )
        _check_members(group)
        _check_weights(db, module, group)
        groups[row["group_value"]] = group
    return groups


def find_column_types(reader: Reader, version: Version) -> ColumnTypes:
    """Return the types that the columns of a version had at training.

    For a version of an older release they are those that its source has now.
    """
    types = version.column_types
    if types is None:
        return column_types.read_source_types(reader, version.source, version.target_type)
    return types._replace(columns=column_types.keep_existing_types(reader, types.columns))


def find_target_base(reader: Reader, version: Version) -> str | None:
    """Return the base type that the target of a version had at training; None if unknown."""
    if version.column_types is not None:
        return version.column_types.target_base
    return column_types.read_base_type(reader, version.target_type)


def read_version(row: Row, members: Members) -> Version:
    """Return the version of a row of cerebro.version_log, whether its weights exist or not."""
    try:
        recipe = Recipe.from_json(json.loads(row["recipe"]))
    except (ValueError, RecursionError) as error:
        raise _damaged(row, "recipe", row["recipe"]) from error
    record = _read_record(row)
    values = {
        **row,
        **check_outputs(row),
        "recipe": recipe,
        "formats": read_recorded(record),
        "column_types": column_types.from_record(record),
        "calibration": read_calibration(row),
        "holdout_calibration": _read_holdout_calibration(row),
        "members": members,
    }
    version = Version(**{field.name: values[field.name] for field in fields(Version)})
    _check_members(version)
    return version


def _check_members(version: Version) -> None:
    if not version.members:
        raise DataCorrupted(
            f"version {version.version} of model {version.model!r} is damaged: it has no member",
            hint="Train the model again.",
        )


def _read_record(row: Row) -> object:
    """Return the record of how the source was read; None if there is none."""
    if row["reading"] is None:
        return None
    try:
        return json.loads(row["reading"])
    except (ValueError, RecursionError) as error:
        raise _damaged(row, "reading", row["reading"]) from error


def read_calibration(row: Row) -> Calibration:
    """Return the calibration of a row of cerebro.version_log or cerebro.group_log."""
    try:
        return Calibration.from_json(row["calibration"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise _damaged(row, "calibration", row["calibration"]) from error


def _read_holdout_calibration(row: Row) -> Calibration | None:
    """Return the calibration by the rows that were held back; None if a version has no other."""
    text = row.get("holdout_calibration")
    if text is None:
        return None
    return read_calibration({**row, "calibration": text})


def check_outputs(row: Row) -> Row:
    """Return the checked classes, margin and framework of a version."""
    classes = tuple(row["classes"] or ())
    margin = row["margin"]
    if row["task"] not in TASKS or not _are_valid_classes(row["task"], classes):
        raise _damaged(row, "classes", classes)
    if margin is not None and not 0 <= margin < math.inf:
        raise _damaged(row, "margin", margin)
    if row["backend"] not in BACKENDS:
        raise _damaged(row, "backend", row["backend"])
    return {"classes": classes, "margin": margin, "backend": row["backend"]}


def _are_valid_classes(task: str, classes: tuple[object, ...]) -> bool:
    if task != CLASSIFICATION:
        return not classes
    return len(classes) >= 2 and all(isinstance(text, str) for text in classes)


def _damaged(row: Row, field: str, value: object) -> DataCorrupted:
    return DataCorrupted(
        f"version {row['version']} of model {row['model']!r} is damaged: {field} is {value!r:.100}",
        hint="Train the model again.",
    )
