"""Train and predict with `cerebro.train`, called as users do: `python -m` this, TASK, ANSWER.

All arguments but the time, the seed and what only a user can know have their defaults.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import psycopg2
from psycopg2.extensions import cursor as Cursor

from bench import real_tables
from bench.quality.task import (
    CLASSIFICATION,
    GROUP,
    HELD_OUT,
    TIME,
    Answer,
    Task,
    Validation,
    find_version,
    read_task,
    write_answer,
)

ROW = "bench_row"
TRAIN = """
    SELECT max(run_id) FROM cerebro.train('learned', %(target)s, 'quality',
        budget => make_interval(secs => %(seconds)s), task => %(task)s, seed => %(seed)s,
        split => %(split)s, types => %(types)s)"""
PREDICT = f"SELECT prediction FROM cerebro.predict('quality', 'held', '{ROW}') ORDER BY id::integer"
VISITS = """
    SELECT v.worker_pid, extract(epoch FROM v.started_at), extract(epoch FROM v.ended_at)
    FROM cerebro.visit v JOIN cerebro.run r USING (run_id)
    WHERE %s IN (r.run_id, (r.spec -> 'train' ->> 'refit_of')::bigint) AND v.status = 'completed'"""
WORKERS = "SELECT count(DISTINCT worker_pid) FROM cerebro.visit WHERE run_id = %s"
TEMPLATES = """
    SELECT template, count(*) FROM cerebro.config WHERE run_id = %s AND status <> 'waiting'
    GROUP BY template ORDER BY template"""
SHARES = """
    SELECT template, sum(share) FROM cerebro.model_member WHERE model = 'quality' AND deployed
    GROUP BY template ORDER BY template"""
BEST_VALUES = """
    SELECT template, (array_agg(validation ORDER BY rank))[1] FROM cerebro.leaderboard
    WHERE run_id = %s AND validation IS NOT NULL GROUP BY template ORDER BY template"""


class Visit(NamedTuple):
    """The time that a worker spent with a configuration on a segment."""

    worker: int
    began: float  # seconds since the epoch
    ended: float


def main() -> None:
    """Do the task of the command line."""
    task_path, answer_path = (Path(argument) for argument in sys.argv[1:3])
    write_answer(answer_task(read_task(task_path)), answer_path)


def answer_task(task: Task) -> Answer:
    """Load the rows; train and predict in a new session, and drop the model."""
    _load_rows(task)
    with closing(psycopg2.connect(task.url)) as session, session.cursor() as cursor:
        session.autocommit = True
        began = time.perf_counter()
        run = _train(cursor, task)
        trained = time.perf_counter()
        cursor.execute(PREDICT)
        texts = [str(row[0]) for row in cursor.fetchall()]
        predicted = time.perf_counter()
        more = _describe_run(cursor, run, task.seconds)
        cursor.execute("SELECT cerebro.drop_model('quality')")
    return Answer(
        predictions=texts if task.kind == CLASSIFICATION else [float(text) for text in texts],
        train_seconds=trained - began,
        predict_seconds=predicted - trained,
        more=more,
    )


def write_split(validation: Validation) -> str | None:
    """Return the argument `split` of a user who knows how rows to come differ.

    >>> write_split(Validation(TIME, "sold on"))
    'last 0.2 by "sold on"'
    """
    if validation.kind == TIME:
        return f"last {HELD_OUT} by {real_tables.quote(validation.column)}"
    if validation.kind == GROUP:
        return f"group {real_tables.quote(validation.column)}"
    return None


def measure_training_share(visits: Iterable[Visit], workers: int, seconds: float) -> float:
    """Return the share of the seconds of all workers in which they made visits.

    Visits of configurations that train side by side overlap, and count once.

    >>> measure_training_share([Visit(1, 0, 4), Visit(1, 2, 5), Visit(2, 0, 5)], 2, 10)
    0.5
    """
    visited = 0.0
    latest: dict[int, float] = {}
    for visit in sorted(visits, key=lambda visit: visit.began):
        begin = max(visit.began, latest.get(visit.worker, visit.began))
        visited += max(0.0, visit.ended - begin)
        latest[visit.worker] = max(visit.ended, latest.get(visit.worker, visit.ended))
    return visited / (workers * seconds) if workers else 0.0


def _load_rows(task: Task) -> None:
    """Create the tables of the training rows and of the inputs of the test rows."""
    test = task.read_test()
    with closing(psycopg2.connect(task.url)) as session:
        session.autocommit = True
        real_tables.write(session, "learned", task.read_train())
        real_tables.write(session, "held", test.assign(**{ROW: range(len(test))}))
        with session.cursor() as cursor:
            cursor.execute("ANALYZE learned, held")


def _train(cursor: Cursor, task: Task) -> int:
    cursor.execute(
        TRAIN,
        {
            "target": task.target,
            "seconds": task.seconds,
            "task": task.kind,
            "seed": task.seed,
            "split": write_split(task.validation),
            "types": json.dumps(task.types) if task.types else None,
        },
    )
    row = cursor.fetchone()
    assert row is not None
    return int(row[0])


def _describe_run(cursor: Cursor, run: int, seconds: float) -> dict[str, object]:
    """Return what the log of a run contains about its training."""
    cursor.execute(VISITS, (run,))
    visits = [Visit(worker, float(began), float(ended)) for worker, began, ended in cursor]
    cursor.execute(WORKERS, (run,))
    workers = cursor.fetchall()[0][0]
    cursor.execute(TEMPLATES, (run,))
    templates = dict(cursor.fetchall())
    cursor.execute(SHARES)
    shares = dict(cursor.fetchall())
    cursor.execute(BEST_VALUES, (run,))
    return {
        "versions": {"cerebro_db": find_version("cerebro_db")},
        "training_share": measure_training_share(visits, workers, seconds),
        "workers": workers,
        "cores": len(os.sched_getaffinity(0)),
        "templates": templates,
        "shares": shares,
        "best_values": dict(cursor.fetchall()),
    }


if __name__ == "__main__":
    main()
