"""The demo: from an empty database to a leaderboard, predictions and charts, on real data.

Every step is a method of Session, and therefore one SQL call that any user can make.
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
    describe_configs,
    escape_text,
    make_console,
    make_leaderboard_table,
)
from cerebro_db.display.charts import draw_gantt_chart, draw_learning_curves
from cerebro_db.display.watch import follow
from cerebro_db.driver import copy_rows, translate_errors
from cerebro_db.errors import ObjectNotReady
from cerebro_db.nouns import count_nouns
from cerebro_db.session import Session, connect

METADATA = sa.MetaData(schema="demo")
IMAGES, HELD_OUT_IMAGES = (
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
# Tables of the SQL functions, and the suffixes of their companion tables.
OUTPUT_TABLES = (
    "architectures",
    "train_packed",
    "held_out_packed",
    "configs",
    "model",
    "predictions",
)
SUFFIXES = ("", "_summary", "_info")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Extent of the demo's training, and the folder of its charts."""

    images: int | None = None  # None for all images
    segments: int = 4
    iterations: int = 5
    compile_grid: Mapping[str, Any] = field(default_factory=lambda: digits.COMPILE_GRID)
    fit_grid: Mapping[str, Any] = field(default_factory=lambda: digits.FIT_GRID)
    wine_epochs: int = 40
    folder: Path = Path("cerebro_db-demo")


def main(url: str, plan: Plan | None = None) -> int:
    """Run the demo in schema `demo` of the database at `url`; return the exit code 0."""
    plan = plan or Plan()
    console = make_console()
    _make_folder(plan.folder)
    with connect(url) as session:
        _load(session, plan, console)
        _train_wines(session, plan, console)
        _pack_images(session, plan, console)
        run_id = _train_images(session, plan, console)
        _show_leaderboard(session, run_id, console)
        _show_predictions(session, run_id, console)
        _draw_charts(session, run_id, plan.folder, console)
    _print_text(console, f"\nThe database: {url}\nGo on with:   psql '{url}'")
    return 0


def _make_folder(folder: Path) -> None:
    """Create the folder of the charts; an error is raised before the training."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ObjectNotReady(
            f"cannot make the folder {folder.resolve()} for the pictures: {error.strerror}",
            hint="Run the demo in a folder where you may write.",
        ) from error


def _load(session: Session, plan: Plan, console: Console) -> None:
    """Create the raw tables; drop the tables of an earlier demo first."""
    image_rows = digits.read_rows()[: plan.images]
    wine_rows = wines.read_rows()
    rows_by_table: dict[sa.Table, list[Any]] = {
        IMAGES: [row for row in image_rows if not digits.is_held_out(row[0])],
        HELD_OUT_IMAGES: [row for row in image_rows if digits.is_held_out(row[0])],
        WINES: [row for row in wine_rows if not wines.is_held_out(row[0])],
        NEW_WINES: [row for row in wine_rows if wines.is_held_out(row[0])],
    }
    with translate_errors(), session.engine.begin() as connection:
        connection.execute(sa.schema.CreateSchema("demo", if_not_exists=True))
        _list_tables().drop_all(connection)
        METADATA.create_all(connection)
        for table, rows in rows_by_table.items():
            columns = [column.name for column in table.columns]
            copy_rows(connection, ("demo", table.name), columns, rows)
    _print_text(
        console,
        f"Loaded {count_nouns(len(rows_by_table[IMAGES]), 'image')} to train on, "
        f"{len(rows_by_table[HELD_OUT_IMAGES])} held out; and some wines.",
    )


def _train_wines(session: Session, plan: Plan, console: Console) -> None:
    """Train a model by name on a raw table, and predict raw rows: two statements."""
    if session.rows("cerebro.model", model=WINE_MODEL):
        session.drop_model(WINE_MODEL)
    _print_text(console, "\nSELECT * FROM cerebro.train('demo.wines', 'grape', ...);")
    board = session.train(
        "demo.wines", "grape", model=WINE_MODEL, epochs=plan.wine_epochs, seed=1, progress=False
    )
    rows = [
        (standing.rank, standing.template, standing.epochs, standing.value) for standing in board
    ]
    _print_table(console, ("rank", "template", "epochs", "validation"), rows)
    grapes = {str(row["id"]): row["grape"] for row in session.rows("demo.new_wines")}
    predictions = session.predict(WINE_MODEL, "demo.new_wines", "id")
    correct = sum(row["prediction"] == grapes[row["id"]] for row in predictions)
    _print_text(
        console, "SELECT * FROM cerebro.predict('demo: wines', 'demo.new_wines', id_col => 'id');"
    )
    _print_text(console, f"Right: {correct} of {len(predictions)} new wines\n")


def _list_tables() -> sa.MetaData:
    """Return all tables that a demo creates."""
    metadata = sa.MetaData(schema="demo")
    names = [table.name for table in METADATA.sorted_tables]
    names += [name + suffix for name in OUTPUT_TABLES for suffix in SUFFIXES]
    for name in names:
        sa.Table(name, metadata)
    return metadata


def _pack_images(session: Session, plan: Plan, console: Console) -> None:
    """Load the architectures, pack the images, and write the configurations."""
    architectures = digits.make_architectures()
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
    names = ", ".join(f"model_id={number} {name}" for number, name in enumerate(architectures, 1))
    _print_text(console, f"Packed over {count_nouns(plan.segments, 'segment')}; models: {names}.")


def _train_images(session: Session, plan: Plan, console: Console) -> int:
    """Train in a thread of its own, show the run as another session sees it, and return its id."""
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
            run_id = _wait_for_run(session, fit)
            if run_id is not None:
                follow(session, run_id, console)
            return fit.result()
        except KeyboardInterrupt:
            session.cancel()
            raise


def _wait_for_run(session: Session, fit: Future[int]) -> int | None:
    """Wait for the start of the run and return its id; None if the fit ended before."""
    while not fit.done():
        run_id = session.current_run()
        if run_id is not None:
            return run_id
        wait_for([fit], timeout=0.1)
    return None


def _show_leaderboard(session: Session, run_id: int, console: Console) -> None:
    _print_text(console, "\nLeaderboard")
    console.print(
        make_leaderboard_table(session.leaderboard(run_id), session.learning_curve(run_id))
    )


def _show_predictions(session: Session, run_id: int, console: Console) -> None:
    best = session.leaderboard(run_id)[0]
    session.madlib_predict(
        "demo.model",
        "demo.digits_held_out",
        "id",
        "pixels",
        "demo.predictions",
        pred_type="response",
        mst_key=best.mst_key,
    )
    rows = _read_predictions(session)
    correct = sum(predicted == str(actual) for _, predicted, actual in rows)
    _print_text(console, f"Predictions of config {best.mst_key} on held-out images")
    _print_table(console, ("id", "predicted", "actual"), rows[:10])
    _print_text(console, f"Right: {correct} of {len(rows)} ({correct / len(rows):.1%})")


def _read_predictions(session: Session) -> Sequence[tuple[int, str, int]]:
    """Return the id, the predicted and the actual digit of the held-out images, ordered by id."""
    query = (
        sa.select(HELD_OUT_IMAGES.c.id, PREDICTIONS.c.class_value, HELD_OUT_IMAGES.c.digit)
        .join(PREDICTIONS, PREDICTIONS.c.id == HELD_OUT_IMAGES.c.id)
        .order_by(HELD_OUT_IMAGES.c.id)
    )
    with translate_errors(), session.engine.connect() as connection:
        return [(row[0], row[1], row[2]) for row in connection.execute(query)]


def _draw_charts(session: Session, run_id: int, folder: Path, console: Console) -> None:
    board = session.leaderboard(run_id)
    params = describe_configs(board)
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
    _print_text(
        console,
        f"\nLearning curves: {curves.resolve()}\nWorkers over time: {timeline.resolve()}",
    )


def _print_table(
    console: Console, headings: Sequence[str], rows: Sequence[Sequence[object]]
) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*(escape_text(str(value)) for value in row))
    console.print(table)


def _print_text(console: Console, text: str) -> None:
    """Print a text without markup, colours and wrapping, so that users can copy paths and URLs."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)
