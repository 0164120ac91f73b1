"""Versions of models that their owners have granted: what of one is known to who predicts, and how
one is found.

All of it was written by the owner, who is a stranger here, and is checked as such. Weights, network
and constants stay where who predicts cannot read them: `ask` has a function of the extension's
owner pass them to the trainer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, Union

from cerebro_plpy.configs.params.keras_names import near_matches
from cerebro_plpy.database.platform_protocol import Row
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.reading import granted_formats, read_recorded
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import DataCorrupted, NullNotAllowed, UndefinedObject
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.recipe.split_encoding import outline
from cerebro_plpy.records import asdict, dataclass, replace
from cerebro_plpy.tables.models.model_versions import Known, Version, check_answers, find_deployed

ASKED, FOUND = "cerebro_granted_version", "cerebro_granted_group"
TEXTS = ("task", "backend")
FIELDS = (*TEXTS, "base", "classes", "margin", "types", "recipe", "group_by", "formats")


class Key(NamedTuple):
    """Which version is meant."""

    owner: str
    model: str
    version: int


class Wish(NamedTuple):
    """What the extension's owner is asked for: a version, or the model of the rows that have this
    value; nothing but which it is where it is only `sought`."""

    key: Key
    group: str | None = None
    sought: bool = False


@dataclass(frozen=True)
class GrantedVersion(Known):
    """A version of somebody else's; its recipe has no constants.

    `types` are the types of columns where it was trained, `base` is that of the target, all of
    PostgreSQL's own. Where rows are grouped by a column, it may be the model of the `group` of
    those with this value, see `of_group`.
    """

    types: Mapping[str, str]
    base: str | None
    group_by: str | None
    group: str | None = None

    @property
    def key(self) -> Key:
        """Which one it is."""
        return Key(self.owner, self.model, self.version)


Usable = Union[Version, GrantedVersion]
"""A version that the caller may predict with: an own one, or a granted one."""


class Wanted(NamedTuple):
    """Which model a call means: the caller's own, or that of `owner` where one is given."""

    model: str | None
    owner: str | None


def find(db: Database, module: str, wanted: Wanted) -> Usable:
    """Return the version that predicts under a name.

    A bare name means a model of the caller's own and nothing else: any role may grant a model to
    any other, so a model of another owner answers only if `owner` names that role.

    Raises UndefinedObject if there is no such model, or the caller may not predict with it; see
    `versions.deployed` for other errors.
    """
    if _is_own(db, wanted):
        own = find_deployed(db, module, wanted.model)
        if own is None:
            raise _unknown(db, module, wanted)
        return own
    if wanted.model is None:
        raise NullNotAllowed(
            f"{module} error: model is NULL.", hint="Name a model; cerebro.model lists them."
        )
    rows = db.peek(sql("granted.models"), wanted.model, wanted.owner)
    if not rows:
        raise _unknown(db, module, wanted)
    return read(db, rows[0])


def mark(db: Database, wanted: Wanted) -> str:
    """What is another text when another version predicts, or its row or its weights were replaced;
    '' without one.
    """
    return str(db.value(sql("granted.mark"), *wanted))


def _unknown(db: Database, module: str, wanted: Wanted) -> UndefinedObject:
    """Return the error about a name; its hint lists the roles that have granted a model of that
    name to the caller.
    """
    whose = (
        "you have no model"
        if wanted.owner is None
        else f"{wanted.owner} has no model that you may predict with"
    )
    owners = [row["owner"] for row in db.peek(sql("granted.owners"), wanted.model)]
    if owners:
        granters = f"{', '.join(owners)} {'has' if len(owners) == 1 else 'have'} granted you one"
        hint = (
            f"{granters}. Name the owner of a model that is not your own: {module}(…, owner => "
            f"{owners[0]!r})."
        )
    else:
        known = [
            row["model"]
            for name in ("predict.names", "granted.names")
            for row in db.peek(sql(name))
        ]
        hint = (
            near_matches(str(wanted.model), known)
            if known
            else "You have none yet; cerebro.train makes one."
        )
    return UndefinedObject(f"{module} error: {whose} named {wanted.model!r}.", hint=hint)


def told(version: Version, types: Mapping[str, str], base: str | None) -> str:
    """Return, as JSON for `read`, what a role that may predict with a version is told of it: what
    predictions need.

    Args:
        types: the types of the columns of the table that the version was trained on. Those of
            columns that the version does not take, such as its target, are nobody's business.
        base: the type of PostgreSQL's own that the type of the target stands for.
    """
    recipe = outline(version.recipe)
    used = {*(each.column for each in recipe.inputs), version.group_by}
    taken = {name: type_ for name, type_ in types.items() if name in used}
    known = {"types": taken, "formats": granted_formats(version.formats)}
    values = {**asdict(version), **known, "base": base, "recipe": recipe.to_json()}
    return json.dumps({name: values[name] for name in FIELDS})


def _is_own(db: Database, wanted: Wanted) -> bool:
    return wanted.owner is None or wanted.owner == db.value(sql("granted.caller"))


def read(db: Database, row: Row) -> GrantedVersion:
    """A row of cerebro.model_grant; raises DataCorrupted where its owner has written something else
    there.
    """
    try:
        found = json.loads(row["outline"])
        recipe = outline(Recipe.from_json(found["recipe"]))
        if not all(isinstance(found[name], str) for name in TEXTS) or not isinstance(
            found["classes"], list
        ):
            raise TypeError
        margin = None if found["margin"] is None else float(found["margin"])
        answers = check_answers({**row, **found, "margin": margin})
        base, group_by = (
            None if text is None else str(text) for text in (found["base"], found.get("group_by"))
        )
        formats = granted_formats(read_recorded(found.get("formats")))
        types = _known(db, {str(name): str(type_) for name, type_ in dict(found["types"]).items()})
    except (ValueError, TypeError, KeyError, RecursionError, DataCorrupted) as error:
        raise DataCorrupted(
            f"what {row['owner']} tells of model {row['model']!r} is damaged",
            hint="Its owner can call cerebro.deploy, or revoke the grant and grant it again.",
        ) from error
    texts = {name: found[name] for name in TEXTS}
    of_rows = {"types": types, "base": base, "group_by": group_by, "formats": formats}
    version: dict[str, Any] = {**texts, **answers, "recipe": recipe, **of_rows}
    return GrantedVersion(owner=row["owner"], model=row["model"], version=row["version"], **version)


def _known(db: Database, types: Mapping[str, str]) -> dict[str, str]:
    """Those that are types of PostgreSQL itself, as it writes them: they will stand in a
    statement.
    """
    known = {row["type"] for row in db.rows(sql("granted.types"), list(types.values()))}
    return {name: type_ for name, type_ in types.items() if type_ in known}


def ask(db: Database, gd: dict[str, Any], version: GrantedVersion) -> None:
    """Have the trainer of this session filled with the version; that the caller may predict with it
    is known.
    """
    _wish(db, gd, Wish(version.key, version.group))


def of_group(
    db: Database, gd: dict[str, Any], version: GrantedVersion, value: str
) -> GrantedVersion | None:
    """The model of the rows that have this value, if they have one of their own.

    Which values there are for which there is one is told to nobody but who comes with them.
    """
    _wish(db, gd, Wish(version.key, value, sought=True))
    found: Row | None = gd.pop(FOUND, None)
    if found is None:
        return None
    check_answers({**asdict(version), **found})
    return replace(version, group=value, **found)


def _wish(db: Database, gd: dict[str, Any], wish: Wish) -> None:
    gd[ASKED] = wish
    try:
        db.rows(sql("granted.fill"))
    finally:
        gd.pop(ASKED, None)


def asked(gd: dict[str, Any]) -> Wish | None:
    """What our own code has asked for in this process, once."""
    wish: Wish | None = gd.pop(ASKED, None)
    return wish


def answer(gd: dict[str, Any], found: Row | None) -> None:
    """Tell our own code in this process what it may know of the model that it sought."""
    gd[FOUND] = found and {name: found[name] for name in ("margin", "backend")}
