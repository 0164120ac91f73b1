"""Makes the output tables of a search, in the caller's transaction: what all configurations came to, and weights.

Those that were trained to the end have weights, and the best, as it was when its loss was the lowest.
"""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.calls.search_arguments import AutomlArguments
from cerebro_plpy.calls.search_runs import Best, Runs, Trial
from cerebro_plpy.configs import frameworks
from cerebro_plpy.configs.spec import DataSpec
from cerebro_plpy.database.caller import Database, Row
from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.records import replace
from cerebro_plpy.tables import model_states, outputs
from cerebro_plpy.tables.model_rows import ModelKey, write_model
from cerebro_plpy.tables.model_states import ModelTables


class SearchTables(NamedTuple):
    """The first of the output tables, and the model selection table that gets the best configuration."""

    output: Relation
    selection: Relation


def write(db: Database, tables: SearchTables, arguments: AutomlArguments, runs: Runs, best: Best) -> None:
    """Create and fill the three output tables, and put the best configuration into the model selection table."""
    (output, selection), basis = tables, runs.basis
    source = basis.data.source.spec()
    source = replace(source, class_types=outputs.class_types(db, source.class_types))
    made = outputs.names(output, outputs.SUFFIXES)
    places = any(tried.place for tried in runs.tried.values())
    models = _create(db, made, source, places)
    for key, tried in sorted(runs.tried.items()):
        shown = best.tried if key == best.tried.config.mst_key else tried
        architecture = basis.architectures[tried.config.model_id].json
        model = ModelKey(key, basis.data.source.segments[0])
        size = write_model(db, models, model, architecture, shown.state)
        _write_info(db, made["_info"], runs, shown, size, places)
    _write_summary(db, made["_summary"], output, arguments, runs, source)
    _write_best(db, selection, best.tried, max(runs.tried))


def _create(db: Database, made: dict[str, str], source: DataSpec, places: bool) -> ModelTables:
    clauses = db.platform.clauses
    db.rows(sql("automl.models", output=made[""], **clauses))
    more = sql("automl.info_columns", places=sql("automl.places") if places else "")
    db.rows(sql("output.info", output=made["_info"], more=more, **clauses))
    columns = outputs.class_columns(source)[0]
    db.rows(sql("automl.summary", output=made["_summary"], class_columns=columns, **clauses))
    return ModelTables(made[""], model_states.create(db, made["_summary"]))


def _write_info(db: Database, table: str, runs: Runs, tried: Trial, size: float | None, places: bool) -> None:
    config, run_ids = tried.config, [run_id for run_id, _ in tried.runs]
    rows = db.glance(sql("automl.metrics"), runs.run_ids[0], run_ids, config.mst_key)
    architecture, dependent = runs.basis.architectures[config.model_id].json, runs.basis.data.source.dependent
    more = sql("automl.add_info_columns", places=sql("automl.add_places") if places else "")
    db.rows(
        sql("output.add_info", output=table, more=more),
        config.mst_key,
        config.model_id,
        config.compile_text,
        config.fit_text,
        size,
        *outputs.metric_columns(rows, config.compile, architecture, dependent),
        _iterations(tried, outputs.deciding_losses(rows)) or None,
        *((tried.place or (None, None)) if places else ()),
        run_ids,
        frameworks.BACKENDS[0],
    )


def _iterations(tried: Trial, rows: list[Row]) -> list[int]:
    """After how many iterations each row was found, counted over all runs of the configuration."""
    before, offsets = 0, {}
    for run_id, iterations in tried.runs:
        offsets[run_id], before = before, before + iterations
    return [offsets[row["run_id"]] + row["epoch"] for row in rows]


def _write_summary(
    db: Database,
    table: str,
    output: Relation,
    arguments: AutomlArguments,
    runs: Runs,
    source: DataSpec,
) -> None:
    basis, run_ids = runs.basis, runs.run_ids
    (times,) = db.glance(sql("automl.times"), run_ids)
    db.rows(
        sql("automl.add_summary", output=table, class_values=outputs.class_columns(source)[1]),
        source.table,
        arguments.validation_table,
        output.spelling,
        f"{output.spelling}_info",
        list(source.dependent),
        list(source.independent),
        arguments.model_arch_table,
        arguments.model_selection_table,
        basis.search.automl_method,
        basis.search.automl_params,
        None if arguments.random_state is None else str(arguments.random_state),
        arguments.object_table,
        bool(arguments.use_gpus),
        runs.frequency,
        arguments.name,
        arguments.description,
        times["began"],
        times["ended"],
        basis.version,
        outputs.num_classes(source),
        list(source.dependent_types),
        source.normalizing_const,
        run_ids,
    )


def _write_best(db: Database, selection: Relation, best: Trial, keys: int) -> None:
    config = best.config
    row = (config.mst_key, config.model_id, config.compile_text, config.fit_text)
    db.rows(sql("automl.add_best", output=selection.quoted), *row)
    db.rows(sql("automl.keys_from"), selection.quoted, keys)
