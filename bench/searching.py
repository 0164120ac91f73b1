"""Compare `asha` with the whole grid, random search and Optuna over the same learning curves.

All have the same configurations, drawn with a seed, in an order of their own. Random search and
Optuna may make as many visits as `asha` did; the number of visits of `pasha` is not limited. The
comparison measures no times.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import optuna

from bench import tables
from bench.bench_server import BenchServer, Echo
from bench.courses import (
    Tally,
    search_by_optuna,
    search_by_rule,
    search_randomly,
    shuffle,
)
from bench.pools import EPOCHS, GENERATED, KINDS, Pool
from bench.quality.comparison import ERRORS
from cerebro_plpy.configs.search_space.search_arguments import read_search_rule
from cerebro_plpy.configs.search_space.search_rules import RuleContext
from cerebro_plpy.scheduling.search.promotion_rules import Rule

SEARCHED = ("diabetes", "titanic", "wages", GENERATED)
ORDERS = 5
"""Number of orders of a pool's configurations; the mean over them counts for each seed."""
NEAR = 0.005
"""Relative distance from the grid's best value that counts as near."""
PART = 1 / 3
"""Share of the grid's visits in which a search should be near its best value."""
OURS = "asha"
PASHA = "pasha"
RANDOM = "random"
Peer = Callable[[Pool, int, int], Tally]
"""A search over a pool: takes the pool, the number of visits, and the number of the order."""


def _make_optuna_peer(pruner: Callable[[], optuna.pruners.BasePruner]) -> Peer:
    return lambda pool, visits, number: search_by_optuna(
        pool, visits, optuna.samplers.TPESampler(seed=number), pruner()
    )


PEERS: Mapping[str, Peer] = {
    RANDOM: lambda pool, visits, number: search_randomly(
        pool, shuffle(pool, pool.curves, ORDERS + number), visits
    ),
    "TPE, MedianPruner": _make_optuna_peer(optuna.pruners.MedianPruner),
    "TPE, SuccessiveHalvingPruner": _make_optuna_peer(optuna.pruners.SuccessiveHalvingPruner),
}


@dataclass
class Judgement:
    """The searches over the pools of a table; visits are shares of the grid's visits."""

    table: str
    metric: str
    # Until `asha` was near the grid's best value, by order; infinite if it never was.
    visits_until_near: list[float] = field(default_factory=list)
    asha_visits: list[float] = field(default_factory=list)  # by order
    gaps: dict[str, list[float]] = field(default_factory=dict)  # means by search and seed
    pasha_visits: list[float] = field(default_factory=list)  # by order

    def measure_difference(self, peer: str) -> tuple[float, float]:
        """Return the mean of a peer's gap minus that of `asha`, and its noise.

        The noise is two standard errors over the seeds.
        """
        pairs = zip(self.gaps[peer], self.gaps[OURS], strict=True)
        differences = [peer_gap - our_gap for peer_gap, our_gap in pairs]
        error = math.inf
        if len(differences) > 1:
            error = statistics.stdev(differences) / len(differences) ** 0.5
        return statistics.mean(differences), ERRORS * error

    def compare(self, peer: str) -> str:
        """Return "better", "worse" or "within noise" for `asha` against a peer."""
        mean, noise = self.measure_difference(peer)
        if mean > noise:
            return "better"
        return "worse" if mean < -noise else "within noise"


def measure_searches(server: BenchServer, seeds: int, echo: Echo) -> dict[str, list[Judgement]]:
    """Judge the searches over all tables, by kind of grid."""
    judgements: dict[str, list[Judgement]] = {}
    for kind, train_pool in KINDS.items():
        for table in SEARCHED:
            pools = []
            for seed in range(1, seeds + 1):
                with server.session() as session:
                    pools.append(train_pool(session, table, seed))
                visits = pools[-1].visits
                echo(f"searches: {kind}, {table}, seed {seed}: {visits} visits of the grid")
            judgements.setdefault(kind, []).append(judge(pools))
    return judgements


def judge(pools: Sequence[Pool]) -> Judgement:
    """Judge the searches over the pools of a table, one for each seed."""
    judgement = Judgement(pools[0].table, pools[0].metric)
    peer_gaps: dict[str, list[list[float]]] = {}
    for pool in pools:
        our_gaps, visits = _judge_rules(judgement, pool)
        for name, gaps in our_gaps.items():
            judgement.gaps.setdefault(name, []).append(statistics.mean(gaps))
        grids = [pool]
        if pool.searched is not pool.curves:
            grids.append(pool._replace(curves=pool.searched))
        for name, peer in PEERS.items():
            gaps_by_grid = peer_gaps.setdefault(name, [[] for _ in grids])
            for number, grid in enumerate(grids):
                gaps = [
                    _measure_gap(pool, peer(grid, budget, order).best)
                    for order, budget in enumerate(visits)
                ]
                gaps_by_grid[number].append(statistics.mean(gaps))
    # A peer has the learning rates of a whole grid or those of a search, whatever suits it better
    # on that table.
    for name, gaps_by_grid in peer_gaps.items():
        judgement.gaps[name] = min(gaps_by_grid, key=statistics.mean)
    return judgement


def _judge_rules(judgement: Judgement, pool: Pool) -> tuple[Mapping[str, list[float]], list[int]]:
    """Judge our rules over a pool; return their gaps, and the visits of `asha`, by order."""
    near = pool.best + NEAR * abs(pool.best)
    gaps: dict[str, list[float]] = {OURS: [], PASHA: []}
    visits = []
    for number in range(ORDERS):
        asha, pasha = (
            search_by_rule(pool, shuffle(pool, pool.searched, number), _make_rule(pool, name))
            for name in (OURS, PASHA)
        )
        near_visits = asha.until(near)
        judgement.visits_until_near.append(
            math.inf if near_visits is None else near_visits / pool.visits
        )
        judgement.asha_visits.append(asha.visits / pool.visits)
        judgement.pasha_visits.append(pasha.visits / pool.visits)
        gaps[OURS].append(_measure_gap(pool, asha.best))
        gaps[PASHA].append(_measure_gap(pool, pasha.best))
        visits.append(asha.visits)
    return gaps, visits


def _measure_gap(pool: Pool, value: float) -> float:
    """Return the distance of a value from the grid's best, relative to the best."""
    return (value - pool.best) / abs(pool.best)


def _make_rule(pool: Pool, name: str) -> Rule:
    """Return the rule of a search with its default arguments."""
    search = read_search_rule(
        "bench", name, None, EPOCHS, templates=pool.searched is not pool.curves
    )
    assert search is not None
    return search.make_rule(range(len(pool.curves)), RuleContext(EPOCHS, range(1, EPOCHS + 1)))


def report(judgements: Mapping[str, Sequence[Judgement]]) -> str:
    """Return a table for each kind of grid, with a summary."""
    parts = [
        f"{ORDERS} orders for each seed: means; in brackets, whether `asha` is better than that "
        "peer."
    ]
    for kind, table_judgements in judgements.items():
        parts += _report_kind(kind, table_judgements)
    return "\n\n".join(parts)


def _report_kind(kind: str, judgements: Sequence[Judgement]) -> list[str]:
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
    early = sum(statistics.median(table.visits_until_near) <= PART for table in judgements)
    parts = [
        f"Near the grid's best in a third of its visits: on {early} of {len(judgements)} tables."
    ]
    for peer in PEERS:
        results = [table.compare(peer) for table in judgements]
        parts.append(
            f"Beside {peer}: better on {results.count('better')}, worse on "
            f"{results.count('worse')}."
        )
    return [tables.format_table(headings, map(_make_row, judgements)), " ".join(parts)]


def _make_row(judgement: Judgement) -> list[str]:
    visits = judgement.visits_until_near
    middle = statistics.median(visits)
    early = sum(share <= PART for share in visits) / len(visits)
    gaps = {
        name: f"{100 * statistics.mean(values):.2f} %" for name, values in judgement.gaps.items()
    }
    return [
        f"`{judgement.table}`",
        judgement.metric.replace("root_mean_squared_error", "RMSE"),
        str(len(judgement.gaps[OURS])),
        f"{statistics.mean(judgement.asha_visits):.2f}",
        "never" if math.isinf(middle) else f"{middle:.2f}",
        f"{early:.0%}",
        gaps[OURS],
        f"{gaps[PASHA]}, {statistics.mean(judgement.pasha_visits):.2f}",
        *(f"{gaps[peer]} ({judgement.compare(peer)})" for peer in PEERS),
    ]
