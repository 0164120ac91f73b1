"""Makes MADlib's output tables from the log of a run, in the caller's transaction.

All that takes long is done piece by piece (`tables.pieces`): `tables.early_output` does some of it
before the run is completed. The whole states, from which training can go on, lie apart: see
`tables.model_states`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.configs.architecture.architecture import check_architecture, read_architecture
from cerebro_plpy.configs.params import output_losses
from cerebro_plpy.configs.params.compile_params import CompileParams, parse_compile_params
from cerebro_plpy.configs.params.custom_functions import UNSEEN
from cerebro_plpy.configs.run_spec import DataSpec, Spec
from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.sql.identifiers import quote_identifier, quote_qualified
from cerebro_plpy.database.sql.literals import array_literal
from cerebro_plpy.errors import DataCorrupted, ObjectNotReady, hidden_run
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.records import dataclass, fields, replace
from cerebro_plpy.scheduling.schedule.schedule import AVERAGING
from cerebro_plpy.tables import model_states
from cerebro_plpy.tables.chunked_work import Pieces, at_once
from cerebro_plpy.tables.model_states import ModelTables
from cerebro_plpy.tables.outputs.model_rows import ModelKey, model_pieces

SUFFIXES = ("_info", "_summary")


@dataclass(frozen=True)
class LoggedRun:
    """A run of which there are states, as the log has it; times as texts.

    `evaluated` is the newest epoch with metrics, None without any.
    """

    run_id: int
    name: str | None
    status: str
    epochs: int | None
    evaluated: int | None
    started_at: str
    ended_at: str
    spec: Spec

    @property
    def evaluate_epochs(self) -> list[int] | None:
        """The epochs after which metrics were computed."""
        epochs = self.spec.evaluated_until(self.epochs or self.spec.epochs)
        return (
            list(
                epochs
                if self.status == "completed"
                else (e for e in epochs if e <= (self.evaluated or 0))
            )
            or None
        )


class OutputTables(NamedTuple):
    """The quoted names of the output tables, and of the table with the states of the models."""

    model: str
    info: str
    summary: str
    states: str


class Written(NamedTuple):
    """What the tables have of a configuration: which state, the kilobytes of its weights, and
    whether its metrics.
    """

    state: StoredState | None
    size: float | None
    metrics: bool = False


class Begun(NamedTuple):
    """Output tables that were made while the run went on, and what they have by then, by
    mst_key.
    """

    tables: OutputTables
    written: Mapping[int, Written]


def write(
    db: Database,
    run: LoggedRun,
    output: Relation,
    states: Relation | None,
    begun: Begun | None = None,
) -> None:
    """Create and fill the three tables, which appear when the caller commits, and that of states.

    Where the tables exist, `states` is the last of them: all are emptied and refilled; or they were
    `begun` before.
    """
    if begun is None:
        begun = Begun(_emptied(db, output, states) if states else create(db, output, run), {})
    for config in held_configs(db, run):
        written = begun.written.get(config["mst_key"])
        if written and written.state != state_of(config):  # it failed when it was evaluated
            _remove(db, begun.tables, config["mst_key"])
            written = None
        written = written or at_once(model_written(db, begun.tables, run, config))
        if not written.metrics:
            metrics_written(db, begun.tables, run, config, written)
    newest = (
        run if run.status == "completed" else read_run(db, run.run_id)
    )  # metrics may have come meanwhile
    _write_summary(db, begun.tables.summary, output, newest)


def model_written(
    db: Database, tables: OutputTables, run: LoggedRun, config: Row
) -> Pieces[Written]:
    """Write the model of a configuration, which is trained no further."""
    architecture, state = read_logged_architecture(db, run, config), state_of(config)
    key = ModelKey(config["mst_key"], run.spec.segments[0])
    size = yield from model_pieces(
        db, ModelTables(tables.model, tables.states), key, architecture, state
    )
    return Written(state, size)


def metrics_written(
    db: Database, tables: OutputTables, run: LoggedRun, config: Row, written: Written
) -> Written:
    """Write the metrics of a configuration, which has nothing left to do."""
    architecture = read_logged_architecture(db, run, config)
    _write_info(db, tables.info, run, config, architecture, written.size)
    return written._replace(metrics=True)


def _remove(db: Database, tables: OutputTables, mst_key: int) -> None:
    for table in (tables.model, tables.info, tables.states):
        db.rows(sql("output.remove", table=table), mst_key)


def names(output: Relation, suffixes: Sequence[str]) -> dict[str, str]:
    """The quoted names of output tables."""
    return {
        suffix: quote_qualified((output.schema, output.name + suffix)) for suffix in ("", *suffixes)
    }


def _emptied(db: Database, output: Relation, states: Relation) -> OutputTables:
    tables = _tables(names(output, SUFFIXES), states.quoted)
    empty(db, tables)
    return tables


def _tables(made: Mapping[str, str], states: str) -> OutputTables:
    return OutputTables(made[""], made["_info"], made["_summary"], states)


def empty(db: Database, tables: Iterable[str]) -> None:
    """Make room in existing output tables."""
    for table in tables:
        db.rows(sql("warm.empty", table=table))


def read_run(db: Database, run_id: int) -> LoggedRun:
    """A run that has states; the types of its class values are known to be types."""
    rows = _logged(run_id, db.peek(sql("output.run"), run_id))
    if rows[0]["status"] != "completed" and not any(map(state_of, newest_states(db, run_id))):
        raise ObjectNotReady(
            f"run {run_id} is {rows[0]['status']}, and none of its configurations has a state",
            hint="There are models to write out once a visit is completed: SELECT * FROM "
            "cerebro.progress;",
        )
    spec = Spec.from_json(json.loads(rows[0]["spec"]))
    source = replace(spec.source, class_types=class_types(db, spec.source.class_types))
    row = {each.name: rows[0][each.name] for each in fields(LoggedRun) if each.name != "spec"}
    return LoggedRun(**row, spec=replace(spec, source=source))


def _logged(run_id: int, rows: list[Row]) -> list[Row]:
    """What the log has of a run, which is never nothing; it shows nothing of it while its owner has
    another name.
    """
    if not rows:
        raise hidden_run(run_id)
    return rows


def read_configs(db: Database, run_id: int) -> list[Row]:
    """The configurations of a run; those that did not fail, nor were stopped untrained, have a
    newest state.
    """
    configs = newest_states(db, run_id)
    for config in configs:
        untrained = config["status"] != "completed" and config["state_table"] is None
        if config["status"] != "failed" and not untrained and not config["kept"]:
            raise ObjectNotReady(
                f"the state of mst_key {config['mst_key']} of run {run_id} is gone",
                detail="Its table was dropped, or the transaction that trained in its own session "
                "was rolled back.",
                hint="Train again; schedule => 'replay' repeats a run whose visits are logged.",
            )
    return configs


def newest_states(db: Database, run_id: int) -> list[Row]:
    """The configurations of a run, each with where its newest state lies."""
    return _logged(
        run_id, db.peek(sql("output.configs", visits="", configs=""), run_id, AVERAGING, run_id)
    )


def newest_state(db: Database, run_id: int, mst_key: int) -> Row:
    """The same of one configuration."""
    alone = {"visits": " AND v.mst_key = %s::integer", "configs": " AND c.mst_key = %s::integer"}
    return _logged(
        run_id,
        db.peek(sql("output.configs", **alone), run_id, AVERAGING, mst_key, run_id, mst_key),
    )[0]


def held_configs(db: Database, run: LoggedRun) -> list[Row]:
    """The configurations of a run, whose newest states cannot be emptied any more while they are
    read: visits of a run that goes on take other tables then. What they have left before this holds
    is read instead."""
    configs = read_configs(db, run.run_id)
    while run.status == "running":
        for state in filter(None, map(state_of, configs)):
            db.protect_table(state.table)
        newest = read_configs(db, run.run_id)
        if list(map(state_of, newest)) == list(map(state_of, configs)):
            return newest
        configs = newest
    return configs


def create(db: Database, output: Relation, run: LoggedRun) -> OutputTables:
    """Create the three tables, and that of states."""
    made, clauses, columns = (
        names(output, SUFFIXES),
        db.platform.clauses,
        class_columns(run.spec.source)[0],
    )
    db.rows(sql("output.models", output=made[""], **clauses))
    db.rows(sql("output.info", output=made["_info"], more="", **clauses))
    db.rows(sql("output.summary", output=made["_summary"], class_columns=columns, **clauses))
    return _tables(made, model_states.create(db, made["_summary"]))


def state_of(config: Row) -> StoredState | None:
    """Where the newest state of a configuration of a run lies, if it has one."""
    return (
        StoredState(table, config["segment_id"], config["base_table"])
        if (table := config["state_table"])
        else None
    )


def read_logged_architecture(db: Database, run: LoggedRun, config: Row) -> str:
    """The architecture of a configuration, as it was when its run began."""
    rows = db.peek(sql("output.architecture"), run.run_id, config["mst_key"])
    return str(_logged(run.run_id, rows)[0]["architecture"])


def _write_info(
    db: Database, table: str, run: LoggedRun, config: Row, architecture: str, size: float | None
) -> None:
    values = (
        config["mst_key"],
        config["model_id"],
        config["compile_params"],
        config["fit_params"],
        size,
    )
    metrics = found_metrics(db, run, config, architecture)
    db.rows(sql("output.add_info", output=table, more=""), *values, *metrics, config["backend"])


def found_metrics(
    db: Database, run: LoggedRun, config: Row, architecture: str
) -> tuple[object, ...]:
    """The `metric_columns` of a configuration of a run; one without a state came to nothing."""
    parsed = parse_compile_params(config["compile_params"], UNSEEN)
    rows, columns = logged_metrics(db, run.run_id, config), run.spec.source.dependent
    return metric_columns(rows, parsed, architecture, columns, config["best_epoch"])


def logged_metrics(db: Database, run_id: int, config: Row) -> list[Row]:
    """What was measured of a configuration that has a state, or had one."""
    if not (config["state_table"] or config["released"]):
        return []
    rows = _logged(run_id, db.peek(sql("output.metrics"), config["mst_key"], run_id))
    return [row for row in rows if row["name"]]


def metric_columns(
    rows: Sequence[Row],
    compiled: CompileParams,
    architecture: str,
    dependent: Sequence[str],
    best_epoch: int | None = None,
) -> tuple[object, ...]:
    """Elapsed times, types of metrics and loss; of training and validation final metric and loss,
    metrics, losses.

    Final ones are those of the model: of the best epoch where its state was kept, else of the last.
    """
    names = check_architecture(read_architecture(architecture)).output_names
    measured = output_losses.logged_metrics(compiled.metrics, names, dependent)
    metric = measured[0].logged if measured else None
    sides = [[row for row in rows if row["dataset"] == kind] for kind in ("training", "validation")]
    elapsed = {row["epoch"]: row["elapsed"] for row in deciding_losses(rows)}
    return (
        [*elapsed.values()] or None,
        output_losses.in_order(compiled.metrics_given, names) or None,
        compiled.loss_given,
        *(value for side in sides for value in _values(side, metric, best_epoch, elapsed)),
    )


def deciding_losses(rows: Sequence[Row]) -> list[Row]:
    """The losses of validation where there are any, else of training: one for each time that
    metrics were computed.
    """
    validated = [row for row in rows if row["dataset"] == "validation"]
    return [row for row in validated or rows if row["name"] == "loss"]


def _values(
    rows: Sequence[Row], metric: str | None, best_epoch: int | None, epochs: Collection[int]
) -> list[object]:
    """Final metric, final loss, metrics, losses, these after each of the epochs; NULLs where
    nothing was computed.
    """
    of_metric, of_loss = ([row for row in rows if row["name"] == name] for name in (metric, "loss"))
    values = ({row["epoch"]: row["value"] for row in found} for found in (of_metric, of_loss))
    series = [[found.get(epoch) for epoch in epochs] if found else None for found in values]
    return [final(of_metric, best_epoch), final(of_loss, best_epoch), *series]


def final(rows: Sequence[Row], best_epoch: int | None) -> float | None:
    """The last value, or the last up to the best epoch where its state was kept; None without
    any.
    """
    values = [row["value"] for row in rows if best_epoch is None or row["epoch"] <= best_epoch]
    return values[-1] if values else None


def _write_summary(db: Database, table: str, output: Relation, run: LoggedRun) -> None:
    spec, source, arguments = run.spec, run.spec.source, run.spec.arguments
    db.rows(
        sql("output.add_summary", output=table, class_values=class_columns(source)[1]),
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
        num_classes(source),
        list(source.dependent_types),
        source.normalizing_const,
        run.evaluate_epochs,
        run.run_id,
        spec.dtype_policy,
    )


def num_classes(source: DataSpec) -> list[int | None] | None:
    """How many classes each target has, NULL for floats; where the only target came encoded,
    none.
    """
    # Predict tells by it targets that came encoded from floats.
    targets = zip(source.float_targets, source.class_values)
    if len(source.class_values) == 1:
        return None if source.float_targets[0] else [len(values) for _, values in targets if values]
    widths = [shape[-1] for shape in source.target_shapes or ()]
    return [
        None if is_float else len(values or range(n))
        for (is_float, values), n in zip(targets, widths)
    ]


def class_types(db: Database, logged: Sequence[str]) -> tuple[str, ...]:
    """The types of class values: in the log stand texts that the run's owner may change."""
    found = tuple(row["type"] for row in db.rows(sql("output.types"), list(logged)))
    if len(found) != len(logged):
        raise DataCorrupted(
            "the log of the run names types of class values that are none: "
            f"{', '.join(map(repr, logged))}",
            hint="Types may have been dropped or renamed, or the log changed. Train again.",
        )
    return found


def class_columns(source: DataSpec) -> tuple[str, str]:
    """Definitions and values of the `<dependent>_class_values` columns; NULLs pad them, as in the
    packed table.
    """
    types = list(zip(source.dependent, source.class_types))
    definitions = [f"{quote_identifier(name + '_class_values')} {kind}" for name, kind in types]
    widths = [shape[-1] for shape in source.target_shapes or ()] or [0] * len(types)
    constants = [
        f"{array_literal([*names, *[None] * (width - len(names))])}::text[]::{kind}"
        if names
        else f"NULL::{kind}"
        for names, width, (_, kind) in zip(source.class_values, widths, types)
    ]
    return ", ".join(definitions), ", ".join(constants)
