"""`cerebro.import_model`: add the version in a file to a model of the caller.

The file is the word of a stranger. Its recipe, classes, types and networks are read by the same
functions that read those of other owners, and each network predicts a row before the version is
kept. Everything happens in the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sessions.spi import Database, Globals
from cerebro_plpy.errors import ConnectionFailure, NullNotAllowed, OutOfMemory, TrainerFailure
from cerebro_plpy.operations.models.imported_version import (
    MODULE,
    ImportedVersion,
    check_content,
    read_entry,
    take_text,
)
from cerebro_plpy.operations.models.model_file import damaged, read_file, take
from cerebro_plpy.operations.predict.predict_row import predict_blank_row
from cerebro_plpy.records import replace
from cerebro_plpy.tables.models import model_grants, model_versions
from cerebro_plpy.tables.models.model_registry import IMPORTED

CHUNK_BYTES = 8120
"""Bytes of a chunk, which fills a page."""
OTHER_FAILURES = (TrainerFailure, ConnectionFailure, OutOfMemory)
"""Errors of a trial prediction that say nothing about the file."""


def import_model(db: Database, gd: Globals, data: bytes | None, model: str | None) -> int:
    """Add the version in a file to a model; return the number of the version.

    It predicts if no other version of the model does.

    Args:
        model: name of the model; None for its name in the file.

    Raises:
        DataCorrupted: the file is not one of a model, or it cannot predict.
        FeatureNotSupported: a newer release has written it.
    """
    db.platform.check_process(MODULE)
    if data is None:
        raise NullNotAllowed(
            f"{MODULE} error: exported is NULL; expected the bytes of a file.",
            hint="cerebro-db import FILE sends them.",
        )
    file = read_file(data)
    name = model or take_text(file.header, "model")
    if len(take(file.header, "networks", list)) > 1:
        db.platform.check_groups(MODULE)
    run_id = _reserve_run_id(db)
    imported = check_content(file, name, run_id)
    entry = read_entry(take(file.header, "split", dict))
    with db.limited_lock_wait():
        db.rows(sql("version.add_model"), name, *entry)
        deployed = db.value(sql("version.lock_model"), name)
        version = replace(
            imported.version, version=int(db.value(sql("version.next"), name)), owner=_owner(db)
        )
        imported = imported._replace(version=version)
        _store(db, imported, file.states)
        _predict_once(db, gd, imported)
        if deployed is None:
            db.rows(sql("version.deploy"), version.version, name)
            model_grants.publish_deployed(LocalSession(db), name)
    outcome = "it predicts from now on"
    if deployed is not None:
        outcome = f"version {deployed} keeps predicting until you call cerebro.deploy"
    db.info(f"model {name!r}: version {version.version} was imported; {outcome}")
    return version.version


def _owner(db: Database) -> str:
    return str(db.value(sql("granted.caller")))


def _reserve_run_id(db: Database) -> int:
    """Return an id for the tables of weights, which is reserved like that of a run."""
    while True:
        row = db.row(sql("run.reserve"))
        if not row["taken"]:
            return int(row["run_id"])


def _store(db: Database, imported: ImportedVersion, states: Sequence[bytes]) -> None:
    """Write the rows of a version and of its groups, and their weights."""
    version = imported.version
    for model in imported.models:
        fields = model.fields
        for member, number in zip(model.members, model.states):
            _store_state(db, member.state_table, states[number])
        common = (
            *(IMPORTED, fields["params"], fields["value"], fields["training_rows"]),
            *(fields["margin"], fields["calibration"], fields["backend"]),
            [member.state_table for member in model.members],
        )
        if fields["group"] is None:
            row = imported.row
            values = (
                *(version.model, version.version, version.run_id, version.task, version.source),
                *(version.target, version.target_type, version.metric, row["validation_rows"]),
                *(version.seed, row["recipe"], list(version.classes), row["software"]),
                *(row["fingerprint"], row["profile"], version.group_by, row["reading"]),
                *(row["importance"], row["importance_error"]),
            )
            db.rows(sql("version.add_imported"), *values, *common)
        else:
            first_key = model.members[0].mst_key
            place = (version.model, version.version, fields["group"], version.run_id, first_key)
            db.rows(sql("version.add_imported_group"), *place, *common)
        key = (version.model, version.version, fields["group"] or "")
        model_versions.add_members(db, key, model.members)


def _store_state(db: Database, table: str, state: bytes) -> None:
    """Write a state into a new table."""
    with db.configured(client_min_messages="warning"):  # the statement drops a missing table
        db.rows(db.platform.state_table_sql(table))
    rows = sql("version.chunks", size=str(CHUNK_BYTES))
    db.rows(db.platform.state_from_rows_sql(rows, table), state)


def _predict_once(db: Database, gd: Globals, imported: ImportedVersion) -> None:
    """Predict a row with each model, so that a file that cannot predict is refused now."""
    for model in imported.models:
        fields = {name: model.fields[name] for name in ("backend", "margin")}
        version = replace(imported.version, members=model.members, **fields)
        error = db.find_error(partial(predict_blank_row, db, gd, version))
        if isinstance(error, OTHER_FAILURES):
            raise error
        if error is not None:
            raise damaged(str(error)) from error
