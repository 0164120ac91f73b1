"""The messages of a run: its start, and the best value so far."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.run_spec import Ranking
from cerebro_plpy.run.loop.messages import RankedValue, choose_best, describe_start

NUMBERS = st.sampled_from([0.0, 1.0, 2.0, math.nan])
VALUES = st.lists(st.builds(RankedValue, st.integers(1, 9), NUMBERS, NUMBERS))


@given(VALUES, st.booleans())
def test_no_value_is_before_the_best(values: list[RankedValue], descending: bool) -> None:
    best = choose_best(values, Ranking("validation", "accuracy", descending))
    numbers = [value for value in values if not math.isnan(value.value)]
    if best is None:
        assert not numbers
        return
    mst_key, number = best
    for value in numbers:
        assert value.value <= number if descending else value.value >= number
    losses = [value.loss for value in numbers if value.value == number]
    own_losses = [v.loss for v in numbers if (v.mst_key, v.value) == (mst_key, number)]
    finite = [loss for loss in losses if not math.isnan(loss)]
    if finite:
        assert min(finite) in own_losses
        assert mst_key == min(
            v.mst_key for v in numbers if (v.value, v.loss) == (number, min(finite))
        )


@pytest.mark.parametrize(
    ("train", "amounts"),
    [(None, "1 configuration, 2 segments, 1 iteration"), ("spec", "1 configuration, 1 epoch")],
)
def test_the_start_of_a_run_counts_what_its_caller_knows(train: str | None, amounts: str) -> None:
    """MADlib's words are for MADlib's calls."""
    request: Any = SimpleNamespace(
        configs=[1],
        source=SimpleNamespace(segments=(0, 1)),
        spec=SimpleNamespace(epochs=1, train=train),
        is_quiet=False,
    )
    assert describe_start(7, request).startswith(f"run 7: {amounts}; SELECT * FROM cerebro.")
