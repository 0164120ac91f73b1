"""Models by name: what a version of one is, and how it is found.

Its owner may have changed the rows that it is read from, so that whatever relies on one checks it
first.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from cerebro_plpy.configs.params.frameworks import BACKENDS
from cerebro_plpy.configs.params.keras_names import near_matches
from cerebro_plpy.database.platform_protocol import Caller, Row
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.reading import read_recorded
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import DataCorrupted, NullNotAllowed, ObjectNotReady, UndefinedObject
from cerebro_plpy.platform.state_tables import version_table
from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION, TASKS
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.records import asdict, dataclass, fields, replace

OF_GROUP = ("run_id", "mst_key", "margin", "architecture", "compile_params", "backend")
"""What a model of a group has of its own; all else is that of its version."""


@dataclass(frozen=True)
class Known:
    """What of a version who predicts with it knows.

    `classes` are the texts of the classes in the order of the outputs, none of a regression;
    `margin` is how far nine tenths of the rows that were held back lie from their predictions, at
    most. `formats` are the settings under which it was trained, and reads rows.
    """

    owner: str
    model: str
    version: int
    task: str
    recipe: Recipe
    classes: tuple[str, ...]
    margin: float | None
    backend: str
    formats: Mapping[str, str]


@dataclass(frozen=True)
class Version(Known):
    """A trained model under a name, with all that predictions need. `source` is quoted.

    Where it is grouped by a column, it is that of all rows, and groups have others: see
    `of_groups`.
    """

    target: str
    target_type: str
    run_id: int
    mst_key: int
    source: str
    architecture: str
    compile_params: str
    metric: str
    seed: int
    group_by: str | None

    @property
    def state_table(self) -> str:
        """The table that holds the state, quoted."""
        return version_table(self.run_id, self.mst_key)


def deployed(db: Database, module: str, model: str | None) -> Version:
    """The version that predicts under a name, which is exact text; the caller's own model is meant.

    Raises UndefinedObject where there is no such model, ObjectNotReady where none of its versions
    is deployed or its weights are gone, DataCorrupted where what is stored of it cannot be.
    """
    found = find_deployed(db, module, model)
    if found is None:
        known = [row["model"] for row in db.peek(sql("predict.names"))]
        hint = (
            near_matches(str(model), known)
            if known
            else "You have none yet; cerebro.train makes one."
        )
        raise UndefinedObject(f"{module} error: you have no model named {model!r}.", hint=hint)
    return found


def find_deployed(db: Database, module: str, model: str | None) -> Version | None:
    """The same; None where the caller has no model of that name."""
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
    return checked(db, module, row)


def checked(db: Caller, module: str, row: Row) -> Version:
    """A version by a row of cerebro.version_log, which its owner may have changed, with its
    weights.
    """
    version = read_version(row)
    _check_weights(db, module, version)
    return version


def _check_weights(db: Caller, module: str, version: Version) -> None:
    if not db.value(sql("predict.state"), version.state_table, version.owner):
        raise ObjectNotReady(
            f"{module} error: the weights of model {version.model!r} are gone.",
            detail=f"Version {version.version} has them in table {version.state_table}.",
            hint="Train the model again, or deploy another version.",
        )


def of_groups(db: Database, module: str, version: Version) -> dict[str, Version]:
    """The models of groups that a version has, by the texts of their values; none where it is not
    grouped.
    """
    if version.group_by is None:
        return {}
    rows = db.peek(sql("version.groups"), version.owner, version.model, version.version)
    found = {}
    for row in rows:
        check_answers({**asdict(version), **row})
        found[row["group_value"]] = each = replace(
            version, **{name: row[name] for name in OF_GROUP}
        )
        _check_weights(db, module, each)
    return found


def read_version(row: Row) -> Version:
    """What a row of cerebro.version_log says, wherever the weights are."""
    try:
        recipe = Recipe.from_json(json.loads(row["recipe"]))
    except (ValueError, RecursionError) as error:
        raise _damaged(row, "recipe", row["recipe"]) from error
    values = {
        **row,
        **check_answers(row),
        "recipe": recipe,
        "formats": read_recorded(_read_record(row)),
    }
    return Version(**{each.name: values[each.name] for each in fields(Version)})


def _read_record(row: Row) -> object:
    """Return what a row contains of the reading of its source; None if it contains nothing."""
    try:
        return None if row["reading"] is None else json.loads(row["reading"])
    except (ValueError, RecursionError) as error:
        raise _damaged(row, "reading", row["reading"]) from error


def check_answers(row: Row) -> Row:
    """What a version can answer, checked: its classes, its margin and its framework."""
    classes, margin = tuple(row["classes"] or ()), row["margin"]
    texts = all(isinstance(text, str) for text in classes)
    if row["task"] not in TASKS or (
        len(classes) < 2 or not texts if row["task"] == CLASSIFICATION else classes
    ):
        raise _damaged(row, "classes", classes)
    if margin is not None and not 0 <= margin < math.inf:
        raise _damaged(row, "margin", margin)
    if row["backend"] not in BACKENDS:
        raise _damaged(row, "backend", row["backend"])
    return {"classes": classes, "margin": margin, "backend": row["backend"]}


def _damaged(row: Row, what: str, value: object) -> DataCorrupted:
    return DataCorrupted(
        f"version {row['version']} of model {row['model']!r} is damaged: {what} is {value!r:.100}",
        hint="Train the model again.",
    )
