"""Report the results: scores, gaps to each rival, mean ranks, and the time of ours."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bench import tables
from bench.quality.comparison import (
    ERRORS,
    Gap,
    Scores,
    compute_error,
    compute_mean_ranks,
    measure_gap,
)
from bench.quality.contenders import BOOSTING, CONTENDERS, FLAML, MEDIUM, MLP, OURS
from bench.quality.results import Result, group_by_contender
from bench.quality.task import CLASSIFICATION, GROUP, TIME
from bench.real_tables import TABLES
from bench.rivals import RIVALS

RANKED = (OURS, MEDIUM, FLAML, BOOSTING, MLP)
"""The contenders whose mean ranks are compared."""
MISSING = "-"
NO_MODEL = "*"
SPLITS = {TIME: "later rows", GROUP: "other groups"}
NOISE = (
    f"Noise is a mean difference of at most {ERRORS} standard errors over the seeds of both, each "
    "of which has the same rows for both. A single seed reveals no noise."
)


class TableResults(NamedTuple):
    """The results of all contenders on a table."""

    name: str
    results: Sequence[Result]

    @property
    def scores(self) -> Scores:
        """The scores by contender and seed."""
        return {
            contender: {seed: result.score for seed, result in by_seed.items()}
            for contender, by_seed in group_by_contender(self.results).items()
        }

    @property
    def is_mixed(self) -> bool:
        """Return whether the table has columns of its own for numbers and categories."""
        return TABLES[self.name].rivals is RIVALS


def report(results: Iterable[Result]) -> str:
    """Return the tables of all budgets, the shortest first."""
    everything = [*results]
    conditions = sorted({(result.seconds, result.busy) for result in everything})
    parts = [
        _report_condition(
            [result for result in everything if (result.seconds, result.busy) == condition]
        )
        for condition in conditions
    ]
    return "\n\n".join([*parts, NOISE]) if parts else "Nothing has been measured yet."


def _report_condition(results: Sequence[Result]) -> str:
    first = results[0]
    names = [name for name in TABLES if any(result.table == name for result in results)]
    groups = [
        TableResults(name, [result for result in results if result.table == name]) for name in names
    ]
    mixed = [group for group in groups if group.is_mixed]
    special = [group for group in groups if not group.is_mixed]
    parts = [_summarize(results)]
    if mixed:
        contenders = [
            name for name in CONTENDERS if any(result.contender == name for result in results)
        ]
        rivals = [name for name in contenders if name != OURS]
        parts.append(_report_scores(mixed, contenders))
        if any(result.reason for group in mixed for result in group.results):
            parts.append(
                f"{NO_MODEL}: without a model on some seeds; the best constant has been scored."
            )
        if OURS in contenders and rivals:
            parts.append(_report_rivals(mixed, rivals))
        parts += _report_ranks(mixed)
    if special:
        parts.append(_report_pipelines(special))
    if any(result.contender == OURS for result in results):
        parts.append(_report_times([group for group in groups if OURS in group.scores]))
    title = f"**{first.seconds:g} s for each**"
    if first.busy:
        title += f" beside {first.busy} busy processes"
    return "\n\n".join([title + ": " + parts[0], *parts[1:]])


def _summarize(results: Sequence[Result]) -> str:
    seeds = len({result.seed for result in results})
    cores = sorted({result.cores for result in results})
    commits = sorted({result.commit for result in results if result.contender == OURS})
    text = f"{', '.join(map(str, cores))} cores; "
    text += f"{seeds} seeds: means and standard errors." if seeds > 1 else "a single seed."
    return text + (f" Ours: {', '.join(commits)}." if commits else "")


def _report_scores(groups: Sequence[TableResults], contenders: Sequence[str]) -> str:
    rows = [
        [*_describe_table(group), *(_format_score(group, name) for name in contenders)]
        for group in groups
    ]
    return tables.format_table(["table", "rows", "test rows", "measure", *contenders], rows)


def _describe_table(group: TableResults) -> list[str]:
    table = TABLES[group.name]
    measure = "accuracy" if table.task == CLASSIFICATION else "RMSE"
    split = SPLITS.get(table.validation.kind, "random")
    return [f"`{group.name}`", f"{group.results[0].rows:,}", split, measure]


def _format_score(group: TableResults, contender: str) -> str:
    results = group_by_contender(group.results).get(contender)
    if not results:
        return MISSING
    digits = 4 if TABLES[group.name].task == CLASSIFICATION else 5
    scores = [result.score for result in results.values()]
    text = f"{abs(statistics.mean(scores)):.{digits}g}"
    error = compute_error(scores)
    if error is not None:
        text += f" ± {error:.2g}"
    if any(result.reason for result in results.values()):
        text += NO_MODEL
    return text


def _report_rivals(groups: Sequence[TableResults], rivals: Sequence[str]) -> str:
    headings = [
        "rival",
        "tables",
        "not below beyond noise",
        "not below",
        "above beyond noise",
        "below beyond noise on",
        "its seconds, median and most",
    ]
    rows = []
    for rival in rivals:
        gaps = {group.name: measure_gap(group.scores, OURS, rival) for group in groups}
        compared = {name: gap for name, gap in gaps.items() if gap}
        rows.append([*_compare_rival(rival, compared), _format_seconds(groups, rival)])
    return "Ours beside each rival:\n\n" + tables.format_table(headings, rows)


def _compare_rival(rival: str, gaps: dict[str, Gap]) -> list[str]:
    repeated = {name: gap for name, gap in gaps.items() if gap.error is not None}
    below = [f"`{name}`" for name, gap in repeated.items() if gap.is_below_beyond_noise]
    above = sum(gap.is_above_beyond_noise for gap in repeated.values())
    strict = sum(not gap.is_below for gap in gaps.values())
    noise = [f"{len(repeated) - len(below)} of {len(repeated)}", f"{above}", ", ".join(below)]
    if not repeated:
        noise = [MISSING, MISSING, MISSING]
    return [rival, f"{len(gaps)}", noise[0], f"{strict} of {len(gaps)}", *noise[1:]]


def _format_seconds(groups: Sequence[TableResults], rival: str) -> str:
    seconds = [
        result.train_seconds
        for group in groups
        for result in group.results
        if result.contender == rival and result.train_seconds is not None
    ]
    return f"{statistics.median(seconds):.1f}, {max(seconds):.1f}" if seconds else MISSING


def _report_ranks(groups: Sequence[TableResults]) -> list[str]:
    """Return a line with the mean ranks, if a table has results of all that are ranked."""
    ranks, count = compute_mean_ranks([group.scores for group in groups], RANKED)
    if not count:
        return []
    order = sorted(ranks, key=lambda name: ranks[name])
    text = ", ".join(f"{name} {ranks[name]:.2f}" for name in order)
    return [f"Mean ranks over {count} tables: {text}."]


def _report_pipelines(groups: Sequence[TableResults]) -> str:
    rows = []
    for group in groups:
        for rival in TABLES[group.name].rivals:
            gap = measure_gap(group.scores, OURS, rival)
            rows.append(
                [
                    *_describe_table(group),
                    _format_score(group, OURS),
                    rival,
                    _format_score(group, rival),
                    _judge(gap),
                ]
            )
    headings = ["table", "rows", "test rows", "measure", OURS, "pipeline", "its", "not below"]
    return tables.format_table(headings, rows)


def _judge(gap: Gap | None) -> str:
    if gap is None:
        return MISSING
    if not gap.is_below:
        return "yes"
    is_noise = gap.error is not None and not gap.is_below_beyond_noise
    return "within noise" if is_noise else "no"


def _report_times(groups: Sequence[TableResults]) -> str:
    headings = [
        "table",
        "training rows",
        "seconds of the call",
        "most beyond the budget",
        "share in which trainers train",
        "seconds of the prediction",
    ]
    rows = []
    for group in groups:
        results = [result for result in group.results if result.contender == OURS]
        rows.append(
            [
                f"`{group.name}`",
                f"{max(result.train_rows for result in results):,}",
                _format_median([result.train_seconds for result in results], ".1f"),
                _format_overrun(results),
                _format_median([result.more.get("training_share") for result in results], ".2f"),
                _format_median([result.predict_seconds for result in results], ".2f"),
            ]
        )
    return "The time of ours (medians):\n\n" + tables.format_table(headings, rows)


def _format_median(values: Sequence[float | None], form: str) -> str:
    present = [value for value in values if value is not None]
    return f"{statistics.median(present):{form}}" if present else MISSING


def _format_overrun(results: Sequence[Result]) -> str:
    overruns = [result.overrun for result in results if result.overrun is not None]
    return f"{100 * max(0.0, *overruns):.1f} %" if overruns else MISSING
