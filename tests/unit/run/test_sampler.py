"""A sampler gets values, or with trials of earlier runs the standings in each run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.prior_trials import PriorTrial
from cerebro_plpy.run.workers.sampler import add_prior_trials, describe_trial
from cerebro_plpy.scheduling.search.promotion_rules import Trial

EPOCHS = 4
CURVES = st.dictionaries(st.integers(1, EPOCHS), st.integers(-9, 9).map(float), min_size=1)
TRIALS = st.builds(
    lambda values, limit, failed: Trial(max_epoch=min(max(values) + limit, EPOCHS), values=values,
    failed=failed),
    CURVES, st.integers(0, 1), st.booleans(),
)  # fmt: skip
EARLIER = st.lists(st.none() | st.floats(0.01, 0.99), min_size=1, max_size=4).map(
    lambda stood: [PriorTrial(1, key, point(-key), each) for key, each in enumerate(stood, 1)]
)


def point(number: int) -> Mapping[str, Any]:
    return {"alternative": 0, "values": {"x": number}}


def describe_own(
    trials: list[Trial], level: float = 0.0, factor: float = 1.0
) -> list[Mapping[str, Any]]:
    moved = [
        t._replace(values={epoch: value * factor + level for epoch, value in t.values.items()})
        for t in trials
    ]
    return [describe_trial(point(number), trial, EPOCHS) for number, trial in enumerate(moved)]


@given(st.lists(TRIALS, max_size=8))
def test_without_prior_trials_the_sampler_gets_values(trials: list[Trial]) -> None:
    assert add_prior_trials((), describe_own(trials)) == describe_own(trials)


@given(EARLIER, st.lists(TRIALS, max_size=8), st.integers(-50, 50), st.integers(1, 5))
def test_with_prior_trials_the_level_of_values_does_not_matter(
    earlier: list[PriorTrial], trials: list[Trial], level: int, factor: int
) -> None:
    merged = add_prior_trials(earlier, describe_own(trials))
    before, own = merged[: len(earlier)], merged[len(earlier) :]
    moved = add_prior_trials(earlier, describe_own(trials, level, factor))[len(earlier) :]
    over = [number for number, each in enumerate(own) if each["state"] == "completed"]
    assert [own[number] for number in over] == [moved[number] for number in over]
    assert before == add_prior_trials(earlier, [])
    assert [(each["state"], [value for _, value in each["values"]]) for each in before] == [
        ("failed", []) if each.standing is None else ("completed", [each.standing])
        for each in earlier
    ]
    assert [each["point"] for each in own] == [point(number) for number in range(len(trials))]


@given(EARLIER, st.lists(TRIALS, max_size=8))
def test_prior_trials_do_not_change_the_order_of_a_search(
    earlier: list[PriorTrial], trials: list[Trial]
) -> None:
    """Trials with more epochs come first, and of those with equally many the better ones."""
    raw, merged = (
        describe_own(trials),
        add_prior_trials(earlier, describe_own(trials))[len(earlier) :],
    )
    over = [
        (one, other)
        for one, other in zip(raw, merged, strict=True)
        if one["state"] in ("stopped", "completed")
    ]
    for one, its in over:
        for other, the_other in over:
            keys = [(-epoch, value) for epoch, value in (one["values"][-1], other["values"][-1])]
            assert (keys[0] < keys[1]) == (its["values"] < the_other["values"])
            assert its["state"] == "completed"
    rest = [
        (one, other)
        for one, other in zip(raw, merged, strict=True)
        if one["state"] in ("running", "failed")
    ]
    assert all(one == other for one, other in rest)
