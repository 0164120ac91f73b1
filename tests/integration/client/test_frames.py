"""A DataFrame becomes a table with the same values, and a model is trained of it by one call."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas
import polars
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from servers import Database

import cerebro_db
from cerebro_db import errors

# The driver writes them as SQL has them, where zero has no sign.
FLOATS = st.floats(allow_nan=False).map(lambda value: value + 0.0)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "whole": st.integers(-(2**63), 2**63 - 1),
    "number": FLOATS,
    "truth": st.booleans(),
    "text": st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    "moment": st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)).map(
        lambda moment: moment.replace(fold=0)
    ),
    "day": st.dates(date(1700, 1, 1), date(2200, 1, 1)),
    "hour": st.times().map(lambda hour: hour.replace(fold=0)),
    "length": st.timedeltas(timedelta(days=-9999), timedelta(days=9999)),
    "bytes": st.binary(),
    "series": st.lists(FLOATS, min_size=1, max_size=3),
}
NAMES = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=12
)


@pytest.fixture(scope="module")
def session(shared_database: Database) -> Iterator[cerebro_db.Session]:
    with cerebro_db.connect(shared_database.url) as opened:
        yield opened


@st.composite
def columns(draw: st.DrawFn) -> dict[str, list[Any]]:
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    rows = draw(st.integers(0, 5))
    kinds = {name: draw(st.sampled_from(sorted(VALUES))) for name in names}
    return {
        name: draw(st.lists(st.none() | VALUES[kind], min_size=rows, max_size=rows))
        for name, kind in kinds.items()
    }


@given(columns(), st.booleans())
def test_values_come_back_as_they_were(
    session: cerebro_db.Session, columns: dict[str, list[Any]], of_polars: bool
) -> None:
    if of_polars:
        frame: Any = polars.DataFrame(
            {name: polars.Series(name, its) for name, its in columns.items()}
        )
    else:
        frame = pandas.DataFrame(
            {name: pandas.Series(its, dtype=object) for name, its in columns.items()}
        )
    session.write_frame(frame, "back")
    found = session.rows("back")
    assert found.columns == tuple(columns)
    for name, its in columns.items():
        back = [
            bytes(row[name]) if isinstance(row[name], memoryview) else row[name] for row in found
        ]
        assert sorted(map(repr, back)) == sorted(map(repr, its))


def test_columns_of_pandas_have_the_types_of_their_values(session: cerebro_db.Session) -> None:
    frame = pandas.DataFrame(
        {
            "whole": np.array([1, 2], "int32"),
            "number": [0.5, np.nan],
            "truth": pandas.array([True, None], "boolean"),
            "kind": pandas.Categorical(["a", None]),
            "moment": pandas.to_datetime(["2030-01-01 12:00", None], utc=True),
            "exact": [Decimal("0.1"), None],
            "hour": [time(12), None],
            "pixels": [np.zeros((2, 2), "float32"), np.ones((2, 2), "float32")],
            "series": [np.array([0.5, 1.0]), [2, None]],
            "nothing": [None, None],
        }
    )
    session.write_frame(frame, "typed")
    with session.engine.connect() as connection:
        described = sa.text(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
            " WHERE attrelid = 'typed'::regclass AND attnum > 0 ORDER BY attnum"
        )
        types = {name: kind for name, kind in connection.execute(described)}
    assert types == {
        "whole": "bigint", "number": "double precision", "truth": "boolean", "kind": "text",
        "moment": "timestamp with time zone", "exact": "numeric", "hour": "time without time zone",
        "pixels": "double precision[]", "series": "double precision[]", "nothing": "text",
    }  # fmt: skip
    first, second = session.rows("typed")
    assert first["moment"] == datetime(2030, 1, 1, 12, tzinfo=UTC) and second["moment"] is None
    assert second["number"] is None and second["pixels"] == [[1.0, 1.0], [1.0, 1.0]]
    assert (first["series"], second["series"]) == ([0.5, 1.0], [2.0, None])


@pytest.mark.parametrize(
    "frame, message",
    [
        (pandas.DataFrame(), "at least one"),
        (pandas.DataFrame([[1, 2]], columns=["a", "a"]), "several columns"),
        (pandas.DataFrame({3: [1]}), "called 3"),
        (pandas.DataFrame({"a": [1, "x"]}), "values of type int, str"),
        (pandas.DataFrame({"a": [1j]}), "values of type complex"),
        (pandas.DataFrame({"a": ["\0"]}), "cannot send"),
    ],
)
def test_what_no_table_holds_is_refused(
    session: cerebro_db.Session, frame: pandas.DataFrame, message: str
) -> None:
    with pytest.raises(errors.InvalidParameter, match=message):
        session.write_frame(frame, "refused")
    with pytest.raises(errors.UndefinedTable):
        session.rows("refused")


@pytest.mark.parametrize("name", ["wine rows", "Body Mass (g)", 'a "b"'])
def test_a_name_that_needs_quotes_is_written_in_the_hint(
    session: cerebro_db.Session, name: str
) -> None:
    frame = pandas.DataFrame({"x": [1]})
    with pytest.raises(errors.InvalidParameter, match="expected a name as in SQL") as refused:
        session.write_frame(frame, name)
    _, quoted = str(refused.value.hint).split(": ")
    session.write_frame(frame, quoted[1:-1])
    assert session.rows(quoted[1:-1]) == [{"x": 1}]


def test_only_what_was_a_frame_is_replaced(session: cerebro_db.Session) -> None:
    with session.engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE own AS SELECT 1 AS x")
    frame = pandas.DataFrame({"x": [2]})
    with pytest.raises(errors.DuplicateTable, match="table own exists"):
        session.write_frame(frame, "own")
    assert session.rows("own") == [{"x": 1}]
    for number in (3, 4):
        session.write_frame(pandas.DataFrame({"x": [number]}), "frame")
        assert session.rows("frame") == [{"x": number}]


def test_a_model_of_a_frame(session: cerebro_db.Session) -> None:
    numbers = np.random.default_rng(1).normal(size=(60, 2))
    frame = polars.DataFrame(
        {"a": numbers[:, 0], "b": numbers[:, 1], "Sign": numbers.sum(axis=1) > 0}
    )
    board = session.train(frame, "Sign", configs=1, epochs=2, ensemble=1, models=["linear"], seed=1)
    assert board[0].status == "completed"
    assert len(session.rows('"Sign_rows"')) == 60
    predicted = session.predict(session.runs()[0].spec["train"]["model"], '"Sign_rows"').polars()
    assert predicted.height == 60 and set(predicted["prediction"]) <= {"true", "false"}
    with pytest.raises(errors.InvalidParameter, match="are those of table"):
        session.train("own", "x", table="other")


def test_answers_become_frames_of_polars(session: cerebro_db.Session) -> None:
    board = session.leaderboard(session.runs()[0].run_id)
    frame = board.polars()
    assert frame.columns == list(board.columns) and frame.height == len(board)
    assert frame["value"].to_list() == [each.value for each in board]
