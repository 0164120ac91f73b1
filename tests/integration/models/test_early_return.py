"""A call that leaves its effort open returns when nothing better is to be expected."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from workbench import Workbench

ROWS = (
    "CREATE TABLE sorted_rows AS SELECT n AS id, (n % 2 * 4 + n % 3 * 0.1)::real AS size, "
    "(ARRAY['small', 'large'])[n % 2 + 1] AS name FROM generate_series(1, 4000) n"
)
BUDGET = 600


class Returned:
    """A run that returned early, and what it told its caller."""

    def __init__(self, run_id: int, messages: list[str]) -> None:
        self.run_id = run_id
        self.messages = messages


@pytest.fixture(scope="module")
def returned(bench: Workbench) -> Iterator[Returned]:
    bench.rows(ROWS)
    bench.messages()
    rows = bench.rows(
        "SELECT run_id FROM cerebro.train('sorted_rows', 'name', 'sorted', "
        f"budget => '{BUDGET} seconds', models => '{{linear, realmlp_simple}}', "
        "space => '{\"lr\": 0.1}', "
        "workers => 1, seed => 1)"
    )
    yield Returned(rows[0][0], bench.messages())
    bench.rows("SELECT cerebro.drop_model('sorted')")


def test_a_perfect_model_ends_the_call_and_the_answer_says_so(
    bench: Workbench, returned: Returned
) -> None:
    (line,) = (line for line in returned.messages if "stopped after" in line)
    seconds = re.search(rf"stopped after (\d+) s of {BUDGET} s: accuracy cannot get better", line)
    assert seconds is not None and int(seconds[1]) < BUDGET / 3, line
    value = bench.value(
        "SELECT value FROM cerebro.model_version WHERE run_id = %s", returned.run_id
    )
    assert value == 1.0
    ends = bench.rows(
        "SELECT DISTINCT reason FROM cerebro.config WHERE run_id = %s AND status = 'stopped'",
        returned.run_id,
    )
    assert ends == [("the run ended before its budget: accuracy cannot get better",)]


def test_an_early_return_is_repeated_by_the_log(bench: Workbench, returned: Returned) -> None:
    checks: dict[str, bool] = dict(bench.rows("SELECT what, ok FROM cerebro.verify('sorted')"))
    assert checks["state"] is True, checks
    assert bench.value(
        "SELECT (spec -> 'train' ->> 'may_return')::boolean FROM cerebro.run WHERE run_id = %s",
        returned.run_id,
    )


def test_rates_are_measured_before_configurations_begin(
    bench: Workbench, returned: Returned
) -> None:
    """One worker begins with linear, which is perfect before another template begins."""
    visited = bench.rows(
        "SELECT DISTINCT template FROM cerebro.visit JOIN cerebro.config USING (run_id, mst_key) "
        "WHERE run_id = %s",
        returned.run_id,
    )
    assert visited == [("linear",)]
    decisions = next(line for line in returned.messages if "classification of name" in line)
    assert re.search(
        r"epochs? each \(measured rows per second: realmlp_simple [\d,]+\), in", decisions
    )
