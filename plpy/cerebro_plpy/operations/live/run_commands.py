"""Acts on a live run, as they are asked for: checked with the rights of whoever asks, and written
down for the run.

Whether an act can still be done is known to the run alone, which refuses it in the log otherwise;
what can be said before is said here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from cerebro_plpy.configs.json_arguments import read_json
from cerebro_plpy.configs.params.compile_params import COMPILE_KEYS, UNQUOTED, parse_compile_params
from cerebro_plpy.configs.params.custom_functions import ANY_FUNCTIONS
from cerebro_plpy.configs.params.fit_params import FIT_KEYS, parse_fit_params
from cerebro_plpy.configs.params.keras_names import near_matches
from cerebro_plpy.configs.params.literals import CALLS, parse_keywords
from cerebro_plpy.configs.search_space.grid import ConfigRow
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.errors import (
    LIST_RUNS,
    FeatureNotSupported,
    InvalidParameter,
    NullNotAllowed,
    ObjectNotReady,
    UndefinedObject,
    hidden_run,
)
from cerebro_plpy.operations.live import added_from_templates
from cerebro_plpy.operations.live.added_from_space import around, drawn, read
from cerebro_plpy.operations.live.added_from_templates import template_run
from cerebro_plpy.operations.train_arguments import parse_object
from cerebro_plpy.tables.model_selection_table import read_configs as selection_of

LIVE = ("running", "queued", "paused")
NOTHING: Mapping[str, Any] = {}


class Command(NamedTuple):
    """What is asked, of which run, and of which configuration of it."""

    action: str
    run_id: int | None
    mst_key: int | None = None


def send_to_run(db: Database, asked: Command, change: Mapping[str, Any] = NOTHING) -> int:
    """Ask something of a run; the id of the act."""
    if asked.run_id is None:
        raise NullNotAllowed(f"{asked.action} error: run_id is NULL.", hint=LIST_RUNS)
    rows = db.peek(sql("act.run"), asked.run_id)
    if not rows:
        raise hidden_run(asked.run_id, asked.action)
    _check_live(asked, rows[0])
    values = (asked.run_id, asked.action, asked.mst_key, json.dumps(change))
    return int(db.rows(sql("act.add"), *values)[0]["act_id"])


def send_to_config(db: Database, asked: Command) -> int:
    """Ask something of one configuration; the id of the act."""
    if asked.mst_key is None:
        raise NullNotAllowed(
            f"{asked.action} error: mst_key is NULL; expected that of a configuration."
        )
    return _of_known_config(db, asked, NOTHING)


def set_epochs(db: Database, asked: Command, epochs: int | None) -> int:
    """Ask for a number of epochs; the id of the act."""
    if epochs is None or epochs < 1:
        raise InvalidParameter(
            f"set_epochs error: n is {epochs}; expected a number of epochs, at least 1."
        )
    if asked.mst_key is None:
        return send_to_run(db, asked, {"epochs": epochs})
    return _of_known_config(db, asked, {"epochs": epochs})


def clone_config(db: Database, asked: Command, change: str | None, warm: bool) -> int:
    """Ask for a configuration like another one, but for some parameters; the id of the act."""
    found = db.peek(sql("act.config"), asked.run_id, asked.mst_key)
    fields = read_json("change", change or "{}")
    if not isinstance(fields, dict):
        raise InvalidParameter(
            f"{asked.action} error: change is {change!r:.80}; expected a JSON object.",
            hint='For example \'{"optimizer": "Adam(learning_rate=0.01)", "batch_size": 64}\'.',
        )
    run = template_run(db, asked.action, asked.run_id)
    made: Mapping[str, Any] = {}
    if found and run:
        made = added_from_templates.changed(asked.action, run, found[0], fields, warm)
    elif found:
        made = _changed(asked, found[0], fields)
    return _of_known_config(db, asked, {**made, "warm": warm})


def _changed(asked: Command, config: Row, fields: Mapping[str, object]) -> dict[str, str]:
    """The parameters of a configuration with other values; those that are NULL are left out."""
    unknown = sorted(fields.keys() - {*COMPILE_KEYS, *FIT_KEYS})
    if unknown:
        known = (*COMPILE_KEYS, *FIT_KEYS)
        raise InvalidParameter(
            f"{asked.action} error: change has {unknown[0]!r}; expected compile and fit "
            "parameters.",
            hint=near_matches(unknown[0], known),
        )
    texts = {}
    for name, keys in (("compile_params", COMPILE_KEYS), ("fit_params", FIT_KEYS)):
        values = {
            **parse_keywords(config[name], UNQUOTED),
            **{key: value for key, value in fields.items() if key in keys},
        }
        texts[name] = ",".join(
            f"{key}={value if key in CALLS else repr(value)}"
            for key, value in values.items()
            if value is not None
        )
    parse_compile_params(texts["compile_params"], ANY_FUNCTIONS)
    parse_fit_params(texts["fit_params"])
    return texts


def add_configs(
    db: Database, asked: Command, space: str | None, n: int | None, table: str | None
) -> int:
    """Ask for configurations of a space, or for those of a model selection table; the id of the
    act.
    """
    if run := template_run(db, asked.action, asked.run_id):
        if table is not None:
            raise InvalidParameter(
                f"{asked.action} error: selection_table is {table!r}, but configurations of run "
                f"{asked.run_id} are of templates.",
                hint="Say it of their fields, as in space => '{\"lr\": [0.01, 0.02]}', n => 4.",
            )
        chosen = parse_object(asked.action, "space", space)
        return send_to_run(
            db, asked, {"configs": added_from_templates.drawn(asked.action, run, chosen, n)}
        )
    if (space is None) == (table is None):
        raise InvalidParameter(
            f"{asked.action} error: {'neither' if space is None else 'both'} space "
            f"{'nor' if space is None else 'and'} selection_table; expected one of them.",
            hint="cerebro.add_configs(run_id, selection_table => 'a_table'), or a space as JSON, "
            "and n.",
        )
    if space is not None:
        existing = _existing(db, asked)
        models = {row.model_id for row in existing}
        rows = drawn(
            asked.action, read(asked.action, space), n, models, existing, db.check_interrupts
        )
        return send_to_run(db, asked, {"configs": rows})
    if n is not None:
        raise InvalidParameter(
            f"{asked.action} error: n is {n}, but all of a selection_table are added."
        )
    catalog = Catalog(db, asked.action)
    selection = catalog.resolve_input(table, "model selection")
    found = selection_of(catalog, LocalSession(db), selection, ANY_FUNCTIONS)
    listed = [
        {"model_id": c.model_id, "compile_params": c.compile_text, "fit_params": c.fit_text}
        for c in found
    ]
    return send_to_run(db, asked, {"configs": listed})


def drill_down(db: Database, asked: Command, space: str | None, n: int | None) -> int:
    """Ask for configurations that are like one, but for what a space says; the id of the act."""
    if space is None:
        raise NullNotAllowed(
            f"{asked.action} error: space is NULL; expected what is to be varied, as JSON."
        )
    found = db.peek(sql("act.config"), asked.run_id, asked.mst_key)
    rows = list[dict[str, object]]()
    if run := template_run(db, asked.action, asked.run_id):
        chosen = parse_object(asked.action, "space", space)
        rows = (
            added_from_templates.around(asked.action, run, found[0], chosen, n) if found else rows
        )
        return _of_known_config(db, asked, {"configs": rows})
    given = read(asked.action, space)
    if found:
        whole = around(asked.action, found[0], given)
        rows = drawn(
            asked.action,
            whole,
            n,
            [found[0]["model_id"]],
            _existing(db, asked),
            db.check_interrupts,
        )
    return _of_known_config(db, asked, {"configs": rows})


def _existing(db: Database, asked: Command) -> list[ConfigRow]:
    """The configurations that a run has."""
    rows = db.peek(sql("act.configs"), asked.run_id)
    return [ConfigRow(row["model_id"], row["compile_params"], row["fit_params"]) for row in rows]


def _of_known_config(db: Database, asked: Command, change: Mapping[str, Any]) -> int:
    found = asked.run_id is None or db.peek(sql("act.config"), asked.run_id, asked.mst_key)
    if not found and db.peek(sql("act.run"), asked.run_id):
        raise UndefinedObject(
            f"{asked.action} error: run {asked.run_id} has no configuration with mst_key "
            f"{asked.mst_key}.",
            hint=f"SELECT mst_key, status FROM cerebro.config WHERE run_id = {asked.run_id};",
        )
    return send_to_run(db, asked, change)


def _check_live(asked: Command, run: Row) -> None:
    if run["status"] not in LIVE:
        hint = f"SELECT cerebro.resume({asked.run_id});" if run["status"] != "completed" else None
        raise ObjectNotReady(
            f"{asked.action} error: run {asked.run_id} is {run['status']}; it can be steered while "
            "it goes on.",
            hint=hint,
        )
    if run["averages"]:
        raise FeatureNotSupported(
            f"{asked.action} error: run {asked.run_id} averages: within an iteration its models "
            "have no states.",
            hint=f"It can be cancelled: SELECT cerebro.cancel({asked.run_id});",
        )
