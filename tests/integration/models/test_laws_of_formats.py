"""Two sessions of one role with other formats predict alike, and what they compute is what
registration computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from drawn_settings import TIME_FORMATS
from hypothesis import given
from hypothesis import strategies as st
from readings import under
from trials import trials
from workbench import Workbench

from cerebro_plpy.preprocessing.scoring.error_quantiles import USUAL_LEVEL, ErrorQuantiles

pytestmark = pytest.mark.postgresql("views are read alike on Greenplum")

VISITS = """
    CREATE TABLE visits AS
    SELECT n AS id, timestamptz '2024-02-27 20:00+00' + n * interval '7 hours 13 minutes' AS at,
           timestamp '2024-03-09 22:00' + n * interval '1 hour' AS moment,
               n * interval '1 day -3 min 0.5 s' AS span,
           concat_ws('/', lpad((n % 12 + 1)::text, 2, '0'), lpad((n % 11 + 1)::text, 2, '0'),
               '05') AS bought,
           (n * 37 % 200) / 7.0::float8 AS amount
    FROM generate_series(1, 300) n;
    CREATE VIEW dated AS
    SELECT id, at, at::text AS at_text, extract(hour FROM at)::integer AS hour, at::date AS day,
           moment::timestamptz AS zoned, span, span::text AS span_text, bought::date AS bought,
           to_char(at, 'HH24 TZ') AS shown, extract(month FROM bought::date) > 6 AS late,
           amount + extract(hour FROM at)::float8 AS cost
    FROM visits;
    CREATE VIEW earlier AS SELECT * FROM dated WHERE id <= 200;
    CREATE VIEW later AS SELECT * FROM dated WHERE id > 200"""
TRAINED = {"timezone": "Asia/Kolkata", "datestyle": "SQL, DMY", "intervalstyle": "sql_standard"}
TYPES = '{"hour": "category", "shown": "category"}'
OPTIONS = (
    f"models => '{{linear}}', epochs => 3, seed => 1, workers => 1, split => 'table later', types "
    f"=> '{TYPES}'"
)
TRAIN = (
    "SELECT validation FROM cerebro.train('earlier', %s, %s, configs => 1, ensemble => 1, columns "
    f"=> %s, {OPTIONS})"
)
MODELS = {"late": "* except cost", "cost": "* except late"}
"""Columns that are learned from by models, which are named like their targets."""
CALLS = {
    "predict_row": "SELECT p.* FROM records k, cerebro.predict_row(%s, k.record) p WHERE k.id <= "
    "220 ORDER BY k.id",
    "predict": "SELECT p.* FROM cerebro.predict(%s, 'later', 'id') p ORDER BY p.id::integer",
    "evaluate": "SELECT e.* FROM cerebro.evaluate(%s, 'later') e ORDER BY e::text",
    "importance": "SELECT i.* FROM cerebro.importance(%s, 'later') i ORDER BY i::text",
    "drift": "SELECT d.* FROM cerebro.drift(%s, 'later') d ORDER BY d::text",
    "attribution": "SELECT a.* FROM cerebro.attribution(%s, 'later', 'id') a ORDER BY a::text",
}
Told = Mapping[str, Any]


def told(bench: Workbench) -> Told:
    """Return what calls return of both models, by their names."""
    return {
        f"{name} of {model}": repr(bench.rows(call, model))
        for name, call in CALLS.items()
        for model in MODELS
    }


@pytest.fixture(scope="module")
def there(bench: Workbench) -> Told:
    """What calls return in the session that trained."""
    bench.rows(VISITS)
    for name, value in TRAINED.items():
        bench.rows("SELECT set_config(%s, %s, false)", name, value)
    for target, columns in MODELS.items():
        bench.rows(TRAIN, target, target, columns)
    bench.rows("CREATE TABLE selected AS TABLE later")
    bench.rows("CREATE TABLE records AS SELECT id, to_jsonb(s) AS record FROM selected s")
    found = told(bench)
    bench.rows("RESET ALL")
    return found


@trials(20)
@given(formats=st.fixed_dictionaries(TIME_FORMATS))
def test_a_session_with_other_formats_predicts_alike(
    bench: Workbench, there: Told, formats: dict[str, str]
) -> None:
    with under(bench, formats):
        assert told(bench) == there


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/New_York"])
def test_rows_that_are_held_back_have_the_values_of_registration(
    bench: Workbench, there: Told, zone: str
) -> None:
    evaluated = (
        "SELECT value FROM cerebro.evaluate(%s, 'later') WHERE metric = %s AND class IS NULL"
    )
    metrics = "SELECT metric, value, margin FROM cerebro.model_version WHERE model = %s"
    board = (
        "SELECT validation FROM cerebro.leaderboard l JOIN cerebro.model_version v USING (run_id) "
        "WHERE v.model = %s"
    )
    with under(bench, {"timezone": zone}):
        for model in MODELS:
            metric, value, margin = bench.row(metrics, model)
            assert bench.value(board, model) == pytest.approx(value, rel=1e-6)
            assert bench.value(evaluated, model, metric) == pytest.approx(value, rel=1e-5)
        distances = """
            SELECT array_agg(abs(s.cost - p.prediction::float8))
            FROM cerebro.predict('cost', 'later', 'id') p JOIN selected s ON p.id = s.id::text"""
        assert ErrorQuantiles.from_errors(bench.value(distances)).find_margin(
            USUAL_LEVEL
        ) == pytest.approx(margin, rel=1e-5)
