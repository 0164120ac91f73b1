"""The output tables of madlib_fit: one model, and a summary with a single row.

The whole state, from which training can resume, is stored separately (`model_states`).
"""

from __future__ import annotations

from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.tables import model_states
from cerebro_plpy.tables.chunked_work import run_to_end
from cerebro_plpy.tables.outputs.class_columns import (
    class_column_values,
    count_classes,
)
from cerebro_plpy.tables.outputs.fit_output import create_tables, empty_tables, name_tables
from cerebro_plpy.tables.outputs.logged_run import (
    LoggedRun,
    read_logged_architecture,
    read_pinned_configs,
    stored_state,
)
from cerebro_plpy.tables.outputs.metric_columns import MetricColumns, read_metric_columns
from cerebro_plpy.tables.outputs.model_rows import insert_weights, read_flat_weights

SUFFIXES = ("_summary",)


def write(db: Database, run: LoggedRun, output: Relation, states: Relation | None) -> None:
    """Write the output tables of a run with one configuration.

    Args:
        states: table of states of existing output tables, which are emptied and filled again.
    """
    tables = name_tables(output, SUFFIXES)
    if states:
        state_table = states.quoted
        empty_tables(db, (*tables.values(), state_table))
    else:
        state_table = create_tables(db, run, tables, ("single.model", "single.summary"))
    (config,) = read_pinned_configs(db, run)
    architecture = read_logged_architecture(db, run, config)
    state = stored_state(config)  # None if the run was stopped before its first epoch ended
    weights = None
    if state:
        weights = run_to_end(read_flat_weights(db, state, config["mst_key"]))
    insert_weights(db, sql("single.add_model", output=tables[""]), (), weights, (architecture,))
    if state:
        run_to_end(model_states.add(db, state_table, config["mst_key"], state))
    kilobytes = weights.kilobytes if weights else None
    metrics = read_metric_columns(db, run, config, architecture)
    query = sql(
        "single.add_summary",
        output=tables["_summary"],
        class_values=class_column_values(run.spec.source),
    )
    db.rows(query, *_summary_values(output, run, config, kilobytes, metrics))


def _summary_values(
    output: Relation,
    run: LoggedRun,
    config: Row,
    kilobytes: float | None,
    metrics: MetricColumns,
) -> list[object]:
    """Return the columns of the summary in order, but for the classes."""
    spec = run.spec
    source = spec.source
    return [
        source.table,
        output.spelling,
        list(source.dependent),
        list(source.independent),
        spec.model_arch_table,
        config["model_id"],
        config["compile_params"],
        config["fit_params"],
        run.epochs,
        spec.arguments.validation_table,
        spec.object_table,
        spec.frequency,
        run.name,
        spec.arguments.description,
        kilobytes,
        run.started_at,
        run.ended_at,
        metrics.elapsed,
        spec.version,
        count_classes(source),
        list(source.dependent_types),
        source.normalizing_const,
        metrics.metrics_type,
        metrics.loss_type,
        *metrics.training,
        *metrics.validation,
        run.evaluate_epochs,
        run.run_id,
        spec.dtype_policy,
        config["backend"],
    ]
