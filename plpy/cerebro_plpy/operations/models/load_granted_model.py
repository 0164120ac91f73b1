"""A granted model on its way into the trainer of the session, with the rights of the extension's
owner.

Nothing here is read but tables of the extension, so nothing of the model's owner runs. What the
caller may not read passes through this process only, and is in no statement, plan, cursor or
message.
"""

from __future__ import annotations

from typing import Any

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.errors import (
    CerebroError,
    DataCorrupted,
    InsufficientPrivilege,
    ObjectNotReady,
    OutOfMemory,
)
from cerebro_plpy.operations.predict.model_predictor import make_job
from cerebro_plpy.preprocessing.recipe.split_encoding import Marks, constants
from cerebro_plpy.tables.models import granted_versions
from cerebro_plpy.tables.models.granted_versions import SealedRequest, VersionKey
from cerebro_plpy.tables.models.model_versions import read_version
from cerebro_plpy.trainer_client import request_schema, segment_functions

CHUNKS = 512
"""Of a state, at a time: some MB."""


def fill(db: Database, gd: dict[str, Any]) -> None:
    """Fill the trainer with the version that `granted_versions.fill_trainer` requests."""
    wish = granted_versions.take_request(gd)
    if wish is None:
        raise InsufficientPrivilege(
            "cerebro.sealed_version fills a trainer for cerebro.predict and cerebro.predict_row, "
            "and for nobody else"
        )
    key = wish.key
    try:
        if wish.is_lookup:
            granted_versions.return_group(gd, _of_group(db, wish))
        else:
            _fill(db, gd, wish)
    except (ObjectNotReady, OutOfMemory):
        raise
    except CerebroError as error:
        # What is wrong may be told by what nobody but the owner may read.
        raise DataCorrupted(
            f"version {key.version} of model {key.model!r}, which {key.owner} has granted, cannot "
            "be used",
            hint="Its owner is told why: cerebro.predict.",
        ) from error


def _of_group(db: Database, wish: SealedRequest) -> Row | None:
    """What the model of a group has of its own, if there is one."""
    rows = db.rows(sql("granted.group"), *wish.key, wish.group)
    return rows[0] if rows else None


def _fill(db: Database, gd: dict[str, Any], wish: SealedRequest) -> None:
    key, rows = wish.key, db.rows(sql("granted.network"), *wish.key)
    own = None if wish.group is None else _of_group(db, wish)
    if not rows or (wish.group is not None and own is None):
        raise _gone(key)
    version = read_version({**rows[0], **(own or {})})
    marks = [Marks(row["first"], row["second"]) for row in db.rows(sql("granted.marks"), *key)]
    recipe = constants(version.recipe, marks)
    begin = request_schema.build_request(
        "begin", {**make_job(version), "result_key": ""}, sealed=True, recipe=recipe
    )
    segment_functions.get_trainer(gd, sealed=True).call(begin)
    passed = 0
    while chunks := db.rows(sql("granted.state"), *key, version.mst_key, passed, CHUNKS):
        for chunk in chunks:
            segment_functions.add_state(gd, chunk["part"], chunk["chunk"], sealed=True)
        passed = chunks[-1]["part"]
    if not passed:
        raise _gone(key)
    segment_functions.get_trainer(gd, sealed=True)  # the last chunks


def _gone(key: VersionKey) -> ObjectNotReady:
    return ObjectNotReady(
        f"version {key.version} of model {key.model!r} does not predict any more",
        hint="Call again: another one may.",
    )
