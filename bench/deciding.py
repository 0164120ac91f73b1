"""Time the decisions of search rules over a thousand configurations, after each result.

Results arrive in the order in which their configurations started, at random, or the newest first.
If the order is fixed, the rule receives them as in a run. Nothing is trained or logged.

    PYTHONPATH=plpy .venv/bin/python -m bench.deciding
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from cerebro_plpy.scheduling.search.grouped_search import GroupedRules
from cerebro_plpy.scheduling.search.hyperband import Diagonals, Hyperband
from cerebro_plpy.scheduling.search.pasha import Pasha
from cerebro_plpy.scheduling.search.pbt import Pbt
from cerebro_plpy.scheduling.search.promotion_rules import Asha, Median, Rule, Stepwise
from cerebro_plpy.scheduling.search.search_state import Groups, SearchState
from cerebro_plpy.scheduling.search.successive_halving import make_halving, make_hyperband

CONFIGS = 1000
WIDTH = 9
EPOCHS = 81
SEED = 1
GROUPS = 50
IN_GROUPS = "asha in 50 groups"
RULES: dict[str, Callable[[], Rule]] = {
    "asha": lambda: Asha(EPOCHS),
    "halving": lambda: make_halving(range(CONFIGS), EPOCHS, 3, 1),
    "hyperband": lambda: make_hyperband(range(CONFIGS), EPOCHS, 3),
    "madlib_hyperband": lambda: Diagonals(
        Hyperband(729, 3, 0), range(Hyperband(729, 3, 0).configs)
    ),
    "median": lambda: Median(tuple(range(1, 10))),
    "grid": lambda: Stepwise(tuple(range(1, 10))),
    "pasha": lambda: Pasha(EPOCHS),
    "pbt": lambda: Pbt(9),
    IN_GROUPS: lambda: GroupedRules({f"group {number}": Asha(EPOCHS) for number in range(GROUPS)}),
}
ORDERS: dict[str, Callable[[list[int]], int]] = {
    "first": lambda running: 0,
    "random": lambda running: random.randrange(len(running)),
    "last": lambda running: len(running) - 1,
}


class DecisionTimes(NamedTuple):
    """CPU seconds of all decisions."""

    mean: float
    longest: float
    results: int


def time_decisions(search: SearchState, pick: Callable[[list[int]], int]) -> Iterator[float]:
    """Yield the CPU seconds of each decision, until no configuration is running."""
    running = list[int]()
    epochs_done = dict[int, int]()
    while True:
        batches = search.decide()
        while True:
            start = time.thread_time()
            batch = next(batches, None)
            yield time.thread_time() - start
            if batch is None:
                break
            running += [
                decision.mst_key
                for decision in batch.decisions
                if search.trials[decision.mst_key].is_running
            ]
        if not running:
            return
        key = running.pop(pick(running))
        for epoch in range(epochs_done.get(key, 0) + 1, search.trials[key].max_epoch + 1):
            search.report_value(key, epoch, random.random())
        epochs_done[key] = search.trials[key].max_epoch


def measure_rule(rule: Rule, pick: Callable[[list[int]], int], *, fixed: bool) -> DecisionTimes:
    """Time all decisions of a search."""
    keys = rule.mst_keys if isinstance(rule, Diagonals) else range(CONFIGS)
    gc.collect()
    groups = (
        {key: f"group {key % GROUPS}" for key in keys} if isinstance(rule, GroupedRules) else {}
    )
    seconds = list(
        time_decisions(SearchState(rule, keys, WIDTH, fixed=fixed, groups=Groups(groups)), pick)
    )
    return DecisionTimes(sum(seconds) / len(seconds), max(seconds), len(seconds))


def main() -> None:
    """Measure each rule in each order."""
    for name, rule in RULES.items():
        for fixed in (False, True):
            random.seed(SEED)
            durations = {
                order: measure_rule(rule(), pick, fixed=fixed) for order, pick in ORDERS.items()
            }
            text = ", ".join(
                (
                    f"{order} {1000 * times.mean:.2f} (longest {1000 * times.longest:.1f}, of "
                    f"{times.results})"
                )
                for order, times in durations.items()
            )
            print(
                f"{name} {'in a fixed order' if fixed else 'as they come'}: ms {text}", flush=True
            )


if __name__ == "__main__":
    main()
