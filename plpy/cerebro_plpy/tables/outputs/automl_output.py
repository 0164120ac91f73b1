"""Makes the output tables of a call of AutoML: those of a fit, with what a search adds, and the
best configuration.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.configs.run_spec import DataSpec
from cerebro_plpy.configs.search_space.search_rules import DIAGONALS
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.records import replace
from cerebro_plpy.scheduling.search.hyperband import Hyperband
from cerebro_plpy.tables import model_selection_table, model_states
from cerebro_plpy.tables.architectures import existing
from cerebro_plpy.tables.model_states import ModelTables
from cerebro_plpy.tables.outputs import fit_output
from cerebro_plpy.tables.outputs.fit_output import LoggedRun
from cerebro_plpy.tables.outputs.model_rows import ModelKey, write_model

MODULE = "madlib_keras_automl"


class Tried(NamedTuple):
    """A configuration as the log has it, with its metrics; `loss` is the one that decides, None
    without a state.
    """

    config: Row
    metrics: Sequence[Row]
    loss: float | None


def write(db: Database, run: LoggedRun, output: Relation) -> None:
    """Create and fill the three output tables."""
    made, method = fit_output.names(output, fit_output.SUFFIXES), _hyperband(run)
    models = _create(db, made, run.spec.source, method is not None)
    for tried in _tried(db, run):
        architecture = fit_output.read_logged_architecture(db, run, tried.config)
        key = ModelKey(tried.config["mst_key"], run.spec.segments[0])
        size = write_model(db, models, key, architecture, fit_output.state_of(tried.config))
        _write_info(db, made["_info"], run, tried, (architecture, size), method)
    _write_summary(db, made["_summary"], output, run, method)


def write_best(db: Database, run: LoggedRun) -> None:
    """Make the model selection table of the call, which has the configuration with the lowest
    loss.
    """
    catalog, tables = Catalog(db, MODULE), run.spec.tables
    architectures = existing(catalog, tables["architectures"])
    named = replace(architectures, spelling=run.spec.model_arch_table or architectures.spelling)
    table = model_selection_table.create(catalog, tables["selection"], named, run.spec.object_table)
    tried = _tried(db, run)
    able = [each for each in tried if each.loss is not None and each.loss == each.loss]
    best = min(able, key=lambda each: (each.loss, each.config["mst_key"]), default=None)
    if best:
        row = [
            best.config[name] for name in ("mst_key", "model_id", "compile_params", "fit_params")
        ]
        db.rows(sql("automl.add_best", output=table.quoted), *row)
    db.rows(sql("automl.keys_from"), table.quoted, max(each.config["mst_key"] for each in tried))


def _tried(db: Database, run: LoggedRun) -> list[Tried]:
    found, dataset = [], run.spec.ranking.dataset
    for config in fit_output.held_configs(db, run):
        metrics = fit_output.logged_metrics(db, run.run_id, config)
        losses = [row for row in metrics if (row["dataset"], row["name"]) == (dataset, "loss")]
        alive = config["state_table"] is not None
        found.append(
            Tried(
                config, metrics, fit_output.final(losses, config["best_epoch"]) if alive else None
            )
        )
    return found


def _hyperband(run: LoggedRun) -> Hyperband | None:
    arguments = run.spec.arguments
    if arguments.search != DIAGONALS:
        return None
    values: Mapping[str, int] = json.loads(arguments.search_params or "{}")
    return Hyperband(values["R"], values["eta"], values["skip_last"])


def _create(db: Database, made: dict[str, str], source: DataSpec, places: bool) -> ModelTables:
    clauses = db.platform.clauses
    db.rows(sql("automl.models", output=made[""], **clauses))
    more = sql("automl.info_columns", places=sql("automl.places") if places else "")
    db.rows(sql("output.info", output=made["_info"], more=more, **clauses))
    columns = fit_output.class_columns(source)[0]
    db.rows(sql("automl.summary", output=made["_summary"], class_columns=columns, **clauses))
    return ModelTables(made[""], model_states.create(db, made["_summary"]))


def _write_info(
    db: Database,
    table: str,
    run: LoggedRun,
    tried: Tried,
    model: tuple[str, float | None],
    method: Hyperband | None,
) -> None:
    (architecture, size), config = model, tried.config
    iterations = [row["epoch"] for row in fit_output.deciding_losses(tried.metrics)]
    place = method.locate(config["mst_key"], max(iterations, default=1)) if method else ()
    db.rows(
        sql(
            "output.add_info",
            output=table,
            more=sql("automl.add_info_columns", places=_places(method)),
        ),
        *(config[name] for name in ("mst_key", "model_id", "compile_params", "fit_params")),
        size,
        *fit_output.found_metrics(db, run, config, architecture),
        iterations or None,
        *place,
        config["backend"],
    )


def _places(method: Hyperband | None) -> str:
    return sql("automl.add_places") if method else ""


def _write_summary(
    db: Database, table: str, output: Relation, run: LoggedRun, method: Hyperband | None
) -> None:
    spec, source, arguments, search = run.spec, run.spec.source, run.spec.arguments, run.spec.search
    assert search is not None
    # Without a frequency that of the last round, as in MADlib.
    usual = method.diagonals()[-1][0].iterations if method else run.spec.epochs
    db.rows(
        sql("automl.add_summary", output=table, class_values=fit_output.class_columns(source)[1]),
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
        None if search.random_state is None else str(search.random_state),
        spec.object_table,
        bool(arguments.use_gpus),
        usual if spec.frequency == spec.epochs else spec.frequency,
        run.name,
        arguments.description,
        run.started_at,
        run.ended_at,
        spec.version,
        fit_output.num_classes(source),
        list(source.dependent_types),
        source.normalizing_const,
        run.run_id,
    )
