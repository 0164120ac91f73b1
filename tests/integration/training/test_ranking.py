"""The order of configurations with equal values: by the loss, then the smaller, then the first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workbench import Workbench, superuser

RUN = """
INSERT INTO cerebro.run_log (status, spec, epochs, segments, pid)
VALUES ('completed', jsonb_build_object('rank_metric', 'accuracy', 'rank_dataset', 'validation',
    'rank_descending', %s::boolean), 1, '{0}', pg_backend_pid()) RETURNING run_id"""
CONFIG = """
INSERT INTO cerebro.config_log (run_id, mst_key, params, status, model_id, compile_params,
    fit_params, architecture)
VALUES (%s, %s, '{}', 'completed', 1, '', '', '{}')"""
VISIT = """
INSERT INTO cerebro.visit (run_id, epoch, mst_key, segment_id, visit_no, attempt, status,
    started_at, ended_at, rows, state_bytes)
VALUES (%s, 1, %s, 0, 1, 1, 'completed', now(), now(), 100, %s)"""
METRIC = """
INSERT INTO cerebro.metric (run_id, mst_key, epoch, dataset, name, value)
VALUES (%s, %s, 1, %s, %s, %s)"""
BOARD = "SELECT mst_key, rank FROM cerebro.leaderboard WHERE run_id = %s ORDER BY rank"
PROGRESS = "SELECT best_mst_key FROM cerebro.progress WHERE run_id = %s"


class Trained(NamedTuple):
    """What a configuration came to; few values, so that many are equal."""

    accuracy: float
    loss: float
    state_bytes: int


TRAINED = st.builds(
    Trained,
    st.sampled_from([0.5, 1.0, math.nan]),
    st.sampled_from([0.1, 0.2, math.nan]),
    st.sampled_from([100, 200]),
)


@pytest.fixture(scope="module")
def writer(bench: Workbench) -> Iterator[Workbench]:
    with closing(superuser(bench)) as session:
        yield session


@given(st.lists(TRAINED, min_size=1, max_size=5), st.booleans())
def test_equal_values_are_ranked_by_the_loss_and_then_by_the_size(
    writer: Workbench, trained: list[Trained], larger: bool
) -> None:
    run = writer.value(RUN, larger)
    for key, result in enumerate(trained, 1):
        writer.rows(CONFIG, run, key)
        writer.rows(VISIT, run, key, result.state_bytes)
        writer.rows(METRIC, run, key, "validation", "accuracy", result.accuracy)
        writer.rows(METRIC, run, key, "validation", "loss", result.loss)
        writer.rows(METRIC, run, key, "training", "loss", -result.loss)

    def order(key: int) -> tuple[object, ...]:
        result = trained[key - 1]
        sign = -1.0 if larger else 1.0
        value = math.inf if math.isnan(result.accuracy) else sign * result.accuracy
        loss = math.inf if math.isnan(result.loss) else result.loss
        return value, loss, result.state_bytes, key

    expected = sorted(range(1, len(trained) + 1), key=order)
    assert writer.rows(BOARD, run) == [(key, rank) for rank, key in enumerate(expected, 1)]
    assert writer.value(PROGRESS, run) == expected[0]
