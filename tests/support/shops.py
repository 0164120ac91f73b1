"""A table with a column of each kind of feature, as views: one has classes to predict, the others
numbers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from workbench import Workbench

from cerebro_db import Session
from cerebro_db.export.recipe.rows import RawRows

SHOPS = """
    CREATE TABLE shops AS
    SELECT n AS id, CASE WHEN n % 7 > 0 THEN 20 + n * 7919 % 50 END AS age, (ARRAY['a', 'b',
        NULL])[n % 3 + 1] AS deck,
           CASE WHEN n % 5 > 0 THEN date '2020-01-01' + n % 400 END AS opened,
           n * 31 % 97 / 10.0 AS fare, n % 4 = 0 AS fair,
           (SELECT array_agg(sin(n + s / 3.0)) FROM generate_series(1, 12) s) AS wave,
           (SELECT array_agg(ARRAY[(n * s) % 7, s, n % 5, 1, 2, 3, n % 11, 0])
               FROM generate_series(1, 8) s) AS tile,
           (SELECT string_agg((ARRAY['red', 'blue', 'green', 'far',
               'off'])[(n * w) % 5 + 1] || (n * w) % 17, ' ')
            FROM generate_series(1, 9) w) AS said,
           n % 3 = 0 OR n * 31 % 97 > 80 AS open, (n * 31 % 97)::double precision * 1000 + n % 3 AS
               turnover,
           exp(n * 31 % 97 / 10.0)::double precision + n % 3 AS skewed
    FROM generate_series(1, 300) AS n"""
TYPES = '{"wave": "series", "tile": "image", "said": "text"}'
COLUMNS = ("age", "deck", "opened", "fare", "fair", "wave", "tile", "said")
"""Those that models are made of."""


def make_shops(bench: Workbench) -> str:
    """Make the table, its views, and of each view one of later rows; the name of the table.

    Of these many values are not there, others training has not seen, and numbers lie far out.
    """
    bench.rows(SHOPS)
    for view, target in (("opening", "open"), ("turning", "turnover"), ("skewing", "skewed")):
        bench.rows(f"CREATE VIEW {view} AS SELECT id, {', '.join(COLUMNS)}, {target} FROM shops")
        bench.rows(
            f"CREATE VIEW {view}_later AS SELECT id, CASE WHEN id % 4 > 0 THEN age * age * 1000 "
            "END AS age, CASE WHEN id % 5 > 0 THEN deck ELSE 'unseen' END AS deck, opened + 4000 "
            "AS opened, fare, NOT fair AS fair, CASE WHEN id % 6 > 0 THEN wave END AS wave, tile, "
            f"said || ' Ünknown, it''s' AS said FROM {view}"
        )
    return "shops"


def train(
    bench: Workbench, model: str, source: str, target: str, *templates: str, **more: int | str
) -> None:
    effort: dict[str, int | str] = {"configs": 1, "epochs": 1, "seed": 1, "ensemble": 1}
    told = {**effort, "workers": 1, "refit": "none", **more}
    rest = ", ".join(f"{name} => {value!r}" for name, value in told.items())
    call = (
        "SELECT * FROM cerebro.train(%s, %s, model => %s, models => %s, types => %s::jsonb, "
        f"{rest})"
    )
    bench.rows(call, source, target, model, list(templates), TYPES)


def columns(bench: Workbench, source: str, names: list[str]) -> dict[str, list[Any]]:
    """Raw columns as psycopg2 gives them."""
    rows = bench.rows(f"SELECT {', '.join(names)} FROM {source} ORDER BY id")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def check_answers(
    bench: Workbench, model: str, source: str, found: Mapping[str, list[Any]], apart: float = 1e-6
) -> None:
    """Answers are those of the database, at most so far apart; numbers, in shares of them and their
    margin.

    What a network computes is scaled by the target's width, and so are its last digits.
    """
    said = bench.rows(
        "SELECT prediction, probability, probabilities, lower, upper FROM cerebro.predict(%s, %s, "
        "id_col => 'id') ORDER BY id::integer",
        model,
        source,
    )
    prediction, probability, probabilities, *bounds = zip(*said, strict=True)
    if "probability" not in found:
        wanted = np.array([prediction, *bounds], np.float64)
        different = np.abs(np.array([found["prediction"], found["lower"], found["upper"]]) - wanted)
        assert (different <= apart * (wanted[2] - wanted[0] + np.abs(wanted[0]))).all(), (
            different.max()
        )
        return
    assert np.abs(np.array(found["probability"]) - np.array(probability)).max() < apart
    sure = np.array(probability) > 0.5 + apart
    assert (np.array(found["prediction"]) == np.array(prediction))[sure].all() and sure.any()
    for one, other in zip(found["probabilities"], probabilities, strict=True):
        assert one.keys() == other.keys() and all(
            abs(one[name] - other[name]) < apart for name in one
        )


def check_onnx(bench: Workbench, session: Session, model: str, source: str, folder: Path) -> None:
    """A graph of ONNX says of raw rows what the database says."""
    path, beside = session.export_onnx(model, folder / f"{model}.onnx")
    told = json.loads(beside.read_text())
    rows = RawRows(told)
    given = rows.raw(columns(bench, source, [each["column"] for each in rows.features]))
    runtime = onnxruntime.InferenceSession(path)
    assert [each.name for each in runtime.get_inputs()] == [
        each["name"] for each in told["onnx_inputs"]
    ]
    (found,) = runtime.run(None, given)
    check_answers(bench, model, source, rows.answers(found).columns(), 1e-5)
