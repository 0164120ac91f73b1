"""Calls that train, by name and with arguments as JSON, in the background.

The server itself knows the names, types and defaults of arguments: a statement turns JSON into the
values that a call would receive.
"""

from __future__ import annotations

import json

from cerebro_plpy.configs.json_arguments import read_json
from cerebro_plpy.configs.params.keras_names import guess_match
from cerebro_plpy.configs.run_spec import FitArguments
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Globals, Row
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.database.table_visibility import refuse_private_source, refuse_private_tables
from cerebro_plpy.errors import InvalidParameter, NullNotAllowed, quote_text
from cerebro_plpy.operations import train_arguments
from cerebro_plpy.operations.fit import automl_arguments
from cerebro_plpy.operations.fit.automl_arguments import AutomlArguments
from cerebro_plpy.operations.fit.fit_arguments import make_single_model_arguments
from cerebro_plpy.operations.fit.input_tables import find_search_inputs
from cerebro_plpy.operations.live import background_run
from cerebro_plpy.operations.train.train_request import (
    find_sources,
    open_catalog,
    resolve_source,
)
from cerebro_plpy.operations.train_arguments import TrainArguments, read_arguments
from cerebro_plpy.records import asdict

MODULE = "submit"
SCHEMA = "cerebro."
FIT_MULTIPLE = "fit_multiple_model"
FIT_SINGLE = "fit"
AUTOML = "automl"
TRAIN = "train"
CALLS = {
    "madlib_fit_multiple_model": FIT_MULTIPLE,
    "madlib_keras_fit_multiple_model": FIT_MULTIPLE,
    "madlib_fit": FIT_SINGLE,
    "madlib_keras_fit": FIT_SINGLE,
    "madlib_automl": AUTOML,
    "madlib_keras_automl": AUTOML,
    f"{SCHEMA}{TRAIN}": TRAIN,
}
"""The calls that train."""
RESULT_COLUMNS = (
    "rank",
    "mst_key",
    "template",
    "params",
    "epochs",
    "metric",
    "validation",
    "training",
    "seconds",
    "group_value",
)
"""Columns of the result of `cerebro.train` that are NULL until the run has ended."""


def submit(db: Database, gd: Globals, call: str | None, text: str | None) -> int:
    """Start a call in the background; return the id of its run.

    Args:
        call: the name of an SQL function.
        text: its arguments, as JSON.
    """
    if call is None or text is None:
        raise NullNotAllowed(
            f"{MODULE} error: {'call' if call is None else 'arguments'} is NULL.",
            hint="SELECT cerebro.help('cerebro.submit', 'usage');",
        )
    name = call if call != TRAIN else f"{SCHEMA}{TRAIN}"
    if name not in CALLS:
        raise InvalidParameter(
            f"{MODULE} error: call is {call!r:.80}; expected one of {', '.join(CALLS)}.",
            hint=guess_match(call, CALLS),
        )
    values = _read_values(db, name, _parse_arguments(text)).values()
    kind = CALLS[name]
    if kind == AUTOML:
        return _submit_automl(db, gd, AutomlArguments(*values))
    if kind == TRAIN:
        return int(train(db, gd, TrainArguments(*values))[0]["run_id"])
    if kind == FIT_SINGLE:
        return background_run.submit_fit(db, gd, make_single_model_arguments(*values))
    return background_run.submit_fit(db, gd, FitArguments(*values))


def train(db: Database, gd: Globals, arguments: TrainArguments) -> list[Row]:
    """Start a call of `cerebro.train` in the background; return a row with the id of its run."""
    module = train_arguments.MODULE
    catalog = open_catalog(db, module, arguments)
    parsed_arguments = read_arguments(db, module, arguments)
    source = resolve_source(catalog, arguments, parsed_arguments, is_read_apart=True)
    sources = find_sources(catalog, arguments, source, parsed_arguments)
    for table in sources:
        refuse_private_source(db, module, table)
    run_id = background_run.start_background_run(db, gd, {"train": asdict(arguments)}, sources)
    return [{**dict.fromkeys(RESULT_COLUMNS), "run_id": run_id, "status": "running"}]


def _submit_automl(db: Database, gd: Globals, arguments: AutomlArguments) -> int:
    automl_arguments.read_method(arguments)
    inputs = find_search_inputs(Catalog(db, automl_arguments.MODULE), arguments)
    refuse_private_tables(db, inputs.list_existing())
    return background_run.start_background_run(db, gd, {"automl": asdict(arguments)})


def _parse_arguments(text: str) -> JsonObject:
    arguments = read_json("arguments", text)
    if not isinstance(arguments, dict):
        raise InvalidParameter(
            f"{MODULE} error: arguments is {text!r:.80}; expected a JSON object.",
            hint='Its keys are names of arguments, in SQL: {"source_table": "iris_packed"}.',
        )
    return arguments


def _read_values(db: Database, call: str, named_values: JsonObject) -> Row:
    """Return the values that an SQL function would receive, in the order of its arguments.

    Args:
        named_values: the arguments of the call by name; the others have their defaults.
    """
    rows = db.rows(sql("background.arguments"), call.removeprefix(SCHEMA))
    names = [row["name"] for row in rows]
    for name in named_values:
        if name not in names:
            raise InvalidParameter(
                f"{MODULE} error: arguments has {name!r}, which {call} does not know; expected "
                f"{', '.join(names)}.",
                hint=guess_match(name, names),
            )
    columns = []
    expressions = []
    missing = []
    for row in rows:
        column = quote_identifier(row["name"])
        columns.append(f"{column} {row['type']}")
        if row["name"] in named_values:
            expressions.append(column)
        elif row["default_value"] is None:
            missing.append(row["name"])
        else:
            expressions.append(f"{row['default_value']} AS {column}")
    if missing:
        raise InvalidParameter(
            f"{MODULE} error: arguments lacks {', '.join(missing)}, without which {call} cannot be "
            "called.",
            hint=f"SELECT cerebro.help({quote_text(call)}, 'usage');",
        )
    query = sql("background.typed", chosen=", ".join(expressions), columns=", ".join(columns))
    return db.rows(query, json.dumps(named_values))[0]
