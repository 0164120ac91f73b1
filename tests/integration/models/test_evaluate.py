"""cerebro.evaluate: metrics over the rows of a source are those of what cerebro.predict says of the
same rows.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from statistics import fmean
from typing import Any, NamedTuple

import pytest
from roles import another_role, refused
from versions import BatchResult, trained
from workbench import Workbench

from cerebro_plpy.configs.templates.layers.model_io import Measure
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.preprocessing.scoring.metrics import SCORES
from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRow, ScoredRows

NUMBERS = ("rmse", "mae", "mape", "r2")
AREAS = ("auc", "average_precision")
"""Metrics of classes by the order of their probabilities."""
ROWS = 5000
"""More than a block."""
VISITS = f"""
    CREATE TABLE visits AS
    SELECT n AS id, CASE WHEN n % 11 > 0 THEN n * 7919 % 97 END AS age, (ARRAY['a', 'b',
        NULL])[n % 3 + 1] AS place,
           n % 4 = 0 AS "Od""d", sin(n) * 20 + n % 3 AS cost,
           CASE WHEN n % 13 = 0 THEN 'never seen' WHEN n % 7 > 0
                THEN (ARRAY['x', 'od"d %s', 'z'])[(n % 3 + n * 7919 % 97 / 40) % 3 + 1] END AS kind
    FROM generate_series(1, {ROWS}) n;
    ALTER TABLE visits ADD PRIMARY KEY (id);
    CREATE VIEW known AS SELECT id, age, place, kind FROM visits WHERE kind <> 'never seen';
    CREATE VIEW costs AS SELECT id, age, place, cost FROM visits"""
Found = dict[tuple[str, str | None, str | None], tuple[float | None, int]]


class Line(NamedTuple):
    """A row with a target: its group, and what the model says of it."""

    group: str
    told: ScoredRow
    prediction: str


@pytest.fixture(scope="module")
def kinds(bench: Workbench) -> BatchResult:
    """A model of three classes."""
    bench.rows(VISITS)
    return trained(bench, "kinds", "known", "kind", epochs=1, template="linear")


@pytest.fixture(scope="module")
def costs(bench: Workbench, kinds: BatchResult) -> BatchResult:
    """A model of a number."""
    floats = Measure(1.0, 14.0, -20.0, 22.0)
    return trained(
        bench, "costs", "costs", "cost", epochs=1, margin=9.5, floats=floats, template="linear"
    )


@pytest.fixture
def session(bench: Workbench, costs: BatchResult) -> Iterator[Workbench]:
    bench.messages()
    yield bench
    bench.rows("ROLLBACK; RESET ALL")


def evaluated(session: Workbench, model: str, source: str, *groups: str) -> dict[str | None, Found]:
    """The metrics by group: value and rows by metric, class and prediction."""
    columns = "group_values, metric, class, predicted, value, rows"
    query = f"SELECT {columns} FROM cerebro.evaluate(%s, %s, %s)"
    found: dict[str | None, Found] = {}
    for group, metric, class_, predicted, value, rows in session.rows(
        query, model, source, ", ".join(map(quote_identifier, groups)) or None
    ):
        key = None if group is None else json.dumps(group)
        line = found.setdefault(key, {})
        assert (metric, class_, predicted) not in line
        line[metric, class_, predicted] = value, rows
    return found


@pytest.fixture(scope="module")
def lines(bench: Workbench, kinds: BatchResult) -> list[Line]:
    """What cerebro.predict says of the rows that have a target, each beside it."""
    query = """
        SELECT jsonb_build_object('place', t.place, 'Od"d', t."Od""d"), t.kind, p.prediction,
            p.probabilities
        FROM visits t JOIN cerebro.predict('kinds', 'visits', 'id') p ON p.id = t.id::text
            WHERE t.kind IS NOT NULL"""
    return [
        Line(json.dumps(g), ScoredRow(label, told), says)
        for g, label, says, told in bench.rows(query)
    ]


def expected(lines: list[Line]) -> dict[tuple[str, str | None, str | None], float]:
    """Metrics by their definitions, a row at a time."""
    labels, said = [line.told.label for line in lines], [line.prediction for line in lines]
    rows = ScoredRows.collect(line.told for line in lines)
    names = sorted({*labels, *said})
    found: dict[tuple[str, str | None, str | None], float] = {
        (name, None, None): SCORES[name](rows) for name in ("accuracy", "log_loss", *AREAS)
    }
    right = Counter(
        label for label, prediction in zip(labels, said, strict=True) if label == prediction
    )
    actual, predicted = Counter(labels), Counter(said)
    for name in names:
        found["f1", name, None] = 2 * right[name] / (actual[name] + predicted[name])
        if actual[name]:
            found["recall", name, None] = right[name] / actual[name]
        if predicted[name]:
            found["precision", name, None] = right[name] / predicted[name]
    for (label, prediction), count in Counter(zip(labels, said, strict=True)).items():
        found["confusion", label, prediction] = count / actual[label]
    found["f1", None, None] = fmean(found["f1", name, None] for name in names)
    found["balanced_accuracy", None, None] = fmean(found["recall", name, None] for name in actual)
    squares = (
        sum(
            (row.classes.get(name, 0.0) - (row.label == name)) ** 2
            for name in {*row.classes, row.label}
        )
        for row in rows
    )
    found["brier", None, None] = fmean(squares) / 2
    for name in ("f1", "balanced_accuracy", "brier"):
        assert SCORES[name](rows) == pytest.approx(found[name, None, None])
    errors = []
    for name in rows[0].classes:
        tenths: dict[int, list[tuple[float, bool]]] = {}
        for row in rows:
            tenths.setdefault(min(9, int(row.classes[name] * 10)), []).append(
                (row.classes[name], row.label == name)
            )
        apart = (
            abs(sum(p for p, _ in tenth) - sum(hit for _, hit in tenth))
            for tenth in tenths.values()
        )
        errors.append(sum(apart) / len(rows))
        found["calibration_error", name, None] = errors[-1]
        for tenth in tenths.values():
            told = f"{fmean(p for p, _ in tenth):.4f}"
            found["calibration", name, told] = fmean(hit for _, hit in tenth)
    found["calibration_error", None, None] = fmean(errors)
    certainties: dict[int, float] = {}
    for row in rows:
        largest = max(row.classes.values())
        place = min(14, int(largest * 15))
        is_hit = row.classes.get(row.label) == largest
        certainties[place] = certainties.get(place, 0.0) + largest - is_hit
    found["ece", None, None] = sum(map(abs, certainties.values())) / len(rows)
    return found


def noise_of(session: Workbench) -> float:
    """By how much predictions of the same row may differ."""
    return 1e-6 if session.greenplum else 0.0


def moved(row: ScoredRow, by: float) -> ScoredRow:
    """A row whose right class is told so much more probable."""
    return row._replace(
        classes={name: p + by * (name == row.label) for name, p in row.classes.items()}
    )


def compared(found: Found, lines: list[Line], noise: float) -> None:
    """Nearly, for on Greenplum rows come in another order each time, and so to other blocks of the
    trainer.

    Probabilities then differ by that `noise`, and rows with equal inputs, of which there are many,
    are equal no more: the area under the curve is one of those that their order may give.
    """
    wanted = expected(lines)
    values = {key: value for key, (value, _) in found.items() if value is not None}
    of_classes = {key for key in values if key[0] in AREAS and key[1] is not None}
    assert values.keys() - of_classes == wanted.keys()
    for name in AREAS:
        area = values[name, None, None]
        least, most = (
            SCORES[name](ScoredRows.collect(moved(line.told, by) for line in lines))
            for by in (-noise, noise)
        )
        assert least - 1e-6 <= area <= most + 1e-6
        mean = fmean(values[key] for key in of_classes if key[0] == name)
        assert mean == pytest.approx(area)
    for key in wanted.keys() - {(name, None, None) for name in AREAS}:
        assert values[key] == pytest.approx(wanted[key], abs=1e-6), key
    assert found["accuracy", None, None][1] == len(lines)
    assert sum(rows for key, (_, rows) in found.items() if key[0] == "confusion") == len(lines)


def test_metrics_are_those_of_the_predictions(session: Workbench, lines: list[Line]) -> None:
    """Classes that the model does not know count as wrong, and rows without a target are left
    out.
    """
    found = evaluated(session, "kinds", "visits")
    assert set(found) == {None}
    compared(found[None], lines, noise_of(session))
    assert found[None]["recall", "never seen", None][0] == 0
    missing = session.value("SELECT count(*) FROM visits WHERE kind IS NULL")
    (said,) = (text for text in session.messages() if "evaluate" in text)
    assert f"{missing} rows have no kind, and are left out" in said


def test_each_group_has_the_metrics_of_its_rows(session: Workbench, lines: list[Line]) -> None:
    found = evaluated(session, "kinds", "visits", "place", 'Od"d')
    by_group: dict[str | None, list[Line]] = {None: lines}
    for line in lines:
        by_group.setdefault(line.group, []).append(line)
    assert len(found) == len(by_group) == 7
    for group, some in by_group.items():
        compared(found[group], some, noise_of(session))
    whole = evaluated(session, "kinds", "visits")[None]
    assert whole.keys() == found[None].keys()
    compared(whole, lines, noise_of(session))
    others = (
        (line, found[None][key])
        for key, line in whole.items()
        if line[0] is not None and key[0] not in AREAS
    )
    assert all(line == pytest.approx(before) for line, before in others)
    query = "SELECT group_values, metric FROM cerebro.evaluate('kinds', 'visits', %s) LIMIT 9"
    metrics = session.rows(query, "PLACE, place")
    assert [group for group, _ in metrics] == [None] * 9 and metrics[0][1] == "accuracy"


def test_metrics_of_a_number_are_those_of_the_predictions(session: Workbench) -> None:
    query = """
        SELECT t.place, t.cost, p.lower, p.upper
        FROM costs t JOIN cerebro.predict('costs', 'costs', 'id') p ON p.id = t.id::text"""
    rows: list[tuple[Any, ...]] = session.rows(query)
    found = evaluated(session, "costs", "costs", "place")
    for place in (None, "a", "b"):
        some = [row for row in rows if place in (None, row[0])]
        told = ScoredRows.collect(
            ScoredRow(str(cost), {}, (low + high) / 2) for _, cost, low, high in some
        )
        group = found[None if place is None else json.dumps({"place": place})]
        assert set(group) == {(name, None, None) for name in (*NUMBERS, "coverage")}
        for name in NUMBERS:
            value, _ = group[name, None, None]
            assert value == pytest.approx(SCORES[name](told), abs=1e-5, rel=1e-5)
        covered = fmean(low <= cost <= high for _, cost, low, high in some)
        value, count = group["coverage", None, None]
        assert value == pytest.approx(covered, abs=2 / len(some)) and count == len(some)


def test_it_sees_what_the_caller_sees(session: Workbench, shared_superuser: Workbench) -> None:
    """Rows that the transaction has made, of a temporary table, in a transaction that writes
    nothing, and no others.
    """
    count = "SELECT rows FROM cerebro.evaluate('kinds', {}) WHERE metric = 'accuracy'"
    session.rows(
        "BEGIN ISOLATION LEVEL REPEATABLE READ; CREATE TEMP TABLE mine AS SELECT * FROM visits "
        "WHERE id < 100"
    )
    before = session.value(count.format("'mine'"))
    session.rows("INSERT INTO mine (id, kind) VALUES (-1, 'x'); SET TRANSACTION READ ONLY")
    assert session.value(count.format("'mine'")) == before + 1
    session.rows("ROLLBACK")
    session.rows(
        "CREATE TABLE guarded AS SELECT * FROM known; ALTER TABLE guarded ENABLE ROW LEVEL "
        "SECURITY; ALTER TABLE guarded FORCE ROW LEVEL SECURITY; CREATE POLICY few ON guarded "
        "USING (id <= 9)"
    )
    assert session.value(count.format("'guarded'")) == session.value(
        "SELECT count(*) FROM known WHERE id <= 9"
    )
    with another_role(session, shared_superuser, "judge") as other:
        refused(other, "SELECT * FROM cerebro.evaluate('kinds', 'visits')", code="42704")


def test_of_no_rows_there_are_no_metrics(session: Workbench) -> None:
    session.rows("CREATE OR REPLACE VIEW nobody AS SELECT * FROM visits WHERE kind IS NULL")
    assert session.rows("SELECT * FROM cerebro.evaluate('kinds', 'nobody')") == []
    assert session.rows("SELECT * FROM cerebro.evaluate('costs', 'nobody') WHERE false") == []
    assert any("no row has a value of kind" in text for text in session.messages())


WRONG = {
    "no such model": ("'kind', 'visits'", "42704", "kinds"),
    "no target": ("'kinds', 'costs'", "42703", "kind"),
    "no such group": ("'kinds', 'visits', 'plac'", "42703", "place"),
    "an array": ("'kinds', 'visits', '{place}'", "42703", "group_by => 'place'"),
    "an empty text": ("'kinds', 'visits', ''", "42703", "group_by"),
    "another type": ("'costs', 'crooked'", "42804", "cost"),
    "no source": ("'kinds', NULL", "22004", "source"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_calls_are_refused(session: Workbench, wrong: str) -> None:
    session.rows("CREATE OR REPLACE VIEW crooked AS SELECT id, age, place, cost::text FROM visits")
    arguments, code, words = WRONG[wrong]
    refused(session, f"SELECT * FROM cerebro.evaluate({arguments})", code=code, words=words)


def test_nothing_of_the_session_is_changed(session: Workbench) -> None:
    settings = (
        "SELECT current_setting('search_path'), current_setting('jit'), "
        "current_setting('datestyle')"
    )
    session.rows("SET search_path = public, madlib; SET jit = on; SET datestyle = German")
    before = session.row(settings)
    session.rows("BEGIN; DECLARE c CURSOR FOR SELECT * FROM cerebro.evaluate('kinds', 'visits')")
    assert len(session.rows("FETCH 2 FROM c")) == 2 and session.row(settings) == before
    assert math.isfinite(
        session.value("SELECT value FROM cerebro.evaluate('costs', 'costs') LIMIT 1")
    )
