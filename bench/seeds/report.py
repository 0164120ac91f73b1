"""The table as text: what each way took, how it learned, and the ratios that are to be reached."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from bench import tables
from bench.ratios import Span, ratios
from bench.seeds import curves
from bench.seeds.contest import AVERAGE, MOP, PLAIN, SERVER, SYNCHRONOUS, WAYS, Contest, Tried, Way
from bench.seeds.curves import AT_REST
from bench.seeds.workload import WORKLOAD
from bench.tables import MB

Seen = tuple[Span | None, str]
"""What was seen, or why nothing was."""


def report(done: Contest, limit: float) -> str:
    """All tables, with what they are of."""
    job, scale = done.job, done.scale
    rows = WORKLOAD.rows_at(scale)
    batches = statistics.fmean(rows / config.batch_size for config in job.configs)
    what = (
        f"{len(job.configs)} configurations, {job.epochs} epochs of {batches:,.0f} batches on "
        f"average, {rows:,} rows to train on, {WORKLOAD.validation_at(scale):,} to validate on, "
        f"{job.segments} parts of the rows, {job.processes} workers; each peer was given "
        f"{limit:.0f} s."
    )
    told = ", ".join(f"{name}={value}" for name, value in done.settings.items()) or "defaults"
    parts = [
        what,
        costs(done),
        "Mean accuracy of all configurations on the validation rows after each epoch, and when",
    ]
    parts[-1] += (
        " all had come so far, in seconds from the beginning (best configuration after the last "
        "epoch):"
    )
    return "\n\n".join([*parts, learning(done), *_noise(done), f"Settings of Keras: {told}."])


def costs(done: Contest) -> str:
    """A row for each way."""
    headings = [
        "",
        "wall s",
        "CPU s",
        "model hopping's wall / its",
        "moved MB for each epoch",
        "rows at rest MB",
    ]
    headings += ["states at rest MB", "published: h for each epoch", "published: rows at rest GB"]
    return tables.table(headings, [_cost(done, way) for way in WAYS])


def _cost(done: Contest, way: Way) -> list[str]:
    published = [f"{number:,g}" for number in way.published] if way.published else ["", ""]
    good = done.good(way)
    if not good:
        return [way.name, tables.plain(done.reason(way)), *[""] * 5, *published]
    one, against = good[min(good)], ratios(done.walls(MOP), done.walls(way))
    return [
        way.name,
        Span.of([each.usage.wall for each in good.values()]).text(),
        Span.of([each.usage.cpu for each in good.values()]).text(),
        against.text() if against else "",
        f"{_moved(done, one) / MB:,.1f}",
        f"{one.told(AT_REST) / MB:,.2f}",
        f"{(one.told('states_at_rest') or 0) / MB:,.2f}",
        *published,
    ]


def _moved(done: Contest, tried: Tried) -> float:
    """Bytes for each epoch."""
    assert tried.result is not None
    return tried.result.moved / done.job.epochs


def learning(done: Contest) -> str:
    """A row for each way, a column for each epoch."""
    rows = []
    for way in WAYS:
        if good := done.good(way):
            one = good[min(good)]
            points = zip(curves.epochs(one.curves), curves.ends(one.curves), strict=True)
            best = curves.epochs(one.curves, max)[-1]
            rows.append(
                [way.name, *(f"{mean:.4f}, {end - one.began:.1f} s" for mean, end in points)]
            )
            rows[-1][-1] += f" ({best:.4f})"
    return tables.table(["", *(f"epoch {number + 1}" for number in range(done.job.epochs))], rows)


def _noise(done: Contest) -> list[str]:
    """How accurate ours and the fastest tasks are by each seed."""
    ours, its = (_accuracies(done, way) for way in (MOP, done.tasks))
    if len(ours) < 2 or ours.keys() != its.keys():
        return []
    told = (
        f"{name} {statistics.fmean(found.values()):.4f} ± {statistics.stdev(found.values()):.4f}"
        for name, found in ((MOP.name, ours), (done.tasks.name, its))
    )
    return [f"Mean accuracy after the last epoch, of {len(ours)} seeds: {', '.join(told)}."]


def _accuracies(done: Contest, way: Way) -> dict[int, float]:
    """The mean accuracy after the last epoch, by turn."""
    return {turn: curves.epochs(tried.curves)[-1] for turn, tried in done.good(way).items()}


def _walls(way: Way) -> Callable[[Contest], Span | None]:
    return lambda done: ratios(done.walls(done.fastest), done.walls(way))


def _catching_up(way: Way) -> Callable[[Contest], Span | None]:
    """Seconds of model hopping until it is as accurate as another way is at last, against those of
    that one.
    """

    def seen(done: Contest) -> Span | None:
        found = []
        for turn, its in done.good(way).items():
            ours = done.good(MOP).get(turn)
            when = curves.reached(ours.curves, curves.epochs(its.curves)[-1]) if ours else None
            if ours is not None and when is not None:
                found.append((when - ours.began) / (curves.ends(its.curves)[-1] - its.began))
        return Span.of(found) if found else None

    return seen


def _rows_at_rest(done: Contest) -> Span | None:
    found = (
        {turn: each.told(AT_REST) for turn, each in done.good(way).items()}
        for way in (MOP, done.tasks)
    )
    return ratios(*found)


def _moved_against(done: Contest) -> Span | None:
    return ratios(
        *(
            {t: _moved(done, each) for t, each in done.good(way).items()}
            for way in (MOP, SYNCHRONOUS)
        )
    )


def _behind(done: Contest) -> Span | None:
    """By how many standard errors of the differences the tasks are more accurate; nobody can say by
    one seed.
    """
    ours, its = (_accuracies(done, way) for way in (MOP, done.tasks))
    differences = [its[turn] - ours[turn] for turn in ours if turn in its]
    return Span.of([standard_errors(differences)]) if len(differences) > 1 else None


def standard_errors(differences: Sequence[float]) -> float:
    """How many standard errors of their mean some differences lie above 0 on average.

    >>> round(standard_errors([1.0, 2.0, 3.0]), 2), standard_errors([0.0, 0.0])
    (3.46, 0.0)
    """
    mean, error = (
        statistics.fmean(differences),
        statistics.stdev(differences) / len(differences) ** 0.5,
    )
    return mean / error if error else mean and math.copysign(math.inf, mean)


SERVER_WALL = "model hopping, wall against a parameter server"
SYNCHRONOUS_WALL = "model hopping, wall against synchronous data parallelism"
TASKS_WALL = "model hopping, wall against tasks over full copies"
AVERAGE_TIME = "model hopping, time until it is as accurate as averaging at last, against averaging"
PLAIN_TIME = "the same against averaging by Keras"
ROWS = "model hopping, bytes of rows at rest against tasks over full copies, two workers"
MOVED = "model hopping, bytes moved for each epoch against synchronous data parallelism"
NOISE = "model hopping, accuracy behind tasks over full copies, in standard errors of the seeds"
_SEEN: Mapping[str, Callable[[Contest], Span | None]] = {
    SERVER_WALL: _walls(SERVER),
    SYNCHRONOUS_WALL: _walls(SYNCHRONOUS),
    TASKS_WALL: lambda done: _walls(done.tasks)(done),
    AVERAGE_TIME: _catching_up(AVERAGE),
    PLAIN_TIME: _catching_up(PLAIN),
    ROWS: _rows_at_rest,
    MOVED: _moved_against,
    NOISE: _behind,
}
_OF = {
    SERVER_WALL: SERVER,
    SYNCHRONOUS_WALL: SYNCHRONOUS,
    MOVED: SYNCHRONOUS,
    AVERAGE_TIME: AVERAGE,
    PLAIN_TIME: PLAIN,
}


def _why(done: Contest, way: Way) -> str:
    """Why there is no result of a way; where it was stopped, what that says of its time."""
    ours, stopped = done.walls(done.fastest).get(0), done.stopped(way)
    if ours is None or stopped is None:
        return done.reason(way)
    return f"{done.reason(way)}, so its wall is at least {stopped / ours:.1f} times ours"


def seen(done: Contest) -> dict[str, Seen]:
    """What is to be compared with targets, by name; or why it is not there."""
    found = {}
    for what, measure in _SEEN.items():
        span, way = measure(done), _OF.get(what, done.tasks)
        why = (
            "too few seeds, or never as accurate"
            if done.good(way) and done.good(MOP)
            else _why(done, way)
        )
        found[what] = (span, "" if span else why)
    return found
