"""Packed tables that somebody changed: training says what is wrong with which table, or trains on
what is there.
"""

from __future__ import annotations

from typing import Any

import hostile
import numpy as np
import psycopg2
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from trials import trials
from workbench import Workbench, compile_text

FITS = settings(trials(10), suppress_health_check=list(HealthCheck))
CODES = {"22003", "22004", "22023", "42804", "42809", "53200", "MS001"}
X = np.linspace(-1, 1, 64, dtype="<f4").tobytes()
LABEL = np.tile(np.array([1, 0, 0], "<i2"), 16).tobytes()
NAN = np.full(64, np.nan, "<f4").tobytes()
SIZES = st.sampled_from((0, 1, 3, 4, 16, 17, -1, 2**31 - 1, None))
SHAPES = st.none() | st.lists(SIZES, max_size=3) | st.just([[16, 4], [16, 4]])
NUMBERS = st.sampled_from((0, 1, -1, 2**31 - 1, -(2**31), None))
CHANGES = st.one_of(
    st.tuples(st.just("x"), hostile.damaged(X) | st.none()),
    st.tuples(st.just("label"), hostile.damaged(LABEL) | st.none()),
    st.tuples(st.sampled_from(("x_shape", "label_shape")), SHAPES),
    st.tuples(st.sampled_from(("buffer_id", "__dist_key__")), NUMBERS),
)


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", 2, buffer=16)
    bench.configure("one", [compile_text()])
    bench.rows("CREATE TABLE damaged_summary AS TABLE packed_summary")
    bench.rows("SET statement_timeout = '100s'")


@pytest.mark.long
@FITS
@given(st.lists(CHANGES, min_size=1, max_size=2), st.booleans())
@example([("x", NAN)], True)
@example([("x", b"")], True)
@example([("x", X[:-4])], False)
@example([("x_shape", [16, 4]), ("x", X * 2)], False)
@example([("x_shape", [2**31 - 1, 4])], True)
@example([("x_shape", [4, 16])], True)
@example([("label_shape", [3, 16])], False)
@example([("label_shape", [1])], True)
@example([("__dist_key__", 7)], True)
@example([("__dist_key__", None)], True)
@example([("__dist_key__", None)], False)
@example([("buffer_id", -1)], False)
@example([("x_shape", [0, 4]), ("x", b"")], True)
@example([("x_shape", [1, None])], True)
def test_a_changed_buffer_is_named_or_used(
    bench: Workbench, changes: list[tuple[str, Any]], everywhere: bool
) -> None:
    bench.rows("DROP TABLE IF EXISTS damaged; CREATE TABLE damaged AS TABLE packed")
    for column, value in changes:
        where = "" if everywhere else " WHERE buffer_id = 1"
        bench.rows(f"UPDATE damaged SET {column} = %s{where}", value)
    backend = bench.pid()
    try:
        bench.fit("damaged", "model", "one", 1)
    except psycopg2.Error as error:
        assert error.pgcode in CODES, f"{error.pgcode}: {error}"
        assert not bench.exists("model", "model_info")
        run = (
            bench.value("SELECT status FROM cerebro.run ORDER BY run_id DESC LIMIT 1")
            if bench.newest_run()
            else "failed"
        )
        assert run in ("failed", "completed")
    else:
        bench.rows("DROP TABLE model, model_info, model_summary")
    assert bench.value("SELECT pg_backend_pid()") == backend
