"""Models by name over tables with free text: learned from, predicted, explained and granted like
any other column.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from roles import another_role, refused
from workbench import Workbench

NOTE = 'the "note" %s'
REVIEWS = """
    CREATE TABLE reviews AS
    SELECT n AS id, n % 5 AS stars,
           CASE WHEN n % 40 = 0 THEN NULL WHEN n % 40 = 1 THEN ''
                ELSE concat_ws(E'\\n', 'Bought it in week', n % 50, CASE WHEN n % 3 = 0 THEN 'It is GREAT, really!' ELSE 'It is awful:' END,
                               'no. ' || md5(n::text)) END AS "the ""note"" %s",
           CASE WHEN n % 3 = 0 THEN 'good' ELSE 'bad' END AS verdict
    FROM generate_series(1, 600) AS n;
    ALTER TABLE reviews ADD PRIMARY KEY (id)"""  # noqa: E501
OPTIONS = "configs => 1, epochs => 12, seed => 1, workers => 1, refit => 'none'"
TRAIN = f"SELECT template, validation FROM cerebro.train('reviews', 'verdict', {OPTIONS})"
TOLD = (
    "SELECT id, prediction, probability FROM cerebro.predict('reviews_verdict', %s, 'id', owner "
    "=> 'cerebro')"
)
ROW = "SELECT cerebro.predict_row('reviews_verdict', %s, owner => 'cerebro')"


@pytest.fixture(scope="module")
def reviews(bench: Workbench) -> Workbench:
    """The session of the owner of a table."""
    with bench.connection.cursor() as cursor:
        cursor.execute(REVIEWS)
    return bench


@pytest.fixture(scope="module")
def board(bench: Workbench, reviews: Workbench) -> list[tuple[Any, ...]]:
    """The leaderboard of a model over it."""
    return bench.rows(TRAIN)


@pytest.mark.long
def test_a_table_with_free_text_in_two_statements(
    bench: Workbench, board: list[tuple[Any, ...]]
) -> None:
    """Rows without words are predicted, and what nobody ever wrote; a row as JSON is predicted as
    in a table.
    """
    ((template, validation),) = board
    assert template == "text" and validation > 0.9
    constants = bench.value(
        "SELECT constants FROM cerebro.feature WHERE model = 'reviews_verdict' AND column_name = "
        "%s AND kind = 'text'",
        NOTE,
    )
    assert constants["words"] >= 8 and set(constants) == {"words", "buckets"}
    told = {row[0]: row[1:] for row in bench.rows(TOLD, "reviews")}
    verdicts: dict[str, str] = dict(bench.rows("SELECT id::text, verdict FROM reviews"))
    assert (
        sum(told[name][0] == verdict for name, verdict in verdicts.items())
        > 0.9 * len(verdicts)
        == 540
    )
    for name in ("1", "6", "40", "41"):
        record = bench.value("SELECT to_jsonb(t) FROM reviews t WHERE id = %s", int(name))
        answer = bench.value(ROW, json.dumps(record))
        assert (answer["prediction"], answer["probability"]) == (
            told[name][0],
            pytest.approx(told[name][1], abs=1e-6),
        )
    great, awful, nothing = (
        bench.value(ROW, json.dumps({NOTE: text, "stars": 1}))
        for text in ("really GREAT 😀" + "?!" * 200_000, "AWFUL", None)
    )
    assert (great["prediction"], awful["prediction"]) == ("good", "bad") and nothing[
        "prediction"
    ] in ("good", "bad")


@pytest.mark.long
def test_it_is_explained_and_watched(bench: Workbench, board: list[tuple[Any, ...]]) -> None:
    worth: dict[str, float] = dict(
        bench.rows(
            "SELECT column_name, importance FROM cerebro.importance('reviews_verdict', 'reviews')"
        )
    )
    assert set(worth) == {NOTE, "stars"} and worth[NOTE] > 0.2 > abs(worth["stars"])
    rows = bench.rows(
        "SELECT id, column_name, value, attribution, gap FROM "
        "cerebro.attribution('reviews_verdict', 'reviews')"
    )
    assert len(rows) == 1200
    by_note = [abs(row[3]) for row in rows if row[1] == NOTE and row[2]]
    others = [abs(row[3]) for row in rows if row[1] != NOTE]
    assert sum(by_note) / len(by_note) > 5 * sum(others) / len(others)
    assert all(row[3] == 0 for row in rows if row[1] == NOTE and not row[2])
    bench.rows(
        "CREATE VIEW silent AS SELECT id, stars, nullif(md5(id::text), '') || NULL AS \"the "
        '""note"" %s" FROM reviews'
    )
    drift = (
        "SELECT kind, missing, psi FROM cerebro.drift('reviews_verdict', %s) WHERE column_name = %s"
    )
    (kind, missing, psi), (_, gone, _) = (
        bench.row(drift, source, NOTE) for source in ("reviews", "silent")
    )
    assert kind == "text" and 0 < missing < 0.1 and psi < 0.1 and gone == 1


@pytest.mark.long
def test_who_is_granted_predictions_has_the_same(
    bench: Workbench, shared_superuser: Workbench, board: list[tuple[Any, ...]]
) -> None:
    bench.rows("GRANT SELECT ON reviews TO PUBLIC")
    with another_role(bench, shared_superuser, "listener") as listener:
        bench.rows("SELECT cerebro.grant_predict('reviews_verdict', 'listener')")
        assert listener.rows(TOLD, "reviews") == bench.rows(TOLD, "reviews")
        record = json.dumps({NOTE: "it is great", "stars": 2})
        assert listener.value(ROW, record) == bench.value(ROW, record)
        bench.rows("SELECT cerebro.revoke_predict('reviews_verdict', 'listener')")


def test_trees_learn_from_frequent_words(bench: Workbench, reviews: Workbench) -> None:
    """The verdict depends on words alone."""
    call = (
        "SELECT validation FROM cerebro.train('reviews', 'verdict', 'by_trees', "
        "models => '{boosting}', configs => 1, epochs => 2, ensemble => 1, seed => 1, "
        "refit => 'none')"
    )
    assert bench.value(call) > 0.9
    config = bench.value(
        "SELECT architecture::jsonb -> 'config' FROM cerebro.member_log WHERE model = 'by_trees'"
    )
    assert 1 < len(config["inputs"]["words"][0]) < 128  # words of weeks, but no hash
    predictions: dict[str, str] = dict(
        bench.rows("SELECT id, prediction FROM cerebro.predict('by_trees', 'reviews', 'id')")
    )
    verdicts: dict[str, str] = dict(bench.rows("SELECT id::text, verdict FROM reviews"))
    hits = sum(predictions[name] == verdict for name, verdict in verdicts.items())
    assert hits > 0.9 * len(verdicts)
    for name in ("1", "6", "40", "41"):
        record = bench.value("SELECT to_jsonb(t) FROM reviews t WHERE id = %s", int(name))
        answer = bench.value("SELECT cerebro.predict_row('by_trees', %s)", json.dumps(record))
        assert answer["prediction"] == predictions[name]
    attributions = bench.rows(
        "SELECT column_name, sum(abs(attribution)), max(abs(gap)) "
        "FROM cerebro.attribution('by_trees', 'reviews') GROUP BY 1"
    )
    parts = {column: part for column, part, _ in attributions}
    assert parts[NOTE] > 5 * parts["stars"] and max(gap for *_, gap in attributions) < 1e-6
    assert bench.value("SELECT bool_and(ok) FROM cerebro.verify('by_trees')") is True


def test_a_template_for_texts_wants_a_text(reviews: Workbench) -> None:
    call = (
        "SELECT what FROM cerebro.plan('reviews', 'verdict', types => %s, models => '{text}') "
        "WHERE name = %s"
    )
    assert reviews.value(call, "{}", NOTE).startswith("text: the first ")
    refused(
        reviews, call, json.dumps({NOTE: "category"}), NOTE, code="22023", words="template 'text'"
    )
