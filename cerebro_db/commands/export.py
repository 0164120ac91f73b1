"""`cerebro-db export`: export of models and runs as files for other programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from cerebro_db.commands import completion
from cerebro_db.commands.database import Force, Url, open_session
from cerebro_db.commands.framework_messages import hide_framework_messages
from cerebro_db.commands.runs import Run

app = typer.Typer(no_args_is_help=True, help="Write models and runs as files for other programs.")

Model = Annotated[
    str,
    typer.Argument(
        help="Model by name, or TABLE:MST_KEY of a model table.", autocompletion=completion.models
    ),
]
Version = Annotated[
    int | None, typer.Option(help="Version of a model by name; else the one that predicts.", min=1)
]
Group = Annotated[str | None, typer.Option(help="Group of rows whose own model is meant.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="Where to write.")]
Tracking = Annotated[
    str | None, typer.Option(help="MLflow's store or server; else as its settings say.")
]
Experiment = Annotated[str, typer.Option(help="Experiment of MLflow.")]


def _print_paths(paths: list[Path]) -> None:
    for path in paths:
        typer.echo(path)


CONVERTER = "onnx_converter"
"""Key in the JSON beside an .onnx file."""


def _print_converter(description: Path) -> None:
    converter = json.loads(description.read_text())[CONVERTER]
    typer.echo(f"Converted to ONNX with {converter}.", err=True)


FORMATS = {
    "keras": "Write a .keras file, which plain Keras 3 loads, with its recipe as JSON beside it.",
    "safetensors": "Write a folder with weights as safetensors, architecture and recipe as JSON.",
    "onnx": "Write an .onnx file for raw numbers and category codes, with its recipe as JSON "
    "beside it.",
    "lightgbm": "Write boosted trees as a .txt file for LightGBM, with their recipe as JSON beside "
    "it.",
}
"""Formats of a model that a method `export_<format>` of the session writes, with their help."""


def _add_command(name: str) -> None:
    """Add the command that writes a model in a format."""

    @app.command(name, help=FORMATS[name])
    def export_model(
        model: Model,
        output: Output,
        version: Version = None,
        group: Group = None,
        force: Force = False,
        url: Url = None,
    ) -> None:
        with open_session(url) as session, hide_framework_messages():
            export = getattr(session, f"export_{name}")
            paths = export(model, output, version=version, group=group, force=force)
        _print_paths(paths)
        if name == "onnx":
            _print_converter(paths[-1])


for format_name in FORMATS:
    _add_command(format_name)


@app.command("model")
def export_transferable_model(
    model: Annotated[str, typer.Argument(help="Model by name.", autocompletion=completion.models)],
    output: Output,
    version: Version = None,
    force: Force = False,
    url: Url = None,
) -> None:
    """Write one file of a model by name, which `cerebro-db import` adds to another database."""
    with open_session(url) as session:
        _print_paths(session.export_model(model, output, version=version, force=force))


def import_model(
    file: Annotated[Path, typer.Argument(help="File that `export model` has written.")],
    name: Annotated[
        str | None, typer.Option(help="Name of the model; else that in the file.")
    ] = None,
    url: Url = None,
) -> None:
    """Add the model in a file to the database, as a version of its name, and print its number."""
    with open_session(url) as session:
        typer.echo(session.import_model(file, name))


@app.command()
def tensorboard(run: Run, output: Output, force: Force = False, url: Url = None) -> None:
    """Write event files for TensorBoard (metrics, hyperparameters), a folder for each config."""
    with open_session(url) as session:
        _print_paths(session.export_tensorboard(run, output, force=force))


@app.command()
def mlflow(
    run: Run,
    tracking_uri: Tracking = None,
    experiment: Experiment = "cerebro_db",
    force: Annotated[
        bool, typer.Option("--force", help="Delete there what was logged of the run before.")
    ] = False,
    url: Url = None,
) -> None:
    """Log a run to MLflow, with a nested run for each configuration, and print its id there."""
    with open_session(url) as session:
        typer.echo(session.export_mlflow(run, tracking_uri, experiment=experiment, force=force))


@app.command()
def registered(
    model: Model,
    name: Annotated[
        str | None, typer.Option(help="Name in MLflow; else that of the model.")
    ] = None,
    version: Version = None,
    group: Group = None,
    tracking_uri: Tracking = None,
    experiment: Experiment = "cerebro_db",
    url: Url = None,
) -> None:
    """Register a model in MLflow for DataFrames of raw columns, and print its address there."""
    with open_session(url) as session, hide_framework_messages():
        address = session.export_registered(
            model, tracking_uri, name=name, version=version, group=group, experiment=experiment
        )
    typer.echo(address)
