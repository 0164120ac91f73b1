"""Windows of series are those that a loop over sorted samples finds, whatever gaps, holes and
labels there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from roles import another_role, own_schema, refused
from workbench import Workbench

WIDTH_AND_STRIDE = [(1, 1), (3, 3), (4, 2), (2, 5), (5, 1)]
SAMPLES = """
    CREATE TABLE samples AS
    SELECT 'a' AS wearer, timestamptz '2026-01-01' + n * interval '0.1 s' AS at, n AS tick,
        n::real AS x, -n AS y,
           CASE WHEN n % 20 < 10 THEN 'sitting' ELSE 'standing' END AS posture, ARRAY[n] AS list
    FROM generate_series(1, 60) AS n"""


class Sample(NamedTuple):
    series: int
    at: int
    x: float | None
    label: int | None


class Window(NamedTuple):
    series: int
    first: int
    last: int
    x: list[list[float]]
    label: int


finite = st.integers(-100, 100).map(float)
values = st.one_of(*[finite] * 12, st.sampled_from([None, float("nan"), float("inf")]))
labels = st.sampled_from([0] * 8 + [1] * 4 + [None])
steps = st.sampled_from([1] * 8 + [0, 2, 3])


@st.composite
def several_series(draw: st.DrawFn) -> list[Sample]:
    """Samples of two series, most of which follow each other, in any order."""
    rows: list[Sample] = []
    for series in (1, 2):
        drawn = draw(st.lists(st.tuples(steps, values, labels), min_size=15, max_size=30))
        times = accumulate(step for step, _, _ in drawn)
        rows += [
            Sample(series, at, x, label) for at, (_, x, label) in zip(times, drawn, strict=True)
        ]
    return draw(st.permutations(rows))


def stretches(rows: list[Sample], max_gap: int) -> Iterator[list[Sample]]:
    """The parts of series in which each sample follows the one before."""
    times = [(row.series, row.at) for row in rows]
    stretch: list[Sample] = []
    for row in sorted(rows, key=lambda row: row[:2]):
        whole = row.x is not None and np.isfinite(row.x) and row.label is not None
        usable = whole and times.count((row.series, row.at)) == 1
        follows = (
            stretch and stretch[-1].series == row.series and row.at - stretch[-1].at <= max_gap
        )
        if stretch and not (usable and follows):
            yield stretch
            stretch = []
        if usable:
            stretch.append(row)
    yield stretch


def reference(rows: list[Sample], width: int, stride: int, rule: str, max_gap: int) -> list[Window]:
    """The windows, as somebody would find them who has all samples in memory."""
    found = []
    for stretch in stretches(rows, max_gap):
        for begin in range(0, len(stretch) - width + 1, stride):
            part = stretch[begin : begin + width]
            seen, counts = np.unique([row.label for row in part], return_counts=True)
            if rule == "all" and len(seen) > 1:
                continue
            label = part[-1].label if rule == "last" else int(seen[np.argmax(counts)])
            assert label is not None
            found.append(
                Window(
                    part[0].series, part[0].at, part[-1].at, [[row.x or 0.0] for row in part], label
                )
            )
    return found


@given(
    rows=several_series(),
    shape=st.sampled_from(WIDTH_AND_STRIDE),
    rule=st.sampled_from(["all", "last", "majority"]),
    max_gap=st.sampled_from([1, 1, 2, 3, 0]),
)
def test_windows_are_those_of_a_loop(
    bench: Workbench, rows: list[Sample], shape: tuple[int, int], rule: str, max_gap: int
) -> None:
    width, stride = shape
    bench.rows("DROP TABLE IF EXISTS drawn, drawn_windows")
    bench.rows("CREATE TABLE drawn (series integer, at integer, x double precision, label integer)")
    columns = [list(column) for column in zip(*rows, strict=True)]
    bench.rows(
        "INSERT INTO drawn SELECT * FROM unnest(%s::int[], %s::int[], %s::float8[], %s::int[])",
        *columns,
    )
    call = (
        "SELECT cerebro.window_series('drawn', 'drawn_windows', 'series', 'at', 'x', %s, %s, "
        "'label', %s, %s)"
    )
    arguments = (width, stride, rule, str(max_gap))
    expected = reference(rows, width, stride, rule, max_gap)
    if not expected:
        refused(bench, call, *arguments, code="22023", words="no window")
        assert not bench.exists("drawn_windows")
        return
    bench.rows(call, *arguments)
    made = bench.rows("SELECT * FROM drawn_windows ORDER BY window_id")
    assert [number for number, *_ in made] == list(range(1, len(expected) + 1))
    assert [Window(*row) for _, *row in made] == expected


@pytest.fixture(scope="module")
def session(bench: Workbench) -> Workbench:
    bench.rows(SAMPLES)
    return bench


def cut(session: Workbench, arguments: str) -> list[tuple[Any, ...]]:
    session.rows("DROP TABLE IF EXISTS cuttings")
    session.rows(f"SELECT cerebro.window_series('samples', 'cuttings', {arguments})")
    return session.rows("SELECT * FROM cuttings ORDER BY window_id")


def test_the_table_has_the_columns_and_types_of_the_source(session: Workbench) -> None:
    (first, *_) = cut(session, "'wearer', 'at', 'y, x', 2, label => 'posture'")
    assert session.columns("cuttings") == (
        "window_id bigint, wearer text, first timestamp with time zone, last timestamp with time "
        "zone, x real[], posture text"
    )
    assert first[0::4] == (1, [[-1.0, 1.0], [-2.0, 2.0]]) and first[5] == "sitting"
    cut(session, "'wearer', 'at', 'x', 2")
    assert "posture" not in session.columns("cuttings")
    refused(session, "INSERT INTO cuttings SELECT * FROM cuttings", code="23505")


@pytest.mark.parametrize(
    ("ts", "max_gap"),
    [
        ("at", None),
        ("at", "0.1 s"),
        ("tick", None),
        ("tick", "1"),
        ("at - '2025-01-01'", None),
        ("tick::real", "1.5"),
    ],
)
def test_all_clocks_find_the_same_gaps(session: Workbench, ts: str, max_gap: str | None) -> None:
    """By default a step that is longer than usual is a gap."""
    session.rows("DROP VIEW IF EXISTS worn")
    session.rows(
        f"CREATE VIEW worn AS SELECT wearer, {ts} AS clock, x FROM samples WHERE tick NOT IN (21, "
        "22, 40)"
    )
    session.rows("DROP TABLE IF EXISTS cuttings")
    session.messages()
    call = (
        "SELECT cerebro.window_series('worn', 'cuttings', 'wearer', 'clock', 'x', 5, max_gap => %s)"
    )
    session.rows(call, max_gap)
    assert ("max_gap" in "".join(session.messages())) == (max_gap is None)
    starts = [start for (start,) in session.rows("SELECT x[1][1] FROM cuttings ORDER BY 1")]
    assert starts == [1, 6, 11, 16, 23, 28, 33, 41, 46, 51, 56]


def test_days_are_a_clock(session: Workbench) -> None:
    session.rows(
        "CREATE TABLE days AS SELECT 1 AS id, date '2026-01-01' + n AS day, n FROM "
        "generate_series(1, 9) n"
    )
    session.rows("SELECT cerebro.window_series('days', 'weeks', 'id', 'day', 'n', 7)")
    assert session.rows("SELECT last - first FROM weeks") == [(6,)]


def test_windows_are_trained_on_as_they_are(session: Workbench) -> None:
    cut(session, "'wearer', 'at', 'x, y', 5, label => 'posture'")
    session.rows(
        "SELECT training_preprocessor_dl('cuttings', 'cuttings_packed', 'posture', 'x', "
        "n_segments => 2)"
    )
    assert session.value("SELECT DISTINCT x_shape[2:] FROM cuttings_packed") == [5, 2]
    planned = (
        "SELECT what FROM cerebro.plan('cuttings', 'posture', columns => 'x') WHERE section = "
        "'column'"
    )
    assert session.rows(planned) == [("series of 5 x 2",)]


def test_only_rows_that_the_caller_sees_are_cut(
    session: Workbench, shared_superuser: Workbench
) -> None:
    with another_role(session, shared_superuser, "window_maker") as other:
        own_schema(shared_superuser, "window_maker")
        session.rows(
            "CREATE TABLE shared AS SELECT 'window_maker'::text AS owner, tick, x FROM samples"
            " UNION ALL SELECT 'another', tick, x FROM samples;"
            " ALTER TABLE shared ENABLE ROW LEVEL SECURITY; GRANT SELECT ON shared TO window_maker;"
            " CREATE POLICY own ON shared USING (owner = current_user)"
        )
        schema = session.value("SELECT current_schema()")
        other.rows(
            f"SELECT cerebro.window_series('{schema}.shared', 'window_maker.own', 'owner', 'tick', "
            "'x', 5)"
        )
        assert other.rows("SELECT DISTINCT owner FROM window_maker.own") == [("window_maker",)]
        refused(
            other,
            f"SELECT cerebro.window_series('{schema}.samples', 'window_maker.o', 'wearer', 'tick', "
            "'x', 5)",
        )
        session.rows("DROP TABLE shared")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("NULL, 'o', 'wearer', 'at', 'x', 5", "22004", "source"),
        ("'gone', 'o', 'wearer', 'at', 'x', 5", "42P01", "gone"),
        ("'samples', NULL, 'wearer', 'at', 'x', 5", "22004", "output"),
        ("'samples', 'samples', 'wearer', 'at', 'x', 5", "42P07", "samples"),
        ("'samples', 'o', NULL, 'at', 'x', 5", "22004", "id"),
        ("'samples', 'o', 'gone', 'at', 'x', 5", "42703", "gone"),
        ("'samples', 'o', 'wearer, y', 'at', 'x', 5", "22023", "one column"),
        ("'samples', 'o', 'wearer', ' ', 'x', 5", "22004", "ts"),
        ("'samples', 'o', 'wearer', 'posture', 'x', 5", "42804", "ts expects"),
        ("'samples', 'o', 'wearer', 'at', NULL, 5", "22004", "columns"),
        ("'samples', 'o', 'wearer', 'at', 'x, gone', 5", "42703", "gone"),
        ("'samples', 'o', 'wearer', 'at', 'list', 5", "42804", "columns expects"),
        ("'samples', 'o', 'wearer', 'at', 'x', NULL", "22004", "width"),
        ("'samples', 'o', 'wearer', 'at', 'x', 0", "22023", "width"),
        ("'samples', 'o', 'wearer', 'at', 'x', 5, 0", "22023", "stride"),
        ("'samples', 'o', 'wearer', 'at', 'x', 5, label_rule => 'last'", "22004", "label is NULL"),
        (
            "'samples', 'o', 'wearer', 'at', 'x', 5, label => 'posture', label_rule => 'mean'",
            "22023",
            "'mean'",
        ),
        ("'samples', 'o', 'wearer', 'at', 'x', 5, label => 'gone'", "42703", "gone"),
        ("'samples', 'o', 'wearer', 'at', 'x', 5, label => 'x'", "42701", "twice"),
        ("'samples', 'o', 'wearer', 'at', 'x', 5, max_gap => 'long'", "22023", "an interval"),
        ("'samples', 'o', 'wearer', 'tick', 'x', 5, max_gap => '1 s'", "22023", "a number"),
        ("'samples', 'o', 'wearer', 'tick', 'x', 5, max_gap => '-1'", "22023", "not negative"),
        ("'samples', 'o', 'wearer', 'at', 'x', 61", "22023", "61 samples"),
    ],
)
def test_wrong_calls_are_refused_and_leave_nothing(
    session: Workbench, arguments: str, code: str, words: str
) -> None:
    refused(session, f"SELECT cerebro.window_series({arguments})", code=code, words=words)
    assert not session.exists("o")
