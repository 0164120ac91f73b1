"""Trials of earlier runs, from which a search learns: points of its space, and their standings.

Metrics of other tables and splits have other levels and cannot be compared. Each configuration, of
earlier runs and of the current one, is therefore described by its standing: the share of its run's
configurations that were better. These are the quantiles of Salinas, Shen and Perrone, "A
quantile-based approach for hyperparameter transfer learning" (ICML 2020, arXiv 1909.13595). Their
normal scores are left out, because samplers only use the order of values.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.configs.json_arguments import JsonObject
from cerebro_plpy.errors import InvalidParameter

MAX_PRIOR_TRIALS = 300
"""Largest number of trials of all earlier runs; the run that is named first comes first."""
BEST_PER_RUN = 3
"""Number of the best configurations of a run to try again."""
_NAME = re.compile(r"run:(\d{1,18})")
_RUNS = "SELECT run_id, name FROM cerebro.run;"


class PriorTrial(NamedTuple):
    """A configuration of an earlier run."""

    run_id: int
    mst_key: int
    point: JsonObject  # of the space
    standing: float | None  # share of the run's configurations that were better; None if it failed

    @classmethod
    def from_json(cls, values: Sequence[Any]) -> PriorTrial:
        """Read a list of the fields.

        Raises:
            TypeError: the point is malformed.
        """
        run_id, mst_key, point, standing = values
        if not (isinstance(point, dict) and isinstance(point["values"], dict)):
            raise TypeError(f"a point of a space is {point!r:.80}")
        return cls(int(run_id), int(mst_key), point, None if standing is None else float(standing))


def compute_standings(values: Sequence[Sequence[float]]) -> list[float]:
    """Return for each value the share of values that are better, counting half of the equal ones.

    Smaller values are better, and a number that is not finite is the worst.

    Args:
        values: each a sequence of numbers; the second one decides between equal first ones.

    >>> compute_standings([(0, 0.3), (0, 0.1), (0, 0.3), (0, math.nan)])
    [0.5, 0.125, 0.5, 0.875]
    """
    keys = [
        tuple(number if math.isfinite(number) else math.inf for number in value) for value in values
    ]
    ordered = sorted(keys)
    return [
        (bisect_left(ordered, key) + bisect_right(ordered, key)) / (2 * len(ordered))
        for key in keys
    ]


def parse_run_name(name: str) -> int | None:
    """Return the run_id in a name such as "run:12"; None for another name.

    >>> parse_run_name("run:12"), parse_run_name("customers_answered")
    (12, None)
    """
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


def read_runs(module: str, names: object) -> tuple[int, ...]:
    """Return the run_ids that a list in search_params names.

    Raises:
        InvalidParameter: the value is not a list of runs.
    """
    listed: Iterable[object] = names if isinstance(names, list) else ()
    runs = [parse_run_name(name) if isinstance(name, str) else None for name in listed]
    if None in runs or not runs:
        raise InvalidParameter(
            f"{module} error: start_from in search_params is {names!r:.80}; expected a list of "
            'runs such as ["run:12"].',
            hint=_RUNS,
        )
    return tuple(dict.fromkeys(run_id for run_id in runs if run_id is not None))
