"""`cerebro-db plot`: a run or a model by name as a picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cerebro_db.commands import completion
from cerebro_db.commands.database import Force, Url, opened
from cerebro_db.errors import FeatureNotSupported, ObjectNotReady, UndefinedObject
from cerebro_db.optional_imports import import_library

if TYPE_CHECKING:
    from cerebro_db.display.board_list import Board
    from cerebro_db.session import Session

FORMATS = (".png", ".svg")


class Kind(StrEnum):
    """What can be drawn: of a run the first three, of a model by name the others."""

    CURVES = "curves"
    PARALLEL = "parallel"
    LANES = "lanes"
    IMPORTANCE = "importance"
    CONFUSION = "confusion"


OF_RUNS = (Kind.CURVES, Kind.PARALLEL, Kind.LANES)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is drawn, of which run or model, and where to; `source` are rows that have the
    target.
    """

    kind: Kind
    subject: str
    source: str | None
    path: Path

    @property
    def run(self) -> int:
        """The id of the run."""
        if not (self.subject.isascii() and self.subject.isdigit()):
            raise typer.BadParameter(
                f"{self.subject!r} is no id of a run, of which {self.kind} are",
                param_hint="SUBJECT",
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
    """Draw a run or a model: learning curves, parallel coordinates, workers, importance, a
    confusion matrix.
    """
    wanted = Wanted(kind=kind, subject=subject, source=source, path=output)
    _refuse(wanted, force)
    import_library("matplotlib", "plot")
    with opened(url) as session:
        try:
            typer.echo(DRAWN[kind](session, wanted))
        except OSError as error:
            raise ObjectNotReady(
                f"cannot write {output}: {error.strerror}", hint="Name another file."
            ) from error


def _refuse(wanted: Wanted, force: bool) -> None:
    """What is wrong is told before the database is asked."""
    if wanted.path.suffix.lower() not in FORMATS:
        raise typer.BadParameter(
            f"{wanted.path} ends neither in {' nor in '.join(FORMATS)}", param_hint="--output"
        )
    if wanted.path.exists() and not force:
        raise typer.BadParameter(
            f"{wanted.path} exists already; --force overwrites it", param_hint="--output"
        )
    if wanted.kind is Kind.CONFUSION and wanted.source is None:
        raise typer.BadParameter(
            "a confusion matrix is of rows; name their table", param_hint="--source"
        )
    if wanted.kind in OF_RUNS and wanted.source is not None:
        raise typer.BadParameter(
            f"{wanted.kind} are of a run, not of a table", param_hint="--source"
        )
    if wanted.kind in OF_RUNS:
        _ = wanted.run


def _curves(session: Session, wanted: Wanted) -> Path:
    from cerebro_db.display.charts import draw_learning_curves

    told = _title(session, wanted.run)
    board = session.leaderboard(wanted.run)
    best = board[0].mst_key if board else None
    return draw_learning_curves(
        session.learning_curve(wanted.run),
        wanted.path,
        best=best,
        params=_params(board),
        title=told,
    )


def _parallel(session: Session, wanted: Wanted) -> Path:
    from cerebro_db.display.parallel import draw_parallel

    told = _title(session, wanted.run)
    board, parameters = session.leaderboard(wanted.run), session.parameters(wanted.run)
    return draw_parallel(board, parameters, wanted.path, title=told)


def _lanes(session: Session, wanted: Wanted) -> Path:
    from cerebro_db.display.charts import draw_gantt_chart

    told = _title(session, wanted.run)
    params = _params(session.leaderboard(wanted.run))
    return draw_gantt_chart(session.timeline(wanted.run), wanted.path, params=params, title=told)


def _importance(session: Session, wanted: Wanted) -> Path:
    from cerebro_db.display.model_charts import draw_importance, list_importances

    metric = ""
    if wanted.source is not None:
        rows, column = session.importance(wanted.subject, wanted.source), "column_name"
        metric = rows[0]["metric"] if rows else ""
    else:
        version = _predicting(session, wanted.subject)
        rows, column = session.rows("cerebro.feature", **version), "column"
        metric = session.rows("cerebro.model_version", **version)[0]["metric"]
    found = list_importances(rows, column)
    if not found:
        raise ObjectNotReady(
            f"no importance of columns of model {wanted.subject!r} is known",
            hint="Name a table of rows that have the target: --source TABLE computes it of them.",
        )
    title = f"model {wanted.subject}"
    return draw_importance(found, wanted.path, metric=metric, title=title)


def _confusion(session: Session, wanted: Wanted) -> Path:
    from cerebro_db.display.model_charts import draw_confusion, make_confusion

    found = make_confusion(session.evaluation(wanted.subject, str(wanted.source)))
    if not found.classes:
        raise FeatureNotSupported(
            f"model {wanted.subject!r} predicts numbers, which have no confusion matrix",
            hint="cerebro.evaluate has how far they are from what they should be.",
        )
    return draw_confusion(
        found, wanted.path, title=f"model {wanted.subject}, rows of {wanted.source}"
    )


DRAWN: Mapping[Kind, Callable[[Session, Wanted], Path]] = {
    Kind.CURVES: _curves,
    Kind.PARALLEL: _parallel,
    Kind.LANES: _lanes,
    Kind.IMPORTANCE: _importance,
    Kind.CONFUSION: _confusion,
}


def _title(session: Session, run: int) -> str:
    name = session.progress(run).name
    return f"run {run}{f': {name}' if name else ''}"


def _params(board: Board) -> dict[int, str]:
    from cerebro_db.display.boards import describe_differences, escape_text

    told = describe_differences([standing.params for standing in board])
    return {
        standing.mst_key: escape_text(text).plain
        for standing, text in zip(board, told, strict=True)
    }


def _predicting(session: Session, model: str) -> dict[str, object]:
    """The version of an own model that predicts, as rows of views have it."""
    found = session.rows("cerebro.model_version", model=model, deployed=True)
    if len(found) != 1:
        raise UndefinedObject(
            f"{'several roles have a' if found else 'you see no'} model {model!r} with versions "
            "that predict",
            hint="`cerebro-db models` lists them; importances of a granted model are known to its "
            "owner alone.",
        )
    return {name: found[0][name] for name in ("model", "owner", "version")}
