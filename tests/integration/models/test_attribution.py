"""cerebro.attribution: what each raw column adds to the prediction of a row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from roles import another_role, refused
from versions import BatchResult, trained
from workbench import Workbench

from cerebro_plpy.configs.templates.layers.model_io import Measure
from cerebro_plpy.preprocessing.kinds.moment import Moment
from cerebro_plpy.preprocessing.kinds.number import Number

ROWS = 1100
"""More than a block."""
ODD = 'bo"x %s'
SHELVES = f"""
    CREATE TABLE shelves AS
    SELECT n AS id, CASE WHEN n % 9 > 0 THEN n * 7919 % 97 END AS height,
           (ARRAY['a', 'b"', NULL])[n % 3 + 1] AS "bo""x %s",
           date '2020-01-01' + n % 700 AS made, n * 7919 % 97 / 10.0 + n % 3 AS weight,
               n * 7919 % 97 > 40 AS full_up
    FROM generate_series(1, {ROWS}) n;
    INSERT INTO shelves VALUES (0);
    ALTER TABLE shelves ADD PRIMARY KEY (id);
    CREATE VIEW weights AS SELECT id, height, "bo""x %s", made, weight FROM shelves WHERE id > 0;
    CREATE VIEW fillings AS SELECT id, height, "bo""x %s", made, full_up FROM shelves
        WHERE id > 0"""
QUERY = "SELECT id, column_name, value, attribution, gap FROM cerebro.attribution(%s, %s)"


class Explained(NamedTuple):
    """Of a row: the value and the attribution of each column, and the gap."""

    columns: dict[str, tuple[str | None, float]]
    gap: float


@pytest.fixture(scope="module")
def models(bench: Workbench) -> list[BatchResult]:
    """A model of a number and one of classes."""
    bench.rows(SHELVES)
    floats = Measure(6.0, 3.0, -5.0, 25.0)
    return [
        trained(
            bench,
            "weight",
            "weights",
            "weight",
            epochs=2,
            floats=floats,
            margin=1.0,
            params={"width": 16},
            template="realmlp_simple",
        ),
        trained(
            bench, "full", "fillings", "full_up", epochs=2, template="linear", params={"lr": 0.1}
        ),
    ]


@pytest.fixture
def session(bench: Workbench, models: list[BatchResult]) -> Iterator[Workbench]:
    bench.messages()
    yield bench
    bench.rows("ROLLBACK; RESET ALL")


def explained(session: Workbench, model: str, source: str = "shelves") -> dict[str, Explained]:
    columns: dict[str, dict[str, Any]] = defaultdict(dict)
    gaps: dict[str, set[float]] = defaultdict(set)
    for id_, name, value, attribution, gap in session.rows(QUERY, model, source):
        assert name not in columns[id_]
        columns[id_][name] = value, attribution
        gaps[id_].add(gap)
    return {id_: Explained(found, *gaps[id_]) for id_, found in columns.items()}


def changes(session: Workbench, model: str, classes: bool) -> dict[str, float]:
    """By how much the prediction of each row differs from that of a row of which nothing is known.

    Nothing is known of a number that is the median: so it is asked of the rows that the recipe
    makes zeros of.
    """
    number = "(p.probabilities ->> q.prediction)::float8" if classes else "(p.lower + p.upper) / 2"
    query = f"""
        SELECT q.id, {number.replace("p.", "q.")} - {number}
        FROM cerebro.predict(%s, 'shelves', 'id') q, cerebro.predict(%s, 'middle') p"""
    return dict(session.rows(query, model, model))


@pytest.mark.parametrize("model", [0, 1], ids=["number", "classes"])
def test_together_they_are_what_a_prediction_differs_by(
    session: Workbench, models: list[BatchResult], model: int
) -> None:
    """From that of a row whose numbers are in the middle, with no category."""
    name, recipe = models[model].model, models[model].recipe
    (center,) = (each.scale.center for each in recipe.inputs if isinstance(each, Number))
    columns = f'{center}::float8 AS height, NULL::text AS "bo""x %s", NULL::date AS made'
    session.rows(f"CREATE OR REPLACE VIEW middle AS SELECT {columns}")
    assert not any(each.missing for each in recipe.inputs if isinstance(each, Moment)), (
        "no date is in the middle, too"
    )
    found, expected = explained(session, name), changes(session, name, classes=model == 1)
    assert found.keys() == expected.keys() and len(found) == ROWS + 1
    assert all(set(row.columns) == {"height", ODD, "made"} for row in found.values())
    reach = max(map(abs, expected.values()))
    for row_id, row in found.items():
        total = sum(attribution for _, attribution in row.columns.values())
        assert total - row.gap == pytest.approx(expected[row_id], abs=1e-3 * reach + 1e-5)
        assert abs(row.gap) < 0.1 * reach
    texts = session.rows('SELECT id::text, height::text, "bo""x %s", made::text FROM shelves')
    assert {
        row_id: tuple(value for value, _ in row.columns.values()) for row_id, row in found.items()
    } == {row_id: tuple(values) for row_id, *values in texts}
    missing = [row.columns[ODD][1] for row in found.values() if row.columns[ODD][0] is None]
    assert missing and not any(missing), "what is not there adds nothing"
    largest = max(abs(row.columns["height"][1]) for row in found.values())
    assert largest > 3 * max(abs(row.columns["made"][1]) for row in found.values())


@pytest.mark.postgresql("on Greenplum attributions stand alone")
def test_it_stands_wherever_a_table_may(session: Workbench, shared_superuser: Workbench) -> None:
    every = sorted(session.rows(QUERY, "weight", "shelves"))
    session.rows("BEGIN READ ONLY")
    joined = """
        SELECT a.id, a.column_name, a.value, a.attribution, a.gap
        FROM shelves s JOIN cerebro.attribution('weight', 'shelves') a ON a.id = s.id::text"""
    assert sorted(session.rows(joined)) == every
    session.rows("DECLARE c CURSOR FOR SELECT * FROM cerebro.attribution('weight', 'shelves')")
    session.rows("DECLARE d CURSOR FOR SELECT * FROM cerebro.predict('full', 'shelves')")
    for _ in range(2):
        assert (
            len(session.rows("FETCH 1500 FROM c")) == 1500
            and len(session.rows("FETCH 500 FROM d")) == 500
        )
    session.rows("ROLLBACK; CREATE OR REPLACE VIEW empty AS SELECT * FROM shelves WHERE false")
    assert len(session.rows("SELECT * FROM cerebro.attribution('weight', 'shelves') LIMIT 4")) == 4
    assert session.rows("SELECT * FROM cerebro.attribution('weight', 'empty')") == []
    assert session.rows(
        "SELECT DISTINCT id FROM cerebro.attribution('weight', 'weights') LIMIT 2"
    ) == [(None,)]
    refused(session, QUERY, "weigh", "shelves", code="42704", words="weight")
    refused(
        session,
        "SELECT * FROM cerebro.attribution('weight', 'shelves', 'nr')",
        code="42703",
        words="nr",
    )
    with another_role(session, shared_superuser, "asker") as other:
        refused(other, QUERY, "weight", "shelves", code="42704")
