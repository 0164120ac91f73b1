"""Architecture tables: load_keras_model, delete_keras_model, and reading them for a run."""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.configs.architecture.architecture import check_architecture, read_architecture
from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.database.sql.literals import show_value
from cerebro_plpy.errors import InvalidText, NullNotAllowed, UndefinedColumn, UndefinedObject
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.records import dataclass

TITLE = "Keras Model Arch"
COLUMNS = (
    "model_id",
    "model_arch",
    "model_weights",
    "name",
    "description",
    "__internal_madlib_id__",
)


LOADING = (
    "SELECT load_keras_model('networks', (SELECT model_arch FROM {table}{key}), "
    "(SELECT model_weights FROM {table}{key}));"
)
"""The arguments are subselects, because not every server calls functions for rows of a table."""


@dataclass(frozen=True)
class StoredModel:
    """A row of an architecture table."""

    model_id: int
    json: str  # text as stored
    has_weights: bool


class BuiltConfigs(NamedTuple):
    """Configurations with architectures of their own."""

    configs: tuple[Config, ...]
    architectures: dict[int, StoredModel]  # by model id, which is the mst_key


def load(
    catalog: Catalog,
    table: str | None,
    text: str | None,
    weights: bytes | None,
    name: str | None,
    note: str | None,
) -> None:
    """Check an architecture and add it to a table, which is created if it does not exist."""
    from uuid import uuid4  # costly import that only this function needs

    if text is None:
        raise NullNotAllowed(
            f"{TITLE}: Model architecture is NULL.",
            hint="Pass the JSON that model.to_json() gives.",
        )
    check_architecture(read_architecture(text))
    if weights is not None and len(weights) % 4:
        raise InvalidText(
            f"{TITLE}: model_weights has {count_nouns(len(weights), 'byte')}; expected a multiple "
            "of 4: the weights as float32, one after another.",
            hint="In Python: b''.join(w.astype('<f4').tobytes() for w in model.get_weights()).",
        )
    db = catalog.db
    if not _exists(catalog, table):
        # Of two concurrent first loads, the second one adds to the table that the first creates.
        catalog.wait_for_creator(table)
    if _exists(catalog, table):
        relation = find_table(catalog, table)
    else:
        relation = catalog.reserve_output(table)
        db.rows(sql("model.table", table=relation.quoted))
        db.info(f"{TITLE}: Created new keras model architecture table {table}.")
    db.rows(sql("model.lock", table=relation.quoted))
    statement = sql("model.add", table=relation.quoted)
    model_id = db.value(statement, text, weights, name, note, str(uuid4()))
    db.info(f"{TITLE}: Added model id {model_id} to {table} table")


def _exists(catalog: Catalog, table: str | None) -> bool:
    return table is not None and bool(table.strip()) and catalog.find(table) is not None


def delete(catalog: Catalog, table: str | None, model_id: int | None) -> None:
    """Delete an architecture, and the table with its last one."""
    relation = find_table(catalog, table)
    db = catalog.db
    if not db.rows(sql("model.delete", table=relation.quoted), model_id):
        raise UndefinedObject(
            f"{TITLE}: Model id {show_value(model_id)} not found",
            hint=f"SELECT model_id, name FROM {relation.quoted};",
        )
    db.info(f"{TITLE}: Model id {model_id} has been deleted from {table}.")
    if db.value(sql("model.empty", table=relation.quoted)):
        db.rows(sql("model.drop", table=relation.quoted))


def find_table(catalog: Catalog, table: str | None) -> Relation:
    """Return an architecture table, with its columns checked."""
    return check_columns(catalog, catalog.resolve_input(table, "keras model architecture"))


def check_columns(catalog: Catalog, relation: Relation) -> Relation:
    """Check that a table has the columns of an architecture table, and return it."""
    missing = [name for name in COLUMNS if name not in catalog.read_columns(relation)]
    if missing:
        raise UndefinedColumn(
            f"{TITLE}: Invalid keras model architecture table {relation.spelling}, missing columns:"
            f" {', '.join(missing)}",
            hint="Name a table made by load_keras_model().",
        )
    return relation


def read_architectures(
    reader: Session, table: Relation, model_ids: list[int]
) -> dict[int, StoredModel]:
    """Return architectures by model id."""
    rows = reader.run(sql("read.architectures", table=table.quoted), (model_ids,))
    return {row[0]: StoredModel(*row) for row in rows}


def suggest_weights(catalog: Catalog, model: Relation, mst_key: int | None = None) -> str:
    """Return a hint for a model table without states: a network can begin with its weights.

    Args:
        mst_key: key of the model; None for the first model of the table.
    """
    columns = catalog.read_columns(model)
    if not {"model_arch", "model_weights"} <= columns.keys():
        return "Name the output of madlib_fit_multiple_model(), or leave warm_start out."
    key = ""
    if "mst_key" in columns:
        if mst_key is None:
            keys = catalog.db.rows(sql("score.keys", table=model.quoted))
            mst_key = keys[0]["mst_key"] if keys else 1
        key = f" WHERE mst_key = {mst_key}"
    statement = LOADING.format(table=model.quoted, key=key)
    return (
        f"Load a network with these weights: {statement} Then train its model_id without "
        "warm_start, into another table."
    )
