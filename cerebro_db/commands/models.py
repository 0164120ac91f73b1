"""Commands for models by name: train, list and predict."""

from __future__ import annotations

import inspect
import json as json_module
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, get_origin, get_type_hints

import typer

from cerebro_db.arguments import TrainOptions
from cerebro_db.commands import completion
from cerebro_db.commands.argument_help import read_argument_help
from cerebro_db.commands.database import Json, Url, open_session, print_records
from cerebro_db.commands.output import check_output
from cerebro_db.display.csv_files import write_csv
from cerebro_db.errors import UndefinedObject
from cerebro_db.nouns import count_nouns
from cerebro_db.options import list_options

OPTIONAL = ("versions", "training_rows", "task", "run_id", "owner", "source", "created_at")
"""Columns that narrow tables lack, the first to be left out first."""
MODEL_COLUMNS: tuple[str, ...] = (
    "model",
    "owner",
    "version",
    "task",
    "target",
    "source",
    "metric",
    "value",
    "versions",
)
VERSION_COLUMNS = (
    "model",
    "owner",
    "version",
    "deployed",
    "created_at",
    "run_id",
    "template",
    "metric",
    "value",
    "training_rows",
)


TRAIN_HELP = read_argument_help("cerebro.train")


def _add_train_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add to a command the options of cerebro.train under their names; dicts are given as JSON."""
    evaluated = inspect.signature(command, eval_str=True)
    signature = list_options(evaluated, TrainOptions, _annotate_option)
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {
        name: parameter.annotation for name, parameter in signature.parameters.items()
    }
    return command


def _annotate_option(name: str, hint: Any) -> Any:
    """Return typer's annotation for an option of this type, with the help on the SQL argument."""
    text = TRAIN_HELP.get(name, "As of cerebro.train.")
    if hint is timedelta:
        return Annotated[
            str | None, typer.Option(help=f"{text} An interval, such as '10 minutes'.")
        ]
    if get_origin(hint) is Mapping:
        return Annotated[str | None, typer.Option(help=f"{text} As JSON.")]
    if get_origin(hint) is list:
        text += " Give the option once for each."
    return Annotated[hint | None, typer.Option(help=text)]


@_add_train_options
def train(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="[SOURCE] TARGET",
            help="Table or view, as in SQL, and the column to predict. "
            "Beside --query the column alone.",
        ),
    ],
    json: Json = False,
    url: Url = None,
    **options: Any,
) -> None:
    """Train a model that predicts a column of a table from its others; Ctrl-C cancels the run.

    For example: cerebro-db train flowers species --budget '2 minutes' --models realmlp --seed 1
    """
    source, target = _read_source_and_target(names, options["query"])
    arguments = {
        name: _parse_option(name, value)
        for name, value in options.items()
        if value not in (None, [])
    }
    with open_session(url) as session:
        board = session.train(source, target, progress=False if json else None, **arguments)
        (run,) = session.rows("cerebro.run", run_id=board[0].run_id)
    print_records(board, json)
    if not json:
        typer.echo(
            f"run {run['run_id']}, model {run['spec']['train']['model']!r}; cerebro-db predict "
            "MODEL TABLE predicts rows"
        )


def _read_source_and_target(names: list[str], query: str | None) -> tuple[str | None, str]:
    """Return the table, or None for a query, and the column to predict."""
    if query is None and len(names) == 2:
        return names[0], names[1]
    if query is not None and len(names) == 1:
        return None, names[0]
    expected = "a table and a column" if query is None else "the column alone, beside --query"
    raise typer.BadParameter(
        f"{' '.join(names)!r}: expected {expected}", param_hint="[SOURCE] TARGET"
    )


def _parse_option(name: str, value: Any) -> Any:
    hint = get_type_hints(TrainOptions)[name]
    option = f"--{name.replace('_', '-')}"
    if hint is timedelta and value.strip().isdecimal():
        raise typer.BadParameter(
            f"{value!r} has no unit; {count_nouns(value, 'minute', 'is')} "
            f"'{count_nouns(value.strip(), 'minute')}'",
            param_hint=option,
        )
    if get_origin(hint) is not Mapping:
        return value
    try:
        parsed = json_module.loads(value)
    except ValueError as error:
        raise typer.BadParameter(f"{value!r} is not JSON: {error}", param_hint=option) from error
    if not isinstance(parsed, dict):
        raise typer.BadParameter(
            f'{value!r} is not a JSON object, such as {{"name": 1}}', param_hint=option
        )
    return parsed


def models(
    model: Annotated[
        str | None,
        typer.Argument(
            help="Name of a model, whose versions are listed.", autocompletion=completion.models
        ),
    ] = None,
    json: Json = False,
    url: Url = None,
) -> None:
    """List models by name that you may use, or the versions of one."""
    with open_session(url) as session:
        if model is None:
            rows = session.rows("cerebro.model")
            columns = MODEL_COLUMNS
        else:
            rows = session.rows("cerebro.model_version", model=model)
            columns = VERSION_COLUMNS
            if not rows and not session.rows("cerebro.model", model=model):
                raise UndefinedObject(
                    f"there is no model {model!r} that you may see",
                    hint="`cerebro-db models` lists the models that you may use.",
                )
    rows.sort(key=lambda row: (row["model"], row["owner"], -(row["version"] or 0)))
    print_records(rows, json, columns, OPTIONAL)


def predict(
    model: Annotated[
        str, typer.Argument(help="Name of a model.", autocompletion=completion.models)
    ],
    source: Annotated[str, typer.Argument(help="Table or view of the rows, as in SQL.")],
    id_col: Annotated[
        str | None, typer.Option("--id", help="Column that tells rows apart; else the primary key.")
    ] = None,
    owner: Annotated[
        str | None,
        typer.Option("--owner", help="Role that has granted you the model; else it is your own."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV file; else a table is shown.")
    ] = None,
    json: Json = False,
    url: Url = None,
) -> None:
    """Predict each row of a table with a model."""
    if output is not None:
        check_output(output)
    with open_session(url) as session:
        predictions = session.predict(model, source, id_col, owner=owner)
    if output is not None:
        write_csv(output, predictions.columns, predictions)
        typer.echo(f"{count_nouns(len(predictions), 'row')} in {output}", file=sys.stderr)
    if json or output is None:
        print_records(predictions, json)
