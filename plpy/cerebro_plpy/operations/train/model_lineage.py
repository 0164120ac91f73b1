"""What a version of a model was made of, as the log of its run tells it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from cerebro_plpy.configs.run_spec import RunSpec
from cerebro_plpy.configs.templates.networks import ensemble
from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.custom_settings import CustomSettings, read_settings_for_reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.table_visibility import refuse_private_source
from cerebro_plpy.errors import DataCorrupted, FeatureNotSupported, ObjectNotReady
from cerebro_plpy.platform.state_tables import version_table
from cerebro_plpy.platform.training_platform import TrainingPlatform
from cerebro_plpy.preprocessing.rows.split import read_split
from cerebro_plpy.records import dataclass
from cerebro_plpy.run.request.run_request import WarmState
from cerebro_plpy.tables.models import model_versions
from cerebro_plpy.tables.models.model_registry import REGISTERED
from cerebro_plpy.tables.models.model_versions import Version
from cerebro_plpy.tables.outputs import logged_run


@dataclass(frozen=True)
class Lineage:
    """What a version was made of: its run's spec, and its configurations, by mst_key, as the log
    has them.

    These are several where it is an ensemble. Those of its models of groups are there by the values
    that tell groups apart.
    """

    version: Version
    run_spec: RunSpec
    train_spec: TrainSpec
    configs: Mapping[int, Row]
    template: str
    params: Mapping[str, Any]
    software: Mapping[str, str]
    fingerprint: str | None
    group_configs: Mapping[str, Row]

    @property
    def all_configs(self) -> Mapping[int, Row]:
        """All configurations, those of groups included."""
        return {**self.configs, **{row["mst_key"]: row for row in self.group_configs.values()}}


def refuse_groups(module: str, made: Lineage) -> None:
    """Raises FeatureNotSupported for a version with models of groups, whose rows are packed for all
    of them.
    """
    if made.version.group_by is not None:
        raise FeatureNotSupported(
            f"{module} error: version {made.version.version} of model {made.version.model!r} has "
            f"models of groups by {made.version.group_by}, which are trained together only.",
            hint="Call cerebro.train again with the same group_by, and the same seed for the same "
            "bits.",
        )


def read_lineage(db: Database, module: str, model: str | None, number: int | None) -> Lineage:
    """What the log says of a version; raises ObjectNotReady where it says nothing any more."""
    rows = db.peek(sql("provenance.version"), model, number)
    if not rows:
        raise ObjectNotReady(
            f"{module} error: no version of model {model!r} is deployed.",
            hint="Name one: SELECT version FROM cerebro.model_version;",
        )
    row = rows[0]
    version = model_versions.load_version(db, module, row)
    if row["template"] == REGISTERED:
        raise ObjectNotReady(
            f"{module} error: version {number} of model {model!r} was registered: no run has made "
            "it under this name.",
            hint="Only what cerebro.train has made can be trained again: a replay_run of "
            "madlib_fit_multiple_model() repeats what made a model table.",
        )
    params = json.loads(row["params"])
    logged = db.peek(sql("provenance.configs"), version.run_id, [version.mst_key])
    spec = logged_run.read_run(db, version.run_id).spec if logged else None
    if spec is None or spec.train is None:
        raise ObjectNotReady(
            f"{module} error: run {version.run_id}, of which version {number} of model {model!r} "
            "is, is in no log.",
            hint="Train the model again; it was cerebro.drop_run that removed the run.",
        )
    keys = [version.mst_key]
    if row["template"] == ensemble.NAME and spec.train.start is None:
        keys = read_member_keys(version, params)
    found = {
        each["mst_key"]: each for each in db.peek(sql("provenance.configs"), version.run_id, keys)
    }
    return Lineage(
        version=version,
        run_spec=spec,
        train_spec=spec.train,
        configs={key: found[key] for key in keys if key in found},
        template=row["template"],
        params=params,
        software=json.loads(row["software"]),
        fingerprint=row["fingerprint"],
        group_configs=read_group_configs(db, version),
    )


def read_group_configs(db: Database, version: Version) -> dict[str, Row]:
    """The configurations of the models of groups that a version has."""
    rows = db.peek(sql("version.groups"), version.owner, version.model, version.version)
    keys = [row["mst_key"] for row in rows]
    return {
        each["group_value"]: each
        for each in db.peek(sql("provenance.configs"), version.run_id, keys)
    }


def read_member_keys(version: Version, params: Mapping[str, Any]) -> list[int]:
    """The configurations that an ensemble is made of; raises DataCorrupted where its fields do not
    tell them.
    """
    try:
        return [int(each["mst_key"]) for each in params["members"]]
    except (KeyError, TypeError, ValueError) as error:
        raise DataCorrupted(
            f"version {version.version} of model {version.model!r} is damaged: params is "
            f"{params!r:.100}",
            hint="Train the model again.",
        ) from error


def make_warm_states(platform: TrainingPlatform, asked: TrainSpec) -> dict[int, WarmState]:
    """Where the configurations of a run begin that goes on from a version: with its weights, and
    another optimizer.
    """
    if asked.start is None:
        return {}
    rows = platform.state_rows_sql(version_table(asked.start.run_id, asked.start.mst_key), None)
    return {
        key: WarmState("weights_of_chunks", rows, (), epochs=asked.start.epochs)
        for key in asked.templates
    }


def read_custom_settings(db: Database, made: Lineage, tables: Sequence[Relation]) -> CustomSettings:
    """Return the custom settings for a session that reads the sources of a version; say which are
    not set here.
    """
    custom = read_settings_for_reader(db, tables)
    recorded = (made.train_spec.reading or {}).get("names", [])
    missing = [name for name in recorded if not custom.get(str(name))]
    if missing:
        db.notice(
            f"model {made.version.model!r} was trained in a session that had set "
            f"{', '.join(map(str, missing))}: this one has not, and may see other rows"
        )
    return custom


def find_source_tables(catalog: Catalog, made: Lineage) -> tuple[Relation, Relation | None]:
    """The table that a version was trained on, and that whose rows are held back, where its split
    names one.
    """
    source, other = (
        catalog.resolve_input(made.train_spec.relation),
        read_split(catalog.module, made.train_spec.split).table,
    )
    held = None if other is None else catalog.resolve_input(other)
    for each in (source, held):
        if each is not None:
            refuse_private_source(catalog.db, catalog.module, each)
    return source, held
