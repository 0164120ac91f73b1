"""Model selection tables: load_model_selection_table and generate_model_configs, and reading them
for a run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.custom_functions import Functions
from cerebro_plpy.configs.params.fit_params import FitParams, parse_fit_params
from cerebro_plpy.configs.search_space import grid
from cerebro_plpy.database.call_checks import check_flat
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sql.identifiers import quote_qualified
from cerebro_plpy.errors import (
    CerebroError,
    InsufficientPrivilege,
    InvalidParameter,
    NullNotAllowed,
    UndefinedColumn,
    UndefinedObject,
    UndefinedTable,
)
from cerebro_plpy.limits import CONFIGS, Poll, check, polled
from cerebro_plpy.packing.packed_table import read_summary_row
from cerebro_plpy.tables import object_table
from cerebro_plpy.tables.architectures import existing

COLUMNS = ("mst_key", "model_id", "compile_params", "fit_params")


def check_models(
    catalog: Catalog, table: str | None, model_ids: Sequence[int | None] | None
) -> Relation:
    """The architecture table, in which all these models are."""
    relation = existing(catalog, table)
    check_flat(catalog.module, "model_id_list", model_ids)
    if not model_ids or None in model_ids:
        raise NullNotAllowed(
            f"{catalog.module} error: model_id_list is NULL, empty or has a NULL; expected one or "
            "more model ids.",
            hint=f"SELECT model_id, name FROM {relation.quoted};",
        )
    found = {
        row["model_id"]
        for row in catalog.db.rows(sql("model.ids", table=relation.quoted), list(model_ids))
    }
    if not set(model_ids) <= found:
        raise UndefinedObject(
            f"{catalog.module}: One or more model_id of ({', '.join(map(str, model_ids))}) not "
            f"found in table {relation.spelling}",
            detail=f"Not found: {sorted(set(model_ids) - found, key=str)}.",
            hint=f"SELECT model_id, name FROM {relation.quoted};",
        )
    return relation


def create(
    catalog: Catalog, table: str | None, architectures: Relation, objects: str | None
) -> Relation:
    """A new model selection table and its summary."""
    output = catalog.reserve_output(table, ("_summary",))
    catalog.db.rows(sql("model.selection", table=output.quoted, **catalog.db.platform.clauses))
    _create_summary(catalog.db, output, architectures, objects)
    return output


def _create_summary(
    db: Database, selection: Relation, architectures: Relation, objects: str | None
) -> None:
    """The summary of a model selection table, which every session understands alike, whatever its
    path.

    MADlib's scripts expect the name that they gave. A name without a schema is looked for beside
    the table first.
    """
    name = quote_qualified((selection.schema, selection.name + "_summary"))
    near = architectures.schema == selection.schema
    db.rows(sql("model.selection_summary", table=name, **db.platform.clauses))
    kept = architectures.spelling if near else architectures.quoted
    db.rows(sql("model.add_selection_summary", table=name), kept, objects)


def add(db: Database, table: Relation, rows: Sequence[grid.ConfigRow]) -> None:
    """Add rows in order."""
    texts = {row.fit_params for row in rows}
    check_callbacks(db, map(parse_fit_params, polled(texts, db.check_interrupts)))
    text = json.dumps([row._asdict() for row in rows])
    db.rows(sql("model.add_selection", table=table.quoted), text)


class ExistingSelection(NamedTuple):
    """An existing model selection table, its rows, and the object table that it names."""

    table: Relation
    rows: list[grid.ConfigRow]
    objects: str | None


def read_existing(
    catalog: Catalog, table: str, architectures: Relation, objects: str | None
) -> ExistingSelection:
    """An existing model selection table over the same architectures and functions, and its rows.

    Where its summary was dropped, it gets another one.
    """
    relation = catalog.resolve_input(table, "model selection")
    summary = catalog.find_companion(relation, "_summary")
    if summary is None and catalog.read_columns(relation).keys() >= set(COLUMNS):
        _create_summary(catalog.db, relation, architectures, objects)
        summary = catalog.find_companion(relation, "_summary")
    named = read_summary(catalog, relation, summary, LocalSession(catalog.db))
    _check_same(catalog, relation, named, architectures, objects)
    rows = catalog.db.rows(sql("model.read_selection", table=relation.quoted))
    found = [
        grid.ConfigRow(r["model_id"], r["compile_params"], r["fit_params"] or "") for r in rows
    ]
    return ExistingSelection(relation, found, named.objects)


def _check_same(
    catalog: Catalog,
    selection: Relation,
    named: SelectionSummary,
    architectures: Relation,
    objects: str | None,
) -> None:
    """Raises where rows are appended that refer to other tables than those before."""
    table, ours, theirs = selection.spelling, objects, named.objects
    if catalog.resolve_input(named.architectures, owner=selection).oid != architectures.oid:
        raise InvalidParameter(
            f"DL: Inconsistent model arch table. Use '{named.architectures}' if appending rows to "
            f"'{table}'",
            hint=f"Received {architectures.spelling!r}. Drop {table} first to start a new one.",
        )
    if ours is not None and (theirs is None or not object_table.same(catalog, ours, theirs)):
        raise InvalidParameter(
            f"DL: Inconsistent object table. Use '{theirs}' if appending rows to '{table}'"
            if theirs
            else f"DL: Inconsistent object table. '{table}' was made without one",
            hint=f"Received {ours!r}. Drop {table} first to start a new one.",
        )


class SelectionSummary(NamedTuple):
    """The tables that a model selection table refers to, by the names that its summary gives."""

    architectures: str | None
    objects: str | None


def read_summary(
    catalog: Catalog, selection: Relation, summary: Relation | None, reader: Session
) -> SelectionSummary:
    """What the summary of a model selection table says; one made by hand may lack object_table."""
    if summary is None or "model_arch_table" not in catalog.read_columns(summary):
        raise UndefinedTable(
            f"{catalog.module} error: Input table '{selection.spelling}_summary' does not exist. "
            f"Please ensure that the model selection table ({selection.spelling}) has been created "
            "by load_model_selection_table().",
            hint="Make it with load_model_selection_table() or generate_model_configs().",
        )
    row = read_summary_row(reader, summary)
    if row.get("model_arch_table") is None:
        raise InvalidParameter(
            f"{catalog.module} error: table '{selection.spelling}_summary' names no "
            "model_arch_table.",
            hint="Make it with load_model_selection_table() or generate_model_configs().",
        )
    return SelectionSummary(str(row["model_arch_table"]), row.get("object_table"))


def read_configs(
    catalog: Catalog, reader: Session, selection: Relation, functions: Functions | None
) -> tuple[Config, ...]:
    """The configurations of a model selection table, parsed; keys must be there and differ."""
    missing = [name for name in COLUMNS if name not in catalog.read_columns(selection)]
    if missing:
        raise UndefinedColumn(
            f"{catalog.module} error: Column '{missing[0]}' does not exist in table "
            f"'{selection.spelling}'!",
            hint="Make the table with load_model_selection_table() or generate_model_configs().",
        )
    rows = reader.run(sql("read.selection", table=selection.quoted), (CONFIGS.most + 1,))
    if not rows:
        raise InvalidParameter(
            f"{catalog.module} error: Input table '{selection.spelling}' is empty!"
        )
    check(f"the number of rows of table '{selection.spelling}'", len(rows), CONFIGS)
    keys = [row[0] for row in rows]
    if None in keys or len(set(keys)) != len(keys) or None in [row[1] for row in rows]:
        raise InvalidParameter(
            f"{catalog.module} error: table '{selection.spelling}' has NULL or repeated keys; "
            "expected a different mst_key, and a model_id, in every row.",
        )
    polling = polled(rows, catalog.db.check_interrupts)
    configs = tuple(_config(catalog, selection, functions, row) for row in polling)
    check_callbacks(catalog.db, (config.fit for config in configs))
    return configs


def _config(
    catalog: Catalog,
    selection: Relation,
    functions: Functions | None,
    row: tuple[int, int, str | None, str | None],
) -> Config:
    mst_key, model_id, compile_text, fit_text = row
    try:
        parsed = parse_compile_params(compile_text or "", functions)
        fit = parse_fit_params(fit_text)
    except CerebroError as error:
        raise type(error)(
            f"{catalog.module} error: mst_key {mst_key} of table '{selection.spelling}': "
            f"{error.message}",
            hint=error.hint,
            detail=error.detail,
        ) from error
    return Config(mst_key, model_id, compile_text or "", fit_text or "", parsed, fit)


SINGLE_KEY = 1  # of the only configuration, where no table gives it a key


@contextmanager
def parameter_errors(kind: str, text: str) -> Iterator[None]:
    """Let an error about parameters tell which ones they are."""
    try:
        yield
    except CerebroError as error:
        detail = f"{kind} param check failed for: {text}"
        raise type(error)(error.message, hint=error.hint, detail=detail) from error


def load(
    catalog: Catalog,
    architectures: str | None,
    table: str | None,
    model_ids: Sequence[int | None] | None,
    params: tuple[Sequence[str | None] | None, Sequence[str | None] | None],
    objects: str | None,
) -> None:
    """Make a model selection table of all combinations of models, compile and fit parameters."""
    relation = check_models(catalog, architectures, model_ids)
    for name, given in zip(("compile_params_list", "fit_params_list"), params):
        check_flat(catalog.module, name, given)
        if not given:
            raise NullNotAllowed(
                f"{name} cannot be NULL", hint="Pass an array of texts: ARRAY[$$…$$, $$…$$]."
            )
    functions = object_table.functions(catalog, objects)
    ids = [i for i in model_ids or () if i is not None]
    rows = grid.cross_product(
        ids, params[0] or (), params[1] or (), functions, catalog.db.check_interrupts
    )
    add(catalog.db, create(catalog, table, relation, objects), rows)


def generate(
    catalog: Catalog,
    architectures: str | None,
    table: str | None,
    model_ids: Sequence[int | None] | None,
    make: Callable[[list[int], Functions | None, Poll], Sequence[grid.ConfigRow]],
    objects: str | None,
) -> None:
    """Make a model selection table of what `make` gives for the model ids, or extend an existing
    one.
    """
    relation = check_models(catalog, architectures, model_ids)
    ids = [i for i in model_ids or () if i is not None]
    poll = catalog.db.check_interrupts
    if table is not None and table.strip() and catalog.find(table):
        before = read_existing(catalog, table, relation, objects)
        rows = make(ids, object_table.functions(catalog, before.objects), poll)
        add(
            catalog.db,
            before.table,
            tuple(grid.collapse(polled(rows, poll), polled(before.rows, poll))),
        )
    else:
        rows = make(ids, object_table.functions(catalog, objects), poll)
        add(catalog.db, create(catalog, table, relation, objects), rows)


def check_callbacks(db: Database, fits: Iterable[FitParams]) -> None:
    """Refuse what writes files as the server's user, of anybody but a superuser."""
    if any(fit.callbacks.board for fit in fits) and not db.value(sql("functions.superuser")):
        raise InsufficientPrivilege(
            "Only a superuser may use callbacks.",
            hint="TensorBoard writes files as the operating-system user of the server. Each "
            "epoch's metrics are in cerebro.metric and cerebro.learning_curve.",
        )
