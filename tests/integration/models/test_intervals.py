"""Intervals of any level: predictions, evaluations and models of groups have the same ones."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from followed_hints import Call, error_of, follow, read_hint
from roles import another_role, refused
from versions import trained
from workbench import Workbench

from cerebro_plpy.configs.templates.layers.model_io import Measure

pytestmark = pytest.mark.postgresql("on Greenplum group_by is refused")

WELLS = """
    CREATE TABLE wells AS
    SELECT n AS id, n * 7919 % 101 AS depth,
           CASE n % 4 WHEN 0 THEN 'north' ELSE 'south' END AS side,
           n * 7919 % 101 * 0.5 + n * 31 % 17 AS flow, n % 2 = 0 AS wet
    FROM generate_series(1, 600) n;
    CREATE TABLE new_wells AS SELECT * FROM wells WHERE id > 400;
    DELETE FROM wells WHERE id > 400;
    ALTER TABLE new_wells ADD PRIMARY KEY (id)"""
SMALL = "models => '{linear}', configs => 1, epochs => 3, ensemble => 1, seed => 1"
SPLIT = "split => 'table new_wells'"
GROUPS = "group_by => 'side', min_group_rows => 50"
LEVELS = (0.01, 0.5, 0.8, 0.9, 0.95, 0.98)


@pytest.fixture(scope="module")
def models(bench: Workbench) -> None:
    bench.rows(WELLS)
    bench.rows(f"SELECT FROM cerebro.train('wells', 'flow', 'flows', {SMALL}, {SPLIT}, {GROUPS})")
    bench.rows(f"SELECT FROM cerebro.train('wells', 'wet', 'classes', {SMALL}, {SPLIT})")


@pytest.fixture
def session(bench: Workbench, models: None) -> Iterator[Workbench]:
    bench.messages()
    yield bench
    bench.rows("ROLLBACK; RESET ALL")


@pytest.mark.parametrize("level", LEVELS)
def test_the_rows_held_back_lie_in_their_intervals_as_often_as_the_level_says(
    session: Workbench, level: float
) -> None:
    """Also those of each group, whose model has errors of its own."""
    query = """
        SELECT t.side, count(*), count(*) FILTER (WHERE t.flow BETWEEN p.lower AND p.upper)
        FROM new_wells t
        JOIN cerebro.predict('flows', 'new_wells', level => %s) p ON p.id = t.id::text
        GROUP BY t.side"""
    groups = session.rows(query, level)
    assert {side for side, *_ in groups} == {"north", "south"}
    for side, rows, covered in groups:
        # Rounding may put the row that decides the margin outside.
        wanted = math.ceil(round((rows + 1) * level, 9))
        assert wanted - 1 <= covered <= wanted + 1, side
    total = sum(covered for *_, covered in groups)
    coverage = (
        "SELECT value FROM cerebro.evaluate('flows', 'new_wells', level => %s) "
        "WHERE metric = 'coverage'"
    )
    assert session.value(coverage, level) == pytest.approx(total / 200, abs=2 / 200)


def test_each_function_has_the_same_intervals(session: Workbench) -> None:
    """And they are wider than those of a lower level."""
    for level in ("0.5", "0.95"):
        table = session.rows(
            "SELECT p.lower, p.upper FROM new_wells t JOIN cerebro.predict('flows', 'new_wells', "
            f"level => {level}) p ON p.id = t.id::text ORDER BY t.id LIMIT 20"
        )
        rows = session.rows(
            "SELECT p.lower, p.upper FROM cerebro.predict_rows('flows', NULL::new_wells, level => "
            f"{level}) p ORDER BY (p.row).id LIMIT 20"
        )
        assert rows == table
        records = session.rows(
            "SELECT (r ->> 'lower')::float8, (r ->> 'upper')::float8 FROM (SELECT "
            f"cerebro.predict_row('flows', to_jsonb(t), level => {level}) r FROM new_wells t "
            "ORDER BY id LIMIT 20) p"
        )
        for record, interval in zip(records, table, strict=True):
            assert record == pytest.approx(interval, rel=1e-5)
    query = "SELECT avg(upper - lower) FROM cerebro.predict('flows', 'new_wells', level => %s)"
    widths = [session.value(query, level) for level in LEVELS]
    assert widths == sorted(widths)
    usual = session.value("SELECT avg(upper - lower) FROM cerebro.predict('flows', 'new_wells')")
    assert usual == widths[LEVELS.index(0.9)]


FUNCTIONS = {
    "cerebro.predict": {"source": "'new_wells'"},
    "cerebro.predict_rows": {"row_type": "NULL::new_wells"},
    "cerebro.predict_row": {"record": "'{}'"},
    "cerebro.evaluate": {"source": "'new_wells'"},
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_impossible_levels_are_refused(session: Workbench, function: str) -> None:
    def make_call(model: str, level: str) -> Call:
        return Call(function, {"model": f"'{model}'", **FUNCTIONS[function], "level": level})

    usual = "Leave level out, or write level => 0.9."
    for level in ("0", "1", "-0.5", "1.5", "'NaN'", "'Infinity'"):
        error = error_of(session, make_call("flows", level))
        read_hint(error, usual)
        assert error is not None and error.pgcode == "22023"
    error = error_of(session, make_call("flows", "NULL"))
    read_hint(error, usual)
    assert error is not None and error.pgcode == "22004"
    error = error_of(session, make_call("flows", "0.9999"))
    assert read_hint(error, "Write level => {}, the largest one that these rows allow.") == (
        "Write level => 0.995, the largest one that these rows allow."
    )
    assert len(follow(session, make_call("flows", "0.9999"))) == 1
    error = error_of(session, make_call("classes", "0.5"))
    read_hint(error, "Leave level out.")
    assert len(follow(session, make_call("classes", "0.5"))) == 1


def test_a_version_without_errors_has_intervals_of_the_usual_level_only(session: Workbench) -> None:
    floats = Measure(1.0, 14.0, -20.0, 22.0)
    trained(session, "old", "wells", "flow", epochs=1, margin=2.5, floats=floats, template="linear")
    call = Call("cerebro.predict", {"model": "'old'", "source": "'new_wells'", "level": "0.8"})
    error = error_of(session, call)
    assert error is not None and error.pgcode == "55000"
    read_hint(error, "Leave level out, or train the model again.")
    width = "SELECT upper - lower FROM cerebro.predict('old', 'new_wells') LIMIT 1"
    assert session.value(width) == pytest.approx(5.0)


def test_other_roles_get_the_usual_level_only(
    session: Workbench, shared_superuser: Workbench
) -> None:
    """They would learn the errors of single rows."""
    with another_role(session, shared_superuser, "driller") as other:
        session.rows("SELECT cerebro.grant_predict('flows', 'driller')")
        row = "cerebro.predict_row('flows', '{}', owner => 'cerebro'"
        usual = other.value(f"SELECT {row})")
        assert other.value(f"SELECT {row}, level => 0.9)") == usual and usual["lower"] is not None
        error = refused(other, f"SELECT {row}, level => 0.5)", code="42501", words="cerebro's")
        read_hint(error, "Leave level out, or write level => 0.9.")
        outline = other.value("SELECT outline::text FROM cerebro.model_grant")
        assert "margin" in outline and "errors" not in outline and "calibration" not in outline
        session.rows("SELECT cerebro.revoke_predict('flows', 'driller')")
