"""What a search that learns is told of earlier runs: where their configurations lie in its space,
and how they stood.

Values of other tables and other splits lie on other levels, so none of them is told. Of each run,
that which goes on included, it is told the share of the run's configurations that were better: the
quantiles of Salinas, Shen and Perrone, "A quantile-based approach for hyperparameter transfer
learning" (ICML 2020, arXiv 1909.13595), without their normal scores, for samplers see the order of
values only. So order is kept within each run, and levels are never compared.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.errors import InvalidParameter

MOST_TOLD = 300
"""So many at most, of all earlier runs, and first those of the run that is named first."""
BEST = 3
"""As many of the best configurations of a run are tried again."""
_NAME = re.compile(r"run:(\d{1,18})")
_RUNS = "SELECT run_id, name FROM cerebro.run;"


class EarlierTrial(NamedTuple):
    """A configuration of an earlier run: which point of the space it is, and what share of that
    run's configurations was better; None where it failed."""

    run_id: int
    mst_key: int
    point: Mapping[str, Any]
    standing: float | None

    @classmethod
    def from_json(cls, values: Sequence[Any]) -> EarlierTrial:
        """A list of its fields."""
        run_id, mst_key, point, standing = values
        if not (isinstance(point, dict) and isinstance(point["values"], dict)):
            raise TypeError(f"a point of a space is {point!r:.80}")
        return cls(int(run_id), int(mst_key), point, None if standing is None else float(standing))


def standings(values: Sequence[Sequence[float]]) -> list[float]:
    """For each value the share of all that is smaller, and so better, with half of those that are
    equal. The second of two numbers decides where the first does not; one that is not finite is the
    worst.

    >>> standings([(0, 0.3), (0, 0.1), (0, 0.3), (0, math.nan)])
    [0.5, 0.125, 0.5, 0.875]
    """
    finite = [
        tuple(number if math.isfinite(number) else math.inf for number in each) for each in values
    ]
    ordered = sorted(finite)
    return [
        (bisect_left(ordered, each) + bisect_right(ordered, each)) / (2 * len(ordered))
        for each in finite
    ]


def run_of(name: str) -> int | None:
    """The run that a name stands for.

    >>> run_of("run:12"), run_of("customers_answered")
    (12, None)
    """
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else None


def read_runs(module: str, names: object) -> tuple[int, ...]:
    """The runs that a list in search_params names."""
    listed: Iterable[object] = names if isinstance(names, list) else (None,)
    runs = [run_of(name) if isinstance(name, str) else None for name in listed]
    if None in runs or not runs:
        raise InvalidParameter(
            f"{module} error: start_from in search_params is {names!r:.80}; expected a list of "
            "runs such as"
            ' ["run:12"].',
            hint=_RUNS,
        )
    return tuple(dict.fromkeys(run for run in runs if run is not None))
