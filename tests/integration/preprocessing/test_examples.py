"""cerebro.load_example creates tables that can be trained on."""

from __future__ import annotations

import psycopg2
import pytest
from workbench import Workbench


def test_an_example_is_a_table_in_the_callers_schema(bench: Workbench) -> None:
    bench.rows('CREATE SCHEMA "Lab"; SET search_path = "Lab", public')
    assert bench.value("SELECT cerebro.load_example()::text") == "flowers"
    counts = bench.rows('SELECT species, count(*) FROM "Lab".flowers GROUP BY 1 ORDER BY 1')
    assert [(name, count) for name, count in counts] == [
        ("setosa", 50),
        ("versicolor", 50),
        ("virginica", 50),
    ]
    assert bench.value("SELECT cerebro.load_example('flowers', 'public.\"My flowers\"')::text") == (
        '"My flowers"'
    )


@pytest.mark.parametrize(
    ("arguments", "sqlstate"),
    [("'flowers'", "42P07"), ("'roses'", "22023"), ("'flowers', 'nowhere.t'", "42602")],
)
def test_a_wrong_call_creates_nothing(bench: Workbench, arguments: str, sqlstate: str) -> None:
    bench.rows("CREATE TABLE IF NOT EXISTS flowers (x integer)")
    with pytest.raises(psycopg2.Error) as caught:
        bench.rows(f"SELECT cerebro.load_example({arguments})")
    assert caught.value.pgcode == sqlstate
    assert caught.value.diag.message_hint
    bench.rows("DROP TABLE flowers")
