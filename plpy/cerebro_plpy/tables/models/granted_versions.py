"""Versions of models that other roles have granted to the caller.

The owner of a model wrote all its records, and is a stranger here, so they are checked. Weights,
network and constants stay where the caller cannot read them: for `fill_trainer`, a function of the
extension's owner passes them to the trainer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple, Union

from cerebro_plpy.database.platform_protocol import Row
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.reading import granted_formats, read_recorded
from cerebro_plpy.database.sessions.spi import Database, Globals
from cerebro_plpy.errors import DataCorrupted, NullNotAllowed, UndefinedObject, quote_text
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.recipe.split_encoding import outline
from cerebro_plpy.records import asdict, dataclass, replace
from cerebro_plpy.tables.models.model_versions import (
    PredictingVersion,
    Version,
    check_outputs,
    find_deployed,
    suggest_models,
)
from cerebro_plpy.trainer_client.argument_checks import optional_text

GUESS = "Did you mean"
"""The beginning of a hint with similar names."""
REQUEST_KEY = "cerebro_granted_version"
GROUP_KEY = "cerebro_granted_group"
"""Keys of GD, through which a call and the function of the extension's owner communicate."""
TEXT_FIELDS = ("task", "backend")
OUTLINE_FIELDS = (
    *TEXT_FIELDS,
    "base",
    "classes",
    "margin",
    "types",
    "recipe",
    "group_by",
    "formats",
)


class VersionKey(NamedTuple):
    """The key of a version."""

    owner: str
    model: str
    version: int


class SealedRequest(NamedTuple):
    """A request to the function of the extension's owner."""

    key: VersionKey
    group: str | None = None  # value of the rows whose model is requested; None for all rows
    is_lookup: bool = False  # find the model of the group only, without filling the trainer


@dataclass(frozen=True)
class GrantedVersion(PredictingVersion):
    """A version of another owner; its recipe has no constants."""

    types: Mapping[str, str]  # column types at training; types of PostgreSQL only
    base: str | None  # base type of the target; of PostgreSQL only
    group_by: str | None
    group: str | None = None  # it is the model of the rows with this value

    @property
    def key(self) -> VersionKey:
        return VersionKey(self.owner, self.model, self.version)


UsableVersion = Union[Version, GrantedVersion]
"""A version that the caller may predict with: an own one, or a granted one."""


class ModelName(NamedTuple):
    """The name of a model: of the caller's own, unless it has an owner."""

    model: str | None
    owner: str | None


def find(db: Database, module: str, name: ModelName) -> UsableVersion:
    """Return the version that predicts under a name.

    A bare name means a model of the caller's own and nothing else: any role may grant a model to
    any other, so a model of another owner answers only if `owner` names that role.

    Raises:
        UndefinedObject: there is no such model, or the caller may not predict with it.
        ObjectNotReady, DataCorrupted: see `model_versions.get_deployed`.
    """
    if name.owner is None or name.owner == db.value(sql("granted.caller")):
        version = find_deployed(db, module, name.model)
        if version is None:
            raise _unknown_model(db, module, name)
        return version
    if name.model is None:
        raise NullNotAllowed(
            f"{module} error: model is NULL.", hint="Name a model; cerebro.model lists them."
        )
    rows = db.peek(sql("granted.models"), name.model, name.owner)
    if not rows:
        raise _unknown_model(db, module, name)
    return read(db, rows[0])


def read_change_mark(db: Database, name: ModelName) -> str:
    """Return a text that differs if another version is deployed, or if its row or weights changed.

    It is '' without a deployed version.
    """
    return str(db.value(sql("granted.mark"), *name))


def _unknown_model(db: Database, module: str, name: ModelName) -> UndefinedObject:
    """Return the error about a name, with the roles that granted such a model to the caller."""
    subject = "you have no model"
    if name.owner is not None:
        subject = f"role {name.owner!r} has no model that you may predict with"
    owners = [row["owner"] for row in db.peek(sql("granted.owners"), name.model)]
    if owners:
        verb = "have"
        if len(owners) == 1:
            verb = "has"
        hint = (
            f"{', '.join(owners)} {verb} granted you one. Name the owner of a model that is not "
            f"your own: owner => {quote_text(owners[0])}."
        )
    else:
        own_rows = db.peek(sql("predict.names"))
        granted_rows = db.peek(sql("granted.names"))
        hint = suggest_models(name.model, [row["model"] for row in (*own_rows, *granted_rows)])
        if name.owner is not None or not hint.startswith(GUESS):
            hint = f"{hint} {_suggest_grant(db, name)}"
    return UndefinedObject(f"{module} error: {subject} named {name.model!r}.", hint=hint)


def _suggest_grant(db: Database, name: ModelName) -> str:
    """Return what the owner of a model calls so that the caller may predict with it."""
    caller = quote_text(db.value(sql("granted.caller")))
    grant = f"SELECT cerebro.grant_predict({quote_text(str(name.model))}, {caller});"
    if name.owner is not None:
        return f"If role {name.owner!r} has one, it lets you predict: {grant}"
    return f"The owner of another role's model lets you predict: {grant} then name that owner."


def make_outline(version: Version, types: Mapping[str, str], base: str | None) -> str:
    """Return the part of a version that other roles may see, as JSON for `read`.

    Args:
        types: types of the columns of the training table. Those of columns that the version does
            not take, such as its target, are left out.
        base: PostgreSQL's base type of the target's type.
    """
    recipe = outline(version.recipe)
    columns = {*(feature.column for feature in recipe.inputs), version.group_by}
    values = {
        **asdict(version),
        "types": {name: type_ for name, type_ in types.items() if name in columns},
        "formats": granted_formats(version.formats),
        "base": base,
        "recipe": recipe.to_json(),
    }
    return json.dumps({name: values[name] for name in OUTLINE_FIELDS})


def read(db: Database, row: Row) -> GrantedVersion:
    """Return the version of a row of cerebro.model_grant.

    Raises:
        DataCorrupted: the owner has written something else into it.
    """
    try:
        values = json.loads(row["outline"])
        recipe = outline(Recipe.from_json(values["recipe"]))
        texts = {name: values[name] for name in TEXT_FIELDS}
        is_valid = all(isinstance(text, str) for text in texts.values())
        if not is_valid or not isinstance(values["classes"], list):
            raise TypeError
        margin = values["margin"]
        if margin is not None:
            margin = float(margin)
        outputs = check_outputs({**row, **values, "margin": margin})
        base = optional_text(values["base"])
        group_by = optional_text(values.get("group_by"))
        formats = granted_formats(read_recorded(values.get("formats")))
        types = {str(name): str(type_) for name, type_ in dict(values["types"]).items()}
        known_types = _keep_known_types(db, types)
    except (ValueError, TypeError, KeyError, RecursionError, DataCorrupted) as error:
        raise DataCorrupted(
            f"what {row['owner']} tells of model {row['model']!r} is damaged",
            hint="Its owner can call cerebro.deploy, or revoke the grant and grant it again.",
        ) from error
    return GrantedVersion(
        owner=row["owner"],
        model=row["model"],
        version=row["version"],
        recipe=recipe,
        types=known_types,
        base=base,
        group_by=group_by,
        formats=formats,
        **{**texts, **outputs},  # outputs have some of the texts, checked
    )


def _keep_known_types(db: Database, types: Mapping[str, str]) -> dict[str, str]:
    """Return the types that PostgreSQL itself has: they will be part of a statement."""
    existing = {row["type"] for row in db.rows(sql("granted.types"), list(types.values()))}
    return {name: type_ for name, type_ in types.items() if type_ in existing}


def fill_trainer(db: Database, gd: Globals, version: GrantedVersion) -> None:
    """Fill the trainer of this session with a version that the caller may predict with."""
    _send_request(db, gd, SealedRequest(version.key, version.group))


def find_group_version(
    db: Database, gd: Globals, version: GrantedVersion, value: str
) -> GrantedVersion | None:
    """Return the model of the rows with this value, if they have one of their own.

    A caller learns of a group only by its value.
    """
    _send_request(db, gd, SealedRequest(version.key, value, is_lookup=True))
    fields: Row | None = gd.pop(GROUP_KEY, None)
    if fields is None:
        return None
    check_outputs({**asdict(version), **fields})
    return replace(version, group=value, **fields)


def _send_request(db: Database, gd: Globals, request: SealedRequest) -> None:
    gd[REQUEST_KEY] = request
    try:
        db.rows(sql("granted.fill"))
    finally:
        gd.pop(REQUEST_KEY, None)


def take_request(gd: Globals) -> SealedRequest | None:
    """Return, once, the request of our own code in this process."""
    request: SealedRequest | None = gd.pop(REQUEST_KEY, None)
    return request


def return_group(gd: Globals, row: Row | None) -> None:
    """Give the fields that the caller may see of a group's model to our code in this process."""
    gd[GROUP_KEY] = row and {name: row[name] for name in ("margin", "backend")}
