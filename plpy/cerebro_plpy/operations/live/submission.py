"""Any call that trains, by its name and its arguments as JSON, to be done in the background.

The server itself has names, types and defaults of arguments: it makes of JSON what the call would
have been given.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from cerebro_plpy.configs.json_arguments import read_json
from cerebro_plpy.configs.params.keras_names import near_matches
from cerebro_plpy.configs.run_spec import FitArguments
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Globals, Row
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.database.table_visibility import refuse_private_source, refuse_private_tables
from cerebro_plpy.errors import InvalidParameter, NullNotAllowed
from cerebro_plpy.operations import train_arguments
from cerebro_plpy.operations.fit import automl_arguments
from cerebro_plpy.operations.fit.automl_arguments import AutomlArguments
from cerebro_plpy.operations.fit.fit_arguments import make_single_model_arguments
from cerebro_plpy.operations.fit.input_tables import find_search_inputs
from cerebro_plpy.operations.live import background_run
from cerebro_plpy.operations.train.train_request import find_sources
from cerebro_plpy.operations.train_arguments import TrainArguments, read_arguments
from cerebro_plpy.records import asdict

MODULE = "submit"
SCHEMA = "cerebro."
FITS, SINGLE, SEARCHES, TRAIN = "fit_multiple_model", "fit", "automl", "train"
CALLS = {
    **{
        f"{name}{kind}": kind
        for kind in (FITS, SINGLE, SEARCHES)
        for name in ("madlib_", "madlib_keras_")
    },
    f"{SCHEMA}{TRAIN}": TRAIN,
}
"""Those that train."""
COLUMNS = (
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
"""What `cerebro.train` says of a run that has ended."""


class Argument(NamedTuple):
    """An argument of a function of SQL: its type and its default as SQL, None where it has to be
    given.
    """

    name: str
    type: str
    default: str | None


def submit(db: Database, gd: Globals, call: str | None, text: str | None) -> int:
    """Begin what that call would do with these arguments; the id of its run."""
    if call is None or text is None:
        raise NullNotAllowed(
            f"{MODULE} error: {'call' if call is None else 'arguments'} is NULL.",
            hint="cerebro.submit('madlib_automl', '{\"source_table\": \"iris_packed\", …}')",
        )
    name = call if call != TRAIN else f"{SCHEMA}{TRAIN}"
    if name not in CALLS:
        raise InvalidParameter(
            f"{MODULE} error: call is {call!r:.80}; expected one of {', '.join(CALLS)}.",
            hint=near_matches(call, CALLS),
        )
    values = _values(db, name, _given(text)).values()
    kind = CALLS[name]
    if kind == SEARCHES:
        return _search(db, gd, AutomlArguments(*values))
    if kind == TRAIN:
        return int(train(db, gd, TrainArguments(*values))[0]["run_id"])
    return background_run.submit_fit(
        db, gd, make_single_model_arguments(*values) if kind == SINGLE else FitArguments(*values)
    )


def train(db: Database, gd: Globals, arguments: TrainArguments) -> list[Row]:
    """Begin what a call of train with these arguments would do; a row with the id of its run."""
    module = train_arguments.MODULE
    catalog, wanted = Catalog(db, module), read_arguments(db, module, arguments)
    source = catalog.resolve_input(arguments.source)
    sources = find_sources(catalog, arguments, source, wanted)
    for each in sources:
        refuse_private_source(db, module, each)
    run_id = background_run.start_background_run(db, gd, {"train": asdict(arguments)}, sources)
    return [{**dict.fromkeys(COLUMNS), "run_id": run_id, "status": "running"}]


def _search(db: Database, gd: Globals, arguments: AutomlArguments) -> int:
    automl_arguments.read_method(arguments)
    refuse_private_tables(
        db, find_search_inputs(Catalog(db, automl_arguments.MODULE), arguments).list_existing()
    )
    return background_run.start_background_run(db, gd, {"automl": asdict(arguments)})


def _given(text: str) -> Mapping[str, Any]:
    given = read_json("arguments", text)
    if not isinstance(given, dict):
        raise InvalidParameter(
            f"{MODULE} error: arguments is {text!r:.80}; expected a JSON object.",
            hint='Its keys are names of arguments, in SQL: {"source_table": "iris_packed"}.',
        )
    return given


def _values(db: Database, call: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the function of that name would be given, in the order of its arguments."""
    rows = db.rows(sql("background.arguments"), call.removeprefix(SCHEMA))
    known = {row["name"]: Argument(row["name"], row["type"], row["default_value"]) for row in rows}
    for name in given:
        if name not in known:
            raise InvalidParameter(
                f"{MODULE} error: arguments has {name!r}, which {call} does not know; expected "
                f"{', '.join(known)}.",
                hint=near_matches(name, known),
            )
    missing = [
        each.name for each in known.values() if each.default is None and each.name not in given
    ]
    if missing:
        raise InvalidParameter(
            f"{MODULE} error: arguments lacks {', '.join(missing)}, without which {call} cannot be "
            "called.",
            hint=f"SELECT cerebro.help({call!r}, 'usage');",
        )
    columns = ", ".join(f"{quote_identifier(each.name)} {each.type}" for each in known.values())
    chosen = (
        quote_identifier(each.name) if each.name in given else str(each.default)
        for each in known.values()
    )
    named = (f"{value} AS {quote_identifier(name)}" for name, value in zip(known, chosen))
    return db.rows(
        sql("background.typed", chosen=", ".join(named), columns=columns), json.dumps(given)
    )[0]
