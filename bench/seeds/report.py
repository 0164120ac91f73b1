"""Report the comparison of methods: their costs, learning curves, and ratios with targets."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from bench import tables
from bench.ratios import Span, compute_ratios
from bench.seeds import curves
from bench.seeds.contest import (
    AVERAGE,
    METHODS,
    MOP,
    PLAIN,
    SERVER,
    SYNCHRONOUS,
    Contest,
    Method,
    WayAttempt,
)
from bench.seeds.curves import AT_REST
from bench.seeds.workload import WORKLOAD
from bench.tables import MB

SpanOrReason = tuple[Span | None, str]
"""The measured values, or the reason why there are none."""


def report(contest: Contest, limit: float) -> str:
    """Return all tables with a summary."""
    job = contest.job
    scale = contest.scale
    rows = WORKLOAD.count_rows(scale)
    batches = statistics.fmean(rows / config.batch_size for config in job.configs)
    summary = (
        f"{len(job.configs)} configurations, {job.epochs} epochs of {batches:,.0f} batches on "
        f"average, {rows:,} rows to train on, "
        f"{WORKLOAD.count_validation_rows(scale):,} to validate on, "
        f"{job.segments} parts of the rows, {job.processes} workers; each peer was given "
        f"{limit:.0f} s."
    )
    text = ", ".join(f"{name}={value}" for name, value in contest.settings.items()) or "defaults"
    parts = [
        summary,
        report_costs(contest),
        "Mean accuracy of all configurations on the validation rows after each epoch, and when "
        "all had come so far, in seconds from the beginning (best configuration after the last "
        "epoch):",
    ]
    return "\n\n".join(
        [*parts, report_learning(contest), *_report_noise(contest), f"Settings of Keras: {text}."]
    )


def report_costs(contest: Contest) -> str:
    """Return a table with a row for each method."""
    headings = [
        "",
        "wall s",
        "CPU s",
        "model hopping's wall / its",
        "moved MB for each epoch",
        "rows at rest MB",
    ]
    headings += ["states at rest MB", "published: h for each epoch", "published: rows at rest GB"]
    return tables.format_table(headings, [_report_cost(contest, method) for method in METHODS])


def _report_cost(contest: Contest, method: Method) -> list[str]:
    published = [f"{number:,g}" for number in method.published] if method.published else ["", ""]
    good = contest.list_successful(method)
    if not good:
        return [method.name, tables.escape_cell(contest.reason(method)), *[""] * 5, *published]
    one = good[min(good)]
    against = compute_ratios(contest.list_walls(MOP), contest.list_walls(method))
    return [
        method.name,
        Span.from_values([attempt.usage.wall for attempt in good.values()]).text(),
        Span.from_values([attempt.usage.cpu for attempt in good.values()]).text(),
        against.text() if against else "",
        f"{_measure_moved_bytes(contest, one) / MB:,.1f}",
        f"{one.get_extra(AT_REST) / MB:,.2f}",
        f"{(one.get_extra('states_at_rest') or 0) / MB:,.2f}",
        *published,
    ]


def _measure_moved_bytes(contest: Contest, attempt: WayAttempt) -> float:
    """Return the bytes moved in an epoch."""
    assert attempt.result is not None
    return attempt.result.moved_bytes / contest.job.epochs


def report_learning(contest: Contest) -> str:
    """Return a table with a row for each method and a column for each epoch."""
    rows = []
    for method in METHODS:
        if good := contest.list_successful(method):
            one = good[min(good)]
            points = zip(
                curves.average_epochs(one.curves), curves.list_ends(one.curves), strict=True
            )
            best = curves.average_epochs(one.curves, max)[-1]
            rows.append(
                [method.name, *(f"{mean:.4f}, {end - one.began:.1f} s" for mean, end in points)]
            )
            rows[-1][-1] += f" ({best:.4f})"
    return tables.format_table(
        ["", *(f"epoch {number + 1}" for number in range(contest.job.epochs))], rows
    )


def _report_noise(contest: Contest) -> list[str]:
    """Report the accuracies of ours and the fastest tasks over the seeds."""
    our_values, peer_values = (_list_accuracies(contest, method) for method in (MOP, contest.tasks))
    if len(our_values) < 2 or our_values.keys() != peer_values.keys():
        return []
    text = (
        f"{name} {statistics.fmean(spans.values()):.4f} ± {statistics.stdev(spans.values()):.4f}"
        for name, spans in ((MOP.name, our_values), (contest.tasks.name, peer_values))
    )
    return [f"Mean accuracy after the last epoch, of {len(our_values)} seeds: {', '.join(text)}."]


def _list_accuracies(contest: Contest, method: Method) -> dict[int, float]:
    """Return the mean accuracy after the last epoch, by turn."""
    return {
        turn: curves.average_epochs(attempt.curves)[-1]
        for turn, attempt in contest.list_successful(method).items()
    }


def _compare_walls(method: Method) -> Callable[[Contest], Span | None]:
    return lambda contest: compute_ratios(
        contest.list_walls(contest.fastest), contest.list_walls(method)
    )


def _compare_catching_up(method: Method) -> Callable[[Contest], Span | None]:
    """Compare the times until another method's final accuracy, of model hopping and the method."""

    def measure_all(contest: Contest) -> Span | None:
        spans = []
        for turn, peer_values in contest.list_successful(method).items():
            our_values = contest.list_successful(MOP).get(turn)
            when = (
                curves.find_time(our_values.curves, curves.average_epochs(peer_values.curves)[-1])
                if our_values
                else None
            )
            if our_values is not None and when is not None:
                spans.append(
                    (when - our_values.began)
                    / (curves.list_ends(peer_values.curves)[-1] - peer_values.began)
                )
        return Span.from_values(spans) if spans else None

    return measure_all


def _compare_rows_at_rest(contest: Contest) -> Span | None:
    spans = (
        {
            turn: attempt.get_extra(AT_REST)
            for turn, attempt in contest.list_successful(method).items()
        }
        for method in (MOP, contest.tasks)
    )
    return compute_ratios(*spans)


def _compare_moved_bytes(contest: Contest) -> Span | None:
    return compute_ratios(
        *(
            {
                t: _measure_moved_bytes(contest, attempt)
                for t, attempt in contest.list_successful(method).items()
            }
            for method in (MOP, SYNCHRONOUS)
        )
    )


def _measure_noise(contest: Contest) -> Span | None:
    """Return by how many standard errors the tasks are more accurate; None with a single seed."""
    our_values, peer_values = (_list_accuracies(contest, method) for method in (MOP, contest.tasks))
    differences = [
        peer_values[turn] - our_values[turn] for turn in our_values if turn in peer_values
    ]
    return Span.from_values([count_standard_errors(differences)]) if len(differences) > 1 else None


def count_standard_errors(differences: Sequence[float]) -> float:
    """Return the mean of differences in units of its standard error.

    >>> round(count_standard_errors([1.0, 2.0, 3.0]), 2), count_standard_errors([0.0, 0.0])
    (3.46, 0.0)
    """
    mean = statistics.fmean(differences)
    error = statistics.stdev(differences) / len(differences) ** 0.5
    return mean / error if error else mean and math.copysign(math.inf, mean)


SERVER_WALL = "model hopping, wall against a parameter server"
SYNCHRONOUS_WALL = "model hopping, wall against synchronous data parallelism"
TASKS_WALL = "model hopping, wall against tasks over full copies"
AVERAGE_TIME = "model hopping, time until it is as accurate as averaging at last, against averaging"
PLAIN_TIME = "the same against averaging by Keras"
ROWS = "model hopping, bytes of rows at rest against tasks over full copies, two workers"
MOVED = "model hopping, bytes moved for each epoch against synchronous data parallelism"
NOISE = "model hopping, accuracy behind tasks over full copies, in standard errors of the seeds"
_MEASURES: Mapping[str, Callable[[Contest], Span | None]] = {
    SERVER_WALL: _compare_walls(SERVER),
    SYNCHRONOUS_WALL: _compare_walls(SYNCHRONOUS),
    TASKS_WALL: lambda contest: _compare_walls(contest.tasks)(contest),
    AVERAGE_TIME: _compare_catching_up(AVERAGE),
    PLAIN_TIME: _compare_catching_up(PLAIN),
    ROWS: _compare_rows_at_rest,
    MOVED: _compare_moved_bytes,
    NOISE: _measure_noise,
}
_PEER_OF = {
    SERVER_WALL: SERVER,
    SYNCHRONOUS_WALL: SYNCHRONOUS,
    MOVED: SYNCHRONOUS,
    AVERAGE_TIME: AVERAGE,
    PLAIN_TIME: PLAIN,
}


def _explain(contest: Contest, method: Method) -> str:
    """Return why a method has no result; for one that was stopped, with a bound for its time."""
    our_seconds = contest.list_walls(contest.fastest).get(0)
    stopped = contest.stopped(method)
    if our_seconds is None or stopped is None:
        return contest.reason(method)
    return (
        f"{contest.reason(method)}, so its wall is at least {stopped / our_seconds:.1f} times ours"
    )


def measure_all(contest: Contest) -> dict[str, SpanOrReason]:
    """Return the values that are compared with targets, or the reasons, by name."""
    spans = {}
    for name, measure in _MEASURES.items():
        span = measure(contest)
        method = _PEER_OF.get(name, contest.tasks)
        reason = (
            "too few seeds, or never as accurate"
            if contest.list_successful(method) and contest.list_successful(MOP)
            else _explain(contest, method)
        )
        spans[name] = (span, "" if span else reason)
    return spans
