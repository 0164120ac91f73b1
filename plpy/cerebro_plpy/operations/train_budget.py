"""The division of the budget of `cerebro.train`: training, and the work that follows it."""

from __future__ import annotations

import math

from cerebro_plpy.run.request.run_request import Deadline

CLOSING_SECONDS = 0.8
"""Time of a core that is reserved for the work after training."""
USUAL_SHARE = 0.5
"""Share of a core that the work after training is expected to get, if it was not measured."""
CLOSING_SHARE = 0.02
"""Share of the budget that is reserved for it as well."""
MAX_RESERVED_SHARE = 0.4
"""The largest share of a short budget that is reserved."""
IMPORTANCE_SHARE = 0.03
"""Share of the budget that is reserved for the importances of columns."""
MIN_IMPORTANCE_SECONDS = 0.5
"""With less time, nothing is reserved for them."""
MAX_IMPORTANCE_SHARE = 0.25
"""The largest share of the time spent so far that the importances take of an unused budget."""
SHORT_IMPORTANCE_SECONDS = 3.0
"""They may take this time in any case."""
MEMBER_SECONDS = 0.05
"""Time of a core to load a possible member of an ensemble for its predictions."""
HOLDOUT_ROWS_PER_SECOND = 30_000
"""Validation rows of such a member that a core predicts and compares in a second."""
MAX_MEMBERS = 8
MAX_FOLDED_CONFIGS = 24
"""Configurations among which folds of few rows choose the members of an ensemble."""
MAX_COMPARED_BYTES = 1 << 28
"""Memory for the predictions of all such members; those of a single one may take more."""
NUMBER_BYTES = 8
MEMBERS_SHARE = 0.1
"""Share of the budget for the predictions of all possible members."""
REFIT_SHARE = 0.15
"""Share of the budget that is reserved for training members of the version again on all rows."""
FOLDS_SHARE = 0.35
"""Share that is reserved for that and for folds of few rows, which choose the members."""
REGISTERING_SECONDS = 0.5
"""Time to add a version once all its states exist."""
ENDING_SHARE = 0.02
"""Share of the budget in which no training visit begins, so that running visits can end and be
evaluated."""


GRACE_SECONDS = 60.0
"""Time after the budget in which a call without a model still waits for its first one."""
PREPARATION_SECONDS = 2.0
"""Time to look at a table, and to pack a small one."""
PREPARED_ELEMENTS_PER_SECOND = 2_000_000
"""Inputs of rows that are read and packed in a second."""
MAX_PREPARATION_SHARE = 0.25
"""The largest share of the budget that this is expected to take."""
LATE_SHARE = 0.25
"""Share of the remaining budget by which the preparation may be late without another plan."""


def plan_training_seconds(budget: float, elements: int, elapsed: float = 0.0) -> float:
    """Return the part of the budget that configurations and epochs are chosen for.

    A plan and the call that follows it must choose the same ones. The clock therefore counts only
    if the preparation has taken much longer than expected.

    Args:
        elements: inputs of all rows together.
        elapsed: time that has been spent.

    >>> [plan_training_seconds(300.0, 8_000_000, elapsed) for elapsed in (0.0, 1.0, 70.0, 100.0)]
    [294.0, 294.0, 294.0, 200.0]
    """
    expected = PREPARATION_SECONDS + elements / PREPARED_ELEMENTS_PER_SECOND
    planned = budget - min(expected, MAX_PREPARATION_SHARE * budget)
    remaining = max(0.0, budget - elapsed)
    if remaining < (1 - LATE_SHARE) * planned:
        return remaining
    return planned


def round_share(share: float) -> float:
    """Return the nearest power of two, so that two calls in a row plan with the same share.

    >>> [round_share(share) for share in (1.0, 0.93, 0.6, 0.3, 0.05)]
    [1.0, 1.0, 0.5, 0.25, 0.0625]
    """
    return float(2.0 ** round(math.log2(share)))


def compute_max_members(
    picks: int, budget: float, holdout_rows: int, outputs: int = 1, limit: int = MAX_MEMBERS
) -> int:
    """Return the largest number of configurations that an ensemble is chosen among.

    Args:
        outputs: numbers that a model predicts for a row.
        limit: the largest number, if there are enough time and memory.

    >>> compute_max_members(1, 300.0, 100)
    1
    >>> [compute_max_members(5, budget, 10_000) for budget in (300.0, 30.0, 5.0)]
    [8, 7, 2]
    >>> [compute_max_members(5, 300.0, 10_000, outputs) for outputs in (2, 1000)]
    [8, 3]
    """
    if picks == 1:
        return 1
    row_bytes = NUMBER_BYTES * (1 + outputs)
    affordable = MAX_COMPARED_BYTES // max(1, row_bytes * holdout_rows)
    return min(limit, compute_max_candidates(budget, holdout_rows), max(1, affordable))


def compute_max_candidates(budget: float, holdout_rows: int) -> int:
    """Return the largest number of configurations whose predictions there is time for.

    The budget alone decides, not the clock, so that a repeated run chooses among the same ones.

    >>> [compute_max_candidates(budget, 10_000) for budget in (300.0, 30.0, 5.0)]
    [78, 7, 2]
    """
    return max(2, int(MEMBERS_SHARE * budget / _estimate_member_seconds(holdout_rows)))


def _estimate_member_seconds(holdout_rows: int) -> float:
    return MEMBER_SECONDS + holdout_rows / HOLDOUT_ROWS_PER_SECOND


def reserve_importance_seconds(budget: float) -> float:
    """Return the time reserved for the importances of columns; they may use remaining time, too.

    >>> reserve_importance_seconds(300.0), reserve_importance_seconds(10.0)
    (9.0, 0.0)
    """
    seconds = IMPORTANCE_SHARE * budget
    if seconds < MIN_IMPORTANCE_SECONDS:
        return 0.0
    return seconds


def compute_refit_seconds(budget: float, remaining: float) -> float:
    """Return the time for training members of the version again on all rows.

    Args:
        remaining: of the budget.

    >>> compute_refit_seconds(300.0, 60.0), compute_refit_seconds(10.0, 0.2)
    (50.5, 0.0)
    """
    return max(0.0, remaining - reserve_importance_seconds(budget) - REGISTERING_SECONDS)


def limit_importance_seconds(budget: float, elapsed: float) -> float:
    """Return the longest time for the importances of columns.

    A call that returns early must not spend its budget on them.

    >>> limit_importance_seconds(300.0, 290.0), limit_importance_seconds(300.0, 4.0)
    (10.0, 3.0)
    >>> limit_importance_seconds(300.0, 80.0)
    20.0
    """
    seconds = max(SHORT_IMPORTANCE_SECONDS, MAX_IMPORTANCE_SHARE * elapsed)
    return max(0.0, min(seconds, budget - elapsed))


def compute_deadline(
    budget: float,
    elapsed: float,
    picks: int = 1,
    holdout_rows: int = 0,
    has_final_metric: bool = False,
    refit_share: float = 0.0,
    share: float = USUAL_SHARE,
) -> Deadline:
    """Return the deadline of a run that begins after a part of its budget was spent.

    Args:
        picks: of an ensemble.
        has_final_metric: configurations are compared once more after training.
        refit_share: of the budget, for training members of the version again.
        share: of a core that the work after training gets.

    >>> compute_deadline(300.0, 20.0)
    Deadline(last_visit=257.4, cancel=263.4, end=272.4, grace=60.0, elapsed=20.0)
    >>> compute_deadline(5.0, 1.0)
    Deadline(last_visit=2.2, cancel=2.3, end=2.3, grace=60.0, elapsed=1.0)
    >>> compute_deadline(300.0, 20.0, picks=5, holdout_rows=10_000)
    Deadline(last_visit=251.267, cancel=257.267, end=272.4, grace=60.0, elapsed=20.0)
    >>> compute_deadline(300.0, 20.0, holdout_rows=10_000, has_final_metric=True)
    Deadline(last_visit=197.6, cancel=203.6, end=272.4, grace=60.0, elapsed=20.0)
    >>> compute_deadline(300.0, 20.0, refit_share=REFIT_SHARE)
    Deadline(last_visit=212.4, cancel=218.4, end=227.4, grace=60.0, elapsed=20.0)
    """
    predicted = 0
    if has_final_metric:
        predicted = compute_max_candidates(budget, holdout_rows)
    elif picks > 1:
        predicted = compute_max_members(picks, budget, holdout_rows)
    member_seconds = _estimate_member_seconds(holdout_rows) * predicted
    limit = MAX_RESERVED_SHARE * budget
    closing = CLOSING_SECONDS / share + CLOSING_SHARE * budget
    closing += refit_share * budget
    explaining = reserve_importance_seconds(budget)
    reserved = min(closing + explaining + member_seconds / share, limit)

    def count_from_now(seconds: float) -> float:
        return max(0.0, round(seconds - elapsed, 3))

    return Deadline(
        last_visit=count_from_now(budget * (1 - ENDING_SHARE) - reserved),
        cancel=count_from_now(budget - reserved),
        end=count_from_now(budget - min(closing, limit)),
        grace=GRACE_SECONDS,
        elapsed=elapsed,
    )
