"""The lineage of a version: the run and the configurations that it was made from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.configs.run_spec import RunSpec
from cerebro_plpy.configs.templates.registry import resumes_states
from cerebro_plpy.configs.train_spec import QueryRecord, TrainSpec
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.custom_settings import CustomSettings, read_settings_for_reader
from cerebro_plpy.database.lock_waits import read_wait_limit
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.query_lookup import QueryLookup, look_up_query
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.sessions.sql_errors import read_sqlstate
from cerebro_plpy.database.sql.identifiers import quote_qualified
from cerebro_plpy.database.table_visibility import refuse_private_source
from cerebro_plpy.errors import (
    CerebroError,
    DataCorrupted,
    FeatureNotSupported,
    ObjectNotReady,
    UndefinedTable,
    WrongObjectType,
    find_error_class,
)
from cerebro_plpy.platform.state_tables import version_table
from cerebro_plpy.platform.training_platform import TrainingPlatform
from cerebro_plpy.preprocessing.rows.split import read_split
from cerebro_plpy.records import dataclass, replace
from cerebro_plpy.run.request.run_request import WarmState
from cerebro_plpy.tables.models import model_versions
from cerebro_plpy.tables.models.model_registry import ENSEMBLE, IMPORTED, REGISTERED
from cerebro_plpy.tables.models.model_versions import Version
from cerebro_plpy.tables.outputs import logged_run


class RefitLineage(NamedTuple):
    """The run that has trained members of a version again on all rows."""

    run_id: int
    run_spec: RunSpec
    configs: Mapping[int, Row]  # by mst_key; with those of folds if these calibrate the version


@dataclass(frozen=True)
class Lineage:
    """The run and the configurations that a version was made from.

    Configurations are rows of the log, by mst_key or by group; an ensemble has several. The members
    of an ensemble of an older release were joined to one network, which is its only member.
    """

    version: Version
    run_spec: RunSpec
    train_spec: TrainSpec
    configs: Mapping[int, Row]
    software: Mapping[str, str]  # versions of libraries, by name
    fingerprint: str | None
    group_configs: Mapping[str, Row]  # of the models of groups, by the group's value
    refit: RefitLineage | None = None

    @property
    def all_configs(self) -> Mapping[int, Row]:
        """The configurations, including those of groups."""
        return {**self.configs, **{row["mst_key"]: row for row in self.group_configs.values()}}


def refuse_groups(module: str, lineage: Lineage) -> None:
    """Refuse a version with models of groups, because the rows of all groups are packed together.

    Raises:
        FeatureNotSupported: the version has such models.
    """
    version = lineage.version
    if version.group_by is not None:
        raise FeatureNotSupported(
            f"{module} error: version {version.version} of model {version.model!r} has models of "
            f"groups by {version.group_by}, which are trained together only.",
            hint="Call cerebro.train again with the same group_by, and the same seed for the same "
            "bits.",
        )


def read_lineage(db: Database, module: str, model: str | None, number: int | None) -> Lineage:
    """Read the lineage of a version from the log.

    Raises:
        ObjectNotReady: the version does not exist, was not made by `cerebro.train`, or its run is
            not in the log.
    """
    rows = db.peek(sql("provenance.version"), model, number)
    if not rows:
        raise ObjectNotReady(
            f"{module} error: no version of model {model!r} is deployed.",
            hint="Name one: SELECT version FROM cerebro.model_version;",
        )
    row = rows[0]
    version = model_versions.load_version(db, module, row)
    if row["template"] == IMPORTED:
        raise ObjectNotReady(
            f"{module} error: version {number} of model {model!r} was imported: the run that made "
            "it is in another database.",
            hint="Train it there and import it again, or call cerebro.train here with this name.",
        )
    if row["template"] == REGISTERED:
        raise ObjectNotReady(
            f"{module} error: version {number} of model {model!r} was registered: no run has made "
            "it under this name.",
            hint="Only models of cerebro.train can be trained again. The argument replay_run of "
            "madlib_fit_multiple_model() repeats a run that wrote a model table.",
        )
    run_spec = None
    if _read_configs(db, version.run_id, [version.mst_key]):
        run_spec = logged_run.read_run(db, version.run_id).spec
    if run_spec is None or run_spec.train is None:
        raise ObjectNotReady(
            f"{module} error: run {version.run_id}, which trained version {number} of model "
            f"{model!r}, is not in the log.",
            hint="Train the model again. cerebro.drop_run has removed the run.",
        )
    keys = [member.mst_key for member in version.members]
    if version.members[0].template == ENSEMBLE and run_spec.train.start is None:
        keys = _read_joined_keys(version)
    configs = {config["mst_key"]: config for config in _read_configs(db, version.run_id, keys)}
    return Lineage(
        version=version,
        run_spec=run_spec,
        train_spec=run_spec.train,
        configs={key: configs[key] for key in keys if key in configs},
        software=json.loads(row["software"]),
        fingerprint=row["fingerprint"],
        group_configs=read_group_configs(db, version),
        refit=_read_refit(db, version),
    )


def _read_refit(db: Database, version: Version) -> RefitLineage | None:
    """Return the run that has trained members again; None if none has, or it is not in the log."""
    refit_keys = {
        member.mst_key: member.refit_run_id for member in version.members if member.refit_run_id
    }
    configs = [
        (run_id, config)
        for run_id in {*refit_keys.values()}
        for config in _read_configs(db, run_id, [*refit_keys])
    ]
    if not configs:
        return None
    run_id, _ = configs[0]
    by_key = {config["mst_key"]: config for _, config in configs}
    spec = logged_run.read_run(db, run_id).spec
    if version.holdout_calibration is not None and spec.train is not None:
        fold_keys = spec.train.fold_keys
        keys = [key for member in refit_keys for key in fold_keys[member].values()]
        by_key.update((config["mst_key"], config) for config in _read_configs(db, run_id, keys))
    return RefitLineage(run_id, spec, by_key)


def _read_configs(db: Database, run_id: int, keys: Sequence[int]) -> Sequence[Row]:
    return db.peek(sql("provenance.configs"), run_id, keys)


def read_group_configs(db: Database, version: Version) -> dict[str, Row]:
    """Return the configurations of the models of groups of a version, by the group's value."""
    rows = db.peek(sql("version.groups"), version.owner, version.model, version.version)
    keys = [row["mst_key"] for row in rows]
    return {row["group_value"]: row for row in _read_configs(db, version.run_id, keys)}


def _read_joined_keys(version: Version) -> list[int]:
    """Return the keys of the configurations that an older release has joined to one network.

    Raises:
        DataCorrupted: the fields of the ensemble do not contain them.
    """
    params = version.members[0].params
    try:
        return [int(member["mst_key"]) for member in json.loads(params)["members"]]
    except (KeyError, TypeError, ValueError) as error:
        raise DataCorrupted(
            f"version {version.version} of model {version.model!r} is damaged: params is "
            f"{params!r:.100}",
            hint="Train the model again.",
        ) from error


def make_warm_states(platform: TrainingPlatform, train_spec: TrainSpec) -> dict[int, WarmState]:
    """Return the initial states of a run that refreshes a version; empty for other runs.

    Each network begins with the weights of the version's member of its mst_key, but with a new
    optimizer.
    """
    start = train_spec.start
    if start is None:
        return {}
    states = {}
    for mst_key, template in train_spec.templates.items():
        if not resumes_states(template):
            continue
        rows = platform.state_rows_sql(version_table(start.run_id, mst_key), None)
        states[mst_key] = WarmState("weights_of_chunks", rows, (), epochs=start.epochs)
    return states


def read_custom_settings(
    db: Database, lineage: Lineage, tables: Sequence[Relation]
) -> CustomSettings:
    """Return the custom settings for a session that reads the sources of a version.

    A notice lists the settings that were set at training, but are not set now.
    """
    custom = read_settings_for_reader(db, tables)
    recorded = (lineage.train_spec.source.reading or {}).get("names", [])
    missing = [str(name) for name in recorded if not custom.get(str(name))]
    if missing:
        db.notice(
            f"model {lineage.version.model!r} was trained in a session that had set "
            f"{', '.join(missing)}: this one has not, and may see other rows"
        )
    return custom


def _find_table(catalog: Catalog, lineage: Lineage, name: str) -> Relation:
    try:
        return catalog.resolve_input(name)
    except UndefinedTable as error:
        version = lineage.version
        raise UndefinedTable(
            f"{catalog.module} error: version {version.version} of model {version.model!r} was "
            f"trained on {name}, which does not exist any more. Predictions do not need it, but "
            f"{catalog.module} reads its rows.",
            hint=_suggest_view(catalog, lineage, name),
        ) from error


def _suggest_view(catalog: Catalog, lineage: Lineage, name: str) -> str:
    """Return a hint with a table that may be the missing one under another name."""
    columns = [
        lineage.train_spec.target,
        *(feature.column for feature in lineage.version.recipe.inputs),
    ]
    for row in catalog.db.rows(sql("provenance.tables_with_columns"), columns, name):
        table = quote_qualified((row["schema"], row["name"]))
        return f"If {table} has its rows now: CREATE VIEW {name} AS SELECT * FROM {table};"
    return "Create a table or a view of that name that has its rows."


def _look_up_query(catalog: Catalog, lineage: Lineage, query: QueryRecord) -> Relation:
    """Return the query that a version was trained on.

    Raises:
        UndefinedTable, UndefinedColumn: the query cannot be read any more.
        WrongObjectType: its names belong to other tables, views or functions than then.
    """
    db = catalog.db
    reading = replace(db.reading, formats=lineage.version.formats)
    lookup = QueryLookup(catalog.module, reading, read_wait_limit(db), is_read_apart=True)
    version = lineage.version
    sources: list[Relation] = []
    error = db.find_error(lambda: sources.append(look_up_query(db, query.text, lookup)))
    if isinstance(error, CerebroError):
        raise error
    if error is not None:
        raise find_error_class(read_sqlstate(error) or "")(
            f"{catalog.module} error: version {version.version} of model {version.model!r} was "
            f"trained on a query that cannot be read now: {error}. Predictions do not need it, but "
            f"{catalog.module} reads its rows.",
            hint="Make what the query names again, or train a version on another query.",
        ) from error
    source = sources[0]
    assert source.query is not None
    if set(source.query.objects) == set(query.objects):
        return source
    new = ", ".join(sorted(set(source.query.objects) - set(query.objects))) or "nothing else"
    former = ", ".join(sorted(set(query.objects) - set(source.query.objects))) or "nothing else"
    raise WrongObjectType(
        f"{catalog.module} error: the query of version {version.version} of model "
        f"{version.model!r} names {new} now; at training it named {former}.",
        detail=f"The search_path is {db.caller_path}; it was {query.path}.",
        hint=f"SET search_path = {query.path}; or train a version on what it names now.",
    )


def find_source_tables(catalog: Catalog, lineage: Lineage) -> tuple[Relation, Relation | None]:
    """Return the table or query that a version was trained on, and the table of its split.

    Raises:
        UndefinedTable: a table of that name does not exist any more.
        WrongObjectType: a query names other tables now.
    """
    query = lineage.train_spec.query
    if query is None:
        source = _find_table(catalog, lineage, lineage.train_spec.relation)
    else:
        source = _look_up_query(catalog, lineage, query)
    holdout = None
    name = read_split(catalog.module, lineage.train_spec.split.rule).table
    if name is not None:
        holdout = _find_table(catalog, lineage, name)
    for table in filter(None, (source, holdout)):
        refuse_private_source(catalog.db, catalog.module, table)
    return source, holdout
