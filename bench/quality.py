"""Compare models of `cerebro.train('table', 'target')` with scikit-learn on real tables.

All contenders get the same training rows, test rows and time. They run one after another, so that
each has the whole machine. After that time, scikit-learn fits its best pipeline once more to all
rows. AutoGluon takes part if it is installed.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas
import psycopg2
from psycopg2.extensions import connection as Connection

from bench import automl, real_tables, tables
from bench.bench_server import BenchServer, Echo
from bench.real_tables import TABLES, RealTable
from bench.rivals import CLASSIFICATION, RIVALS, convert_dates, score, tune

TEST_SHARE = 0.25
OURS = "ours"
ROW = "bench_row"
ERRORS = 2
"""A mean difference of more than this many standard errors is not noise."""
Scores = Mapping[str, Sequence[float]]
"""Scores by contender, one for each seed; more is better."""
Frames = tuple[pandas.DataFrame, pandas.DataFrame]
"""Training rows and test rows."""


@dataclass(frozen=True)
class QualitySettings:
    """The tables, the number of seeds and the seconds of each contender."""

    names: Sequence[str]
    seeds: int
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """The scores of all contenders on a table."""

    name: str
    rows: int
    scores: Scores

    @property
    def rivals(self) -> tuple[str, ...]:
        """The other contenders."""
        return tuple(name for name in self.scores if name != OURS)

    def measure_gap(self, rival: str) -> float:
        """Return the mean score of a rival minus ours."""
        return statistics.mean(self.scores[rival]) - statistics.mean(self.scores[OURS])

    def is_worse(self, rival: str) -> bool:
        """Return whether ours is behind by more than noise; False with a single seed."""
        pairs = zip(self.scores[rival], self.scores[OURS], strict=True)
        differences = [rival_score - ours for rival_score, ours in pairs]
        if len(differences) == 1:
            return False
        error = statistics.stdev(differences) / len(differences) ** 0.5
        return bool(statistics.mean(differences) > ERRORS * error)


def measure_quality(server: BenchServer, settings: QualitySettings, echo: Echo) -> list[Outcome]:
    """Measure all tables with all seeds."""
    with server.session() as session:
        return [_measure_table(session, name, settings, echo) for name in settings.names]


def report(outcomes: Sequence[Outcome], settings: QualitySettings) -> str:
    """Return a table of all results, and another one of images, series and texts."""
    summary = f"{settings.seconds:g} s for each and {settings.seeds} seed"
    if settings.seeds > 1:
        summary += "s: means and standard deviations."
    else:
        summary += ": means."
    mixed = [outcome for outcome in outcomes if RIVALS.keys() <= set(outcome.rivals)]
    special = [outcome for outcome in outcomes if outcome not in mixed]
    parts = [summary]
    if mixed:
        parts += _report_mixed(mixed)
    if special:
        parts += _report_special(special)
    return "\n\n".join(parts)


def _report_mixed(outcomes: Sequence[Outcome]) -> list[str]:
    rivals = outcomes[0].rivals
    headings = [
        "table",
        "rows",
        "measure",
        *(OURS, *rivals),
        *(f"not below {rival}" for rival in rivals),
    ]
    rows = [
        [*_describe_table(outcome), *_format_scores(outcome), *_compare_rivals(outcome)]
        for outcome in outcomes
    ]
    return [
        tables.format_table(headings, rows),
        *(_count_wins(outcomes, rival) for rival in rivals),
    ]


def _report_special(outcomes: Sequence[Outcome]) -> list[str]:
    rows = []
    for outcome in outcomes:
        (rival,) = outcome.rivals
        our_score, rival_score = _format_scores(outcome)
        scores = [our_score, rival, rival_score]
        rows.append([*_describe_table(outcome), *scores, *_compare_rivals(outcome)])
    return [
        tables.format_table(
            ["table", "rows", "measure", OURS, "pipeline", "its", "not below"], rows
        )
    ]


def _describe_table(outcome: Outcome) -> list[str]:
    return [f"`{outcome.name}`", f"{outcome.rows:,}", _name_measure(outcome)]


def _format_scores(outcome: Outcome) -> list[str]:
    digits = 4 if TABLES[outcome.name].task == CLASSIFICATION else 5
    return [_format_mean(outcome.scores[name], digits) for name in (OURS, *outcome.rivals)]


def _compare_rivals(outcome: Outcome) -> list[str]:
    """Return for each rival if ours is not below it; a single seed does not reveal the noise."""
    results = []
    for rival in outcome.rivals:
        if outcome.measure_gap(rival) <= 0 and not outcome.is_worse(rival):
            results.append("yes")
        elif outcome.is_worse(rival) or len(outcome.scores[OURS]) == 1:
            results.append("no")
        else:
            results.append("within noise")
    return results


def _format_mean(values: Sequence[float], digits: int) -> str:
    mean = f"{abs(statistics.mean(values)):.{digits}g}"
    return f"{mean} ± {statistics.stdev(values):.2g}" if len(values) > 1 else mean


def _name_measure(outcome: Outcome) -> str:
    return "accuracy" if TABLES[outcome.name].task == CLASSIFICATION else "RMSE"


def _count_wins(outcomes: Sequence[Outcome], rival: str) -> str:
    level = sum(outcome.measure_gap(rival) <= 0 for outcome in outcomes)
    worse = [outcome.name for outcome in outcomes if outcome.is_worse(rival)]
    note = f"; below by more than noise on {', '.join(worse)}" if worse else ""
    return f"Not below {rival} on {level} of {len(outcomes)} tables{note}."


def _measure_table(
    session: Connection, name: str, settings: QualitySettings, echo: Echo
) -> Outcome:
    table = TABLES[name]
    scores_by_name: dict[str, list[float]] = {}
    frame = table.frame()
    for seed in range(1, settings.seeds + 1):
        test = np.random.RandomState(seed).rand(len(frame)) < TEST_SHARE
        frames = (frame[~test], frame[test])
        scores = _measure_seed(session, table, frames, (settings.seconds, seed), echo)
        for contender, value in scores.items():
            scores_by_name.setdefault(contender, []).append(value)
            echo(f"quality: {name}, seed {seed}: {contender} {abs(value):.5g}")
    return Outcome(name, len(frame), scores_by_name)


def _measure_seed(
    session: Connection,
    table: RealTable,
    frames: Frames,
    settings: tuple[float, int],
    echo: Echo,
) -> dict[str, float]:
    train, test = frames
    seconds, seed = settings
    texts = table.task == CLASSIFICATION
    targets, truth = (
        frame[table.target].astype(str if texts else float).to_numpy() for frame in frames
    )
    try:
        predicted = _predict(session, table, frames, seconds, seed)
    except psycopg2.Error as error:
        echo(f"quality: no model, so the best constant is scored: {error}")
        predicted = np.full(len(truth), statistics.mode(targets) if texts else targets.mean())
    scores_by_name = {OURS: score(table.task, truth, predicted)}
    inputs = [convert_dates(frame.drop(columns=[table.target])) for frame in frames]
    for rival, make in table.rivals.items():
        pipeline = tune(make, inputs[0], targets, table.task, seconds, seed)
        scores_by_name[rival] = score(table.task, truth, pipeline.predict(inputs[1]))
    if automl.is_installed() and table.rivals is RIVALS:
        predicted = automl.predict(
            train.assign(**{table.target: targets}), table.target, table.task, seconds, test
        )
        scores_by_name[automl.AUTOGLUON] = score(table.task, truth, predicted)
    return scores_by_name


def _predict(
    session: Connection, table: RealTable, frames: Frames, seconds: float, seed: int
) -> np.ndarray:
    """Return the predictions for the test rows of a model that is trained with default arguments.

    Only the time and the seed are set.
    """
    train, test = frames
    real_tables.write(session, "learned", train)
    real_tables.write(session, "held", test.assign(**{ROW: range(len(test))}))
    with session.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM cerebro.train('learned', %s, 'quality', budget => "
            "make_interval(secs => %s), task => %s, seed => %s, types => %s)",
            (
                table.target,
                seconds,
                table.task,
                seed,
                json.dumps(table.types) if table.types else None,
            ),
        )
        cursor.execute(
            f"SELECT prediction FROM cerebro.predict('quality', 'held', '{ROW}') ORDER BY "
            "id::integer"
        )
        texts = [str(row[0]) for row in cursor.fetchall()]
        cursor.execute("SELECT cerebro.drop_model('quality')")
    return np.array(texts if table.task == CLASSIFICATION else [float(text) for text in texts])
