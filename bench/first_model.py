"""Measure the time from a new connection to the first model of a table.

`cerebro.train` gets the time of the target as its budget, and has to return with a model. The log
has the moment in which the first configuration had its metric on the rows held back.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

import psycopg2

from bench import generated_tables, real_tables, tables, trainers
from bench.bench_server import BenchServer, Echo
from bench.workloads import REPORT, SMALL

TABLE = "first_rows"
MODEL = "first"
TRAIN = f"""
    SELECT max(run_id) FROM cerebro.train('{TABLE}', 'y', '{MODEL}',
        budget => make_interval(secs => %s), seed => %s)"""
FIRST_METRIC = """
    SELECT extract(epoch FROM m.time)::double precision, c.template
    FROM cerebro.metric m JOIN cerebro.config c USING (run_id, mst_key)
    WHERE m.run_id = %s AND m.dataset = 'validation' ORDER BY m.time LIMIT 1"""
WARM_UP = f"""
    SELECT count(*) FROM cerebro.train('{TABLE}', 'y', 'warm', models => '{{linear}}',
        configs => 1, epochs => 1, ensemble => 1)"""


class Size(NamedTuple):
    """The size of a table, and the seconds in which a model has to be there."""

    rows: int
    numbers: int
    categories: int
    seconds: float

    @property
    def columns(self) -> int:
        """The number of inputs."""
        return self.numbers + self.categories


SIZES = {
    SMALL: (Size(2_000, 14, 6, 5), Size(20_000, 22, 8, 30)),
    REPORT: (Size(10_000, 14, 6, 5), Size(1_000_000, 22, 8, 30)),
}


@dataclass(frozen=True)
class FirstModel:
    """The seconds from the connection to the first metric and to the end of the call."""

    metric_seconds: float | None  # None if no configuration had a metric
    call_seconds: float
    template: str = ""  # of the configuration with the first metric
    reason: str = ""  # why the call returned no model


def measure_first_models(
    server: BenchServer, scale: str, repeats: int, echo: Echo
) -> dict[Size, list[FirstModel]]:
    """Return the times for each size of a table; trainers are new forks."""
    measured: dict[Size, list[FirstModel]] = {}
    for size in SIZES[scale]:
        frame = generated_tables.make_rows(str(size.rows))
        rows = generated_tables.select_columns(frame, size.numbers, size.categories)
        with server.session() as session:
            real_tables.write(session, TABLE, rows)
        server.value(f"ANALYZE {TABLE}")
        server.value(WARM_UP)
        with trainers.forbid_kept_trainers(server):
            for seed in range(1, repeats + 1):
                first = measure_first_model(server.url, size.seconds, seed)
                echo(f"  {size.rows:,} x {size.columns}: {first}")
                measured.setdefault(size, []).append(first)
        server.value(f"DROP TABLE {TABLE}")
    return measured


def measure_first_model(url: str, seconds: float, seed: int) -> FirstModel:
    """Connect, and train with a budget of some seconds."""
    began = time.time()
    with closing(psycopg2.connect(url)) as session, session.cursor() as cursor:
        session.autocommit = True
        try:
            cursor.execute(TRAIN, (seconds, seed))
        except psycopg2.Error as error:
            reason = str(error).splitlines()[0]
            return FirstModel(None, time.time() - began, reason=reason)
        call_seconds = time.time() - began
        (run_id,) = cursor.fetchall()[0]
        cursor.execute(FIRST_METRIC, (run_id,))
        rows = cursor.fetchall()
        cursor.execute("SELECT cerebro.drop_model(%s)", (MODEL,))
    if not rows:
        return FirstModel(None, call_seconds)
    moment, template = rows[0]
    return FirstModel(moment - began, call_seconds, template)


def report(measured: dict[Size, list[FirstModel]]) -> str:
    """Return a table with a row for each size."""
    headings = [
        "rows x columns",
        "time given",
        "first metric after",
        "of",
        "call took",
        "calls with a model",
    ]
    rows = [_report_size(size, measured[size]) for size in measured]
    return tables.format_table(headings, rows)


def _report_size(size: Size, attempts: Sequence[FirstModel]) -> list[str]:
    metrics = [first.metric_seconds for first in attempts if first.metric_seconds is not None]
    models = sum(not first.reason for first in attempts)
    return [
        f"{size.rows:,} x {size.columns}",
        f"{size.seconds:g} s",
        f"{statistics.median(metrics):.1f} s" if metrics else "-",
        ", ".join(sorted({first.template for first in attempts if first.template})),
        f"{statistics.median(first.call_seconds for first in attempts):.1f} s",
        f"{models} of {len(attempts)}",
    ]
