"""What is done with versions of models: one is deployed, or all of a name are removed."""

from __future__ import annotations

from cerebro_plpy.configs.params.keras_names import near_matches
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.errors import InvalidParameter, NullNotAllowed, UndefinedObject
from cerebro_plpy.platform.state_tables import PACKED_TABLES, packed_table_name, version_table
from cerebro_plpy.tables.models import model_grants

WORDS = ("best", "newest", "previous")


def deploy(db: Database, model: str | None, version: str | None) -> int:
    """Let a version predict when the caller commits; its number."""
    found = own(db, "deploy", model)
    number = number_of("deploy", model, "best" if version is None else version, found)
    if number != found["deployed"]:
        db.rows(sql("version.deploy"), number, model)
        with db.limited_lock_wait():
            model_grants.publish_deployed(LocalSession(db), str(model))
    return number


def drop(db: Database, model: str | None) -> None:
    """Remove a model when the caller commits: its versions, their weights, and what their runs had
    packed.
    """
    own(db, "drop_model", model)
    runs = db.peek(sql("version.runs"), model, model)
    names = [version_table(row["run_id"], row["mst_key"]) for row in runs]
    names += [packed_table_name(row["run_id"], side) for row in runs for side in PACKED_TABLES]
    with db.limited_lock_wait():
        model_grants.revoke_all(db, str(model))
        db.rows(sql("version.mark_dropped"), model)
        db.rows(sql("version.remove_dropped"), model)
    for row in db.rows(sql("features.data_tables"), names):
        db.rows(sql("run.drop_table", table=row["name"]))


def own(db: Database, module: str, model: str | None) -> Row:
    """What there is of an own model: the numbers of its versions, and which of them predicts, or is
    of which word.
    """
    hint = "SELECT model, version FROM cerebro.model;"
    if model is None:
        raise NullNotAllowed(f"{module} error: model is NULL.", hint=hint)
    rows = db.peek(sql("version.choose"), model)
    if not rows:
        known = [row["model"] for row in db.peek(sql("version.names"))]
        raise UndefinedObject(
            f"{module} error: there is no model {model!r} of yours.",
            hint=near_matches(model, known) if known else hint,
        )
    return rows[0]


def number_of(module: str, model: str | None, version: str, found: Row) -> int:
    """The number of a version that is meant by a word, or by its number; `found` is what there is
    of the model.
    """
    wanted = version.strip().lower()
    if wanted in WORDS:
        number = found[wanted]
        if number is None:
            raise InvalidParameter(
                f"{module} error: version is {wanted!r}, but no other version of model {model!r} "
                "predicted before.",
                hint="SELECT version, value FROM cerebro.model_version;",
            )
        return int(number)
    if not wanted.isascii() or not wanted.isdigit() or int(wanted) not in found["versions"]:
        listed = ", ".join(map(str, found["versions"]))
        raise InvalidParameter(
            f"{module} error: version is {wanted!r}; expected one of {', '.join(WORDS)}, or a "
            f"number of {listed}.",
            hint="SELECT version, value FROM cerebro.model_version;",
        )
    return int(wanted)
