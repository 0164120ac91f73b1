"""The content of a model's file, checked: it is the word of a stranger.

Recipe, classes, types and networks are read by the functions that read those of other owners.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.configs.architecture.architecture import read_architecture
from cerebro_plpy.configs.params.frameworks import BACKENDS
from cerebro_plpy.database.reading import granted_formats, read_recorded, record
from cerebro_plpy.database.sessions.spi import Row
from cerebro_plpy.errors import CerebroError
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.operations.models.model_file import (
    ModelFile,
    damaged,
    take,
    take_count,
    take_number,
)
from cerebro_plpy.operations.predict.model_predictor import COMPILE_PARAMS, make_jobs
from cerebro_plpy.operations.train_arguments import METRICS
from cerebro_plpy.preprocessing.rows.split import read_split
from cerebro_plpy.preprocessing.scoring.calibration import Calibration
from cerebro_plpy.preprocessing.scoring.drift_profile import Profile
from cerebro_plpy.records import replace
from cerebro_plpy.tables.models import column_types, model_versions
from cerebro_plpy.tables.models.model_registry import IMPORTED
from cerebro_plpy.tables.models.model_versions import Member, Members, Version

MODULE = "import_model"
MAX_TEXT = 10_000
"""Characters of a name in a file."""
MODEL_FIELDS = ("backend", "margin", "calibration")
"""Columns of cerebro.version_log that the first model of a file has."""
SHARE_TOLERANCE = 1e-6
"""Largest difference of the sum of shares from 1."""


class ImportedModel(NamedTuple):
    """The checked model of all rows, or of a group."""

    fields: Mapping[str, Any]
    members: Members
    states: Sequence[int]  # of the members: positions in the file


class ImportedVersion(NamedTuple):
    """The checked version of a file."""

    version: Version  # its number, run and configuration are those of the new version
    row: Row  # the columns of cerebro.version_log that it does not have as fields
    models: Sequence[ImportedModel]  # the first one is of all rows, others of groups


def check_content(file: ModelFile, model: str, run_id: int) -> ImportedVersion:
    """Read a version from a header.

    Raises:
        DataCorrupted: an entry is missing, or has an impossible value.
    """
    fields = take(file.header, "fields", dict)
    models: list[ImportedModel] = []
    for entry in take(file.header, "networks", list):
        first_key = 1 + sum(len(imported.members) for imported in models)
        models.append(_read_model(entry, file, run_id, first_key))
    if not models or models[0].fields["group"] is not None:
        raise damaged("its first network is not that of all rows")
    group_by = take(fields, "group_by", (str, type(None)))
    groups = [imported.fields["group"] for imported in models[1:]]
    if None in groups or len({*groups}) < len(groups) or (groups and group_by is None):
        raise damaged("its networks are not those of different groups")
    row: Row = {
        "owner": "",
        "model": model,
        "version": 1,
        "run_id": run_id,
        "mst_key": 1,
        **{name: take_text(fields, name) for name in ("task", "source", "target", "target_type")},
        "metric": take_text(fields, "metric"),
        "recipe": json.dumps(take(fields, "recipe", dict)),
        "classes": _take_texts(fields, "classes"),
        "seed": take_count(fields, "seed") or 0,
        "group_by": group_by,
        "reading": json.dumps(_read_reading(fields)),
        **{name: models[0].fields[name] for name in MODEL_FIELDS},
    }
    try:
        version = model_versions.read_version(row, models[0].members)
        for imported in models:
            make_jobs(replace(version, members=imported.members))
            model_versions.check_outputs({**row, **imported.fields, "classes": row["classes"]})
        if row["metric"] not in (*METRICS[version.task], "loss"):
            raise damaged(f"metric is {row['metric']!r:.100}")
        return ImportedVersion(version, _read_rest(fields, version, row), models)
    except CerebroError as error:
        raise damaged(error.message) from error


def read_entry(split: Mapping[str, Any]) -> tuple[object, ...]:
    """Return how the versions of a model divide rows: rule, seed, bound and identity."""
    rule = take_text(split, "rule")
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


def _read_model(entry: object, file: ModelFile, run_id: int, first_key: int) -> ImportedModel:
    """Return the checked model of all rows or of a group.

    Args:
        first_key: mst_key of its first member.
    """
    entries = [entry]
    if isinstance(entry, Mapping) and "members" in entry:
        entries = take(entry, "members", list)
    members = [
        _read_member(member, (run_id, key), is_only=len(entries) == 1)
        for key, member in enumerate(entries, first_key)
    ]
    if not members or abs(sum(member.share for member in members) - 1) > SHARE_TOLERANCE:
        raise damaged("the shares of its members do not add up to 1")
    states = [take(member, "state", int) for member in entries]
    for number in states:
        if not 0 <= number < len(file.states):
            raise damaged(f"a network has state {number} of {len(file.states)}")
    fields = {
        "backend": take_text(entry, "backend"),
        "margin": take_number(entry, "margin"),
        "calibration": _read_calibration(entry),
        "value": take_number(entry, "value"),
        "training_rows": take_count(entry, "training_rows"),
        "group": take(entry, "group", (str, type(None))),
        "params": _read_origin(entry),
    }
    return ImportedModel(fields, tuple(members), states)


def _read_calibration(entry: object) -> str:
    """Return the JSON of a calibration; further entries are left out."""
    value: object = {}
    if isinstance(entry, Mapping):
        value = entry.get("calibration", {})
    try:
        return Calibration.from_json(json.dumps(value)).to_json()
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise damaged(f"calibration is {value!r:.100}") from error


def _read_member(entry: object, place: tuple[int, int], *, is_only: bool) -> Member:
    """Return a checked member.

    Args:
        place: run and mst_key that name the table of its state.
        is_only: it is the only member, whose share may be missing.
    """
    architecture = take(entry, "architecture", str)
    try:
        read_architecture(architecture)
    except CerebroError as error:
        raise damaged(error.message) from error
    share = 1.0
    if not is_only or (isinstance(entry, Mapping) and "share" in entry):
        share = float(take(entry, "share", (int, float)))
    if not 0 < share <= 1:
        raise damaged(f"share is {share!r}")
    backend = take_text(entry, "backend")
    if backend not in BACKENDS:
        raise damaged(f"backend is {backend!r:.100}")
    run_id, mst_key = place
    return Member(
        run_id=run_id,
        mst_key=mst_key,
        template=IMPORTED,
        params=_read_origin(entry),
        share=share,
        architecture=architecture,
        compile_params=COMPILE_PARAMS,
        backend=backend,
    )


def _read_origin(entry: object) -> str:
    """Return the template and its fields in the other database, as JSON."""
    origin = {"template": take_text(entry, "template"), "params": take(entry, "params", dict)}
    return json.dumps(origin)


def _read_reading(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the formats and the types in the record of a reading; further entries are left out."""
    value = take(fields, "reading", (dict, type(None)))
    formats = granted_formats(read_recorded(value))
    types = column_types.from_record(value)
    if types is None:
        types = column_types.ColumnTypes({}, None)
    return record(formats, **column_types.to_record(types))


def take_text(value: object, name: str) -> str:
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
