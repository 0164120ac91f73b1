"""Folds of all rows of a run: which runs have them, and which buffers each of them has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.train_spec import BaseVersion, DataSplit, Grouping, TrainSpec
from cerebro_plpy.operations.refit.folds import (
    assign_keys,
    choose_by_folds,
    may_fold,
    read_layouts,
)
from cerebro_plpy.preprocessing.scoring.ensemble_selection import add_rows
from cerebro_plpy.preprocessing.scoring.metrics import SCORES
from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRow, ScoredRows
from cerebro_plpy.records import replace

SPEC = TrainSpec(
    model="m",
    relation="public.t",
    target="y",
    target_type="text",
    task="classification",
    columns=None,
    types={},
    split=DataSplit("random 0.2", 3, None, 7999, 2000),
    metric="accuracy",
    budget=300.0,
    recipe={"features": []},
    classes=("no", "yes"),
    templates={1: "boosting", 2: "linear"},
    params={},
)
START = BaseVersion(1, 2, 3)


@pytest.mark.parametrize(
    ("changes", "binds_workers", "expected"),
    [
        ({}, False, True),
        ({"split": replace(SPEC.split, training_rows=8000)}, False, False),
        ({"split": replace(SPEC.split, rule="group shop")}, False, False),
        ({"split": replace(SPEC.split, rule="last 0.2 by day")}, False, False),
        ({"split": replace(SPEC.split, rule="column side")}, False, False),
        ({"start": START}, False, False),
        ({"start": START, "templates": {1: "boosting"}}, False, True),
        ({}, True, False),
    ],
)
def test_few_rows_in_any_order_have_folds(
    changes: dict[str, Any], binds_workers: bool, expected: bool
) -> None:
    """Networks that continue from a version have seen all rows; trees grow anew."""
    context: Any = SimpleNamespace(platform=SimpleNamespace(binds_workers=binds_workers))
    assert may_fold(context, replace(SPEC, **changes)) == expected


@given(st.lists(st.integers(1, 12), min_size=1, max_size=6), st.integers(2, 7), st.integers(1, 3))
def test_each_buffer_is_left_out_of_one_fold(sizes: list[int], folds: int, segments: int) -> None:
    """Buffers of few rows have fewer parts than there are folds."""
    cuts = [[part * rows // folds for part in range(folds + 1)] for rows in sizes]
    buffers = [
        (number % segments, number * folds + part, bounds[part + 1] - bounds[part])
        for number, bounds in enumerate(cuts)
        for part in range(folds)
        if bounds[part + 1] > bounds[part]
    ]
    context: Any = SimpleNamespace(reader=SimpleNamespace(run=lambda statement: buffers))
    table: Any = SimpleNamespace(
        relation=SimpleNamespace(quoted="t"), key="t.__dist_key__", independent=("x",)
    )
    layouts = assign_keys(read_layouts(context, table, folds), [5, 2])
    expected = {(segment, number) for segment, number, _ in buffers}
    left_out = []
    for layout in layouts.values():
        learned = {(key, number) for key in layout.training for number in layout.training[key]}
        fold = [(key, number) for key in layout.validation for number in layout.validation[key]]
        assert learned == expected - {*fold} and len(layout.sizes) == len(learned)
        left_out += fold
    assert sorted(left_out) == sorted(expected)
    assert sum(sum(layout.sizes) for layout in layouts.values()) == (folds - 1) * sum(sizes)
    keys = [key for layout in layouts.values() for key in layout.mst_keys]
    assert len({*keys, 5, 2}) == 2 * folds + 2
    templates = dict.fromkeys([5, 2, *keys], "boosting")
    spec = replace(SPEC, templates=templates, grouping=Grouping(None, layouts))
    assert spec.fold_keys.keys() == {2, 5}
    for name, layout in layouts.items():
        assert layout.mst_keys == (spec.fold_keys[2][name], spec.fold_keys[5][name])


NUMBERS = st.lists(st.floats(-100.0, 100.0), min_size=4, max_size=4)


@given(st.lists(NUMBERS, min_size=1, max_size=5), st.integers(2, 6))
def test_folds_choose_no_worse_members_than_any_alone(
    library: list[list[float]], picks: int
) -> None:
    """The first pick is the best configuration, and each other one is an improvement."""
    predictions = {
        key: ScoredRows.collect(ScoredRow("3.0", {}, number) for number in numbers)
        for key, numbers in enumerate(library, 1)
    }
    spec = replace(SPEC, task="regression", metric="rmse", classes=(), ensemble=picks)
    context: Any = SimpleNamespace(check=lambda: None)
    shares = choose_by_folds(context, spec, predictions, {1: 1.0})
    assert sum(shares.values()) == pytest.approx(1.0)
    assert len(shares) <= picks and shares.keys() <= predictions.keys()
    mixture = add_rows([(predictions[key], share) for key, share in shares.items()])
    errors = [SCORES["rmse"](rows) for rows in predictions.values()]
    assert SCORES["rmse"](mixture) <= min(errors) + 1e-9


@pytest.mark.parametrize("changes", [{"ensemble": 1}, {"ensemble": 5}])
def test_members_remain_without_a_choice(changes: dict[str, Any]) -> None:
    """A single configuration stays, and so do members of which a fold was not predicted."""
    predictions = {
        key: ScoredRows.collect([ScoredRow("3.0", {}, number)])
        for key, number in [(1, 9.0), (2, 3.0)]
    }
    spec = replace(SPEC, task="regression", metric="rmse", classes=(), **changes)
    context: Any = SimpleNamespace(check=lambda: None)
    shares = {1: 1.0} if spec.ensemble == 1 else {1: 0.5, 3: 0.5}
    assert choose_by_folds(context, spec, predictions, shares) == shares
