"""Greedy selection: an ensemble is at least as good as each model on the rows of the selection."""

from __future__ import annotations

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.preprocessing.scoring.ensemble_selection import (
    average_rows,
    is_better,
    select_greedily,
)
from cerebro_plpy.preprocessing.scoring.metrics import SCORES
from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRow, ScoredRows

NUMBERS = st.floats(-100, 100)
SHARES = st.floats(0, 1)


@st.composite
def libraries(draw: st.DrawFn) -> tuple[list[ScoredRows], str, bool]:
    """Return the predictions of models for the same rows, a metric, and if larger is better."""
    rows = draw(st.integers(1, 8))
    models = draw(st.integers(1, 4))
    if draw(st.booleans()):
        labels = draw(st.lists(st.sampled_from("ab"), min_size=rows, max_size=rows))
        library = []
        for _ in range(models):
            shares = draw(st.lists(SHARES, min_size=rows, max_size=rows))
            pairs = zip(labels, shares, strict=True)
            rows_of_model = [ScoredRow(label, {"a": p, "b": 1 - p}) for label, p in pairs]
            library.append(ScoredRows.collect(rows_of_model))
        name = draw(st.sampled_from(("accuracy", "log_loss", "auc")))
        return library, name, name != "log_loss"
    values = draw(st.lists(NUMBERS, min_size=rows, max_size=rows))
    library = []
    for _ in range(models):
        numbers = draw(st.lists(NUMBERS, min_size=rows, max_size=rows))
        values_and_numbers = zip(values, numbers, strict=True)
        rows_of_model = [ScoredRow(str(value), {}, number) for value, number in values_and_numbers]
        library.append(ScoredRows.collect(rows_of_model))
    return library, "rmse", False


@given(libraries(), st.integers(1, 6))
def test_an_ensemble_is_never_worse_than_its_best_model(
    library_and_metric: tuple[list[ScoredRows], str, bool], picks: int
) -> None:
    library, name, larger = library_and_metric
    score = SCORES[name]
    counts = select_greedily(library, [name], picks)
    model_scores = [score(rows) for rows in library]
    assert sum(counts.values()) <= picks
    assert all(0 <= place < len(library) for place in counts)
    if not counts:
        assert all(map(math.isnan, model_scores))
        return
    members = [(library[place], count) for place, count in sorted(counts.items())]
    ensemble_score = score(average_rows(members))
    slack = 1e-9 * (1 + abs(ensemble_score))
    limit = ensemble_score + slack if larger else ensemble_score - slack
    for model_score in model_scores:
        assert math.isnan(model_score) or not is_better(model_score, limit, larger)


@given(libraries(), st.integers(1, 6))
def test_equal_scores_are_decided_by_the_next_metric(
    library_and_metric: tuple[list[ScoredRows], str, bool], picks: int
) -> None:
    """The ensemble has the best score that the first metric finds alone, and no larger loss."""
    library, name, larger = library_and_metric
    loss = "rmse" if name == "rmse" else "log_loss"
    single = select_greedily(library, [name, loss], 1)
    both = select_greedily(library, [name, loss], picks)
    if not single:
        assert not both
        return

    def measure(counts: Counter[int], metric: str) -> float:
        members = [(library[place], count) for place, count in sorted(counts.items())]
        return SCORES[metric](average_rows(members))

    score = measure(both, name)
    first = measure(single, name)
    slack = 1e-9 * (1 + abs(first))
    assert score >= first - slack if larger else score <= first + slack
    if score == first:
        assert measure(both, loss) <= measure(single, loss) + 1e-9
