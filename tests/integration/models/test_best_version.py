"""The version that `cerebro.deploy` chooses: the best one, or one by its number."""

from __future__ import annotations

import math
from itertools import count
from typing import NamedTuple

import psycopg2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from workbench import Workbench

LOG = """
INSERT INTO cerebro.version_log (model, version, run_id, mst_key, task, source, target, target_type,
    template, params, metric, value, recipe, classes, architecture, compile_params, backend,
    state_bytes, software, loss)
VALUES (%s, %s, 1, 1, 'classification', 's', 't', 'text', 'linear', '{}', %s, %s, '{}', '{}',
    '{}', '', 'tensorflow', %s, '{}', %s)"""


class Logged(NamedTuple):
    """The fields of a version by which versions are compared."""

    value: float | None
    loss: float | None
    size: int


VERSIONS = st.lists(
    st.builds(
        Logged,
        st.sampled_from([0.5, 0.75, None]),
        st.sampled_from([0.1, 0.2, None]),
        st.integers(1, 2),
    ),
    min_size=1,
    max_size=5,
)


NAMES = (f"tied {number}" for number in count())


@given(VERSIONS, st.booleans())
@example([Logged(0.5, 0.2, 1), Logged(0.5, 0.1, 2)], True)
def test_equal_values_are_decided_by_the_loss_and_then_by_the_size(
    bench: Workbench, versions: list[Logged], is_larger_better: bool
) -> None:
    name = next(NAMES)
    bench.rows("INSERT INTO cerebro.model_log (model, split, split_seed) VALUES (%s, 'x', 1)", name)
    metric = "accuracy" if is_larger_better else "log_loss"
    for number, logged in enumerate(versions, 1):
        bench.rows(LOG, name, number, metric, logged.value, logged.size, logged.loss)

    def rank(number: int) -> tuple[float, float, int, int]:
        value, loss, size = versions[number - 1]
        worth = math.inf if value is None else -value if is_larger_better else value
        return worth, math.inf if loss is None else loss, size, -number

    best = min(range(1, len(versions) + 1), key=rank)
    assert bench.value("SELECT cerebro.deploy(%s, 'best')", name) == best


def test_a_version_is_named_by_a_number_or_its_text(bench: Workbench) -> None:
    name = next(NAMES)
    bench.rows("INSERT INTO cerebro.model_log (model, split, split_seed) VALUES (%s, 'x', 1)", name)
    for number in (1, 2):
        bench.rows(LOG, name, number, "accuracy", 0.5, 1, 0.1)
    for version in (2, "1", "2"):
        assert bench.value("SELECT cerebro.deploy(%s, %s)", name, version) == int(version)
    words = f"'3'; expected one of best, newest, previous, or the number of a version of '{name}'"
    for call in ("SELECT cerebro.deploy(%s, %s)", "SELECT * FROM cerebro.verify(%s, %s)"):
        for version in (3, "3"):
            with pytest.raises(psycopg2.errors.InvalidParameterValue, match=words):
                bench.rows(call, name, version)
