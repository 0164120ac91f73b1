"""The measurements as tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bench.breakdown import PHASES
from bench.contenders import Attempt
from bench.measure import BACKENDS, CLIENT, SERVER, TRAINERS
from bench.ratios import Span, best, ratios
from bench.turns import PRODUCT, Measured, middle

MB = 1 << 20
APART = ("train", "compile", "hop", "evaluate")
"""Phases whose CPU time is told apart; the rest is start, rows, and end."""


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column is text and whose others are numbers.

    >>> print(table(["who", "s"], [["we", "1.0"]]))
    | who | s |
    |---|---:|
    | we | 1.0 |
    """
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)]]
    first, rule = (" | ".join(line) if n == 0 else "|".join(line) for n, line in enumerate(lines))
    return "\n".join([f"| {first} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)])


def contenders(done: Measured) -> str:
    """One row for each contender: what it took, and the time of the best of ours against its."""
    base = done.walls(best_of_ours(done) or "")
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
    rows = [_row(name, attempts, base) for name, attempts in done.attempts.items()]
    packed = list(done.packing.values())
    wall, cpu, memory = (
        Span.of([getattr(usage, field) for usage in packed]) for field in ("wall", "cpu", "memory")
    )
    rows.append(
        ["packing, once for a table", wall.text(), cpu.text(), _mb(memory.middle), "", "", "", ""]
    )
    if done.bare:
        seconds = Span.of(list(done.bare.values())).text()
        rows.append(["bare loops over arrays in memory", seconds, "", "", "", "", "", ""])
    return table(headings, rows)


def _row(name: str, attempts: Mapping[int, Attempt], base: Mapping[int, float]) -> list[str]:
    good = {number: tried for number, tried in attempts.items() if tried.result is not None}
    if not good:
        return [name, f"failed: {plain(next(iter(attempts.values())).reason)}", *[""] * 6]
    wall = Span.of([tried.usage.wall for tried in good.values()]).text()
    cpu = Span.of([tried.usage.cpu for tried in good.values()]).text()
    memory = max(tried.usage.memory for tried in good.values())
    stored = max(tried.stored for tried in good.values())
    last = next(iter(good.values())).result
    assert last is not None
    losses = [loss for loss, _ in last.scores.values()]
    against = ratios({number: tried.usage.wall for number, tried in good.items()}, base)
    if len(good) < len(attempts):
        name += f" ({len(attempts) - len(good)} of {len(attempts)} attempts failed)"
    return [
        name,
        wall,
        cpu,
        _mb(memory),
        _mb(stored),
        _mb(last.moved),
        _losses(losses),
        against.text() if against else "",
    ]


def _losses(losses: Sequence[float]) -> str:
    if not losses:
        return ""
    span = Span.of(losses)
    return f"{span.least:.4f} best, {span.middle:.4f} median"


def _mb(count: float) -> str:
    return f"{count / MB:,.1f}"


def plain(text: str) -> str:
    """Text that a cell can hold."""
    return text.strip().replace("|", "\\|").replace("\n", " ")[:160]


def best_of_ours(done: Measured) -> str | None:
    """Our contender with the smallest median."""
    return best({name: done.walls(name) for name in done.attempts if name.startswith(PRODUCT)})


def best_peer(done: Measured, named: str = "") -> str | None:
    """The peer with the smallest median, of those with this in their names."""
    peers = [name for name in done.attempts if not name.startswith(PRODUCT) and named in name]
    return best({name: done.walls(name) for name in peers})


def breakdown(done: Measured) -> str:
    """Where the time of each of ours went, in seconds; and where the CPU time."""
    walls, cpus = [], []
    for name, attempts in done.attempts.items():
        if tried := middle(attempts):
            walls.append([name, *(f"{(tried.phases or {})[phase]:.2f}" for phase in PHASES)])
            cpus.append([name, *(f"{seconds:.2f}" for seconds in _cpu(tried))])
    if not walls:
        return "No attempt of ours succeeded."
    headings = [
        "CPU seconds",
        *(f"trainers: {part}" for part in (*APART, "all")),
        BACKENDS,
        SERVER,
        CLIENT,
    ]
    return "\n\n".join([table(["seconds", *PHASES], walls), table(headings, cpus)])


def _cpu(tried: Attempt) -> list[float]:
    parts, roles = tried.cpu or {}, tried.usage.cpu_of
    return [
        *(parts.get(part, 0.0) for part in APART),
        *(roles.get(r, 0.0) for r in (TRAINERS, BACKENDS, SERVER, CLIENT)),
    ]


def forms(done: Measured) -> str:
    """In which forms our visits were trained, in the first attempt of each of ours."""
    parts = []
    for name, attempts in done.attempts.items():
        tried = next(
            (
                a.result
                for a in attempts.values()
                if a.result is not None and "forms" in a.result.more
            ),
            None,
        )
        if tried is not None:
            parts.append(
                f"{name}: "
                + ", ".join(f"{form} {count}" for form, count in tried.more["forms"].items())
            )
    return "; ".join(parts) or "none"


def settings(done: Measured) -> str:
    """What the peers were tuned to."""
    parts = []
    for framework, found in done.settings.items():
        text = ", ".join(f"{name}={value}" for name, value in found.items()) or "defaults"
        parts.append(f"{framework}: {text}")
    return "; ".join(parts)
