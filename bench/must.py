"""The table "must reach": targets, measurements, and if they reach the targets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import psycopg2

from bench import limits, tables
from bench.limits import Bench
from bench.ratios import Span, compute_ratios
from bench.seeds import report
from bench.seeds.contest import Contest
from bench.trainers import with_kept_trainers, with_new_trainers
from bench.turns import WorkloadResults


@dataclass(frozen=True, kw_only=True)
class Target:
    """A bound for a measurement."""

    name: str
    bound: float
    unit: str
    least: bool = True  # the bound is a minimum, else a maximum
    digits: int = 2

    def make_row(self, measured_span: Span | None, reason: str | None = None) -> list[str]:
        """Return a row of the table; the median decides if the target is reached."""
        target = f"{'≥' if self.least else '≤'} {self.bound:,g}{self.unit}"
        if measured_span is None:
            return [
                self.name,
                target,
                f"not measured: {tables.escape_cell(reason)}" if reason else "not measured",
                "",
            ]
        reached = (
            measured_span.middle >= self.bound if self.least else measured_span.middle <= self.bound
        )
        return [
            self.name,
            target,
            f"{measured_span.text(self.digits)}{self.unit}",
            "yes" if reached else "no",
        ]


def at_most(name: str, bound: float, unit: str) -> Target:
    """Return a target that is a maximum."""
    return Target(name=name, bound=bound, unit=unit, least=False)


NO_PEER = "no attempt succeeded"
FASTER = {
    "A": Target(name="A, whole job, against the best peer", bound=2.2, unit="x"),
    "A64": Target(name="A, batches of at most 64, against the best peer", bound=2, unit="x"),
    "B": Target(name="B, whole job, against the best peer", bound=8, unit="x"),
    "C": Target(name="C, whole job, against the best peer", bound=2, unit="x"),
    "D": Target(name="D, whole job, against the best peer", bound=5, unit="x"),
    "F": Target(name="F, whole job, against the best peer", bound=6, unit="x"),
}
KERAS = {"E": at_most("E (state of 200 MB), whole job, against Keras fit", 1.5, "x")}
"""Our time against that of the best of plain Keras."""
TORCH = {
    "PyTorch": Target(
        name="B, batches of at most 32, PyTorch: whole job, against Keras fit", bound=3, unit="x"
    )
}
FAILURES = (RuntimeError, OSError, psycopg2.Error)
PARTS: tuple[tuple[tuple[Target, ...], Callable[[Bench], limits.Numbers]], ...] = (
    (
        (at_most("A, whole job against the bare loops", 1.5, "x"),),
        limits.compare_job("A", 1, with_new_trainers),
    ),
    (
        (at_most("A with 3 times the epochs, against the bare loops", 1.3, "x"),),
        limits.compare_job("A", 3, with_new_trainers),
    ),
    (
        (at_most("B, whole job against the bare loops", 5, "x"),),
        limits.compare_job("B", 1, with_new_trainers),
    ),
    (
        (at_most("B with 8 times the epochs, against the bare loops", 3, "x"),),
        limits.compare_job("B", 8, with_new_trainers),
    ),
    *(
        (
            (
                at_most(f"{key}, whole job against the bare loops: fork", 1.6, "x"),
                at_most(f"{key}, whole job against the bare loops: kept", 1.35, "x"),
            ),
            limits.compare_job(key, 1, with_new_trainers, with_kept_trainers),
        )
        for key in ("C", "D")
    ),
    (
        (
            Target(
                name="bare loops' part of the workers' time, epochs 2 and later",
                bound=0.85,
                unit="",
            ),
        ),
        limits.measure_fullness,
    ),
    (
        (
            at_most(
                "first fit, a dozen tiny configurations of one program, beyond its arithmetic: "
                "kept",
                0.5,
                " s",
            ),
            at_most(
                "first fit, a dozen tiny configurations of one program, beyond its arithmetic: "
                "fork",
                1.3,
                " s",
            ),
        ),
        limits.measure_first_fit,
    ),
    (
        (
            at_most("predict of 100 rows from a new connection: kept", 0.4, " s"),
            at_most("predict of 100 rows from a new connection: fork", 1, " s"),
        ),
        limits.measure_predicting,
    ),
    (
        (at_most("memory of its own of a further trainer before it has data", 150, " MB"),),
        limits.measure_further_trainer,
    ),
    (
        (at_most("memory of a trainer beyond framework and rows, in states", 6, ""),),
        limits.measure_memory,
    ),
    ((at_most("packing 1,000,000 x 64 against CREATE TABLE AS", 3, "x"),), limits.measure_packing),
    *(
        (
            (at_most(f"{key}, whole job, Greenplum against PostgreSQL", bound, "x"),),
            limits.compare_greenplum(key),
        )
        for key, bound in (("A", 1.25), ("C", 1.25), ("B", 1.4))
    ),
)
SEEDS = (
    at_most(report.SERVER_WALL, 0.333, "x"),
    at_most(report.SYNCHRONOUS_WALL, 0.333, "x"),
    at_most(report.TASKS_WALL, 1.03, "x"),
    at_most(report.AVERAGE_TIME, 0.7, "x"),
    at_most(report.PLAIN_TIME, 0.7, "x"),
    at_most(report.ROWS, 0.5, "x"),
    Target(name=report.MOVED, bound=0.02, unit="x", least=False, digits=4),
    at_most(report.NOISE, 2, ""),
)
TARGETS = {
    t.name: t
    for t in (
        *FASTER.values(),
        *KERAS.values(),
        *TORCH.values(),
        *(t for targets, _ in PARTS for t in targets),
        *SEEDS,
    )
}


def make_workload_rows(results: Mapping[str, WorkloadResults]) -> list[list[str]]:
    """Return the rows of the workloads that were measured."""
    faster = {**FASTER, **TORCH}
    rows = [
        faster[key].make_row(compare_best_peer(results[key]), NO_PEER)
        for key in faster
        if key in results
    ]
    return rows + [
        KERAS[key].make_row(compare_keras(results[key]), NO_PEER) for key in KERAS if key in results
    ]


def make_seed_rows(results: Contest) -> list[list[str]]:
    """Return the rows of the comparison with other methods."""
    rows = report.measure_all(results)
    return [target.make_row(*rows[target.name]) for target in SEEDS]


def compare_best_peer(results: WorkloadResults) -> Span | None:
    """Return the time of the best peer relative to ours."""
    return compute_ratios(
        results.list_walls(tables.find_best_peer(results) or ""),
        results.list_walls(tables.find_best_of_ours(results) or ""),
    )


def compare_keras(results: WorkloadResults) -> Span | None:
    """Return our time relative to the best of plain Keras."""
    return compute_ratios(
        results.list_walls(tables.find_best_of_ours(results) or ""),
        results.list_walls(tables.find_best_peer(results, "Keras fit") or ""),
    )


def measure_parts(bench: Bench) -> list[list[str]]:
    """Measure single parts; return their rows."""
    return [row for targets, measure in PARTS for row in measure_rows(bench, targets, measure)]


def measure_rows(
    bench: Bench, targets: Sequence[Target], measure: Callable[[Bench], limits.Numbers]
) -> list[list[str]]:
    """Measure parts together; return their rows."""
    try:
        columns = list(zip(*measure(bench), strict=True))
    except FAILURES as error:
        return [target.make_row(None, str(error)) for target in targets]
    return [
        target.make_row(Span.from_values(numbers))
        for target, numbers in zip(targets, columns, strict=True)
    ]


def format_table(measured: Iterable[list[str]]) -> str:
    """Return all rows as one table, in the order of the targets; former targets are left out."""
    by_target = {row[0]: row for row in measured}
    ordered = [by_target[name] for name in TARGETS if name in by_target]
    return tables.format_table(
        ["what", "target", "seen: median (least to most)", "reached"], ordered
    )
