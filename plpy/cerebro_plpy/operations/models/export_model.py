"""`cerebro.export_model`: return a version of a model as the bytes of a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain
from typing import Any

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.errors import LimitExceeded, ObjectNotReady, UndefinedObject
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.operations.models.deployment import find_own_model
from cerebro_plpy.operations.models.model_file import MAX_FILE_BYTES, write_file
from cerebro_plpy.tables.models import model_versions
from cerebro_plpy.tables.models.model_versions import Member, Members

MODULE = "export_model"
VERSION_FIELDS = (
    *("task", "source", "target", "target_type", "metric", "training_rows", "validation_rows"),
    *("seed", "classes", "fingerprint", "group_by", "importance", "importance_error"),
)
"""Fields of a version that are written as they are."""
JSON_FIELDS = ("recipe", "profile", "reading", "software")
NETWORK_FIELDS = ("backend", "margin", "template", "value", "training_rows")
"""Fields in which the models of groups differ from the version."""


def export_model(db: Database, model: str | None, version: int | None) -> bytes:
    """Return a version with its weights and the models of its groups.

    Args:
        version: number of the version; None for the one that predicts.

    Raises:
        UndefinedObject: the caller has no such model or version.
        ObjectNotReady: no version predicts, or its weights are gone.
        LimitExceeded: the weights are too large for a file.
    """
    db.platform.check_process(MODULE)
    entry = find_own_model(db, MODULE, model)
    number = entry["deployed"] if version is None else version
    if number is None:
        raise ObjectNotReady(
            f"{MODULE} error: no version of model {model!r} is deployed.",
            hint="Name one: SELECT version FROM cerebro.model_version;",
        )
    rows = db.peek(sql("version.exported"), model, number)
    if not rows:
        numbers = ", ".join(map(str, entry["versions"]))
        raise UndefinedObject(
            f"{MODULE} error: model {model!r} has no version {number}; expected one of {numbers}."
        )
    row = rows[0]
    models = [row, *db.peek(sql("version.exported_groups"), model, number)]
    exported = model_versions.load_version(db, MODULE, row)
    groups = model_versions.read_group_versions(db, MODULE, exported)
    members = [exported.members, *(groups[group["group_value"]].members for group in models[1:])]
    firsts = accumulate(map(len, members), initial=0)  # positions of states
    header = {
        "model": model,
        "version": number,
        "split": {
            "rule": row["split"],
            "seed": row["split_seed"],
            "bound": row["bound"],
            "identity": list(row["identity"] or ()),
        },
        "fields": _describe_version(row),
        "networks": list(map(_describe_model, models, members, firsts)),
    }
    return write_file(header, _read_states(db, list(chain.from_iterable(members))))


def _describe_version(row: Row) -> Mapping[str, Any]:
    fields = {name: _to_list(row[name]) for name in VERSION_FIELDS}
    for name in JSON_FIELDS:
        fields[name] = row[name] and json.loads(row[name])
    return fields


def _describe_model(row: Row, members: Members, first_state: int) -> Mapping[str, Any]:
    """Describe the model of all rows or of a group; one of several members lists them."""
    model = {
        **{name: row[name] for name in NETWORK_FIELDS},
        "params": json.loads(row["params"]),
        "calibration": json.loads(row["calibration"]),
        "group": row.get("group_value"),
    }
    entries = [_describe_member(member, state) for state, member in enumerate(members, first_state)]
    if len(members) == 1 and members[0].share == 1:
        return {**entries[0], **model}
    return {**model, "members": entries}


def _describe_member(member: Member, state: int) -> Mapping[str, Any]:
    return {
        "architecture": member.architecture,
        "backend": member.backend,
        "template": member.template,
        "params": json.loads(member.params),
        "share": member.share,
        "state": state,
    }


def _to_list(value: Any) -> Any:
    """Return a value for JSON: an array becomes a list."""
    return list(value) if isinstance(value, (list, tuple)) else value


def _read_states(db: Database, members: Sequence[Member]) -> list[bytes]:
    """Return the states of members, in their order."""
    queries = [db.platform.state_rows_sql(member.state_table, None) for member in members]
    sizes = [db.value(sql("version.state_size", rows=query)) for query in queries]
    if sum(sizes) > MAX_FILE_BYTES:
        raise LimitExceeded(
            f"{MODULE} error: the weights of the model have {count_nouns(sum(sizes), 'byte')}; "
            f"expected at most {MAX_FILE_BYTES}.",
            hint="cerebro-db export safetensors writes weights of any size.",
        )
    return [bytes(db.value(sql("version.state_bytes", rows=query))) for query in queries]
