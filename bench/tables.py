"""Format the measurements as tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bench.breakdown import PHASES
from bench.contenders import Attempt
from bench.measure import BACKENDS, CLIENT, SERVER, TRAINERS
from bench.ratios import Span, compute_ratios, find_best
from bench.turns import PRODUCT, WorkloadResults, find_middle_attempt

MB = 1 << 20
CPU_PHASES = ("train", "compile", "hop", "evaluate")
"""Phases whose CPU time is shown; the other phases are the start, the rows and the end."""


def format_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose first column is text and whose others are numbers.

    >>> print(format_table(["who", "s"], [["we", "1.0"]]))
    | who | s |
    |---|---:|
    | we | 1.0 |
    """
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)]]
    first, rule = (" | ".join(line) if n == 0 else "|".join(line) for n, line in enumerate(lines))
    return "\n".join([f"| {first} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)])


def format_contenders(results: WorkloadResults) -> str:
    """Return a row for each contender: its costs, and its time relative to the best of ours."""
    base = results.list_walls(find_best_of_ours(results) or "")
    headings = [
        "",
        "wall s",
        "CPU s",
        "memory MB",
        "stored MB",
        "moved MB",
        "validation loss",
        "its time / ours",
    ]
    rows = [_make_row(name, attempts, base) for name, attempts in results.attempts.items()]
    packed = list(results.packing.values())
    wall, cpu, memory = (
        Span.from_values([getattr(usage, field) for usage in packed])
        for field in ("wall", "cpu", "memory")
    )
    rows.append(
        [
            "packing, once for a table",
            wall.text(),
            cpu.text(),
            _format_mb(memory.middle),
            "",
            "",
            "",
            "",
        ]
    )
    if results.bare:
        seconds = Span.from_values(list(results.bare.values())).text()
        rows.append(["bare loops over arrays in memory", seconds, "", "", "", "", "", ""])
    return format_table(headings, rows)


def _make_row(name: str, attempts: Mapping[int, Attempt], base: Mapping[int, float]) -> list[str]:
    good = {number: attempt for number, attempt in attempts.items() if attempt.result is not None}
    if not good:
        return [name, f"failed: {escape_cell(next(iter(attempts.values())).reason)}", *[""] * 6]
    wall = Span.from_values([attempt.usage.wall for attempt in good.values()]).text()
    cpu = Span.from_values([attempt.usage.cpu for attempt in good.values()]).text()
    memory = max(attempt.usage.memory for attempt in good.values())
    stored = max(attempt.stored for attempt in good.values())
    last = next(iter(good.values())).result
    assert last is not None
    losses = [loss for loss, _ in last.scores.values()]
    against = compute_ratios({number: attempt.usage.wall for number, attempt in good.items()}, base)
    if len(good) < len(attempts):
        name += f" ({len(attempts) - len(good)} of {len(attempts)} attempts failed)"
    return [
        name,
        wall,
        cpu,
        _format_mb(memory),
        _format_mb(stored),
        _format_mb(last.moved_bytes),
        _format_losses(losses),
        against.text() if against else "",
    ]


def _format_losses(losses: Sequence[float]) -> str:
    if not losses:
        return ""
    span = Span.from_values(losses)
    return f"{span.least:.4f} best, {span.middle:.4f} median"


def _format_mb(count: float) -> str:
    return f"{count / MB:,.1f}"


def escape_cell(text: str) -> str:
    """Return a text that a cell can contain."""
    return text.strip().replace("|", "\\|").replace("\n", " ")[:160]


def find_best_of_ours(results: WorkloadResults) -> str | None:
    """Return our contender with the smallest median."""
    return find_best(
        {name: results.list_walls(name) for name in results.attempts if name.startswith(PRODUCT)}
    )


def find_best_peer(results: WorkloadResults, name_part: str = "") -> str | None:
    """Return the peer with the smallest median among those whose names contain a text."""
    peers = [
        name for name in results.attempts if not name.startswith(PRODUCT) and name_part in name
    ]
    return find_best({name: results.list_walls(name) for name in peers})


def format_breakdown(results: WorkloadResults) -> str:
    """Return the seconds and the CPU seconds of each of ours by phase."""
    walls = []
    cpus = []
    for name, attempts in results.attempts.items():
        if attempt := find_middle_attempt(attempts):
            walls.append([name, *(f"{(attempt.phases or {})[phase]:.2f}" for phase in PHASES)])
            cpus.append([name, *(f"{seconds:.2f}" for seconds in _list_cpu_seconds(attempt))])
    if not walls:
        return "No attempt of ours succeeded."
    headings = [
        "CPU seconds",
        *(f"trainers: {part}" for part in (*CPU_PHASES, "all")),
        BACKENDS,
        SERVER,
        CLIENT,
    ]
    return "\n\n".join([format_table(["seconds", *PHASES], walls), format_table(headings, cpus)])


def _list_cpu_seconds(attempt: Attempt) -> list[float]:
    parts = attempt.cpu or {}
    roles = attempt.usage.cpu_of
    return [
        *(parts.get(part, 0.0) for part in CPU_PHASES),
        *(roles.get(r, 0.0) for r in (TRAINERS, BACKENDS, SERVER, CLIENT)),
    ]


def format_forms(results: WorkloadResults) -> str:
    """Return the forms of our visits in the first attempt of each of ours."""
    parts = []
    for name, attempts in results.attempts.items():
        attempt = next(
            (
                a.result
                for a in attempts.values()
                if a.result is not None and "forms" in a.result.more
            ),
            None,
        )
        if attempt is not None:
            parts.append(
                f"{name}: "
                + ", ".join(f"{form} {count}" for form, count in attempt.more["forms"].items())
            )
    return "; ".join(parts) or "none"


def format_settings(results: WorkloadResults) -> str:
    """Return the tuned settings of the peers."""
    parts = []
    for framework, tuned_settings in results.settings.items():
        text = ", ".join(f"{name}={value}" for name, value in tuned_settings.items()) or "defaults"
        parts.append(f"{framework}: {text}")
    return "; ".join(parts)
