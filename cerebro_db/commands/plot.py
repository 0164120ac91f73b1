"""`cerebro-db plot`: charts of a run or of a model by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cerebro_db.commands import completion
from cerebro_db.commands.database import Force, Url, open_session
from cerebro_db.commands.output import check_output
from cerebro_db.errors import FeatureNotSupported, ObjectNotReady, UndefinedObject
from cerebro_db.optional_imports import import_library

if TYPE_CHECKING:
    from cerebro_db.session import Session

FORMATS = (".png", ".svg")


class Kind(StrEnum):
    """Kind of a chart: the first three show a run, the others a model by name."""

    CURVES = "curves"
    PARALLEL = "parallel"
    LANES = "lanes"
    IMPORTANCE = "importance"
    CONFUSION = "confusion"


RUN_KINDS = (Kind.CURVES, Kind.PARALLEL, Kind.LANES)


@dataclass(frozen=True, kw_only=True)
class PlotRequest:
    """Arguments of the command."""

    kind: Kind
    subject: str  # id of a run, or name of a model
    source: str | None  # table of rows that have the target
    path: Path  # of the output

    def parse_run_id(self) -> int:
        """Return the subject as the id of a run.

        Raises:
            typer.BadParameter: the subject is not a number.
        """
        if not (self.subject.isascii() and self.subject.isdigit()):
            raise typer.BadParameter(
                f"{self.subject!r} is not the id of a run; --kind {self.kind} needs one, "
                "as `cerebro-db runs` lists them",
                param_hint="RUN|MODEL",
            )
        return int(self.subject)


def plot(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="RUN|MODEL",
            help="Id of a run, or name of a model.",
            autocompletion=completion.subjects,
        ),
    ],
    kind: Annotated[
        Kind, typer.Option(help="What to draw: of a run the first three, of a model the others.")
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Where to write: a name that ends in .png or .svg."),
    ],
    source: Annotated[
        str | None,
        typer.Option(
            help="Rows with the target, for confusion; for importance else what was stored."
        ),
    ] = None,
    force: Force = False,
    url: Url = None,
) -> None:
    """Draw curves, parallel coordinates or workers of a run; importance or confusion of a model."""
    request = PlotRequest(kind=kind, subject=subject, source=source, path=output)
    _check_request(request, force)
    import_library("matplotlib", "plot")
    with open_session(url) as session:
        try:
            typer.echo(DRAW_FUNCTIONS[kind](session, request))
        except OSError as error:
            raise ObjectNotReady(
                f"cannot write {output}: {error.strerror}", hint="Name another file."
            ) from error


def _check_request(request: PlotRequest, force: bool) -> None:
    """Check the arguments before the command connects to the database."""
    if request.path.suffix.lower() not in FORMATS:
        raise typer.BadParameter(
            f"{request.path} ends neither in {' nor in '.join(FORMATS)}", param_hint="--output"
        )
    check_output(request.path, force=force, hint="; --force overwrites it")
    if request.kind is Kind.CONFUSION and request.source is None:
        raise typer.BadParameter(
            f"--kind {request.kind} needs a model and a table: --source TABLE",
            param_hint="--source",
        )
    if request.kind in RUN_KINDS:
        if request.source is not None:
            raise typer.BadParameter(
                f"--kind {request.kind} takes no table: it needs a run", param_hint="--source"
            )
        request.parse_run_id()


def _draw_curves(session: Session, request: PlotRequest) -> Path:
    from cerebro_db.display.charts import draw_learning_curves

    run_id = request.parse_run_id()
    title = _make_title(session, run_id)
    board = session.leaderboard(run_id)
    return draw_learning_curves(
        session.learning_curve(run_id),
        request.path,
        best=board[0].mst_key if board else None,
        params=board.describe_configs(),
        title=title,
    )


def _draw_parallel(session: Session, request: PlotRequest) -> Path:
    from cerebro_db.display.parallel import draw_parallel

    run_id = request.parse_run_id()
    title = _make_title(session, run_id)
    board = session.leaderboard(run_id)
    return draw_parallel(board, session.parameters(run_id), request.path, title=title)


def _draw_lanes(session: Session, request: PlotRequest) -> Path:
    from cerebro_db.display.charts import draw_gantt_chart

    run_id = request.parse_run_id()
    title = _make_title(session, run_id)
    params = session.leaderboard(run_id).describe_configs()
    return draw_gantt_chart(session.timeline(run_id), request.path, params=params, title=title)


def _draw_importance(session: Session, request: PlotRequest) -> Path:
    from cerebro_db.display.model_charts import draw_importance, list_importances

    metric = ""
    if request.source is None:
        version = _find_deployed_version(session, request.subject)
        importances = list_importances(session.rows("cerebro.feature", **version))
        metric = session.rows("cerebro.model_version", **version)[0]["metric"]
    else:
        rows = session.importance(request.subject, request.source)
        importances = list_importances(rows)
        if rows:
            metric = rows[0]["metric"]
    if not importances:
        raise ObjectNotReady(
            f"no importance of columns of model {request.subject!r} is known",
            hint="Name a table of rows that have the target: --source TABLE computes it of them.",
        )
    title = f"model {request.subject}"
    return draw_importance(importances, request.path, metric=metric, title=title)


def _draw_confusion(session: Session, request: PlotRequest) -> Path:
    from cerebro_db.display.model_charts import draw_confusion, make_confusion

    matrix = make_confusion(session.evaluate(request.subject, str(request.source)))
    if not matrix.classes:
        raise FeatureNotSupported(
            f"model {request.subject!r} predicts numbers, which have no confusion matrix",
            hint="cerebro.evaluate has how far they are from what they should be.",
        )
    title = f"model {request.subject}, rows of {request.source}"
    return draw_confusion(matrix, request.path, title=title)


DRAW_FUNCTIONS: Mapping[Kind, Callable[[Session, PlotRequest], Path]] = {
    Kind.CURVES: _draw_curves,
    Kind.PARALLEL: _draw_parallel,
    Kind.LANES: _draw_lanes,
    Kind.IMPORTANCE: _draw_importance,
    Kind.CONFUSION: _draw_confusion,
}


def _make_title(session: Session, run_id: int) -> str:
    title = f"run {run_id}"
    if name := session.progress(run_id).name:
        title += f": {name}"
    return title


def _find_deployed_version(session: Session, model: str) -> dict[str, object]:
    """Return the deployed version of a model: the columns that identify it in views.

    Raises:
        UndefinedObject: the caller sees no deployed version of that name, or several.
    """
    versions = session.rows("cerebro.model_version", model=model, deployed=True)
    if len(versions) != 1:
        raise UndefinedObject(
            f"{'several roles have a' if versions else 'you see no'} model {model!r} with versions "
            "that predict",
            hint="`cerebro-db models` lists them; importances of a granted model are known to its "
            "owner alone.",
        )
    return {name: versions[0][name] for name in ("model", "owner", "version")}
