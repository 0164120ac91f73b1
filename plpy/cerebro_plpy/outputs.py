"""Makes MADlib's output tables from a finished run, in the caller's transaction.

A fourth table, `<output>_state`, holds the whole states, so that training can go on from them.
"""

from __future__ import annotations

from collections.abc import Sequence

from cerebro_plpy.catalog import quoted
from cerebro_plpy.columns import text_array
from cerebro_plpy.db import Database
from cerebro_plpy.names import quote_identifier
from cerebro_plpy.queries import sql
from cerebro_plpy.records import Config, Evaluation, FitRequest, PackedTable, Relation, RunResult
from cerebro_plpy.weights import Weights, read_weights

SUFFIXES = ("_info", "_summary", "_state")
# pg_dump writes a field as text, twice its size, and cannot carry more than 1 GB.
LARGEST_FIELD = 512 << 20


def write(db: Database, request: FitRequest, output: Relation, result: RunResult, version: str) -> None:
    """Create and fill the four tables, which appear when the caller commits; a warm start empties and refills them."""
    made = {suffix: quoted(output.schema, output.name + suffix) for suffix in ("", *SUFFIXES)}
    if request.spec["warm_start"]:
        for table in made.values():
            db.rows(sql("warm.empty", table=table))
    else:
        _create(db, made, request.source)
    for config in request.configs:
        state = result.states.get(config.mst_key)
        size = _write_model(db, request, made, config, state)
        _write_info(db, made["_info"], config, size, result)
        if state:
            db.rows(sql("output.add_state", output=made["_state"], state=state), config.mst_key)
    _write_summary(db, request, made["_summary"], output, result, version)


def _create(db: Database, made: dict[str, str], source: PackedTable) -> None:
    db.rows(sql("output.models", output=made[""]))
    db.rows(sql("output.info", output=made["_info"]))
    db.rows(sql("output.summary", output=made["_summary"], class_columns=class_columns_of(source)[0]))
    db.rows(sql("output.states", output=made["_state"]))
    db.rows(sql("output.states_external", output=made["_state"]))


def _write_model(db: Database, request: FitRequest, made: dict[str, str], config: Config, state: str | None) -> float | None:
    """One row with the flat weights of a configuration; their size in kilobytes."""
    if state is None:
        found = Weights(0, None)
    else:
        chunks = (row["chunk"] for row in db.stream(sql("output.read_state", state=state)))
        found = read_weights(chunks, LARGEST_FIELD)
        if found.flat is None:
            db.notice(
                f"mst_key={config.mst_key}: model_weights is NULL, because {found.size} bytes are more than pg_dump"
                " can carry in a field; the weights are in the state table."
            )
    architecture = request.architectures[config.model_id].json
    key = request.source.segments[0]
    db.rows(sql("output.add_model", output=made[""]), config.mst_key, found.flat, architecture, key)
    return found.size / 1024 if state else None


def _write_info(db: Database, table: str, config: Config, size: float | None, result: RunResult) -> None:
    training = _series(result.evaluations, config.mst_key, "training")
    validation = _series(result.evaluations, config.mst_key, "validation")
    newest = validation or training
    failed = config.mst_key in result.failed
    columns = [None] * 8 if failed else [*_columns(training), *_columns(validation)]
    elapsed = None if failed else [e.elapsed for e in newest]
    db.rows(
        sql("output.add_info", output=table),
        config.mst_key, config.model_id, config.compile_text, config.fit_text, size,
        elapsed, list(config.compile.metrics_given) or None, config.compile.loss_given, *columns,
    )  # fmt: skip


def _series(evaluations: Sequence[Evaluation], mst_key: int, dataset: str) -> list[Evaluation]:
    found = [e for e in evaluations if e.mst_key == mst_key and e.dataset == dataset]
    return sorted(found, key=lambda e: e.epoch)


def _columns(series: list[Evaluation]) -> list[object]:
    """Final metric, final loss, metrics, losses; NULLs where nothing was computed."""
    if not series:
        return [None] * 4
    losses = [e.loss for e in series]
    metrics = [e.metrics[0] for e in series] if series[0].metrics else None
    return [metrics[-1] if metrics else None, losses[-1], metrics, losses]


def _write_summary(
    db: Database, request: FitRequest, table: str, output: Relation, result: RunResult, version: str
) -> None:
    source, spec = request.source, request.spec
    _, class_values = class_columns_of(source)
    db.rows(
        sql("output.add_summary", output=table, class_values=class_values),
        source.relation.given, request.validation.relation.given if request.validation else None,
        output.given, f"{output.given}_info", list(source.dependent), list(source.independent),
        spec["model_arch_table"], spec["model_selection_table"], spec["object_table"], request.epochs,
        spec["metrics_compute_frequency"], spec["warm_start"], request.name, spec["description"],
        result.started_at, result.ended_at, version,
        [len(values) for values in source.class_values if values] or None,
        list(source.dependent_types), source.normalizing_const, list(request.evaluate_epochs), result.run_id,
    )  # fmt: skip


def class_columns_of(source: PackedTable) -> tuple[str, str]:
    """Definitions and values of the `<dependent>_class_values` columns."""
    definitions = [f"{quote_identifier(name + '_class_values')} {kind}" for name, kind in zip(source.dependent, source.class_types)]
    values = [
        f"{text_array(values)}::text[]::{kind}" if values else f"NULL::{kind}"
        for values, kind in zip(source.class_values, source.class_types)
    ]
    return ", ".join(definitions), ", ".join(values)
