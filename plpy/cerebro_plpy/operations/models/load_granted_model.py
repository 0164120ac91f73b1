"""Load a granted model into the session's trainer, with the rights of the extension's owner.

Only tables of the extension are read, so that no code of the model's owner runs. Values that the
caller may not read pass through this process only. They never appear in a statement, plan, cursor
or message.
"""

from __future__ import annotations

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Globals, Row
from cerebro_plpy.errors import (
    CerebroError,
    DataCorrupted,
    InsufficientPrivilege,
    ObjectNotReady,
    OutOfMemory,
)
from cerebro_plpy.operations.predict.model_predictor import make_jobs
from cerebro_plpy.preprocessing.recipe.split_encoding import Marks, constants
from cerebro_plpy.tables.models import granted_versions
from cerebro_plpy.tables.models.granted_versions import SealedRequest, VersionKey
from cerebro_plpy.tables.models.model_versions import parse_members, read_version
from cerebro_plpy.trainer_client import request_schema, segment_functions

CHUNKS = 512
"""Chunks of a state that are read at a time: some MB."""


def fill(db: Database, gd: Globals) -> None:
    """Fill the trainer with the version that `granted_versions` has requested.

    Raises:
        InsufficientPrivilege: no version was requested.
        ObjectNotReady: the version does not predict any more.
        DataCorrupted: the version cannot be used.
    """
    request = granted_versions.take_request(gd)
    if request is None:
        raise InsufficientPrivilege(
            "cerebro_internal.sealed_version fills a trainer for cerebro.predict and "
            "cerebro.predict_row, and for nobody else"
        )
    key = request.key
    try:
        if request.is_lookup:
            granted_versions.return_group(gd, _find_group(db, request))
        else:
            _fill_trainer(db, gd, request)
    except (ObjectNotReady, OutOfMemory):
        raise
    except CerebroError as error:
        # The error message could leak data that only the owner may read.
        raise DataCorrupted(
            f"version {key.version} of model {key.model!r}, which {key.owner} has granted, cannot "
            "be used",
            hint="Its owner can call cerebro.predict, whose error gives the reason.",
        ) from error


def _find_group(db: Database, request: SealedRequest) -> Row | None:
    """Return the fields in which the model of a group differs; None if the group has no model."""
    rows = db.rows(sql("granted.group"), *request.key, request.group)
    return next(iter(rows), None)


def _fill_trainer(db: Database, gd: Globals, request: SealedRequest) -> None:
    key = request.key
    rows = db.rows(sql("granted.network"), *key)
    group_fields: Row | None = {}
    if request.group is not None:
        group_fields = _find_group(db, request)
    if not rows or group_fields is None:
        raise _make_gone_error(key)
    members = parse_members(db.rows(sql("version.members"), *key, request.group or ""))
    if not members:
        raise _make_gone_error(key)
    version = read_version({**rows[0], **group_fields}, members)
    marks = [Marks(row["first"], row["second"]) for row in db.rows(sql("granted.marks"), *key)]
    recipe = constants(version.recipe, marks)
    for member, job in zip(version.members, make_jobs(version)):
        begin = request_schema.build_request(
            "begin", {**job, "result_key": ""}, sealed=True, recipe=recipe
        )
        segment_functions.get_trainer(gd, sealed=True).call(begin)
        if not _send_state(db, gd, key, member.mst_key):
            raise _make_gone_error(key)
    segment_functions.get_trainer(gd, sealed=True)  # send the last chunks


def _send_state(db: Database, gd: Globals, key: VersionKey, mst_key: int) -> bool:
    """Send a state to the trainer; return False if it is gone."""
    last_part = 0
    while chunks := db.rows(sql("granted.state"), *key, mst_key, last_part, CHUNKS):
        for chunk in chunks:
            segment_functions.add_state(gd, chunk["part"], chunk["chunk"], sealed=True)
        last_part = chunks[-1]["part"]
    return bool(last_part)


def _make_gone_error(key: VersionKey) -> ObjectNotReady:
    return ObjectNotReady(
        f"version {key.version} of model {key.model!r} does not predict any more",
        hint="Call again: another one may.",
    )
