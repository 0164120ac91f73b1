"""Greedy selection: what is chosen is better together than each model alone, over the rows that it
was chosen by.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.preprocessing.scoring.ensemble_selection import (
    average_rows,
    is_better,
    select_greedily,
)
from cerebro_plpy.preprocessing.scoring.metrics import SCORES, ScoredRow

NUMBERS = st.floats(-100, 100)
SHARES = st.floats(0, 1)


@st.composite
def libraries(draw: st.DrawFn) -> tuple[list[list[ScoredRow]], str, bool]:
    """What some models say of some rows, and a metric."""
    rows, models = draw(st.integers(1, 8)), draw(st.integers(1, 4))
    if draw(st.booleans()):
        labels = draw(st.lists(st.sampled_from("ab"), min_size=rows, max_size=rows))
        sure = [draw(st.lists(SHARES, min_size=rows, max_size=rows)) for _ in range(models)]
        told = [
            [ScoredRow(label, {"a": p, "b": 1 - p}) for label, p in zip(labels, each, strict=True)]
            for each in sure
        ]
        name = draw(st.sampled_from(("accuracy", "log_loss", "auc")))
        return told, name, name != "log_loss"
    values = draw(st.lists(NUMBERS, min_size=rows, max_size=rows))
    found = [draw(st.lists(NUMBERS, min_size=rows, max_size=rows)) for _ in range(models)]
    return (
        [[ScoredRow(str(v), {}, n) for v, n in zip(values, each, strict=True)] for each in found],
        "rmse",
        False,
    )


@given(libraries(), st.integers(1, 6))
def test_what_is_chosen_is_never_worse_than_the_best_alone(
    library: tuple[list[list[ScoredRow]], str, bool], picks: int
) -> None:
    told, name, larger = library
    score = SCORES[name]
    chosen = select_greedily(told, score, larger, picks)
    assert sum(chosen.values()) <= picks and all(0 <= place < len(told) for place in chosen)
    if chosen:
        together = score(
            average_rows([(told[place], count) for place, count in sorted(chosen.items())])
        )
        alone = [score(rows) for rows in told]
        slack = 1e-9 * (1 + abs(together))
        better = together + slack if larger else together - slack
        assert all(not is_better(each, better, larger) or each != each for each in alone)
    else:
        assert all(score(rows) != score(rows) for rows in told)
