"""Models by name over arrays: series, images, and vectors, some of which are missing; told row by
row, and granted.
"""

from __future__ import annotations

import json

import pytest
from roles import another_role, own_schema
from versions import BatchResult, trained
from workbench import Workbench

from cerebro_plpy.preprocessing.kinds.image import Image
from cerebro_plpy.preprocessing.kinds.long_vector import LongVector
from cerebro_plpy.preprocessing.kinds.series import Series
from cerebro_plpy.preprocessing.kinds.vector import Vector

ROWS = 400
MODEL = "shapes"
SHAPES = f"""
    CREATE TABLE shapes AS
    SELECT n AS id, CASE WHEN n % 7 > 0 THEN ARRAY(
               SELECT CASE WHEN n % 11 > 0 OR s <> 5 THEN sin(s / 3.0 * (1 + n % 2) + n) ELSE 'NaN'
                   END::real
               FROM generate_series(1, 20 + n % 3) s) END AS wave,
           ARRAY(SELECT ARRAY[(n * y * 7919 % 97)::integer, n % 5 * y, y] FROM generate_series(1,
               4) y) AS picture,
           CASE WHEN n % 9 > 0 THEN ARRAY[n * 7919 % 97, NULL,
               sin(n)]::double precision[] ELSE '{{}}' END AS point,
           ARRAY(SELECT sin(n * s * 7919 % 104729) FROM generate_series(1,
               70) s)::numeric[] AS embedding,
           n % 13 AS number, CASE WHEN n % 2 = 0 THEN 'slow' ELSE 'fast' END AS kind
    FROM generate_series(1, {ROWS}) n;
    ALTER TABLE shapes ADD PRIMARY KEY (id)"""
STRANGE = f"""
    INSERT INTO shapes VALUES
        ({ROWS + 1}, '[7:9]={{1,NULL,Infinity}}', NULL, '{{{{1,2}},{{3,4}}}}', '{{}}', 1, 'slow'),
        ({ROWS + 2}, '{{{{1,2}},{{3,4}}}}', '{{1,2,3}}', NULL, NULL, NULL, 'fast')"""
PATCHES = "SELECT * FROM cerebro.attribution('shapes', 'shapes', 'id') WHERE patch IS NOT NULL"
PREDICTED = (
    "SELECT id, prediction, probability FROM cerebro.predict('shapes', 'shapes', 'id', owner => "
    "'cerebro') ORDER BY id::integer"
)


@pytest.fixture(scope="module")
def shapes(bench: Workbench) -> BatchResult:
    bench.rows(SHAPES)
    types = {"picture": "image", "embedding": "vector", "wave": "series"}
    small = {"width": 8, "depth": 1}
    found = trained(
        bench, MODEL, "shapes", "kind", template="series", epochs=2, types=types, params=small
    )
    bench.rows(STRANGE)
    return found


def test_each_array_becomes_what_it_is(shapes: BatchResult) -> None:
    kinds = {each.column: type(each) for each in shapes.recipe.inputs}
    wanted = {"wave": Series, "picture": Image, "point": Vector, "embedding": LongVector}
    assert {name: kinds[name] for name in wanted} == wanted


def test_a_row_is_predicted_as_its_table_is(bench: Workbench, shapes: BatchResult) -> None:
    """Whatever the arrays of a row are, and whatever of them is missing."""
    rows = bench.rows(PREDICTED)
    records = [
        record for (record,) in bench.rows("SELECT to_jsonb(t)::text FROM shapes t ORDER BY id")
    ]
    assert len(rows) == len(records) == ROWS + 2
    for (_, prediction, probability), record in list(zip(rows, records, strict=True))[-30:]:
        found = bench.value("SELECT cerebro.predict_row(%s, %s)", MODEL, record)
        assert found["prediction"] == prediction and found["probability"] == pytest.approx(
            probability, abs=1e-5
        )
    wrong = json.dumps({"wave": {"no": "array"}})
    with pytest.raises(Exception, match="expected an array of numbers"):
        bench.value("SELECT cerebro.predict_row(%s, %s)", MODEL, wrong)


@pytest.mark.long
def test_what_a_guest_predicts_is_what_the_owner_does(
    bench: Workbench, shared_superuser: Workbench, shapes: BatchResult
) -> None:
    """And of what was learned of the arrays nothing is told."""
    bench.rows("GRANT SELECT ON shapes TO PUBLIC")
    with another_role(bench, shared_superuser, "viewer") as guest:
        own_schema(shared_superuser, "viewer")
        guest.rows("CREATE TABLE viewer.shapes AS TABLE shapes; SET search_path = viewer, madlib")
        bench.rows("SELECT cerebro.grant_predict(%s, 'viewer')", MODEL)
        assert guest.rows(PREDICTED) == bench.rows(PREDICTED)
        outline = json.dumps(guest.rows("SELECT outline FROM cerebro.model_grant"))
    for each in shapes.recipe.inputs:
        for scale in getattr(each, "scales", ()):
            assert scale.width in (1.0, 2.0) or json.dumps(scale.width) not in outline


@pytest.mark.long
def test_arrays_are_told_of_as_columns(bench: Workbench, shapes: BatchResult) -> None:
    columns = {each.column for each in shapes.recipe.inputs}
    found = bench.rows("SELECT column_name, importance FROM cerebro.importance('shapes', 'shapes')")
    assert {name for name, _ in found} == columns and all(value is not None for _, value in found)
    attribution = (
        "SELECT column_name, attribution, gap FROM cerebro.attribution('shapes', 'shapes', 'id')"
    )
    told = bench.rows(f"{attribution} WHERE patch IS NULL")
    assert {name for name, _, _ in told} == columns and len(told) == len(columns) * (ROWS + 2)
    assert all(value is not None for _, value, _ in told) and any(
        value for name, value, _ in told if name == "wave"
    )
    covered = bench.rows(
        f"SELECT column_name, patch, gap, count(attribution) FROM ({PATCHES}) p GROUP BY 1, 2, 3 "
        "ORDER BY 2"
    )
    assert covered == [
        ("picture", [1, 1, 2, 3], None, ROWS + 2),
        ("picture", [3, 1, 4, 3], None, ROWS + 2),
    ]
    assert (
        bench.value(f"SELECT max(abs(attribution)) FROM ({PATCHES}) p WHERE id <> '{ROWS + 1}'") > 0
    )
    assert bench.rows(
        f"SELECT DISTINCT attribution FROM ({PATCHES}) p WHERE id = '{ROWS + 1}'"
    ) == [(0,)], "no picture"
    shown: dict[str, str] = dict(
        bench.rows("SELECT column_name, kind FROM cerebro.feature WHERE model = 'shapes'")
    )
    assert (shown["wave"], shown["picture"], shown["point"]) == ("series", "image", "vector")


@pytest.mark.long
def test_a_bare_call_tries_what_is_made_for_the_arrays_first(
    bench: Workbench, shapes: BatchResult
) -> None:
    arguments = (
        "'shapes', 'kind', columns => 'picture, wave', types => '{\"picture\": "
        '"image", "wave": "series"}\''
    )
    plan = bench.rows(f"SELECT section, name, what FROM cerebro.plan({arguments}, configs => 3)")
    assert [name for section, name, _ in plan if section == "template"][:2] == ["series", "cnn"]
    told = {name: what.split(";")[0] for section, name, what in plan if section == "column"}
    assert told == {"picture": "image of 4 x 3 x 1", "wave": "series of 22 x 1"}
    wishes = (
        "model => 'pictures', models => '{cnn}', configs => 1, epochs => 1, seed => 1, "
        "workers => 1, refit => 'none'"
    )
    assert bench.rows(f"SELECT template, status FROM cerebro.train({arguments}, {wishes})") == [
        ("cnn", "completed")
    ]
    assert (
        bench.value("SELECT count(prediction) FROM cerebro.predict('pictures', 'shapes')")
        == ROWS + 2
    )
