"""The first minute: from an empty database to a leaderboard, predictions and a picture, on real
data.

It uses nothing that a user could not: every step is a method of Session, and so one SQL call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from cerebro_db.demo import digits, wines
from cerebro_db.display.boards import (
    describe_differences,
    escape_text,
    make_console,
    make_leaderboard_table,
)
from cerebro_db.display.charts import draw_gantt_chart, draw_learning_curves
from cerebro_db.display.watch import follow
from cerebro_db.driver import copy_rows, translate_errors
from cerebro_db.errors import ObjectNotReady
from cerebro_db.session import Session, connect

METADATA = sa.MetaData(schema="demo")
IMAGES, HELD_OUT = (
    sa.Table(
        name,
        METADATA,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column(
            "pixels", sa.ARRAY(sa.REAL), nullable=False, comment="64 grey levels from 0 to 16"
        ),
        sa.Column("digit", sa.SmallInteger, nullable=False),
    )
    for name in ("digits", "digits_held_out")
)
PREDICTIONS = sa.table("predictions", sa.column("id"), sa.column("class_value"), schema="demo")
WINES, NEW_WINES = (
    sa.Table(
        name,
        METADATA,
        sa.Column("id", sa.Integer, primary_key=True),
        *(sa.Column(measure, sa.Double) for measure in wines.MEASURES),
        sa.Column("grape", sa.Text),
    )
    for name in ("wines", "new_wines")
)
WINE_MODEL = "demo: wines"
# What the SQL functions make, and the companions that they make beside it.
MADE = ("architectures", "train_packed", "held_out_packed", "configs", "model", "predictions")
SUFFIXES = ("", "_summary", "_info")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much the demo trains, and where it writes its pictures."""

    images: int | None = None
    segments: int = 4
    iterations: int = 5
    compile_grid: Mapping[str, Any] = field(default_factory=lambda: digits.COMPILE_GRID)
    fit_grid: Mapping[str, Any] = field(default_factory=lambda: digits.FIT_GRID)
    wine_epochs: int = 40
    folder: Path = Path("cerebro_db-demo")


def main(url: str, plan: Plan | None = None) -> int:
    """Runs the demo in schema `demo` of the database at `url`; 0 when the run has completed."""
    plan = plan or Plan()
    console = make_console()
    _make(plan.folder)
    with connect(url) as session:
        _load(session, plan, console)
        _name_wines(session, plan, console)
        _prepare(session, plan, console)
        run_id = _train(session, plan, console)
        _show_leaderboard(session, run_id, console)
        _show_predictions(session, run_id, console)
        _draw(session, run_id, plan.folder, console)
    _say(console, f"\nThe database: {url}\nGo on with:   psql '{url}'")
    return 0


def _make(folder: Path) -> None:
    """The folder of the pictures: before anything is trained, so that no training is in vain."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ObjectNotReady(
            f"cannot make the folder {folder.resolve()} for the pictures: {error.strerror}",
            hint="Run the demo in a folder where you may write.",
        ) from error


def _load(session: Session, plan: Plan, console: Console) -> None:
    rows = digits.rows()[: plan.images]
    parts: dict[sa.Table, list[Any]] = {
        IMAGES: [row for row in rows if not digits.is_held_out(row[0])],
        HELD_OUT: [row for row in rows if digits.is_held_out(row[0])],
        WINES: [row for row in wines.rows() if not wines.is_held_out(row[0])],
        NEW_WINES: [row for row in wines.rows() if wines.is_held_out(row[0])],
    }
    with translate_errors(), session.engine.begin() as connection:
        connection.execute(sa.schema.CreateSchema("demo", if_not_exists=True))
        _everything().drop_all(connection)
        METADATA.create_all(connection)
        for table, part in parts.items():
            copy_rows(
                connection, ("demo", table.name), [column.name for column in table.columns], part
            )
    _say(
        console,
        f"Loaded {len(parts[IMAGES])} images to train on, {len(parts[HELD_OUT])} held out; and "
        "some wines.",
    )


def _name_wines(session: Session, plan: Plan, console: Console) -> None:
    """The two statements, from a raw table to predictions for raw rows."""
    if any(model["model"] == WINE_MODEL for model in session.rows("cerebro.model")):
        session.drop_model(WINE_MODEL)
    _say(console, "\nSELECT * FROM cerebro.train('demo.wines', 'grape', ...);")
    board = session.train(
        "demo.wines", "grape", model=WINE_MODEL, epochs=plan.wine_epochs, seed=1, progress=False
    )
    table = Table(box=None, pad_edge=False)
    for heading in ("rank", "template", "epochs", "validation"):
        table.add_column(heading, justify="right")
    for each in board:
        table.add_row(
            str(each.rank), str(each.template), str(each.epochs), escape_text(str(each.value))
        )
    console.print(table)
    grapes = {str(row["id"]): row["grape"] for row in session.rows("demo.new_wines")}
    told = session.predictions(WINE_MODEL, "demo.new_wines", "id")
    right = sum(each["prediction"] == grapes[each["id"]] for each in told)
    _say(console, "SELECT * FROM cerebro.predict('demo: wines', 'demo.new_wines', id_col => 'id');")
    _say(console, f"Right: {right} of {len(told)} new wines\n")


def _everything() -> sa.MetaData:
    """All tables that a demo makes, so that those of an earlier one can be dropped."""
    everything = sa.MetaData(schema="demo")
    for name in (
        *(table.name for table in METADATA.sorted_tables),
        *(made + suffix for made in MADE for suffix in SUFFIXES),
    ):
        sa.Table(name, everything)
    return everything


def _prepare(session: Session, plan: Plan, console: Console) -> None:
    architectures = digits.architectures()
    for name, architecture in architectures.items():
        session.load_model(architecture, "demo.architectures", name=name)
    session.pack(
        "demo.digits",
        "demo.train_packed",
        "digit",
        "pixels",
        normalizing_const=digits.GREY_LEVELS,
        n_segments=plan.segments,
        seed=1,
    )
    session.pack_validation(
        "demo.digits_held_out", "demo.held_out_packed", "digit", "pixels", "demo.train_packed"
    )
    models = range(1, len(architectures) + 1)
    session.configs("demo.architectures", "demo.configs", models, plan.compile_grid, plan.fit_grid)
    described = ", ".join(
        f"model_id={number} {name}" for number, name in enumerate(architectures, 1)
    )
    _say(console, f"Packed over {plan.segments} segments; models: {described}.")


def _train(session: Session, plan: Plan, console: Console) -> int:
    """The fit in a thread of its own, shown as any other session would see it."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        fit = pool.submit(
            session.fit,
            "demo.train_packed",
            "demo.model",
            "demo.configs",
            plan.iterations,
            validation_table="demo.held_out_packed",
            metrics_compute_frequency=1,
            name="digits demo",
            seed=1,
            progress=False,
        )
        try:
            run_id = _started(session, fit)
            if run_id is not None:
                follow(session, run_id, console)
            return fit.result()
        except KeyboardInterrupt:
            session.cancel()
            raise


def _started(session: Session, fit: Future[int]) -> int | None:
    """The id of the run as soon as there is one; None when the fit ended before."""
    while not fit.done():
        run_id = session.current_run()
        if run_id is not None:
            return run_id
        wait_for([fit], timeout=0.1)
    return None


def _show_leaderboard(session: Session, run_id: int, console: Console) -> None:
    _say(console, "\nLeaderboard")
    console.print(
        make_leaderboard_table(session.leaderboard(run_id), session.learning_curve(run_id))
    )


def _show_predictions(session: Session, run_id: int, console: Console) -> None:
    best = session.leaderboard(run_id)[0]
    session.predict(
        "demo.model",
        "demo.digits_held_out",
        "id",
        "pixels",
        "demo.predictions",
        pred_type="response",
        mst_key=best.mst_key,
    )
    pairs = _pairs(session)
    table = Table(box=None, pad_edge=False)
    for heading in ("id", "predicted", "actual"):
        table.add_column(heading, justify="right")
    for row in pairs[:10]:
        table.add_row(*(escape_text(str(value)) for value in row))
    right = sum(predicted == str(actual) for _, predicted, actual in pairs)
    _say(console, f"Predictions of config {best.mst_key} on held-out images")
    console.print(table)
    _say(console, f"Right: {right} of {len(pairs)} ({right / len(pairs):.1%})")


def _pairs(session: Session) -> Sequence[tuple[int, str, int]]:
    """(id, predicted, actual) of the held-out images, in the order of their ids."""
    query = (
        sa.select(HELD_OUT.c.id, PREDICTIONS.c.class_value, HELD_OUT.c.digit)
        .join(PREDICTIONS, PREDICTIONS.c.id == HELD_OUT.c.id)
        .order_by(HELD_OUT.c.id)
    )
    with translate_errors(), session.engine.connect() as connection:
        return [(row[0], row[1], row[2]) for row in connection.execute(query)]


def _draw(session: Session, run_id: int, folder: Path, console: Console) -> None:
    board = session.leaderboard(run_id)
    told = describe_differences([standing.params for standing in board])
    params = {standing.mst_key: text for standing, text in zip(board, told, strict=True)}
    title = f"Run {run_id}: digits demo"
    curves = draw_learning_curves(
        session.learning_curve(run_id),
        folder / "learning-curves.png",
        best=board[0].mst_key,
        params=params,
        title=title,
    )
    timeline = draw_gantt_chart(
        session.timeline(run_id), folder / "workers.png", params=params, title=title
    )
    _say(console, f"\nLearning curves: {curves.resolve()}\nWorkers over time: {timeline.resolve()}")


def _say(console: Console, text: str) -> None:
    """As it is: no markup, no colours, no line breaks, so that a path or a URL can be copied."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)
