"""One model over a column of every kind, shape and element type, taken through every call on a
model by name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import psycopg2
import pytest
from drawn_images import encoded
from psycopg2.extras import Json, execute_values
from roles import refused
from safetensors.numpy import load_file
from shops import check_answers, columns
from workbench import Workbench

import cerebro_db
from cerebro_db.export.recipe.rows import RawRows

# What Keras with TensorFlow does to arrays of numpy 2.
pytestmark = [
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    pytest.mark.long,
]

ROWS = 60
MODEL = "everything"
NUMBERS = ("smallint", "integer", "bigint", "real", "double precision", "numeric")
SCALARS = {
    **{
        f"n_{kind.split()[0]}": ("number", f"(nullif(n * 7919 % 97, 3))::{kind}")
        for kind in NUMBERS
    },
    "n_json": ("number", "to_jsonb(n * 31 % 17)"),
    "flag": ("category", "n % 3 = 0"),
    "word": ("category", "(ARRAY['a', 'b \"c\"', NULL])[n % 3 + 1]"),
    "short": ("category", "('x' || n % 4)::varchar(3)"),
    "mood": ("category", "(ARRAY['sad', 'glad'])[n % 2 + 1]::mood"),
    "uid": ("category", "md5((n % 3)::text)::uuid"),
    "net": ("category", "('10.0.0.' || n % 3)::inet"),
    "said_json": ("category", "(ARRAY['\"yes\"', 'true', '[1, 2]'])[n % 3 + 1]::jsonb"),
    "day": ("moment", "date '2020-01-01' + n * 37 % 500"),
    "at": ("moment", "timestamp '2019-12-31 23:59:59.5' + n * interval '7 hours'"),
    "zoned": (
        "moment",
        "timestamptz '2020-02-28 22:00:00+03' + n * interval '90 minutes 0.25 seconds'",
    ),
    "clock": ("moment", "time '00:00' + n * interval '13 minutes'"),
    "took": ("moment", "CASE WHEN n % 5 > 0 THEN n * interval '3 hours' END"),
    "note": (
        "text",
        "(SELECT string_agg('word' || (n * w) % 17, ' ') FROM generate_series(1, 9) w)",
    ),
}
"""By the name of a column the kind that it is to be, and what makes it."""
VECTOR = (
    "CASE WHEN n % 9 > 0 THEN (ARRAY[n * 7919 % 97, nullif(n % 5, 0), n])[:3 - (n % 7 = "
    "0)::integer] END"
)
SERIES = "ARRAY(SELECT ARRAY[nullif(n * s % 13, 0), s] FROM generate_series(1, 4 + n % 2) s)"
IMAGE = (
    "ARRAY(SELECT ARRAY[ARRAY[n * y % 7, y], ARRAY[n % 5, nullif(n % 3, 0)]] FROM "
    "generate_series(1, 3) y)"
)
GREY = "ARRAY(SELECT ARRAY[n * y % 7, y, n % 5] FROM generate_series(1, 4) y)"
LINE = "ARRAY(SELECT sin(n + s / 3.0) FROM generate_series(1, 10 + n % 2) s)"
LONG = "ARRAY(SELECT sin(n * s * 7919 % 104729) FROM generate_series(1, 70) s)"
SHAPES = {
    "vector": (VECTOR, NUMBERS),
    "series": (SERIES, ("smallint", "double precision", "numeric")),
    "image": (IMAGE, ("integer", "bigint", "real")),
}
"""Arrays of one, two and three dimensions; some have an element that is NULL, or are NULL, or of
another length.
"""
ARRAYS = {
    **{
        f"{name}_{kind.split()[0]}": (name, f"({text})::{kind}[]")
        for name, (text, kinds) in SHAPES.items()
        for kind in kinds
    },
    "grey_real": ("image", f"({GREY})::real[]"),
    "grey_integer": ("image", f"({GREY})::integer[]"),
    "line_real": ("series", f"({LINE})::real[]"),
    "long_numeric": ("long vector", f"({LONG})::numeric[]"),
}
FILES = {"photo": ("image", "NULL::bytea")}
ALL = {**SCALARS, **ARRAYS, **FILES}
UNUSED = {"switches": "ARRAY[n % 2 = 0, NULL]", "place": "point(n, n)"}
"""No input is made of these."""
TYPES = {
    name: kind.replace("long ", "")
    for name, (kind, _) in ALL.items()
    if kind not in ("moment", "category")
}


def pixels(number: int) -> np.ndarray:
    """A picture as large as its thumbnail."""
    return np.random.default_rng(number).integers(0, 256, (8, 8, 1), np.uint8)


def insert(bench: Workbench, first: int, last: int) -> None:
    """Add rows with these numbers."""
    made = {**{name: text for name, (_, text) in ALL.items()}, **UNUSED}
    listed = ", ".join(f"{text} AS {name}" for name, text in made.items())
    query = (
        f"SELECT n AS id, n * 31 % 7 > 2 AS kind, {listed} FROM generate_series({first}, {last}) n"
    )
    exists = bench.exists(MODEL)
    bench.rows(f"INSERT INTO {MODEL} {query}" if exists else f"CREATE TABLE {MODEL} AS {query}")
    if not exists:
        bench.rows(f"ALTER TABLE {MODEL} ADD PRIMARY KEY (id)")
    files = [(n, psycopg2.Binary(encoded(pixels(n)))) for n in range(first, last + 1)]
    with bench.connection.cursor() as cursor:
        execute_values(
            cursor,
            f"UPDATE {MODEL} t SET photo = v.f FROM (VALUES %s) v (n, f) WHERE t.id = v.n",
            files,
        )


@pytest.fixture(scope="module")
def everything(bench: Workbench) -> str:
    bench.rows("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    insert(bench, 1, ROWS)
    options = (
        "models => '{linear}', configs => 1, epochs => 3, seed => 1, ensemble => 1, "
        "refit => 'none', workers => 1"
    )
    bench.rows(
        f"SELECT * FROM cerebro.train(%s, 'kind', %s, types => %s, {options})",
        MODEL,
        MODEL,
        Json(TYPES),
    )
    return MODEL


@pytest.fixture(scope="module")
def session(bench: Workbench, everything: str) -> Iterator[cerebro_db.Session]:
    with cerebro_db.connect(bench.url) as opened:
        yield opened


def test_each_column_is_what_the_documents_say(bench: Workbench, everything: str) -> None:
    found: dict[str, str] = dict(
        bench.rows("SELECT column_name, kind FROM cerebro.feature WHERE model = %s", everything)
    )
    expected = {
        **{name: kind for name, (kind, _) in ALL.items()},
        **dict.fromkeys([*UNUSED, "id"], "left out"),
    }
    assert found == expected


def test_a_row_is_predicted_as_its_table_is(bench: Workbench, everything: str) -> None:
    rows = bench.rows(
        "SELECT p.prediction, p.probability, to_jsonb(t)::text FROM cerebro.predict(%s, %s, 'id') p"
        f" JOIN {everything} t ON t.id = p.id::integer ORDER BY t.id", everything, everything,
    )  # fmt: skip
    assert len(rows) == ROWS
    for prediction, probability, record in rows[:9]:
        told = bench.value("SELECT cerebro.predict_row(%s, %s)", everything, record)
        assert told["prediction"] == prediction and told["probability"] == pytest.approx(
            probability, abs=1e-5
        )


@pytest.mark.parametrize("name", [name for name in ARRAYS if "real" in name])
def test_an_array_that_is_ragged_is_refused(bench: Workbench, everything: str, name: str) -> None:
    record: dict[str, Any] = {name: [[1, 2], [3]]}
    error = refused(
        bench, "SELECT cerebro.predict_row(%s, %s)", everything, json.dumps(record), code="22P02"
    )
    assert f"column '{name}'" in str(error)


def test_each_column_is_measured_and_explained(bench: Workbench, everything: str) -> None:
    measured = (
        "SELECT rows, value FROM cerebro.evaluate(%s, %s) WHERE metric = 'accuracy' AND class IS "
        "NULL"
    )
    ((rows, value),) = bench.rows(measured, everything, everything)
    assert rows == ROWS and 0 <= value <= 1
    importance = "SELECT column_name, importance FROM cerebro.importance(%s, %s)"
    worth: dict[str, float] = dict(bench.rows(importance, everything, everything))
    assert worth.keys() == ALL.keys() and None not in worth.values()
    explained = bench.rows(
        "SELECT column_name, count(attribution) FROM cerebro.attribution(%s, %s) WHERE patch IS "
        "NULL GROUP BY 1",
        everything,
        everything,
    )
    assert dict(explained) == dict.fromkeys(ALL, ROWS)


def test_a_file_and_its_recipe_predict_like_the_database(
    bench: Workbench, session: cerebro_db.Session, everything: str, tmp_path: Path
) -> None:
    path, beside = session.export_keras(everything, tmp_path / "it.keras")
    rows = RawRows.of(beside.read_text())
    given = columns(bench, everything, list(ALL))
    given["photo"] = [(pixels(n).astype(np.float32) - 127.5) / 63.75 for n in range(1, ROWS + 1)]
    # Texts that the driver does not give.
    for name, text in {"net": "net::text", "said_json": "said_json #>> '{}'"}.items():
        given[name] = [
            value for (value,) in bench.rows(f"SELECT {text} FROM {everything} ORDER BY id")
        ]
    told = rows.answers(keras.saving.load_model(path).predict(rows.inputs(given), verbose=0))
    check_answers(bench, everything, everything, told.columns())
    session.export_safetensors(everything, tmp_path / "weights")
    assert (tmp_path / "weights" / "recipe.json").read_text() == beside.read_text()
    assert load_file(tmp_path / "weights" / "weights.safetensors")


def test_the_version_is_made_again_and_learns_of_new_rows(
    bench: Workbench, everything: str
) -> None:
    findings = bench.rows("SELECT what, ok, detail FROM cerebro.verify(%s, '1')", everything)
    assert [ok for _, ok, _ in findings] == [True] * len(findings), findings
    insert(bench, ROWS + 1, ROWS + 20)
    assert bench.rows("SELECT version FROM cerebro.refresh(%s)", everything) == [(2,)]
    bench.rows("SELECT cerebro.deploy(%s, '2')", everything)
    predicted = bench.value(
        "SELECT count(prediction) FROM cerebro.predict(%s, %s)", everything, everything
    )
    assert predicted == ROWS + 20
