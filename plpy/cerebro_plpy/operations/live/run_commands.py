"""Commands to a live run, which cerebro.act_log hands to it.

A command is checked here with the privileges of its caller, as far as possible. The run itself may
still refuse it, and records the refusal in the log.
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
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.errors import (
    LIST_RUNS,
    FeatureNotSupported,
    InvalidParameter,
    NullNotAllowed,
    ObjectNotReady,
    UndefinedObject,
    hidden_run,
    quote_text,
)
from cerebro_plpy.operations.live import added_from_space, added_from_templates
from cerebro_plpy.operations.live.added_from_space import OPTIMIZER
from cerebro_plpy.operations.live.added_from_templates import find_template_run
from cerebro_plpy.operations.live.learning_rates import rename_rate, set_optimizer_rate
from cerebro_plpy.operations.live.runs import MORE_EPOCHS, suggest_longer_training
from cerebro_plpy.operations.train_arguments import parse_object
from cerebro_plpy.tables.model_selection_table import read_configs

LIVE_STATUSES = ("running", "queued", "paused")
NO_CHANGE: Mapping[str, Any] = {}
CHANGE_EXAMPLE = 'For example \'{"optimizer": "Adam(learning_rate=0.01)", "batch_size": 64}\'.'
RATE = "learning_rate"
OF_OPTIMIZERS = ("momentum", "weight_decay")
"""Parameters that an optimizer has, and not a configuration."""


class Command(NamedTuple):
    """An action, and the run or the configuration that it concerns."""

    action: str
    run_id: int | None
    mst_key: int | None = None


def send_to_run(db: Database, command: Command, change: Mapping[str, Any] = NO_CHANGE) -> int:
    """Log a command to a run; return the id of the act.

    Args:
        change: the parameters of the action.
    """
    if command.run_id is None:
        raise NullNotAllowed(f"{command.action} error: run_id is NULL.", hint=LIST_RUNS)
    rows = db.peek(sql("act.run"), command.run_id)
    if not rows:
        raise hidden_run(command.run_id, command.action)
    _check_live(db, command, rows[0], change.get("epochs", MORE_EPOCHS))
    values = (command.run_id, command.action, command.mst_key, json.dumps(change))
    return int(db.rows(sql("act.add"), *values)[0]["act_id"])


def send_to_config(db: Database, command: Command) -> int:
    """Log a command to one configuration; return the id of the act."""
    if command.mst_key is None:
        raise NullNotAllowed(
            f"{command.action} error: mst_key is NULL; expected that of a configuration."
        )
    return _send_to_existing(db, command, NO_CHANGE)


def set_epochs(db: Database, command: Command, epochs: int | None) -> int:
    """Log a command to change the number of epochs; return the id of the act."""
    if epochs is None or epochs < 1:
        raise InvalidParameter(
            f"set_epochs error: epochs is {epochs}; expected a number of epochs, at least 1."
        )
    send = send_to_run if command.mst_key is None else _send_to_existing
    return send(db, command, {"epochs": epochs})


def clone_config(db: Database, command: Command, change: str | None, warm: bool) -> int:
    """Log a command to clone a configuration with other parameters; return the id of the act.

    Args:
        change: the other parameters, as JSON.
        warm: the clone starts from the state of the original configuration.
    """
    rows = db.peek(sql("act.config"), command.run_id, command.mst_key)
    fields = read_json("change", change or "{}")
    if not isinstance(fields, dict):
        raise InvalidParameter(
            f"{command.action} error: change is {change!r:.80}; expected a JSON object.",
            hint=CHANGE_EXAMPLE,
        )
    run = find_template_run(db, command.action, command.run_id)
    config: JsonObject = {}
    if rows and run:
        config = added_from_templates.change_config(command.action, run, rows[0], fields, warm)
    elif rows:
        config = _change_config(command, rows[0], fields)
    return _send_to_existing(db, command, {**config, "warm": warm})


def _change_config(command: Command, config: Row, fields: Mapping[str, object]) -> dict[str, str]:
    """Return the parameters of a configuration with other values; None removes a parameter.

    A learning rate changes the optimizer.
    """
    names = (*COMPILE_KEYS, *FIT_KEYS)
    changes = rename_rate(command.action, fields, RATE)
    sets_rate = RATE in changes
    rate = changes.pop(RATE, None)
    unknown = sorted(changes.keys() - set(names))
    if unknown:
        raise InvalidParameter(
            f"{command.action} error: change has {unknown[0]!r}; expected compile and fit "
            "parameters.",
            hint=CHANGE_EXAMPLE if unknown[0] in OF_OPTIMIZERS else near_matches(unknown[0], names),
        )
    texts = {}
    for column, keys in (("compile_params", COMPILE_KEYS), ("fit_params", FIT_KEYS)):
        values = parse_keywords(config[column], UNQUOTED)
        values.update((key, value) for key, value in changes.items() if key in keys)
        if sets_rate and OPTIMIZER in keys:
            optimizer = str(values.get(OPTIMIZER) or "RMSprop")
            values[OPTIMIZER] = set_optimizer_rate(command.action, optimizer, rate)
        texts[column] = ",".join(
            f"{key}={value if key in CALLS else repr(value)}"
            for key, value in values.items()
            if value is not None
        )
    parse_compile_params(texts["compile_params"], ANY_FUNCTIONS)
    parse_fit_params(texts["fit_params"])
    return texts


def add_configs(
    db: Database, command: Command, space: str | None, n: int | None, table: str | None
) -> int:
    """Log a command to add configurations; return the id of the act.

    Args:
        space: the space from which they are drawn, as JSON.
        n: the number to draw; None for all of the space.
        table: a model selection table that contains them, instead of a space.
    """
    if run := find_template_run(db, command.action, command.run_id):
        if table is not None:
            raise InvalidParameter(
                f"{command.action} error: selection_table is {table!r}, but configurations of run "
                f"{command.run_id} are of templates.",
                hint="Leave selection_table out, and write "
                "space => '{\"lr\": [0.01, 0.02]}', configs => 2.",
            )
        fields = parse_object(command.action, "space", space)
        rows = added_from_templates.draw_configs(command.action, run, fields, n)
    elif (space is None) == (table is None):
        raise InvalidParameter(
            f"{command.action} error: {'neither' if space is None else 'both'} space "
            f"{'nor' if space is None else 'and'} selection_table; expected one of them.",
            hint=_suggest_configs(db, command, space),
        )
    elif space is not None:
        existing = _read_configs(db, command)
        parsed_space = added_from_space.parse_space(command.action, space)
        model_ids = {row.model_id for row in existing}
        rows = added_from_space.draw_configs(
            command.action, parsed_space, n, model_ids, existing, db.check_interrupts
        )
    elif n is not None:
        raise InvalidParameter(
            f"{command.action} error: configs is {n}, but all of a selection_table are added.",
            hint="Leave configs out.",
        )
    else:
        rows = _read_selection_table(db, command.action, table)
    return send_to_run(db, command, {"configs": rows})


def _suggest_configs(db: Database, command: Command, space: str | None) -> str:
    """Return a hint for a call that names no configurations to add, or names them twice."""
    if space is not None:
        return "Leave selection_table out to draw from the space; or leave space out."
    rows = db.peek(sql("act.configs"), command.run_id)
    if not rows:
        return LIST_RUNS
    fields = {"compile_params": {"lr": [0.001, 0.1, "log"]}}
    example = added_from_space.make_space_around(command.action, rows[0], fields)
    return f"For example space => {quote_text(json.dumps(example))}, configs => 2."


def _read_selection_table(db: Database, module: str, table: str | None) -> list[JsonObject]:
    catalog = Catalog(db, module)
    selection = catalog.resolve_input(table, "model selection")
    configs = read_configs(catalog, LocalSession(db), selection, ANY_FUNCTIONS)
    return [
        {
            "model_id": config.model_id,
            "compile_params": config.compile_text,
            "fit_params": config.fit_text,
        }
        for config in configs
    ]


def drill_down(db: Database, command: Command, space: str | None, n: int | None) -> int:
    """Log a command to add configurations that vary one in a space; return the id of the act."""
    action = command.action
    if space is None:
        raise NullNotAllowed(
            f"{action} error: space is NULL; expected the fields to vary, as JSON."
        )
    config_rows = db.peek(sql("act.config"), command.run_id, command.mst_key)
    new_rows: list[JsonObject] = []
    if run := find_template_run(db, action, command.run_id):
        fields = parse_object(action, "space", space)
        if config_rows:
            new_rows = added_from_templates.draw_configs_around(
                action, run, config_rows[0], fields, n
            )
        return _send_to_existing(db, command, {"configs": new_rows})
    parsed_space = added_from_space.parse_space(action, space)
    if config_rows:
        config = config_rows[0]
        full_space = added_from_space.make_space_around(action, config, parsed_space)
        existing = _read_configs(db, command)
        new_rows = added_from_space.draw_configs(
            action, full_space, n, [config["model_id"]], existing, db.check_interrupts
        )
    return _send_to_existing(db, command, {"configs": new_rows})


def _read_configs(db: Database, command: Command) -> list[ConfigRow]:
    """Read the configurations of the run."""
    rows = db.peek(sql("act.configs"), command.run_id)
    return [ConfigRow(row["model_id"], row["compile_params"], row["fit_params"]) for row in rows]


def _send_to_existing(db: Database, command: Command, change: Mapping[str, Any]) -> int:
    """Log a command to one configuration, which must exist; return the id of the act."""
    action, run_id, mst_key = command
    is_known = run_id is None or db.peek(sql("act.config"), run_id, mst_key)
    if not is_known and db.peek(sql("act.run"), run_id):
        raise UndefinedObject(
            f"{action} error: run {run_id} has no configuration with mst_key {mst_key}.",
            hint=f"SELECT mst_key, status FROM cerebro.config WHERE run_id = {run_id};",
        )
    return send_to_run(db, command, change)


def _check_live(db: Database, command: Command, run: Row, epochs: int) -> None:
    """Check that a run is live and can follow commands.

    Args:
        epochs: epochs that a hint for training longer names.
    """
    if run["status"] not in LIVE_STATUSES:
        hint = f"SELECT cerebro.resume({command.run_id});"
        if run["status"] == "completed":
            hint = suggest_longer_training(db, command.run_id, epochs)
        raise ObjectNotReady(
            f"{command.action} error: run {command.run_id} is {run['status']}; it can be steered "
            "while it goes on.",
            hint=hint,
        )
    if run["averages"]:
        raise FeatureNotSupported(
            f"{command.action} error: run {command.run_id} averages: within an epoch its "
            "models have no states.",
            hint=f"Cancel it: SELECT cerebro.cancel({command.run_id});",
        )
