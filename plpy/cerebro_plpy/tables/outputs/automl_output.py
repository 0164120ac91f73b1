"""The output tables of an AutoML call: those of a fit with the search, and the best config."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isnan
from typing import NamedTuple

from cerebro_plpy.configs.search_space.search_rules import DIAGONALS
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.records import replace
from cerebro_plpy.scheduling.search.hyperband import Hyperband
from cerebro_plpy.tables import model_selection_table
from cerebro_plpy.tables.architectures import find_table
from cerebro_plpy.tables.chunked_work import run_to_end
from cerebro_plpy.tables.model_states import ModelTables
from cerebro_plpy.tables.outputs.class_columns import (
    class_column_values,
    count_classes,
)
from cerebro_plpy.tables.outputs.fit_output import SUFFIXES, create_tables, name_tables
from cerebro_plpy.tables.outputs.logged_run import (
    LoggedRun,
    read_logged_architecture,
    read_metrics,
    read_pinned_configs,
    stored_state,
)
from cerebro_plpy.tables.outputs.metric_columns import (
    find_final_value,
    read_metric_columns,
    select_ranking_losses,
)
from cerebro_plpy.tables.outputs.model_rows import ModelKey, write_model_pieces

MODULE = "madlib_keras_automl"


class Trial(NamedTuple):
    """A configuration as logged, with its metrics."""

    config: Row
    metrics: Sequence[Row]
    loss: float | None  # over the data set that ranks; None without a state

    @property
    def mst_key(self) -> int:
        return int(self.config["mst_key"])


def write(db: Database, run: LoggedRun, output: Relation) -> None:
    """Create and fill the three output tables."""
    tables = name_tables(output, SUFFIXES)
    hyperband = _find_hyperband(run)
    statements = ("automl.models", "output.info", "automl.summary")
    info_columns = sql("automl.info_columns", places=_name_places(hyperband, "automl.places"))
    states = create_tables(db, run, tables, statements, info_columns)
    model_tables = ModelTables(tables[""], states)
    for trial in _read_trials(db, run):
        architecture = read_logged_architecture(db, run, trial.config)
        key = ModelKey(trial.mst_key, run.spec.segments[0])
        state = stored_state(trial.config)
        kilobytes = run_to_end(write_model_pieces(db, model_tables, key, architecture, state))
        statement = sql(
            "output.add_info",
            output=tables["_info"],
            more=sql(
                "automl.add_info_columns", places=_name_places(hyperband, "automl.add_places")
            ),
        )
        values = _info_values(db, run, trial, architecture, kilobytes, hyperband)
        db.rows(statement, *values)
    _write_summary(db, tables["_summary"], output, run, hyperband)


def write_best(db: Database, run: LoggedRun) -> None:
    """Create the model selection table of the call, with the configuration of the lowest loss."""
    catalog = Catalog(db, MODULE)
    tables = run.spec.tables
    architectures = find_table(catalog, tables["architectures"])
    if run.spec.model_arch_table:  # the name that the caller passed
        architectures = replace(architectures, spelling=run.spec.model_arch_table)
    table = model_selection_table.create(
        catalog, tables["selection"], architectures, run.spec.object_table
    )
    trials = _read_trials(db, run)
    ranked = [trial for trial in trials if trial.loss is not None and not isnan(trial.loss)]
    best = min(ranked, key=lambda trial: (trial.loss, trial.mst_key), default=None)
    if best:
        db.rows(
            sql("automl.add_best", output=table.quoted),
            best.config["mst_key"],
            best.config["model_id"],
            best.config["compile_params"],
            best.config["fit_params"],
        )
    db.rows(sql("automl.keys_from"), table.quoted, max(trial.mst_key for trial in trials))


def _read_trials(db: Database, run: LoggedRun) -> list[Trial]:
    trials = []
    dataset = run.spec.ranking.dataset
    for config in read_pinned_configs(db, run):
        metrics = read_metrics(db, run.run_id, config)
        loss = None
        if config["state_table"] is not None:
            losses = [row for row in metrics if (row["dataset"], row["name"]) == (dataset, "loss")]
            loss = find_final_value(losses, config["best_epoch"])
        trials.append(Trial(config, metrics, loss))
    return trials


def _find_hyperband(run: LoggedRun) -> Hyperband | None:
    """Return the Hyperband schedule of a run; None for other searches."""
    arguments = run.spec.arguments
    if arguments.search != DIAGONALS:
        return None
    params: Mapping[str, int] = json.loads(arguments.search_params or "{}")
    return Hyperband(params["R"], params["eta"], params["skip_last"])


def _name_places(hyperband: Hyperband | None, statement: str) -> str:
    """Return the part of a statement about brackets and rounds, which only Hyperband has."""
    if hyperband is None:
        return ""
    return sql(statement)


def _info_values(
    db: Database,
    run: LoggedRun,
    trial: Trial,
    architecture: str,
    kilobytes: float | None,
    hyperband: Hyperband | None,
) -> list[object]:
    """Return the columns of the info table in order."""
    config = trial.config
    iterations = [row["epoch"] for row in select_ranking_losses(trial.metrics)]
    metrics = read_metric_columns(db, run, config, architecture)
    values = [*metrics.list_info(config, kilobytes), iterations or None]
    if hyperband:
        values += hyperband.locate(trial.mst_key, max(iterations, default=1))
    return [*values, config["backend"]]


def _write_summary(
    db: Database, table: str, output: Relation, run: LoggedRun, hyperband: Hyperband | None
) -> None:
    spec = run.spec
    source = spec.source
    arguments = spec.arguments
    search = spec.search
    assert search is not None
    frequency = spec.frequency
    if frequency == spec.epochs and hyperband:
        # Without a frequency, that of the last round, as in MADlib.
        frequency = hyperband.diagonals()[-1][0].iterations
    random_state = None
    if search.random_state is not None:
        random_state = str(search.random_state)
    db.rows(
        sql("automl.add_summary", output=table, class_values=class_column_values(source)),
        source.table,
        arguments.validation_table,
        output.spelling,
        f"{output.spelling}_info",
        list(source.dependent),
        list(source.independent),
        spec.model_arch_table,
        arguments.model_selection_table,
        search.automl_method,
        search.automl_params,
        random_state,
        spec.object_table,
        bool(arguments.use_gpus),
        frequency,
        run.name,
        arguments.description,
        run.started_at,
        run.ended_at,
        spec.version,
        count_classes(source),
        list(source.dependent_types),
        source.normalizing_const,
        run.run_id,
    )
