"""The output tables of a fit: models, info and summary, written in the caller's transaction.

Long work is done in pieces (`chunked_work`), and partly before the run is completed
(`incremental_output`). Whole states, from which training can resume, are stored in a table of
their own (`model_states`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.sql.identifiers import quote_qualified
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.tables import model_states
from cerebro_plpy.tables.chunked_work import ChunkedWork, run_to_end
from cerebro_plpy.tables.model_states import ModelTables
from cerebro_plpy.tables.outputs.class_columns import (
    class_column_values,
    count_classes,
    define_class_columns,
)
from cerebro_plpy.tables.outputs.logged_run import (
    LoggedRun,
    read_logged_architecture,
    read_pinned_configs,
    read_run,
    stored_state,
)
from cerebro_plpy.tables.outputs.metric_columns import read_metric_columns
from cerebro_plpy.tables.outputs.model_rows import ModelKey, write_model_pieces

SUFFIXES = ("_info", "_summary")


class OutputTables(NamedTuple):
    """The quoted names of the output tables, and of the table with the models' states."""

    model: str
    info: str
    summary: str
    states: str


class WrittenModel(NamedTuple):
    """The part of a configuration that the output tables contain."""

    state: StoredState | None
    kilobytes: float | None  # of its weights
    has_metrics: bool = False


class PartialOutput(NamedTuple):
    """Output tables that were begun before the end of the run."""

    tables: OutputTables
    models: Mapping[int, WrittenModel]  # by mst_key


def write(
    db: Database,
    run: LoggedRun,
    output: Relation,
    states: Relation | None,
    partial: PartialOutput | None = None,
) -> None:
    """Write the output tables of a run.

    Args:
        states: table of states of existing output tables, which are emptied and filled again.
        partial: tables that were begun before; without both, the tables are created.
    """
    if partial is None:
        tables = _empty_tables(db, output, states) if states else create(db, output, run)
        partial = PartialOutput(tables, {})
    for config in read_pinned_configs(db, run):
        _write_config(db, partial, run, config)
    # Metrics may have been computed since `run` was read.
    newest_run = run if run.is_completed else read_run(db, run.run_id)
    _write_summary(db, partial.tables.summary, output, newest_run)


def _write_config(db: Database, partial: PartialOutput, run: LoggedRun, config: Row) -> None:
    """Write the parts of a configuration that the tables do not contain yet."""
    model = partial.models.get(config["mst_key"])
    if model and model.state != stored_state(config):  # its evaluation failed
        _remove(db, partial.tables, config["mst_key"])
        model = None
    if model is None:
        model = run_to_end(write_model(db, partial.tables, run, config))
    if not model.has_metrics:
        write_metrics(db, partial.tables, run, config, model)


def write_model(
    db: Database, tables: OutputTables, run: LoggedRun, config: Row
) -> ChunkedWork[WrittenModel]:
    """Write the model of a configuration whose training is finished."""
    architecture = read_logged_architecture(db, run, config)
    state = stored_state(config)
    key = ModelKey(config["mst_key"], run.spec.segments[0])
    model_tables = ModelTables(tables.model, tables.states)
    kilobytes = yield from write_model_pieces(db, model_tables, key, architecture, state)
    return WrittenModel(state, kilobytes)


def write_metrics(
    db: Database, tables: OutputTables, run: LoggedRun, config: Row, model: WrittenModel
) -> WrittenModel:
    """Write the metrics of a configuration that is finished."""
    architecture = read_logged_architecture(db, run, config)
    metrics = read_metric_columns(db, run, config, architecture)
    db.rows(
        sql("output.add_info", output=tables.info, more=""),
        *metrics.list_info(config, model.kilobytes),
        config["backend"],
    )
    return model._replace(has_metrics=True)


def _remove(db: Database, tables: OutputTables, mst_key: int) -> None:
    for table in (tables.model, tables.info, tables.states):
        db.rows(sql("output.remove", table=table), mst_key)


def name_tables(output: Relation, suffixes: Sequence[str]) -> dict[str, str]:
    """Return the quoted names of output tables, by suffix."""
    return {
        suffix: quote_qualified((output.schema, output.name + suffix)) for suffix in ("", *suffixes)
    }


def _empty_tables(db: Database, output: Relation, states: Relation) -> OutputTables:
    names = name_tables(output, SUFFIXES)
    tables = OutputTables._make((*names.values(), states.quoted))
    empty_tables(db, tables)
    return tables


def empty_tables(db: Database, tables: Iterable[str]) -> None:
    """Remove all rows of existing output tables."""
    for table in tables:
        db.rows(sql("warm.empty", table=table))


def create(db: Database, output: Relation, run: LoggedRun) -> OutputTables:
    """Create the output tables and the table of states."""
    names = name_tables(output, SUFFIXES)
    statements = ("output.models", "output.info", "output.summary")
    return OutputTables._make((*names.values(), create_tables(db, run, names, statements)))


def create_tables(
    db: Database, run: LoggedRun, tables: dict[str, str], statements: Sequence[str], more: str = ""
) -> str:
    """Create output tables; return the quoted name of the table of states.

    Args:
        tables: the quoted names, by suffix.
        statements: names of the statements, one for each table.
        more: further columns of the info table.
    """
    parts = {"class_columns": define_class_columns(run.spec.source), "more": more}
    for table, statement in zip(tables.values(), statements):
        db.rows(sql(statement, output=table, **parts, **db.platform.clauses))
    return model_states.create(db, tables["_summary"])


def _write_summary(db: Database, table: str, output: Relation, run: LoggedRun) -> None:
    spec = run.spec
    source = spec.source
    arguments = spec.arguments
    db.rows(
        sql("output.add_summary", output=table, class_values=class_column_values(source)),
        source.table,
        arguments.validation_table,
        output.spelling,
        f"{output.spelling}_info",
        list(source.dependent),
        list(source.independent),
        spec.model_arch_table,
        arguments.model_selection_table,
        spec.object_table,
        run.epochs,
        spec.frequency,
        spec.warm_start,
        run.name,
        arguments.description,
        run.started_at,
        run.ended_at,
        spec.version,
        count_classes(source),
        list(source.dependent_types),
        source.normalizing_const,
        run.evaluate_epochs,
        run.run_id,
        spec.dtype_policy,
    )
