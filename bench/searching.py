"""What a search saves: `asha` beside the whole grid, random search and Optuna, judged over the same
learning curves.

All have the same configurations, drawn by a seed and in an order of its own; random search and
Optuna may make as many visits as `asha` did, and `pasha` makes as many as it wants. Nothing of it
is a time.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import optuna

from bench import tables
from bench.courses import Tally, by_optuna, by_rule, one_by_one, order
from bench.place import Place
from bench.pools import EPOCHS, GENERATED, KINDS, Pool
from bench.quality import ERRORS
from cerebro_plpy.configs.search_space.search_arguments import read_search_rule
from cerebro_plpy.configs.search_space.search_rules import RuleContext
from cerebro_plpy.scheduling.search.promotion_rules import Rule

SEARCHED = ("diabetes", "titanic", "wages", GENERATED)
ORDERS = 5
"""In which each search meets the configurations of a pool; for each seed the mean of them counts.
"""
NEAR, PART = 0.005, 1 / 3
"""How near to the grid's best value, and in what part of the grid's visits."""
OURS, PASHA, RANDOM = "asha", "pasha", "random"
Say = Callable[[str], None]
Peer = Callable[[Pool, int, int], Tally]
"""What somebody else comes to over a pool within so many visits, in the order of that number."""


def _optuna(pruner: Callable[[], optuna.pruners.BasePruner]) -> Peer:
    return lambda pool, visits, number: by_optuna(
        pool, visits, optuna.samplers.TPESampler(seed=number), pruner()
    )


PEERS: Mapping[str, Peer] = {
    RANDOM: lambda pool, visits, number: one_by_one(
        pool, order(pool, pool.curves, ORDERS + number), visits
    ),
    "TPE, MedianPruner": _optuna(optuna.pruners.MedianPruner),
    "TPE, SuccessiveHalvingPruner": _optuna(optuna.pruners.SuccessiveHalvingPruner),
}


@dataclass
class Judged:
    """What the searches came to over the pools of a table: numbers of all orders, and for each seed
    the mean of what each lacks to the best value of the grid, as a part of it."""

    table: str
    metric: str
    parts: list[float] = field(default_factory=list)
    """Of the grid's visits, until `asha` was near its best value; infinite where it never was."""
    wholes: list[float] = field(default_factory=list)
    """Of the grid's visits, all that `asha` made."""
    gaps: dict[str, list[float]] = field(default_factory=dict)
    ceilings: list[float] = field(default_factory=list)
    """Of the grid's visits, all that `pasha` made."""

    def difference(self, peer: str) -> tuple[float, float]:
        """By how much more a peer lacks, on average, and what of that is noise: two standard errors
        over seeds.
        """
        found = [
            theirs - ours for theirs, ours in zip(self.gaps[peer], self.gaps[OURS], strict=True)
        ]
        error = statistics.stdev(found) / len(found) ** 0.5 if len(found) > 1 else math.inf
        return statistics.mean(found), ERRORS * error

    def verdict(self, peer: str) -> str:
        """Whether `asha` is better than a peer, or worse."""
        mean, noise = self.difference(peer)
        return "better" if mean > noise else "worse" if mean < -noise else "within noise"


def measured(at: Place, seeds: int, say: Say) -> dict[str, list[Judged]]:
    """All kinds of grids, over all tables, with all seeds."""
    found: dict[str, list[Judged]] = {}
    for kind, trained in KINDS.items():
        for table in SEARCHED:
            pools = []
            for seed in range(1, seeds + 1):
                with at.session() as session:
                    pools.append(trained(session, table, seed))
                say(
                    f"searches: {kind}, {table}, seed {seed}: {pools[-1].visits} visits of the grid"
                )
            found.setdefault(kind, []).append(judged(pools))
    return found


def judged(pools: Sequence[Pool]) -> Judged:
    """What searches come to over the pools of a table, one for each seed."""
    found = Judged(pools[0].table, pools[0].metric)
    theirs: dict[str, list[list[float]]] = {}
    for pool in pools:
        ours, visits = _of_rules(found, pool)
        for name, gaps in ours.items():
            found.gaps.setdefault(name, []).append(statistics.mean(gaps))
        for name, peer in PEERS.items():
            kinds = (
                [pool]
                if pool.searched is pool.curves
                else [pool, pool._replace(curves=pool.searched)]
            )
            for number, kind in enumerate(kinds):
                gaps = [
                    _gap(pool, peer(kind, within, order).best)
                    for order, within in enumerate(visits)
                ]
                theirs.setdefault(name, [[] for _ in kinds])[number].append(statistics.mean(gaps))
    # A peer has the learning rates of a whole grid or those of a search, whatever suits it better
    # on that table.
    found.gaps.update({name: min(kinds, key=statistics.mean) for name, kinds in theirs.items()})
    return found


def _of_rules(found: Judged, pool: Pool) -> tuple[Mapping[str, list[float]], list[int]]:
    """What our rules lack over a pool, and how many visits `asha` made, order by order."""
    near, lacking, visits = pool.best + NEAR * abs(pool.best), dict[str, list[float]](), list[int]()
    for number in range(ORDERS):
        ours, other = (
            by_rule(pool, order(pool, pool.searched, number), _rule(pool, name))
            for name in (OURS, PASHA)
        )
        reached = ours.until(near)
        found.parts.append(math.inf if reached is None else reached / pool.visits)
        found.wholes.append(ours.visits / pool.visits)
        found.ceilings.append(other.visits / pool.visits)
        for name, tally in ((OURS, ours), (PASHA, other)):
            lacking.setdefault(name, []).append(_gap(pool, tally.best))
        visits.append(ours.visits)
    return lacking, visits


def _gap(pool: Pool, value: float) -> float:
    """What a value lacks to the grid's best, as a part of it."""
    return (value - pool.best) / abs(pool.best)


def _rule(pool: Pool, name: str) -> Rule:
    """What a search of this name comes to where nothing else is said of it."""
    search = read_search_rule(
        "bench", name, None, EPOCHS, templates=pool.searched is not pool.curves
    )
    assert search is not None
    return search.make_rule(range(len(pool.curves)), RuleContext(EPOCHS, range(1, EPOCHS + 1)))


def report(found: Mapping[str, Sequence[Judged]]) -> str:
    """A table for each kind of grid, and what it says in all."""
    what = (
        f"{ORDERS} orders for each seed: means; in brackets, whether `asha` is better than that "
        "peer."
    )
    return "\n\n".join(
        [what, *(part for kind, judgements in found.items() for part in _of_kind(kind, judgements))]
    )


def _of_kind(kind: str, found: Sequence[Judged]) -> list[str]:
    headings = [
        kind,
        "value",
        "seeds",
        "visits, of the grid's",
        "within 0.5 %, of the grid's",
        "in a third",
        OURS,
        f"{PASHA}, and its visits",
        *PEERS,
    ]
    soon = sum(statistics.median(each.parts) <= PART for each in found)
    parts = [f"Near the grid's best in a third of its visits: on {soon} of {len(found)} tables."]
    for peer in PEERS:
        verdicts = [each.verdict(peer) for each in found]
        parts.append(
            f"Beside {peer}: better on {verdicts.count('better')}, worse on "
            f"{verdicts.count('worse')}."
        )
    return [tables.table(headings, map(_row, found)), " ".join(parts)]


def _row(each: Judged) -> list[str]:
    middle = statistics.median(each.parts)
    soon = sum(part <= PART for part in each.parts) / len(each.parts)
    gaps = {name: f"{100 * statistics.mean(values):.2f} %" for name, values in each.gaps.items()}
    return [
        f"`{each.table}`",
        each.metric.replace("root_mean_squared_error", "RMSE"),
        str(len(each.gaps[OURS])),
        f"{statistics.mean(each.wholes):.2f}",
        "never" if math.isinf(middle) else f"{middle:.2f}",
        f"{soon:.0%}",
        gaps[OURS],
        f"{gaps[PASHA]}, {statistics.mean(each.ceilings):.2f}",
        *(f"{gaps[peer]} ({each.verdict(peer)})" for peer in PEERS),
    ]
