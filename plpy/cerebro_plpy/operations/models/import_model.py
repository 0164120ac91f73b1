"""`cerebro.import_model`: add the version in a file to a model of the caller.

The file is the word of a stranger. Its recipe, classes, types and networks are read by the same
functions that read those of other owners, and each network predicts a row before the version is
kept. Everything happens in the caller's transaction.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from cerebro_plpy.configs.architecture.architecture import read_architecture
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.reading import granted_formats, read_recorded, record
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sessions.spi import Database, Globals, Row
from cerebro_plpy.errors import (
    CerebroError,
    ConnectionFailure,
    NullNotAllowed,
    OutOfMemory,
    TrainerFailure,
)
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.operations.models.model_file import (
    ModelFile,
    damaged,
    read_file,
    take,
    take_count,
    take_number,
)
from cerebro_plpy.operations.predict.model_predictor import COMPILE_PARAMS, make_job
from cerebro_plpy.operations.predict.predict_row import predict_missing_values
from cerebro_plpy.operations.train_arguments import METRICS
from cerebro_plpy.platform.state_tables import version_table
from cerebro_plpy.preprocessing.rows.split import read_split
from cerebro_plpy.preprocessing.scoring.calibration import Calibration
from cerebro_plpy.preprocessing.scoring.drift_profile import Profile
from cerebro_plpy.records import replace
from cerebro_plpy.tables.models import column_types, model_grants, model_versions
from cerebro_plpy.tables.models.model_registry import IMPORTED
from cerebro_plpy.tables.models.model_versions import Version

MODULE = "import_model"
MAX_TEXT = 10_000
"""Characters of a name in a file."""
CHUNK_BYTES = 8120
"""Bytes of a chunk, which fills a page."""
NETWORK_FIELDS = ("architecture", "backend", "margin", "calibration")
"""Columns of cerebro.version_log that the first network of a file has."""
OTHER_FAILURES = (TrainerFailure, ConnectionFailure, OutOfMemory)
"""Errors of a trial prediction that say nothing about the file."""


class ImportedVersion(NamedTuple):
    """The checked version of a file."""

    version: Version  # its number, run and configuration are those of the new version
    row: Row  # the columns of cerebro.version_log that it does not have as fields
    networks: Sequence[Mapping[str, Any]]  # checked; the first is of all rows, others of groups


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
    name = model or _take_text(file.header, "model")
    if len(take(file.header, "networks", list)) > 1:
        db.platform.check_groups(MODULE)
    run_id = _reserve_run_id(db)
    imported = _check_content(file, name, run_id)
    entry = _read_entry(take(file.header, "split", dict))
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


def _check_content(file: ModelFile, model: str, run_id: int) -> ImportedVersion:
    """Read a version from a header.

    Raises:
        DataCorrupted: an entry is missing, or has an impossible value.
    """
    fields = take(file.header, "fields", dict)
    networks = [_read_network(entry, file) for entry in take(file.header, "networks", list)]
    if not networks or networks[0]["group"] is not None:
        raise damaged("its first network is not that of all rows")
    group_by = take(fields, "group_by", (str, type(None)))
    groups = [network["group"] for network in networks[1:]]
    if None in groups or len({*groups}) < len(groups) or (groups and group_by is None):
        raise damaged("its networks are not those of different groups")
    row: Row = {
        "owner": "",
        "model": model,
        "version": 1,
        "run_id": run_id,
        "mst_key": 1,
        **{name: _take_text(fields, name) for name in ("task", "source", "target", "target_type")},
        "metric": _take_text(fields, "metric"),
        "recipe": json.dumps(take(fields, "recipe", dict)),
        "classes": _take_texts(fields, "classes"),
        "seed": take_count(fields, "seed") or 0,
        "group_by": group_by,
        "reading": json.dumps(_read_reading(fields)),
        "compile_params": COMPILE_PARAMS,
        **{name: networks[0][name] for name in NETWORK_FIELDS},
    }
    try:
        version = model_versions.read_version(row)
        for network in networks:
            make_job(replace(version, architecture=network["architecture"]))
            model_versions.check_outputs({**row, **network, "classes": row["classes"]})
        if row["metric"] not in (*METRICS[version.task], "loss"):
            raise damaged(f"metric is {row['metric']!r:.100}")
        return ImportedVersion(version, _read_rest(fields, version, row), networks)
    except CerebroError as error:
        raise damaged(error.message) from error


def _read_entry(split: Mapping[str, Any]) -> tuple[object, ...]:
    """Return how the versions of a model divide rows: rule, seed, bound and identity."""
    rule = _take_text(split, "rule")
    try:
        rule = str(read_split(MODULE, rule))
    except CerebroError as error:
        raise damaged(error.message) from error
    bound = take(split, "bound", (str, type(None)))
    return rule, take_count(split, "seed") or 0, bound, _take_texts(split, "identity") or None


def _read_rest(fields: Mapping[str, Any], version: Version, row: Row) -> Row:
    """Return the columns of a version that no prediction needs."""
    profile = take(fields, "profile", (dict, type(None)))
    if profile is not None:
        Profile.from_json(profile, version.recipe)
    software = take(fields, "software", dict)
    return {
        "reading": row["reading"],
        "recipe": json.dumps(version.recipe.to_json()),
        "profile": profile and json.dumps(profile),
        "software": json.dumps({str(name): str(value) for name, value in software.items()}),
        "fingerprint": take(fields, "fingerprint", (str, type(None))),
        "training_rows": take_count(fields, "training_rows"),
        "validation_rows": take_count(fields, "validation_rows"),
        "importance": _take_numbers(fields, "importance", len(version.recipe.features)),
        "importance_error": _take_numbers(fields, "importance_error", len(version.recipe.features)),
    }


def _read_network(entry: Any, file: ModelFile) -> Mapping[str, Any]:
    """Return the checked entry of a network, with its state."""
    number = take(entry, "state", int)
    if not 0 <= number < len(file.states):
        raise damaged(f"a network has state {number} of {len(file.states)}")
    architecture = take(entry, "architecture", str)
    try:
        read_architecture(architecture)
    except CerebroError as error:
        raise damaged(error.message) from error
    origin = {"template": _take_text(entry, "template"), "params": take(entry, "params", dict)}
    return {
        "architecture": architecture,
        "backend": _take_text(entry, "backend"),
        "margin": take_number(entry, "margin"),
        "calibration": _read_calibration(entry.get("calibration", {})),
        "value": take_number(entry, "value"),
        "training_rows": take_count(entry, "training_rows"),
        "group": take(entry, "group", (str, type(None))),
        "params": json.dumps(origin),
        "state": number,
    }


def _read_calibration(value: object) -> str:
    """Return the JSON of a calibration; further entries are left out."""
    try:
        return Calibration.from_json(json.dumps(value)).to_json()
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise damaged(f"calibration is {value!r:.100}") from error


def _read_reading(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the formats and the types in the record of a reading; further entries are left out."""
    value = take(fields, "reading", (dict, type(None)))
    formats = granted_formats(read_recorded(value))
    types = column_types.from_record(value)
    if types is None:
        types = column_types.ColumnTypes({}, None)
    return record(formats, **column_types.to_record(types))


def _store(db: Database, imported: ImportedVersion, states: Sequence[bytes]) -> None:
    """Write the rows of a version and of its groups, and their weights."""
    version = imported.version
    for key, network in enumerate(imported.networks, 1):
        table = version_table(version.run_id, key)
        with db.configured(client_min_messages="warning"):  # the statement drops a missing table
            db.rows(db.platform.state_table_sql(table))
        state = states[network["state"]]
        rows = sql("version.chunks", size=str(CHUNK_BYTES))
        db.rows(db.platform.state_from_rows_sql(rows, table), state)
        common = (
            *(IMPORTED, network["params"], network["value"], network["training_rows"]),
            *(
                network["margin"],
                network["calibration"],
                network["architecture"],
                COMPILE_PARAMS,
                network["backend"],
                table,
            ),
        )
        if key == 1:
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
            place = (version.model, version.version, network["group"], version.run_id, key)
            db.rows(sql("version.add_imported_group"), *place, *common)


def _predict_once(db: Database, gd: Globals, imported: ImportedVersion) -> None:
    """Predict a row with each network, so that a file that cannot predict is refused now."""
    for key, network in enumerate(imported.networks, 1):
        fields = {name: network[name] for name in ("architecture", "backend", "margin")}
        version = replace(imported.version, mst_key=key, **fields)
        error = db.find_error(partial(predict_missing_values, db, gd, version))
        if isinstance(error, OTHER_FAILURES):
            raise error
        if error is not None:
            raise damaged(str(error)) from error


def _take_text(value: object, name: str) -> str:
    text: str = take(value, name, str)
    if not text or len(text) > MAX_TEXT:
        raise damaged(f"{name} has {count_nouns(len(text), 'character')}")
    return text


def _take_texts(value: object, name: str) -> list[str]:
    texts: list[str] = take(value, name, list)
    if not all(isinstance(text, str) for text in texts):
        raise damaged(f"{name} is {texts!r:.100}")
    return texts


def _take_numbers(value: object, name: str, count: int) -> list[float | None] | None:
    """Return a list of numbers, some of which may be null; None for null."""
    numbers = take(value, name, (list, type(None)))
    if numbers is None:
        return None
    if len(numbers) != count:
        raise damaged(f"{name} has {count_nouns(len(numbers), 'number')}; expected {count}")
    entries = dict(enumerate(numbers))
    return [take_number({name: entry}, name) for entry in entries.values()]
