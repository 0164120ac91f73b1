"""Model selection tables: loading them, generating them, and reading them for a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Optional

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
from cerebro_plpy.database.sql.identifiers import is_qualified, quote_qualified, split_qualified
from cerebro_plpy.errors import (
    CerebroError,
    InsufficientPrivilege,
    InvalidParameter,
    NullNotAllowed,
    UndefinedColumn,
    UndefinedObject,
    UndefinedTable,
)
from cerebro_plpy.limits import CONFIGS, Poll, check, poll_between
from cerebro_plpy.packing.packed_summary import read_summary_row
from cerebro_plpy.records import replace
from cerebro_plpy.tables import object_table
from cerebro_plpy.tables.architectures import find_table

COLUMNS = ("mst_key", "model_id", "compile_params", "fit_params")
ModelIds = Optional[Sequence[Optional[int]]]
LIST_EXAMPLES = {
    "compile_params_list": "$$optimizer='SGD(learning_rate=0.01)', loss='mse'$$",
    "fit_params_list": "$$batch_size=32$$",
}
SINGLE_KEY = 1
"""The mst_key of a configuration that is not in a model selection table."""


class SelectionSummary(NamedTuple):
    """The names of other tables in the summary of a model selection table."""

    architectures: str | None  # as the user wrote it
    objects: str | None
    schema: str | None = None  # of the architecture table, if its name alone does not find it


class ExistingSelection(NamedTuple):
    """An existing model selection table with its rows."""

    table: Relation
    rows: list[grid.ConfigRow]
    objects: str | None  # name of its object table


def load(
    catalog: Catalog,
    architectures: str | None,
    table: str | None,
    model_ids: ModelIds,
    params: tuple[Sequence[str | None] | None, Sequence[str | None] | None],
    objects: str | None,
) -> None:
    """Create a model selection table with all combinations of models and parameters.

    Args:
        params: compile parameters and fit parameters.
    """
    relation = check_models(catalog, architectures, model_ids)
    for name, values in zip(("compile_params_list", "fit_params_list"), params):
        check_flat(catalog.module, name, values)
        if not values:
            raise NullNotAllowed(
                f"{name} cannot be NULL",
                hint=f"For example {name} => ARRAY[{LIST_EXAMPLES[name]}].",
            )
    functions = object_table.find_functions(catalog, objects)
    ids = [model_id for model_id in model_ids or () if model_id is not None]
    compile_params, fit_params = params
    rows = grid.cross_product(
        ids, compile_params or (), fit_params or (), functions, catalog.db.check_interrupts
    )
    add(catalog.db, create(catalog, table, relation, objects), rows)


def generate(
    catalog: Catalog,
    architectures: str | None,
    table: str | None,
    model_ids: ModelIds,
    make_rows: Callable[[list[int], Functions | None, Poll], Sequence[grid.ConfigRow]],
    objects: str | None,
) -> None:
    """Create a model selection table with the rows of `make_rows`, or extend an existing table."""
    relation = check_models(catalog, architectures, model_ids)
    ids = [model_id for model_id in model_ids or () if model_id is not None]
    poll = catalog.db.check_interrupts
    if table is not None and table.strip() and catalog.find(table):
        existing = read_existing(catalog, table, relation, objects)
        rows = make_rows(ids, object_table.find_functions(catalog, existing.objects), poll)
        new_rows = grid.drop_duplicates(poll_between(rows, poll), poll_between(existing.rows, poll))
        add(catalog.db, existing.table, tuple(new_rows))
        return
    rows = make_rows(ids, object_table.find_functions(catalog, objects), poll)
    add(catalog.db, create(catalog, table, relation, objects), rows)


def check_models(catalog: Catalog, table: str | None, model_ids: ModelIds) -> Relation:
    """Check that an architecture table has all these models, and return it."""
    relation = find_table(catalog, table)
    check_flat(catalog.module, "model_id_list", model_ids)
    if not model_ids or None in model_ids:
        raise NullNotAllowed(
            f"{catalog.module} error: model_id_list is NULL, empty or has a NULL; expected one or "
            "more model ids.",
            hint=f"SELECT model_id, name FROM {relation.quoted};",
        )
    rows = catalog.db.rows(sql("model.ids", table=relation.quoted), list(model_ids))
    missing = set(model_ids) - {row["model_id"] for row in rows}
    if missing:
        raise UndefinedObject(
            f"{catalog.module}: One or more model_id of ({', '.join(map(str, model_ids))}) not "
            f"found in table {relation.spelling}",
            detail=f"Not found: {sorted(missing, key=str)}.",
            hint=f"SELECT model_id, name FROM {relation.quoted};",
        )
    return relation


def create(
    catalog: Catalog, table: str | None, architectures: Relation, objects: str | None
) -> Relation:
    """Create a model selection table and its summary."""
    output = catalog.reserve_output(table, ("_summary",))
    catalog.db.rows(sql("model.selection", table=output.quoted, **catalog.db.platform.clauses))
    _create_summary(catalog.db, output, architectures, objects)
    return output


def _create_summary(
    db: Database, selection: Relation, architectures: Relation, objects: str | None
) -> None:
    """Create the summary of a model selection table, with the names that the call gave.

    MADlib's scripts expect these. A name without a schema is first looked up in the schema of the
    model selection table. If that does not find it, another column has its schema, so that no
    search_path leads to another table.
    """
    name = quote_qualified((selection.schema, selection.name + "_summary"))
    names = (architectures.spelling, objects)
    if is_qualified(architectures.spelling) or architectures.schema == selection.schema:
        db.rows(sql("model.selection_summary", table=name, **db.platform.clauses))
        db.rows(sql("model.add_selection_summary", table=name), *names)
    else:
        db.rows(sql("model.distant_summary", table=name, **db.platform.clauses))
        db.rows(sql("model.add_distant_summary", table=name), *names, architectures.schema)


def find_architectures(
    catalog: Catalog, names: SelectionSummary, selection: Relation | None
) -> Relation:
    """Find the architecture table of a model selection table, with the name that the call gave."""
    role = "model architecture"
    if names.schema is None or names.architectures is None:
        return catalog.resolve_input(names.architectures, role, owner=selection)
    plain = split_qualified(names.architectures)[-1]
    relation = catalog.resolve_input(quote_qualified((names.schema, plain)), role)
    return replace(relation, spelling=names.architectures)


def add(db: Database, table: Relation, rows: Sequence[grid.ConfigRow]) -> None:
    """Add rows in order."""
    texts = {row.fit_params for row in rows}
    check_callbacks(db, map(parse_fit_params, poll_between(texts, db.check_interrupts)))
    json_rows = json.dumps([row._asdict() for row in rows])
    db.rows(sql("model.add_selection", table=table.quoted), json_rows)


def read_existing(
    catalog: Catalog, table: str, architectures: Relation, objects: str | None
) -> ExistingSelection:
    """Read an existing model selection table, and check that it refers to the same tables.

    A summary that was dropped is created again.
    """
    relation = catalog.resolve_input(table, "model selection")
    summary = catalog.find_companion(relation, "_summary")
    if summary is None and catalog.read_columns(relation).keys() >= set(COLUMNS):
        _create_summary(catalog.db, relation, architectures, objects)
        summary = catalog.find_companion(relation, "_summary")
    names = read_summary(catalog, relation, summary, LocalSession(catalog.db))
    _check_same_tables(catalog, relation, names, architectures, objects)
    rows = [
        grid.ConfigRow(row["model_id"], row["compile_params"], row["fit_params"] or "")
        for row in catalog.db.rows(sql("model.read_selection", table=relation.quoted))
    ]
    return ExistingSelection(relation, rows, names.objects)


def _check_same_tables(
    catalog: Catalog,
    selection: Relation,
    names: SelectionSummary,
    architectures: Relation,
    objects: str | None,
) -> None:
    """Check that appended rows refer to the same tables as the existing rows."""
    table = selection.spelling
    recorded = find_architectures(catalog, names, selection)
    if recorded.oid != architectures.oid:
        expected = recorded.spelling if names.schema is None else recorded.quoted
        raise InvalidParameter(
            f"DL: Inconsistent model arch table. Use '{expected}' if appending rows to '{table}'",
            hint=f"Received {architectures.spelling!r}. Drop {table} first to start a new one.",
        )
    if objects is None:
        return
    if names.objects is None or not object_table.is_same(catalog, objects, names.objects):
        message = f"'{table}' was made without one"
        if names.objects:
            message = f"Use '{names.objects}' if appending rows to '{table}'"
        raise InvalidParameter(
            f"DL: Inconsistent object table. {message}",
            hint=f"Received {objects!r}. Drop {table} first to start a new one.",
        )


def read_summary(
    catalog: Catalog, selection: Relation, summary: Relation | None, reader: Session
) -> SelectionSummary:
    """Read the summary of a model selection table; object_table may be missing in a manual one."""
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
    return SelectionSummary(
        str(row["model_arch_table"]), row.get("object_table"), row.get("model_arch_schema")
    )


def read_configs(
    catalog: Catalog, reader: Session, selection: Relation, functions: Functions | None
) -> tuple[Config, ...]:
    """Return the parsed configurations of a model selection table, with unique keys."""
    missing = [name for name in COLUMNS if name not in catalog.read_columns(selection)]
    if missing:
        raise UndefinedColumn(
            f"{catalog.module} error: Column '{missing[0]}' does not exist in table "
            f"'{selection.spelling}'!",
            hint="Make the table with load_model_selection_table() or generate_model_configs().",
        )
    rows = reader.run(sql("read.selection", table=selection.quoted), (CONFIGS.maximum + 1,))
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
    configs = tuple(
        _parse_config(catalog, selection, functions, row)
        for row in poll_between(rows, catalog.db.check_interrupts)
    )
    check_callbacks(catalog.db, (config.fit for config in configs))
    return configs


def _parse_config(
    catalog: Catalog,
    selection: Relation,
    functions: Functions | None,
    row: tuple[int, int, str | None, str | None],
) -> Config:
    mst_key, model_id, compile_text, fit_text = row
    try:
        compile_params = parse_compile_params(compile_text or "", functions)
        fit_params = parse_fit_params(fit_text)
    except CerebroError as error:
        raise type(error)(
            f"{catalog.module} error: mst_key {mst_key} of table '{selection.spelling}': "
            f"{error.message}",
            hint=error.hint,
            detail=error.detail,
        ) from error
    return Config(mst_key, model_id, compile_text or "", fit_text or "", compile_params, fit_params)


@contextmanager
def add_parameter_detail(kind: str, text: str) -> Iterator[None]:
    """Add the text of the parameters to errors about them."""
    try:
        yield
    except CerebroError as error:
        detail = f"{kind} param check failed for: {text}"
        raise type(error)(error.message, hint=error.hint, detail=detail) from error


def check_callbacks(db: Database, fits: Iterable[FitParams]) -> None:
    """Check that only a superuser uses callbacks that write files as the server's user."""
    if any(fit.callbacks.tensorboard for fit in fits) and not db.value(sql("functions.superuser")):
        raise InsufficientPrivilege(
            "Only a superuser may use callbacks.",
            hint="TensorBoard writes files as the operating-system user of the server. Each "
            "epoch's metrics are in cerebro.metric and cerebro.learning_curve.",
        )
