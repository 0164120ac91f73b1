"""The table "must reach": a target, what was seen, and whether that reaches it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import psycopg2

from bench import limits, tables
from bench.limits import Bench
from bench.ratios import Span, ratios
from bench.turns import Measured


@dataclass(frozen=True, kw_only=True)
class Target:
    """What is to be reached: at least, or at most, so much."""

    what: str
    bound: float
    unit: str
    least: bool = True
    digits: int = 2

    def row(self, seen: Span | None, reason: str = "") -> list[str]:
        """A row of the table. It is reached where the median is; the ends are shown beside it."""
        target = f"{'≥' if self.least else '≤'} {self.bound:,g}{self.unit}"
        if seen is None:
            return [self.what, target, f"not measured: {tables.plain(reason)}", ""]
        reached = seen.middle >= self.bound if self.least else seen.middle <= self.bound
        return [self.what, target, f"{seen.text(self.digits)}{self.unit}", "yes" if reached else "no"]


FASTER = {
    "A": Target(what="A, whole job, against the best peer", bound=3, unit="x"),
    "A64": Target(what="A, batches of at most 64", bound=5, unit="x"),
    "B": Target(what="B, whole job, against the best peer", bound=3, unit="x"),
    "B64": Target(what="B, batches of at most 64", bound=5, unit="x"),
    "C": Target(what="C, whole job, against the best peer", bound=1, unit="x"),
    "D": Target(what="D, whole job, against the best peer", bound=1, unit="x"),
    "F": Target(what="F, whole job, against plain Keras in two processes", bound=1, unit="x"),
}
LOADED = ("A", "B", "C", "D")
"""Workloads that are more than start-up and hops."""
TWO_PROCESSES = "two processes"
FAILURES = (RuntimeError, OSError, psycopg2.Error)
HOP = Target(what="hop beyond training, state below 1 MB", bound=10, unit=" ms", least=False, digits=1)
LARGE_HOP = Target(what="hop of 200 MB, speed against a logged INSERT … SELECT", bound=0.5, unit="x")
MEMORY = Target(what="memory of a trainer beyond framework and rows, in states", bound=4, unit="", least=False)
PARTS: tuple[tuple[Target, Callable[[Bench], Iterable[float]]], ...] = (
    (
        Target(what="A with 3 times the epochs, against the bare loops", bound=1.15, unit="x", least=False),
        limits.bare("A", 3),
    ),
    (
        Target(what="B with 8 times the epochs, against the bare loops", bound=1.15, unit="x", least=False),
        limits.bare("B", 8),
    ),
    (HOP, limits.small_hops),
    (Target(what="streaming against cached (B)", bound=1.2, unit="x", least=False), limits.streaming),
    (Target(what="table to decoded tensor, from shared buffers", bound=1, unit=" GB/s"), limits.reading),
    (Target(what="packing 1,000,000 x 64 against CREATE TABLE AS", bound=3, unit="x", least=False), limits.packing),
    (Target(what="predict, small MLP, 1,000,000 rows", bound=100_000, unit=" rows/s", digits=0), limits.predicting),
    (Target(what="disk after 20 epochs x 16 configs, in states", bound=3, unit="", least=False), limits.disk),
)


def workload_rows(done: Mapping[str, Measured]) -> list[list[str]]:
    """The rows that follow from the workloads: those that were measured."""
    rows = []
    for key, target in FASTER.items():
        if key in done:
            rows.append(target.row(against_best_peer(done[key]), "no attempt succeeded"))
    for key, found in done.items():
        if key not in LOADED:
            continue
        what = f"{key}, whole job against the bare loops"
        target = Target(what=what, bound=1.15, unit="x", least=False)
        seen = ratios(found.walls(tables.best_of_ours(found) or ""), found.bare)
        rows.append(target.row(seen, "no bare loop"))
    return rows


def against_best_peer(done: Measured) -> Span | None:
    """How many times as long the best peer takes: in F the best of those with two processes."""
    peer = tables.best_peer(done, TWO_PROCESSES if done.workload.key == "F" else "")
    return ratios(done.walls(peer or ""), done.walls(tables.best_of_ours(done) or ""))


def part_rows(bench: Bench) -> list[list[str]]:
    """The rows of single parts, each measured now."""
    rows = [_measured(bench, target, measure) for target, measure in PARTS]
    try:
        pairs = list(limits.large_hops(bench))
    except FAILURES as error:
        return [*rows, LARGE_HOP.row(None, str(error)), MEMORY.row(None, str(error))]
    speeds, memories = zip(*pairs, strict=True)
    return [*rows, LARGE_HOP.row(Span.of(speeds)), MEMORY.row(Span.of(memories))]


def _measured(bench: Bench, target: Target, measure: Callable[[Bench], Iterable[float]]) -> list[str]:
    try:
        return target.row(Span.of(list(measure(bench))))
    except FAILURES as error:
        return target.row(None, str(error))


def table(rows: Iterable[list[str]]) -> str:
    """All rows as one table, whole jobs first, in the order in which they are asked for."""
    order = [target.what for target in (*FASTER.values(), *(target for target, _ in PARTS), LARGE_HOP, MEMORY)]
    ordered = sorted(rows, key=lambda row: order.index(row[0]) if row[0] in order else len(FASTER) - 0.5)
    return tables.table(["what", "target", "seen: median (least to most)", "reached"], ordered)
