"""Commands over models by name: one is trained, they are listed, and they predict."""

from __future__ import annotations

import inspect
import json as parser
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, get_origin, get_type_hints

import typer

from cerebro_db.arguments import TrainOptions
from cerebro_db.commands import completion
from cerebro_db.commands.database import Json, Url, opened
from cerebro_db.display.csv_files import write_csv
from cerebro_db.display.documents import format_document
from cerebro_db.result_set import Records

COLUMNS: tuple[str, ...] = (
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
VERSIONS = (
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


def _with_options_of_train(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each of cerebro.train's, of the same name; dicts are written
    as JSON.
    """
    found = inspect.signature(command, eval_str=True)
    own = [
        one for one in found.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    more = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_option(kind)
        )
        for name, kind in get_type_hints(TrainOptions).items()
    ]
    command.__signature__ = found.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in (*own, *more)}
    return command


def _option(kind: Any) -> Any:
    if get_origin(kind) is Mapping or kind is timedelta:
        help = "As of cerebro.train, as JSON." if kind is not timedelta else "Such as '10 minutes'."
        return Annotated[str | None, typer.Option(help=help)]
    return Annotated[kind | None, typer.Option(help="As of cerebro.train.")]


@_with_options_of_train
def train(
    source: Annotated[str, typer.Argument(help="Table or view, as in SQL.")],
    target: Annotated[str, typer.Argument(help="Column to predict.")],
    json: Json = False,
    url: Url = None,
    **options: Any,
) -> None:
    """Train a model that predicts a column of a table from its others; Ctrl-C cancels the run."""
    wanted = {
        name: _value(name, value) for name, value in options.items() if value not in (None, [])
    }
    with opened(url) as session:
        board = session.train(source, target, progress=False if json else None, **wanted)
        (run,) = session.rows("cerebro.run", run_id=board[0].run_id)
    if json:
        typer.echo(format_document(board))
        return
    typer.echo(board)
    typer.echo(
        f"run {run['run_id']}, model {run['spec']['train']['model']!r}; cerebro-db predict MODEL "
        "TABLE predicts rows"
    )


def _value(name: str, value: Any) -> Any:
    if get_origin(get_type_hints(TrainOptions)[name]) is not Mapping:
        return value
    try:
        return parser.loads(value)
    except ValueError as error:
        raise typer.BadParameter(
            f"{value!r} is not JSON: {error}", param_hint=f"--{name.replace('_', '-')}"
        ) from error


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
    with opened(url) as session:
        if model is None:
            found, columns = session.rows("cerebro.model"), COLUMNS
        else:
            found, columns = session.rows("cerebro.model_version", model=model), VERSIONS
    ordered = sorted(found, key=lambda row: (row["model"], row["owner"], -(row["version"] or 0)))
    typer.echo(format_document(ordered) if json else Records(ordered, columns))


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
    """Say what a model predicts of each row of a table."""
    if output is not None and output.exists():
        raise typer.BadParameter(f"{output} exists already", param_hint="--output")
    with opened(url) as session:
        found = session.predictions(model, source, id_col, owner=owner)
    if output is not None:
        write_csv(output, found.columns, found)
        typer.echo(f"{len(found)} rows in {output}", file=sys.stderr)
    if json:
        typer.echo(format_document(found))
    elif output is None:
        typer.echo(found)
