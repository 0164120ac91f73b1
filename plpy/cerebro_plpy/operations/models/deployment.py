"""`cerebro.deploy` and `cerebro.drop_model`: deploy a version of a model, or remove the model."""

from __future__ import annotations

from cerebro_plpy.configs.params.keras_names import near_matches
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.errors import InvalidParameter, NullNotAllowed, UndefinedObject
from cerebro_plpy.platform.state_tables import PACKED_TABLES, packed_table_name, version_table
from cerebro_plpy.preprocessing.scoring.metrics import LARGER_IS_BETTER
from cerebro_plpy.tables.models import model_grants

VERSION_WORDS = ("best", "newest", "previous")


def deploy(db: Database, model: str | None, version: str | int | None) -> int:
    """Let a version predict from the caller's commit on; return its number."""
    entry = find_own_model(db, "deploy", model)
    if version is None:
        version = "best"
    number = resolve_version("deploy", model, version, entry)
    if number != entry["deployed"]:
        db.rows(sql("version.deploy"), number, model)
        with db.limited_lock_wait():
            model_grants.publish_deployed(LocalSession(db), str(model))
    return number


def drop(db: Database, model: str | None) -> None:
    """Remove a model at the caller's commit: its versions, their weights and their packed rows."""
    find_own_model(db, "drop_model", model)
    runs = db.peek(sql("version.runs"), model, model, model)
    names = [version_table(row["run_id"], row["mst_key"]) for row in runs]
    names += [packed_table_name(row["run_id"], side) for row in runs for side in PACKED_TABLES]
    with db.limited_lock_wait():
        model_grants.revoke_all(db, str(model))
        db.rows(sql("version.mark_dropped"), model)
        db.rows(sql("version.remove_dropped"), model)
    for row in db.rows(sql("features.data_tables"), names):
        db.rows(sql("run.drop_table", table=row["name"]))


def find_own_model(db: Database, module: str, model: str | None) -> Row:
    """Return the version numbers of a model of the caller.

    Returns:
        A row with `versions`, `deployed`, and one column for each of VERSION_WORDS.

    Raises:
        UndefinedObject: the caller has no such model.
    """
    hint = "SELECT model, version FROM cerebro.model;"
    if model is None:
        raise NullNotAllowed(f"{module} error: model is NULL.", hint=hint)
    rows = db.peek(sql("version.choose"), list(LARGER_IS_BETTER), model)
    if not rows:
        names = [row["model"] for row in db.peek(sql("version.names"))]
        if names:
            hint = near_matches(model, names)
        raise UndefinedObject(f"{module} error: there is no model {model!r} of yours.", hint=hint)
    return rows[0]


def resolve_version(module: str, model: str | None, version: str | int, entry: Row) -> int:
    """Return the number of a version.

    Args:
        version: a number or one of VERSION_WORDS.
        entry: row of the model, from `find_own_model`.

    Raises:
        InvalidParameter: the model has no such version.
    """
    word = str(version).strip().lower()
    hint = "SELECT version, value FROM cerebro.model_version;"
    if word in VERSION_WORDS:
        number = entry[word]
        if number is None:
            raise InvalidParameter(
                f"{module} error: version is {word!r}, but no other version of model {model!r} "
                "predicted before.",
                hint=hint,
            )
        return int(number)
    if not word.isascii() or not word.isdigit() or int(word) not in entry["versions"]:
        numbers = ", ".join(map(str, entry["versions"]))
        raise InvalidParameter(
            f"{module} error: version is {word!r}; expected one of {', '.join(VERSION_WORDS)}, or "
            f"the number of a version of {model!r}: {numbers}.",
            hint=hint,
        )
    return int(word)
