"""The scripts that a user of psql reads first: they run, and print what the pages show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol

import psycopg2
import pytest
from scripts import printed

OTHER_ROWS = "on Greenplum rows are packed in another order each time"
SCRIPTS = Path(__file__).parents[2] / "sql"
FRACTION = re.compile(r"(?<= )[01]\.[0-9]{2}$", re.MULTILINE)
MAX_DIFFERENCE = 0.15


class Database(Protocol):
    @property
    def url(self) -> str: ...


@pytest.mark.parametrize(
    "tour",
    [pytest.param("raw", marks=[pytest.mark.postgresql(OTHER_ROWS), pytest.mark.long]), "tour"],
)
def test_the_tours_print_what_the_pages_show(database: Database, tour: str) -> None:
    """The fractions depend on the processor's rounding: they may differ by a few rows of 27."""
    shown = (SCRIPTS / f"{tour}.out").read_text()
    text = printed(database.url, SCRIPTS / f"{tour}.sql")
    assert FRACTION.sub("", text) == FRACTION.sub("", shown)
    numbers = list(map(float, FRACTION.findall(text)))
    assert numbers == pytest.approx(list(map(float, FRACTION.findall(shown))), abs=MAX_DIFFERENCE)


@pytest.mark.long
def test_a_madlib_user_s_workflow_on_iris(
    database: Database, connection: psycopg2.extensions.connection
) -> None:
    printed(database.url, SCRIPTS / "iris.sql")
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*), count(model_weights) FROM iris_model")
        assert cursor.fetchone() == (12, 12)
        cursor.execute(
            "SELECT count(*), min(array_length(validation_loss, 1)) FROM iris_model_info"
        )
        assert cursor.fetchone() == (12, 2), "metrics after epochs 5 and 10"
        cursor.execute("SELECT metrics_iters, num_classes FROM iris_model_summary")
        assert cursor.fetchone() == ([5, 10], [3])
        cursor.execute(
            "SELECT e.metric = i.validation_metrics_final, e.metric FROM iris_evaluation e, "
            "iris_model_info i ORDER BY i.validation_loss_final, i.mst_key LIMIT 1"
        )
        same, metric = cursor.fetchone() or (None, 0.0)
        assert same
        cursor.execute(
            "SELECT count(*), avg((class_value = species)::int) FROM iris_prediction JOIN "
            "iris_test USING (id)"
        )
        count, right = cursor.fetchone() or (0, 0)
    assert count == 30
    assert abs(float(right) - metric) < 1e-6, "predictions and evaluation come from the same model"
    assert metric > 0.8
