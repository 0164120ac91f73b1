"""Makes the output tables of MADlib's madlib_keras_fit: one model, and everything about it in one
row of a summary.

The whole state, from which training can go on, lies apart: see `tables.model_states`.
"""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.tables import model_states
from cerebro_plpy.tables.chunked_work import at_once
from cerebro_plpy.tables.outputs.fit_output import (
    LoggedRun,
    class_columns,
    empty,
    found_metrics,
    held_configs,
    names,
    num_classes,
    read_logged_architecture,
    state_of,
)
from cerebro_plpy.tables.outputs.model_rows import add_weights, flat_weights

SUFFIXES = ("_summary",)


def write(db: Database, run: LoggedRun, output: Relation, states: Relation | None) -> None:
    """Create and fill the two tables, which appear when the caller commits, and that of states.

    Where the tables exist, `states` is the last of them: all are emptied and refilled.
    """
    made = names(output, SUFFIXES)
    table = states.quoted if states else _create(db, made, class_columns(run.spec.source)[0])
    if states:
        empty(db, (*made.values(), table))
    (config,) = held_configs(db, run)
    architecture = read_logged_architecture(db, run, config)
    state = state_of(config)  # none where it was stopped before its first epoch ended
    found = at_once(flat_weights(db, state, config["mst_key"])) if state else None
    add_weights(db, sql("single.add_model", output=made[""]), found, (), (architecture,))
    if state:
        at_once(model_states.add(db, table, config["mst_key"], state))
    size = found.size / 1024 if found else None
    metrics = found_metrics(db, run, config, architecture)
    _write_summary(db, SingleModelTable(made["_summary"], output, size), run, config, metrics)


def _create(db: Database, made: dict[str, str], class_columns: str) -> str:
    db.rows(sql("single.model", output=made[""], **db.platform.clauses))
    db.rows(
        sql(
            "single.summary",
            output=made["_summary"],
            class_columns=class_columns,
            **db.platform.clauses,
        )
    )
    return model_states.create(db, made["_summary"])


class SingleModelTable(NamedTuple):
    """The summary of a model table: its quoted name, the table, and the kilobytes of its
    weights.
    """

    summary: str
    output: Relation
    size: float | None


def _write_summary(
    db: Database, model: SingleModelTable, run: LoggedRun, config: Row, metrics: tuple[object, ...]
) -> None:
    spec, source, arguments = run.spec, run.spec.source, run.spec.arguments
    elapsed, metrics_type, loss_type, *values = metrics
    db.rows(
        sql("single.add_summary", output=model.summary, class_values=class_columns(source)[1]),
        source.table,
        model.output.spelling,
        list(source.dependent),
        list(source.independent),
        spec.model_arch_table,
        config["model_id"],
        config["compile_params"],
        config["fit_params"],
        run.epochs,
        arguments.validation_table,
        spec.object_table,
        spec.frequency,
        run.name,
        arguments.description,
        model.size,
        run.started_at,
        run.ended_at,
        elapsed,
        spec.version,
        num_classes(source),
        list(source.dependent_types),
        source.normalizing_const,
        metrics_type,
        loss_type,
        *values,
        run.evaluate_epochs,
        run.run_id,
        spec.dtype_policy,
        config["backend"],
    )
