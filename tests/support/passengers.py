"""A table to train on as users of other programs have it, and calls over it."""

from __future__ import annotations

from workbench import Workbench

TABLE = """
    CREATE TABLE passengers AS
    SELECT n AS id, CASE WHEN n % 7 > 0 THEN 20 + n * 7919 % 50 END AS age, (ARRAY['a', 'b',
        NULL])[n % 3 + 1] AS deck,
           n * 31 % 97 / 10.0 AS fare, CASE WHEN n % 50 > 0 THEN n % 3 = 0
               OR n * 31 % 97 > 80 END AS survived
    FROM generate_series(1, 600) AS n"""
MODEL = "passengers_survived"
QUICK = "models => '{linear}', configs => 1, epochs => 1, seed => 1, workers => 1, refit => 'none'"
LONG = "models => '{linear}', configs => 1, epochs => 100000, budget => '1 hour', workers => 1"
TRAIN = "SELECT * FROM cerebro.train(?, ?, {})"
PREDICT = (
    "SELECT id, prediction, probability, probabilities::text FROM cerebro.predict(?, ?, id_col => "
    "?) ORDER BY id"
)
ROW = '{"age": 31, "deck": "a", "fare": 8.5}'


def predicted(bench: Workbench) -> list[tuple[object, ...]]:
    """What the bench's own session is told by the same statement."""
    return bench.rows(PREDICT.replace("?", "%s"), MODEL, "passengers", "id")


def versions(bench: Workbench) -> int:
    """How many versions another session sees."""
    return int(bench.value("SELECT count(*) FROM cerebro.model_version"))


def going_on(bench: Workbench, before: int) -> bool:
    """Whether a run has begun since, and trains."""
    query = "SELECT EXISTS (SELECT FROM cerebro.visit WHERE run_id > %s)"
    return bool(bench.value(query, before))
