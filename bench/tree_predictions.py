"""Measure predictions of boosted trees beside those of LightGBM, which has the same trees.

LightGBM predicts its columns in memory; `cerebro.predict` also reads, encodes and returns rows.
One row is predicted by `cerebro.predict_row` in a session that has done so before.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas
from psycopg2.extensions import cursor as Cursor

from bench import generated_tables, real_tables, tables
from bench.bench_server import BenchServer, Echo
from bench.workloads import REPORT, SMALL
from cerebro_db import connect
from cerebro_db.export.recipe.rows import RawRows

TRAIN_TABLE = "tree_rows"
TABLE = "rows_to_predict"
MODEL = "trees"
ROW = "id"
NUMBERS = 14
CATEGORIES = 6
TREES = 500
LEAVES = (31, 64)
CALLS = 100
"""Calls of `cerebro.predict_row` in a row."""
TRAIN = f"""
    SELECT count(*) FROM cerebro.train('{TRAIN_TABLE}', 'y', '{MODEL}', models => '{{boosting}}',
        space => %s, configs => 1, epochs => 1, ensemble => 1, seed => 1)"""
PREDICT = f"SELECT count(prediction) FROM cerebro.predict('{MODEL}', '{TABLE}', '{ROW}')"
PREDICT_ROW = f"SELECT cerebro.predict_row('{MODEL}', %s)"
FIRST_ROW = f"SELECT to_jsonb(t) - '{ROW}' FROM {TABLE} t ORDER BY {ROW} LIMIT 1"


class Rows(NamedTuple):
    """The numbers of rows that are learned from and predicted."""

    train: int
    predict: int


ROWS = {SMALL: Rows(2_000, 5_000), REPORT: Rows(50_000, 200_000)}


class ExportedTrees(NamedTuple):
    """The trees in LightGBM, and its columns of the rows to predict."""

    booster: Any
    matrix: np.ndarray


@dataclass(frozen=True, kw_only=True)
class TreeSpeed:
    """The speeds of trees with so many leaves, ours and LightGBM's own."""

    leaves: int
    threads: int
    rows_per_second: float
    own_rows_per_second: float
    row_ms: float
    own_row_ms: float


def measure_trees(server: BenchServer, scale: str, repeats: int, echo: Echo) -> list[TreeSpeed]:
    """Measure the speeds of small and large trees; the fastest of several turns counts."""
    count = ROWS[scale]
    frame = generated_tables.make_rows(str(count.train + count.predict))
    rows = generated_tables.select_columns(frame, NUMBERS, CATEGORIES)
    test = rows[count.train :].drop(columns=["y"]).reset_index(drop=True)
    speeds = []
    with server.session() as session, session.cursor() as cursor:
        real_tables.write(session, TRAIN_TABLE, rows[: count.train])
        real_tables.write(session, TABLE, test.assign(**{ROW: range(len(test))}))
        cursor.execute(f"ANALYZE {TRAIN_TABLE}, {TABLE}")
        for leaves in LEAVES:
            space = {"trees": TREES, "leaves": leaves}
            cursor.execute(TRAIN, (json.dumps(space),))
            exported = _export_trees(server, test)
            speed = _measure_speed(cursor, exported, leaves, repeats)
            echo(f"  {speed}")
            speeds.append(speed)
            cursor.execute("SELECT cerebro.drop_model(%s)", (MODEL,))
        cursor.execute(f"DROP TABLE {TRAIN_TABLE}, {TABLE}")
    return speeds


def _export_trees(server: BenchServer, test: pandas.DataFrame) -> ExportedTrees:
    """Read the exported trees with LightGBM, and make its columns of the rows."""
    import lightgbm

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trees.txt"
        with connect(server.url) as session:
            session.export_lightgbm(MODEL, path)
        rows = RawRows.of(path.with_name("trees.txt.json").read_text())
        return ExportedTrees(lightgbm.Booster(model_file=path), rows.matrix(test))


def _measure_speed(cursor: Cursor, exported: ExportedTrees, leaves: int, repeats: int) -> TreeSpeed:
    threads = len(os.sched_getaffinity(0))
    booster, matrix = exported
    cursor.execute(FIRST_ROW)
    record = json.dumps(cursor.fetchall()[0][0])
    ours = _time_best(lambda: cursor.execute(PREDICT), repeats)
    own = _time_best(lambda: booster.predict(matrix, num_threads=threads), repeats)
    return TreeSpeed(
        leaves=leaves,
        threads=threads,
        rows_per_second=len(matrix) / ours,
        own_rows_per_second=len(matrix) / own,
        row_ms=1000 * _time_median(lambda: cursor.execute(PREDICT_ROW, (record,))),
        own_row_ms=1000 * _time_median(lambda: booster.predict(matrix[:1], num_threads=threads)),
    )


def _time_best(work: Callable[[], object], repeats: int) -> float:
    """Return the seconds of the fastest repetition after one that does not count."""
    return min(_list_times(work, repeats))


def _time_median(work: Callable[[], object]) -> float:
    return statistics.median(_list_times(work, CALLS))


def _list_times(work: Callable[[], object], repeats: int) -> list[float]:
    work()
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return seconds


def report(speeds: list[TreeSpeed], scale: str) -> str:
    """Return a table with a row for each number of leaves."""
    count = ROWS[scale]
    headings = [
        "leaves",
        "rows a second",
        "LightGBM's own",
        "ratio",
        "one row",
        "LightGBM's own",
        "beyond it",
    ]
    rows = [
        [
            f"{speed.leaves}",
            f"{speed.rows_per_second:,.0f}",
            f"{speed.own_rows_per_second:,.0f}",
            f"{speed.rows_per_second / speed.own_rows_per_second:.2f}",
            f"{speed.row_ms:.1f} ms",
            f"{speed.own_row_ms:.1f} ms",
            f"{speed.row_ms - speed.own_row_ms:.1f} ms",
        ]
        for speed in speeds
    ]
    threads = speeds[0].threads
    summary = (
        f"{TREES} trees, {count.predict:,} rows of {NUMBERS + CATEGORIES} columns, {threads} "
        "threads."
    )
    return f"{summary}\n\n{tables.format_table(headings, rows)}"
