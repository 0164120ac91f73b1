"""Prediction intervals of any level, from the errors of rows that were held back.

This is split conformal prediction (Lei et al., 2018, section 2.2): of n + 1 exchangeable rows, the
last one has an error of at most the k-th smallest of the others with a probability of at least
k / (n + 1).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, compress
from typing import Any, NamedTuple

USUAL_LEVEL = 0.9
PERCENTS = range(1, 100)
FINE_STEPS = range(991, 1000)
"""Levels in thousandths above the last whole percent."""
DIGITS = 4
"""Digits of the largest level in a message."""


class ErrorQuantiles(NamedTuple):
    """Some order statistics of the absolute errors of a sample of rows."""

    rows: int  # of the sample
    errors: Mapping[int, float]  # by rank, from 1; both rise

    @classmethod
    def from_errors(cls, errors: Sequence[float]) -> ErrorQuantiles:
        """Select the order statistics that whole percents need; errors that are NaN are infinite.

        >>> ErrorQuantiles.from_errors([3.0, math.nan, 1.0])
        ErrorQuantiles(rows=3, errors={1: 1.0, 2: 3.0})
        """
        is_finite = map(math.isfinite, errors)
        finite = sorted(compress(errors, is_finite))
        ranks = sorted({*_list_ranks(len(errors)), len(finite)})
        return cls(
            len(errors), {rank: finite[rank - 1] for rank in ranks if 0 < rank <= len(finite)}
        )

    @classmethod
    def from_json(cls, value: Any) -> ErrorQuantiles:
        """Read the value of `to_json`.

        Raises:
            ValueError, TypeError, KeyError: it is another value.
        """
        rows = value["rows"]
        pairs = [(int(rank), float(error)) for rank, error in value["quantiles"]]
        ranks = [rank for rank, _ in pairs]
        errors = [error for _, error in pairs]
        if type(rows) is not int or any(rank < 1 or rank > rows for rank in ranks):
            raise ValueError(f"ranks of {rows!r:.20} rows are {ranks!r:.80}")
        if any(low >= high for low, high in zip(ranks, ranks[1:])):
            raise ValueError(f"ranks are {ranks!r:.80}")
        if any(low > high for low, high in zip([0.0, *errors], [*errors, math.inf])):
            raise ValueError(f"errors are {errors!r:.80}")
        if not all(map(math.isfinite, errors)):
            raise ValueError(f"errors are {errors!r:.80}")
        return cls(rows, dict(pairs))

    def to_json(self) -> dict[str, Any]:
        """Return the quantiles for JSON."""
        return {"rows": self.rows, "quantiles": [list(pair) for pair in self.errors.items()]}

    def find_margin(self, level: float) -> float | None:
        """Return the distance within which a new row lies with a probability of `level`.

        It is exact for whole percents, and a little too large for other levels.

        Returns:
            None if there are too few rows for the level.

        >>> quantiles = ErrorQuantiles.from_errors([float(n) for n in range(1, 20)])
        >>> quantiles.find_margin(0.9), quantiles.find_margin(0.95), quantiles.find_margin(0.96)
        (18.0, 19.0, None)
        """
        # Rounded, because 100 * 0.07 is more than 7.
        needed_rank = math.ceil(round((self.rows + 1) * level, 9))
        ranks = (rank for rank in self.errors if rank >= needed_rank)
        rank = min(ranks, default=None)
        return None if rank is None else self.errors[rank]

    def find_largest_level(self) -> float:
        """Return the largest level with an interval, rounded down.

        >>> ErrorQuantiles.from_errors([1.0, 2.0]).find_largest_level()
        0.6666
        """
        last_rank = max(self.errors, default=0)
        scale: float = 10**DIGITS
        return math.floor(last_rank * scale / (self.rows + 1)) / scale


def _list_ranks(rows: int) -> Iterator[int]:
    """Yield the ranks that levels need, also some that the sample does not have."""
    shares = chain((n * 10 for n in PERCENTS), FINE_STEPS)
    return (-(-(rows + 1) * share // 1000) for share in shares)
