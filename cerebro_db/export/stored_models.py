"""A model as the database has it, read by its owner's own rights: architecture, weights, and what
it takes and says.

Models by name and those of model tables come out alike. What a role may not read, the server
refuses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from cerebro_db import errors, records
from cerebro_db.driver import translate_errors
from cerebro_db.export import states

FORMAT = "cerebro_db.model/1"
DESCRIBED = (
    "model",
    "version",
    "run_id",
    "mst_key",
    "template",
    "task",
    "target",
    "target_type",
    "classes",
    "margin",
)
KEYED = re.compile(r"(?P<table>.+):(?P<key>[0-9]{1,9})")
"""A model of a table with several is TABLE:MST_KEY."""
WEIGHT_BYTES = 4
VERSION = sa.table(
    "version_log",
    *map(sa.column, (*DESCRIBED, "owner", "group_by", "recipe", "architecture")),
    schema="cerebro",
)
MODEL = sa.table(
    "model_log", *map(sa.column, ("owner", "model", "deployed", "dropped")), schema="cerebro"
)
GROUP = sa.table(
    "group_log",
    *map(
        sa.column,
        ("owner", "model", "version", "group_value", "run_id", "mst_key", "margin", "architecture"),
    ),
    schema="cerebro",
)


@dataclass(frozen=True)
class Wanted:
    """Which model is meant: a model by name, with its version and the group whose rows it is for,
    or `table:mst_key`.

    Without a version it is the one that predicts; without a group the model of all rows.
    """

    model: str
    version: int | None = None
    group: str | None = None


@dataclass(frozen=True)
class StoredModel:
    """A model: its architecture as JSON text, its weights, and a description for who uses it
    elsewhere.

    `weights` are in the order of Keras' get_weights(), or all their numbers one behind another.
    """

    architecture: str
    description: Mapping[str, Any]
    weights: Sequence[NDArray[Any]] = field(repr=False)
    flat: bool = False


def read_model(engine: sa.Engine, wanted: Wanted) -> StoredModel:
    """The model that is wanted, in one snapshot; UndefinedObject where there is none."""
    with (
        translate_errors(),
        engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection,
    ):
        found = _version(connection, wanted)
        if found is not None:
            return _named(connection, wanted, found)
        if wanted.version is None and wanted.group is None:
            table = KEYED.fullmatch(wanted.model)
            name, key = (table["table"], int(table["key"])) if table else (wanted.model, None)
            if (relation := _relation(connection, name)) is not None:
                return _of_table(connection, relation, key)
        raise _unknown(connection, wanted)


def _version(connection: sa.Connection, wanted: Wanted) -> sa.RowMapping | None:
    chosen = MODEL.c.deployed if wanted.version is None else sa.literal(wanted.version)
    query = (
        sa.select(VERSION)
        .join_from(
            MODEL, VERSION, (VERSION.c.owner == MODEL.c.owner) & (VERSION.c.model == MODEL.c.model)
        )
        .where(MODEL.c.owner == sa.func.current_user(), MODEL.c.model == wanted.model)
        .where(~MODEL.c.dropped, VERSION.c.version == chosen)
    )
    return connection.execute(query).mappings().first()


def _named(connection: sa.Connection, wanted: Wanted, version: sa.RowMapping) -> StoredModel:
    row = {**version, **({} if wanted.group is None else _of_group(connection, wanted, version))}
    chunk = sa.column("chunk", sa.LargeBinary())
    table = sa.table(
        f"r{row['run_id']}_m{row['mst_key']}", sa.column("part"), chunk, schema="cerebro_state"
    )
    found = connection.execute(sa.select(table.c.chunk).order_by(table.c.part)).scalars()
    described = {name: row[name] for name in DESCRIBED}
    description = {"format": FORMAT, **described, "group": wanted.group, **row["recipe"]}
    return StoredModel(
        _text(row["architecture"]), description, states.weights(b"".join(map(bytes, found)))
    )


def _of_group(
    connection: sa.Connection, wanted: Wanted, version: sa.RowMapping
) -> Mapping[str, Any]:
    query = sa.select(GROUP.c.run_id, GROUP.c.mst_key, GROUP.c.margin, GROUP.c.architecture).where(
        *(GROUP.c[name] == version[name] for name in ("owner", "model", "version")),
        GROUP.c.group_value == wanted.group,
    )
    found = connection.execute(query).mappings().first()
    if found is None:
        raise errors.UndefinedObject(
            f"version {version['version']} of model {wanted.model!r} has no model of group "
            f"{wanted.group!r}",
            hint="SELECT group_value FROM cerebro.model_group lists groups; rows of others have "
            "the model of all rows.",
        )
    return dict(found)


def _relation(connection: sa.Connection, name: str) -> tuple[str, str] | None:
    """Schema and name of a table that is named as in SQL."""
    relation, schema = records.CLASS, records.NAMESPACE
    try:
        query = (
            sa.select(schema.c.nspname, relation.c.relname)
            .join_from(relation, schema, schema.c.oid == relation.c.relnamespace)
            .where(relation.c.oid == sa.func.to_regclass(name))
        )
        found = connection.execute(query).first()
    except sa.exc.DBAPIError:
        return None  # such as a name with too many dots, which is no table's
    return None if found is None else (found.nspname, found.relname)


def _of_table(
    connection: sa.Connection, relation: tuple[str, str], mst_key: int | None
) -> StoredModel:
    """A model of an output table of a fit function, as its summary describes it."""
    schema, name = relation
    stored = (
        ("model_arch", "model_weights")
        if mst_key is None
        else ("model_arch", "model_weights", "mst_key")
    )
    table = sa.table(name, *map(sa.column, stored), schema=schema)
    query = sa.select(sa.cast(table.c.model_arch, sa.Text), table.c.model_weights)
    rows = connection.execute(
        query if mst_key is None else query.where(table.c.mst_key == mst_key)
    ).all()
    if len(rows) != 1:
        raise errors.UndefinedObject(
            f"table {name} has {len(rows)} models"
            + ("" if mst_key is None else f" with mst_key {mst_key}"),
            hint=f"Name one of them, as {name}:1 does; SELECT mst_key FROM {name}_info lists them.",
        )
    architecture, weights = rows[0]
    if not weights:
        raise errors.ObjectNotReady(
            f"the model of table {name} has no weights there: they are too large for a field, or "
            "it failed in training",
            hint="cerebro.register gives it a name, by which it can be exported, where it has a "
            "state.",
        )
    if architecture is None or len(weights) % WEIGHT_BYTES:
        raise errors.DataCorrupted(
            f"the model of table {name} has {len(weights)} bytes of weights"
            f" and {'no' if architecture is None else 'an'} architecture",
            hint="It is no table that a fit function has written; train the model again.",
        )
    summary = sa.select(sa.text("*")).select_from(sa.table(f"{name}_summary", schema=schema))
    described = connection.execute(summary).mappings().all()
    if len(described) != 1:
        raise errors.DataCorrupted(
            f"table {name}_summary has {len(described)} rows",
            hint="A fit function writes one; train the model again.",
        )
    told = dict(described[0])
    names = ("independent_varname", "dependent_varname", "normalizing_const", "dependent_vartype")
    classes = {key: value for key, value in told.items() if key.endswith("class_values")}
    description = {
        "format": FORMAT,
        "table": name,
        "mst_key": mst_key,
        **{key: told.get(key) for key in names},
        **classes,
    }
    return StoredModel(architecture, description, [np.frombuffer(bytes(weights), "<f4")], flat=True)


def _text(architecture: object) -> str:
    """Drivers read JSON; what is stored is text that Keras reads."""
    return architecture if isinstance(architecture, str) else states.compact(architecture)


def _unknown(connection: sa.Connection, wanted: Wanted) -> errors.CerebroError:
    grant = sa.table("model_grant", sa.column("model"), sa.column("owner"), schema="cerebro")
    owner = connection.execute(
        sa.select(grant.c.owner).where(grant.c.model == wanted.model)
    ).scalar()
    if owner is not None:
        return errors.InsufficientPrivilege(
            f"model {wanted.model!r} belongs to {owner}, who has granted predictions, not what it "
            "is made of",
            hint="Its owner can export it.",
        )
    version = "" if wanted.version is None else f", version {wanted.version}"
    return errors.UndefinedObject(
        f"you have no model {wanted.model!r}{version}, and no table has that name",
        hint="SELECT model, version FROM cerebro.model_version lists models by name; one of a "
        "table is TABLE:MST_KEY.",
    )
