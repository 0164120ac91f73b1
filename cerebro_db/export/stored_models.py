"""Read a model from the database with the caller's own privileges.

A model by name and a model of a model table have the same form. The server refuses to read what
the caller's role may not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from cerebro_db.driver import translate_errors
from cerebro_db.errors import (
    CerebroError,
    DataCorrupted,
    InsufficientPrivilege,
    ObjectNotReady,
    UndefinedObject,
)
from cerebro_db.export import states
from cerebro_db.export.joined_networks import Member, join_networks
from cerebro_db.export.temperature import describe_calibration
from cerebro_db.export.trees.model.spec import CLASS_NAME
from cerebro_db.nouns import count_nouns
from cerebro_db.records import declare_table, select_relation

FORMAT = "cerebro_db.model/1"
VERSION_COLUMNS = "model version run_id mst_key template task target target_type classes margin"
"""Columns of a version that are part of its description."""
SUMMARY_COLUMNS = (
    "independent_varname",
    "dependent_varname",
    "normalizing_const",
    "dependent_vartype",
)
"""Columns of a summary table that are part of a model's description."""
TABLE_MODEL = re.compile(r"(?P<table>.+):(?P<key>[0-9]{1,9})")
"""TABLE:MST_KEY, a model of a model table."""
WEIGHT_BYTES = 4


VERSION_FIELDS = f"{VERSION_COLUMNS} owner group_by recipe reading calibration"
VERSION = declare_table("version_log", VERSION_FIELDS)
MODEL = declare_table("model_log", "owner model deployed dropped")
GROUP = declare_table(
    "group_log", "owner model version group_value run_id mst_key margin calibration"
)
MEMBER = declare_table(
    "model_member",
    "owner model version group_value position share run_id mst_key architecture refit_run_id",
)
GROUP_COLUMNS = ("run_id", "mst_key", "margin", "calibration")
"""Columns of a version in which the model of a group differs."""
GRANT = declare_table("model_grant", "model owner")


@dataclass(frozen=True)
class ModelReference:
    """A reference to a model by name, or to a model of a model table."""

    model: str  # the name of a model or of a table, or TABLE:MST_KEY
    version: int | None = None  # the deployed one if None
    group: str | None = None  # the value of a group of rows; the model of all rows if None


@dataclass(frozen=True)
class StoredTrees:
    """A member of a version that consists of boosted trees."""

    architecture: str  # JSON text
    weights: Sequence[NDArray[Any]] = field(repr=False)  # the arrays of its state
    share: float = 1.0  # of the prediction


@dataclass(frozen=True)
class StoredModel:
    """A model as it is stored in the database: a network, boosted trees, or both."""

    architecture: str  # JSON text of the network; empty if there is none
    description: Mapping[str, Any]  # for users of the exported model
    weights: Sequence[NDArray[Any]] = field(repr=False)  # in the order of Keras' get_weights()
    is_flat: bool = False  # `weights` is a single array with the numbers of all weights
    trees: Sequence[StoredTrees] = ()  # members that are added to the output of the network


def read_model(engine: sa.Engine, reference: ModelReference) -> StoredModel:
    """Return a model, read in one snapshot.

    Raises:
        UndefinedObject: there is no such model.
        InsufficientPrivilege: the caller may only predict with the model.
        ObjectNotReady: the weights are not stored.
        DataCorrupted: the model table was not written by a fit function.
    """
    with (
        translate_errors(),
        engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection,
    ):
        version = _find_version(connection, reference)
        if version is not None:
            return _read_version(connection, reference, version)
        if reference.version is None and reference.group is None:
            table_name = reference.model
            mst_key = None
            if match := TABLE_MODEL.fullmatch(reference.model):
                table_name = match["table"]
                mst_key = int(match["key"])
            relation = _find_relation(connection, table_name)
            if relation is not None:
                return _read_table_model(connection, relation, mst_key)
        raise _undefined_model(connection, reference)


def _find_version(connection: sa.Connection, reference: ModelReference) -> sa.RowMapping | None:
    is_same_model = (VERSION.c.owner == MODEL.c.owner) & (VERSION.c.model == MODEL.c.model)
    number = sa.func.coalesce(reference.version, MODEL.c.deployed)
    query = (
        sa.select(VERSION)
        .join_from(MODEL, VERSION, is_same_model)
        .where(MODEL.c.owner == sa.func.current_user(), MODEL.c.model == reference.model)
        .where(~MODEL.c.dropped, VERSION.c.version == number)
    )
    return connection.execute(query).mappings().first()


def _read_version(
    connection: sa.Connection, reference: ModelReference, version: sa.RowMapping
) -> StoredModel:
    """Return a version of a model by name, or that of one of its groups."""
    row = dict(version)
    if reference.group is not None:
        row.update(_find_group(connection, reference, version))
    networks: list[Member] = []
    weights: list[NDArray[Any]] = []
    trees: list[StoredTrees] = []
    for member in _find_members(connection, reference, version):
        architecture = _format_architecture(member)
        arrays = _read_weights(connection, member)
        if is_trees(architecture):
            trees.append(StoredTrees(architecture, arrays, member["share"]))
        else:
            networks.append(Member(architecture, member["share"]))
            weights += arrays
    architecture = _join_architectures(networks, len(row["classes"]) or 1)
    description = {
        "format": FORMAT,
        **{name: row[name] for name in VERSION_COLUMNS.split()},
        "group": reference.group,
        "target_base": (row["reading"] or {}).get("target_base"),
        **describe_calibration(row["calibration"]),
        **row["recipe"],
    }
    return StoredModel(architecture, description, weights, trees=trees)


def is_trees(architecture: str) -> bool:
    """Return whether an architecture is that of boosted trees."""
    if CLASS_NAME not in architecture:
        return False
    try:
        node = json.loads(architecture)
    except (ValueError, RecursionError):
        return False
    return isinstance(node, dict) and node.get("class_name") == CLASS_NAME


def _join_architectures(networks: Sequence[Member], units: int) -> str:
    """Return the architecture of all networks of a version; a text without content for none."""
    if not networks:
        return ""
    if len(networks) == 1 and networks[0].share == 1:
        return networks[0].architecture
    return join_networks(networks, units)


def _find_members(
    connection: sa.Connection, reference: ModelReference, version: sa.RowMapping
) -> Sequence[sa.RowMapping]:
    """Return the members of a version, or of the model of a group, in their order."""
    query = (
        sa.select(MEMBER)
        .where(*(MEMBER.c[name] == version[name] for name in ("owner", "model", "version")))
        .where(MEMBER.c.group_value.is_not_distinct_from(reference.group))
        .order_by(MEMBER.c.position)
    )
    members = connection.execute(query).mappings().all()
    if not members:
        raise DataCorrupted(
            f"version {version['version']} of model {reference.model!r} has no member",
            hint="Train the model again.",
        )
    return members


def _format_architecture(member: sa.RowMapping) -> str:
    """Return the architecture of a member as JSON text, which a driver may have parsed."""
    architecture = member["architecture"]
    if isinstance(architecture, str):
        return architecture
    return states.compact_json(architecture)


def _read_weights(connection: sa.Connection, member: sa.RowMapping) -> list[NDArray[Any]]:
    """Return the weights of a member that predict: of all rows, if it was trained again."""
    run_id = member["refit_run_id"] or member["run_id"]
    table = sa.table(
        f"r{run_id}_m{member['mst_key']}",
        sa.column("part"),
        sa.column("chunk", sa.LargeBinary()),
        schema="cerebro_state",
    )
    chunks = connection.execute(sa.select(table.c.chunk).order_by(table.c.part)).scalars()
    return states.read_weights(b"".join(map(bytes, chunks)))


def _find_group(
    connection: sa.Connection, reference: ModelReference, version: sa.RowMapping
) -> sa.RowMapping:
    """Return the columns of a version in which the model of a group differs."""
    query = sa.select(*(GROUP.c[name] for name in GROUP_COLUMNS)).where(
        *(GROUP.c[name] == version[name] for name in ("owner", "model", "version")),
        GROUP.c.group_value == reference.group,
    )
    group = connection.execute(query).mappings().first()
    if group is None:
        raise UndefinedObject(
            f"version {version['version']} of model {reference.model!r} has no model of group "
            f"{reference.group!r}",
            hint="SELECT group_value FROM cerebro.model_group lists groups; rows of others have "
            "the model of all rows.",
        )
    return group


def _find_relation(connection: sa.Connection, name: str) -> tuple[str, str] | None:
    """Return the schema and the name of a table, which is named as in SQL."""
    try:
        row = connection.execute(select_relation(name)).first()
    except sa.exc.DBAPIError:
        return None  # such as a name with too many dots, which is no table's
    return row and (row.nspname, row.relname)


def _read_table_model(
    connection: sa.Connection, relation: tuple[str, str], mst_key: int | None
) -> StoredModel:
    """Return a model of the output table of a fit function, with the table's summary."""
    schema, name = relation
    architecture, weights = _read_table_row(connection, relation, mst_key)
    if not weights:
        raise ObjectNotReady(
            f"the model of table {name} has no weights there: they are too large for a field, or "
            "it failed in training",
            hint="cerebro.register gives it a name, by which it can be exported, where it has a "
            "state.",
        )
    if architecture is None or len(weights) % WEIGHT_BYTES:
        raise DataCorrupted(
            f"the model of table {name} has {count_nouns(len(weights), 'byte')} of weights"
            f" and {'no' if architecture is None else 'an'} architecture",
            hint="It is no table that a fit function has written; train the model again.",
        )
    query = sa.select(sa.text("*")).select_from(sa.table(f"{name}_summary", schema=schema))
    summaries = connection.execute(query).mappings().all()
    if len(summaries) != 1:
        raise DataCorrupted(
            f"table {name}_summary has {count_nouns(len(summaries), 'row')}",
            hint="A fit function writes one; train the model again.",
        )
    (summary,) = summaries
    description = {
        "format": FORMAT,
        "table": name,
        "mst_key": mst_key,
        **{column: summary.get(column) for column in SUMMARY_COLUMNS},
        **{column: value for column, value in summary.items() if column.endswith("class_values")},
    }
    numbers = np.frombuffer(bytes(weights), "<f4")
    return StoredModel(architecture, description, [numbers], is_flat=True)


def _read_table_row(
    connection: sa.Connection, relation: tuple[str, str], mst_key: int | None
) -> tuple[str | None, bytes]:
    """Return the architecture and the weights of a model of a table."""
    schema, name = relation
    table = declare_table(name, "model_arch model_weights mst_key", schema)
    query = sa.select(sa.cast(table.c.model_arch, sa.Text), table.c.model_weights)
    key = ""
    if mst_key is not None:
        query = query.where(table.c.mst_key == mst_key)
        key = f" with mst_key {mst_key}"
    rows = connection.execute(query).all()
    if len(rows) != 1:
        raise UndefinedObject(
            f"table {name} has {count_nouns(len(rows), 'model')}{key}",
            hint=f"Name one of them, as {name}:1 does; SELECT mst_key FROM {name}_info lists them.",
        )
    architecture, weights = rows[0]
    return architecture, weights


def _undefined_model(connection: sa.Connection, reference: ModelReference) -> CerebroError:
    """Return the error for a model that the caller does not have."""
    query = sa.select(GRANT.c.owner).where(GRANT.c.model == reference.model)
    owner = connection.execute(query).scalar()
    if owner is not None:
        return InsufficientPrivilege(
            f"model {reference.model!r} belongs to {owner}, who has granted predictions, not what "
            "it is made of",
            hint="Its owner can export it.",
        )
    version = "" if reference.version is None else f", version {reference.version}"
    return UndefinedObject(
        f"you have no model {reference.model!r}{version}, and no table has that name",
        hint="SELECT model, version FROM cerebro.model_version lists models by name; one of a "
        "table is TABLE:MST_KEY.",
    )
