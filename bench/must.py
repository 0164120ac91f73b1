"""The table "must reach": a target, what was seen, and whether that reaches it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import psycopg2

from bench import limits, tables
from bench.limits import Bench
from bench.ratios import Span, ratios
from bench.seeds import report
from bench.seeds.contest import Contest
from bench.trainers import by_forks, by_kept
from bench.turns import Measured


@dataclass(frozen=True, kw_only=True)
class Target:
    """What is to be reached: at least, or at most, so much."""

    what: str
    bound: float
    unit: str
    least: bool = True
    digits: int = 2

    def row(self, seen: Span | None, reason: str | None = None) -> list[str]:
        """A row of the table. It is reached where the median is; the ends are shown beside it."""
        target = f"{'≥' if self.least else '≤'} {self.bound:,g}{self.unit}"
        if seen is None:
            return [
                self.what,
                target,
                f"not measured: {tables.plain(reason)}" if reason else "not measured",
                "",
            ]
        reached = seen.middle >= self.bound if self.least else seen.middle <= self.bound
        return [
            self.what,
            target,
            f"{seen.text(self.digits)}{self.unit}",
            "yes" if reached else "no",
        ]


def most(what: str, bound: float, unit: str) -> Target:
    """What is to be at most so much."""
    return Target(what=what, bound=bound, unit=unit, least=False)


NO_PEER = "no attempt succeeded"
FASTER = {
    "A": Target(what="A, whole job, against the best peer", bound=2.2, unit="x"),
    "A64": Target(what="A, batches of at most 64, against the best peer", bound=2, unit="x"),
    "B": Target(what="B, whole job, against the best peer", bound=8, unit="x"),
    "C": Target(what="C, whole job, against the best peer", bound=2, unit="x"),
    "D": Target(what="D, whole job, against the best peer", bound=5, unit="x"),
    "F": Target(what="F, whole job, against the best peer", bound=6, unit="x"),
}
KERAS = {"E": most("E (state of 200 MB), whole job, against Keras fit", 1.5, "x")}
"""Our time against that of the best of plain Keras."""
TORCH = {
    "PyTorch": Target(
        what="B, batches of at most 32, PyTorch: whole job, against Keras fit", bound=3, unit="x"
    )
}
FAILURES = (RuntimeError, OSError, psycopg2.Error)
PARTS: tuple[tuple[tuple[Target, ...], Callable[[Bench], limits.Numbers]], ...] = (
    ((most("A, whole job against the bare loops", 1.5, "x"),), limits.whole_job("A", 1, by_forks)),
    (
        (most("A with 3 times the epochs, against the bare loops", 1.3, "x"),),
        limits.whole_job("A", 3, by_forks),
    ),
    ((most("B, whole job against the bare loops", 5, "x"),), limits.whole_job("B", 1, by_forks)),
    (
        (most("B with 8 times the epochs, against the bare loops", 3, "x"),),
        limits.whole_job("B", 8, by_forks),
    ),
    (
        (
            most("C, whole job against the bare loops: fork", 1.6, "x"),
            most("C, whole job against the bare loops: kept", 1.35, "x"),
        ),
        limits.whole_job("C", 1, by_forks, by_kept),
    ),
    (
        (
            most("D, whole job against the bare loops: fork", 1.6, "x"),
            most("D, whole job against the bare loops: kept", 1.35, "x"),
        ),
        limits.whole_job("D", 1, by_forks, by_kept),
    ),
    (
        (
            Target(
                what="bare loops' part of the workers' time, epochs 2 and later",
                bound=0.85,
                unit="",
            ),
        ),
        limits.fullness,
    ),
    (
        (
            most(
                "first fit, a dozen tiny configurations of one program, beyond its arithmetic: "
                "kept",
                0.5,
                " s",
            ),
            most(
                "first fit, a dozen tiny configurations of one program, beyond its arithmetic: "
                "fork",
                1.3,
                " s",
            ),
        ),
        limits.first_fit,
    ),
    (
        (
            most("predict of 100 rows from a new connection: kept", 0.4, " s"),
            most("predict of 100 rows from a new connection: fork", 1, " s"),
        ),
        limits.predicting,
    ),
    (
        (most("memory of its own of a further trainer before it has data", 150, " MB"),),
        limits.further_trainer,
    ),
    (
        (most("memory of a trainer beyond framework and rows, in states", 6, ""),),
        limits.memory_in_states,
    ),
    ((most("packing 1,000,000 x 64 against CREATE TABLE AS", 3, "x"),), limits.packing),
    (
        (most("A, whole job, Greenplum against PostgreSQL", 1.25, "x"),),
        limits.beside_greenplum("A"),
    ),
    (
        (most("C, whole job, Greenplum against PostgreSQL", 1.25, "x"),),
        limits.beside_greenplum("C"),
    ),
    ((most("B, whole job, Greenplum against PostgreSQL", 1.4, "x"),), limits.beside_greenplum("B")),
)
SEEDS = (
    most(report.SERVER_WALL, 0.333, "x"),
    most(report.SYNCHRONOUS_WALL, 0.333, "x"),
    most(report.TASKS_WALL, 1.03, "x"),
    most(report.AVERAGE_TIME, 0.7, "x"),
    most(report.PLAIN_TIME, 0.7, "x"),
    most(report.ROWS, 0.5, "x"),
    Target(what=report.MOVED, bound=0.02, unit="x", least=False, digits=4),
    most(report.NOISE, 2, ""),
)
TARGETS = {
    t.what: t
    for t in (
        *FASTER.values(),
        *KERAS.values(),
        *TORCH.values(),
        *(t for targets, _ in PARTS for t in targets),
        *SEEDS,
    )
}


def workload_rows(done: Mapping[str, Measured]) -> list[list[str]]:
    """The rows that follow from the workloads: those that were measured."""
    faster = {**FASTER, **TORCH}
    found = [
        faster[key].row(against_best_peer(done[key]), NO_PEER) for key in faster if key in done
    ]
    return found + [
        KERAS[key].row(against_keras(done[key]), NO_PEER) for key in KERAS if key in done
    ]


def seed_rows(done: Contest) -> list[list[str]]:
    """The rows that follow from the table of the seeds."""
    found = report.seen(done)
    return [target.row(*found[target.what]) for target in SEEDS]


def against_best_peer(done: Measured) -> Span | None:
    """How many times as long the best peer takes."""
    return ratios(
        done.walls(tables.best_peer(done) or ""), done.walls(tables.best_of_ours(done) or "")
    )


def against_keras(done: Measured) -> Span | None:
    """How many times as long ours takes as the best of plain Keras."""
    return ratios(
        done.walls(tables.best_of_ours(done) or ""),
        done.walls(tables.best_peer(done, "Keras fit") or ""),
    )


def part_rows(bench: Bench) -> list[list[str]]:
    """The rows of single parts, each measured now."""
    return [row for targets, measure in PARTS for row in rows(bench, targets, measure)]


def rows(
    bench: Bench, targets: Sequence[Target], measure: Callable[[Bench], limits.Numbers]
) -> list[list[str]]:
    """The rows of parts that are measured together."""
    try:
        columns = list(zip(*measure(bench), strict=True))
    except FAILURES as error:
        return [target.row(None, str(error)) for target in targets]
    return [target.row(Span.of(numbers)) for target, numbers in zip(targets, columns, strict=True)]


def table(measured: Iterable[list[str]]) -> str:
    """All rows as one table, in the order of the targets; what is no target any more is left
    out.
    """
    by_target = {row[0]: row for row in measured}
    ordered = [by_target[what] for what in TARGETS if what in by_target]
    return tables.table(["what", "target", "seen: median (least to most)", "reached"], ordered)
