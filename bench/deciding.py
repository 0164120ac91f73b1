"""How long a rule takes to decide at a thousand configurations: after each result, its part alone.

Results come in the order in which their configurations began, at random, or the newest first; where
the order is fixed the rule hears of them as it would in a run. Nothing is trained, and nothing is
logged.

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

CONFIGS, WIDTH, EPOCHS, SEED = 1000, 9, 81, 1
GROUPS, IN_GROUPS = 50, "asha in 50 groups"
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
    "first": lambda coming: 0,
    "random": lambda coming: random.randrange(len(coming)),
    "last": lambda coming: len(coming) - 1,
}


class Took(NamedTuple):
    """Seconds of a core, of all decisions."""

    mean: float
    longest: float
    results: int


def decisions(course: SearchState, pick: Callable[[list[int]], int]) -> Iterator[float]:
    """The seconds that each decision takes of a core, until nothing is under way."""
    coming, done = list[int](), dict[int, int]()
    while True:
        due = course.decide()
        while True:
            began = time.thread_time()
            heard = next(due, None)
            yield time.thread_time() - began
            if heard is None:
                break
            coming += [
                each.mst_key for each in heard.decisions if course.trials[each.mst_key].is_running
            ]
        if not coming:
            return
        key = coming.pop(pick(coming))
        for epoch in range(done.get(key, 0) + 1, course.trials[key].max_epoch + 1):
            course.report_value(key, epoch, random.random())
        done[key] = course.trials[key].max_epoch


def measured(rule: Rule, pick: Callable[[list[int]], int], *, fixed: bool) -> Took:
    """What all decisions of a search take."""
    keys = rule.mst_keys if isinstance(rule, Diagonals) else range(CONFIGS)
    gc.collect()
    of = {key: f"group {key % GROUPS}" for key in keys} if isinstance(rule, GroupedRules) else {}
    seconds = list(decisions(SearchState(rule, keys, WIDTH, fixed=fixed, groups=Groups(of)), pick))
    return Took(sum(seconds) / len(seconds), max(seconds), len(seconds))


def main() -> None:
    """Measure each rule, in each order."""
    for name, rule in RULES.items():
        for fixed in (False, True):
            random.seed(SEED)
            found = {order: measured(rule(), pick, fixed=fixed) for order, pick in ORDERS.items()}
            told = ", ".join(
                (
                    f"{order} {1000 * took.mean:.2f} (longest {1000 * took.longest:.1f}, of "
                    f"{took.results})"
                )
                for order, took in found.items()
            )
            print(
                f"{name} {'in a fixed order' if fixed else 'as they come'}: ms {told}", flush=True
            )


if __name__ == "__main__":
    main()
