"""The metrics that choose a version are those of `cerebro.evaluate`, for any predictions."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from workbench import Workbench

from cerebro_plpy.database.queries import sql
from cerebro_plpy.operations.explain.evaluate_model import GROUPING_SETS
from cerebro_plpy.operations.train_arguments import METRICS
from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION, REGRESSION
from cerebro_plpy.preprocessing.scoring.metrics import SCORES
from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRow, ScoredRows

BLOCKS = (
    "cerebro_internal.evaluation_blocks("
    "%s::text, %s::text, %s::text, %s::text, %s::double precision, %s::json)"
)
BLOCK = "pg_catalog.jsonb_populate_record(NULL::cerebro.predicted_rows, %s::jsonb)"
NO_GROUPS = dict.fromkeys(GROUPING_SETS, "")
CLASSES = ("a", "b", "c")
ROWS = st.integers(1, 12)
PROBABILITIES = st.sampled_from([0.0, 0.125, 0.25, 0.5, 0.75])
"""Few, so that many are equal; all of them are exact in texts."""
NUMBERS = st.integers(-40, 40).map(lambda number: number / 8)


@st.composite
def classified_rows(draw: st.DrawFn) -> list[ScoredRow]:
    """Draw predictions for rows, some of which have a class that the model does not know."""
    return [
        ScoredRow(
            draw(st.sampled_from((*CLASSES, "unknown"))),
            {name: draw(PROBABILITIES) for name in CLASSES},
        )
        for _ in range(draw(ROWS))
    ]


@st.composite
def predicted_numbers(draw: st.DrawFn) -> list[ScoredRow]:
    return [ScoredRow(str(draw(NUMBERS)), {}, draw(NUMBERS)) for _ in range(draw(ROWS))]


def to_bytes(texts: Sequence[str]) -> str:
    """Return the array that a block has as bytes, in the form of JSON."""
    elements = ",".join(json.dumps(text) for text in texts)
    return "\\x" + f"{{{elements}}}".encode().hex()


def evaluate(
    bench: Workbench, query: str, rows: Sequence[ScoredRow], values: tuple[object, ...] = ()
) -> Mapping[str, float | None]:
    """Return the metrics of all rows as the statement of `cerebro.evaluate` computes them."""
    block: dict[str, object] = {"ids": ["{" + f'"{row.label}",NULL' + "}" for row in rows]}
    if query == "classification":
        block["prediction"] = to_bytes([*ScoredRows.collect(rows).list_predictions()])
        block["probabilities"] = to_bytes([json.dumps(row.classes) for row in rows])
    else:
        block["number"] = to_bytes([repr(row.number) for row in rows])
    statement = sql(f"understanding.{query}", **NO_GROUPS)
    assert BLOCKS in statement
    lines = bench.rows(statement.replace(BLOCKS, BLOCK), *values, json.dumps(block))
    return {metric: value for _, metric, name, _, value, _ in lines if name is None}


def check(rows: Sequence[ScoredRow], found: Mapping[str, float | None], task: str) -> None:
    for metric in METRICS[task]:
        wanted = SCORES[metric](ScoredRows.collect(rows))
        if math.isnan(wanted):
            assert found[metric] is None, metric
        else:
            assert found[metric] == pytest.approx(wanted, abs=1e-9), metric


@given(classified_rows())
@example([ScoredRow("a", {"a": 0.5, "b": 0.25, "c": 0.25})] * 3)
@example([ScoredRow("unknown", {"a": 0.5, "b": 0.25, "c": 0.25})])
def test_metrics_of_classes(bench: Workbench, rows: list[ScoredRow]) -> None:
    check(rows, evaluate(bench, "classification", rows, (list(CLASSES), None)), CLASSIFICATION)


@given(classified_rows())
@example(
    [ScoredRow("a", {"a": 1.0, "b": 0.0, "c": 0.0}), ScoredRow("b", {"a": 1.0, "b": 0.0, "c": 0.0})]
)
def test_the_calibration_error_compares_certainty_with_accuracy(
    bench: Workbench, rows: list[ScoredRow]
) -> None:
    """In each of 15 bins of the largest probability, its sum and the hits are compared."""
    gaps = [0.0] * 15
    for row in rows:
        largest = max(row.classes.values())
        gaps[min(14, int(largest * 15))] += largest - (row.classes.get(row.label) == largest)
    wanted = sum(map(abs, gaps)) / len(rows)
    found = evaluate(bench, "classification", rows, (list(CLASSES), None))["ece"]
    assert found == pytest.approx(wanted, abs=1e-9)


@given(predicted_numbers())
@example([ScoredRow("1.5", {}, 2.0)] * 3)
@example([ScoredRow("0.0", {}, 2.0), ScoredRow("1.0", {}, 1.0)])
def test_metrics_of_numbers(bench: Workbench, rows: list[ScoredRow]) -> None:
    check(rows, evaluate(bench, "regression", rows), REGRESSION)
