"""How good the models of a bare call are: `cerebro.train('table', 'target')` beside scikit-learn,
on real tables.

All have the same rows to learn from, the same rows to be scored on, and the same time; one after
another, so that each has the whole machine. scikit-learn fits its best pipeline once more to all
rows, after that time. Where AutoGluon is installed, it is beside them.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas
import psycopg2
from psycopg2.extensions import connection as Connection

from bench import automl, real_tables, tables
from bench.place import Place
from bench.real_tables import TABLES, RealTable
from bench.rivals import CLASSIFICATION, RIVALS, numeric, score, tuned

TEST_SHARE = 0.25
OURS = "ours"
ROW = "bench_row"
ERRORS = 2
"""Standard errors of a mean difference, beyond which it is no noise."""
Say = Callable[[str], None]
Scores = Mapping[str, Sequence[float]]
"""Of ours and each rival, seed by seed; more is better."""
Frames = tuple[pandas.DataFrame, pandas.DataFrame]
"""Rows to learn from, and rows to be scored on."""


@dataclass(frozen=True)
class Asked:
    """How much is measured."""

    names: Sequence[str]
    seeds: int
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """What all reached on a table."""

    name: str
    rows: int
    scores: Scores

    @property
    def rivals(self) -> tuple[str, ...]:
        """Whom ours is compared with."""
        return tuple(who for who in self.scores if who != OURS)

    def behind(self, rival: str) -> float:
        """How far ours is behind on average; below 0 where it is not."""
        return statistics.mean(self.scores[rival]) - statistics.mean(self.scores[OURS])

    def worse(self, rival: str) -> bool:
        """Whether it is behind by more than noise; by one seed nobody can say."""
        pairs = zip(self.scores[rival], self.scores[OURS], strict=True)
        differences = [other - ours for other, ours in pairs]
        if len(differences) == 1:
            return False
        error = statistics.stdev(differences) / len(differences) ** 0.5
        return bool(statistics.mean(differences) > ERRORS * error)


def measured(at: Place, asked: Asked, say: Say) -> list[Outcome]:
    """All tables, with all seeds."""
    with at.session() as session:
        return [_outcome(session, name, asked, say) for name in asked.names]


def report(outcomes: Sequence[Outcome], asked: Asked) -> str:
    """A row for each table, and how many are won; then one for each table of images, series or
    texts alone.
    """
    what = (
        f"{asked.seconds:g} s for each and {asked.seeds} seed{'s' * (asked.seeds > 1)}: means"
        f"{' and standard deviations' * (asked.seeds > 1)}."
    )
    mixed = [each for each in outcomes if RIVALS.keys() <= set(each.rivals)]
    others = [each for each in outcomes if each not in mixed]
    return "\n\n".join(
        [what, *(_of_mixed(mixed) if mixed else []), *(_of_others(others) if others else [])]
    )


def _of_mixed(outcomes: Sequence[Outcome]) -> list[str]:
    rivals = outcomes[0].rivals
    headings = [
        "table",
        "rows",
        "measure",
        *(OURS, *rivals),
        *(f"not below {rival}" for rival in rivals),
    ]
    rows = [[*_named(each), *_shown(each), *_verdicts(each)] for each in outcomes]
    return [tables.table(headings, rows), *(_counted(outcomes, rival) for rival in rivals)]


def _of_others(outcomes: Sequence[Outcome]) -> list[str]:
    rows = []
    for each in outcomes:
        (rival,), (ours, its) = each.rivals, _shown(each)
        rows.append([*_named(each), ours, rival, its, *_verdicts(each)])
    return [tables.table(["table", "rows", "measure", OURS, "pipeline", "its", "not below"], rows)]


def _named(outcome: Outcome) -> list[str]:
    return [f"`{outcome.name}`", f"{outcome.rows:,}", _measure(outcome)]


def _shown(outcome: Outcome) -> list[str]:
    digits = 4 if TABLES[outcome.name].task == CLASSIFICATION else 5
    return [_number(outcome.scores[who], digits) for who in (OURS, *outcome.rivals)]


def _verdicts(outcome: Outcome) -> list[str]:
    """Of each rival, whether it is not below; by one seed nobody can say what noise is."""
    if len(outcome.scores[OURS]) == 1:
        return ["yes" if outcome.behind(rival) <= 0 else "no" for rival in outcome.rivals]
    return [
        "no" if outcome.worse(rival) else "yes" if outcome.behind(rival) <= 0 else "within noise"
        for rival in outcome.rivals
    ]


def _number(values: Sequence[float], digits: int) -> str:
    mean = f"{abs(statistics.mean(values)):.{digits}g}"
    return f"{mean} ± {statistics.stdev(values):.2g}" if len(values) > 1 else mean


def _measure(outcome: Outcome) -> str:
    return "accuracy" if TABLES[outcome.name].task == CLASSIFICATION else "RMSE"


def _counted(outcomes: Sequence[Outcome], rival: str) -> str:
    level = sum(each.behind(rival) <= 0 for each in outcomes)
    worse = [each.name for each in outcomes if each.worse(rival)]
    said = f"; below by more than noise on {', '.join(worse)}" if worse else ""
    return f"Not below {rival} on {level} of {len(outcomes)} tables{said}."


def _outcome(session: Connection, name: str, asked: Asked, say: Say) -> Outcome:
    table, found = TABLES[name], dict[str, list[float]]()
    frame = table.frame()
    for seed in range(1, asked.seeds + 1):
        test = np.random.RandomState(seed).rand(len(frame)) < TEST_SHARE
        scores = _scores(session, table, (frame[~test], frame[test]), (asked.seconds, seed), say)
        for who, value in scores.items():
            found.setdefault(who, []).append(value)
            say(f"quality: {name}, seed {seed}: {who} {abs(value):.5g}")
    return Outcome(name, len(frame), found)


def _scores(
    session: Connection, table: RealTable, frames: Frames, asked: tuple[float, int], say: Say
) -> dict[str, float]:
    (train, test), (seconds, seed) = frames, asked
    texts = table.task == CLASSIFICATION
    learned, truth = (
        each[table.target].astype(str if texts else float).to_numpy() for each in frames
    )
    try:
        predicted = _predictions(session, table, frames, seconds, seed)
    except psycopg2.Error as error:
        say(f"quality: no model, so the best constant is scored: {error}")
        predicted = np.full(len(truth), statistics.mode(learned) if texts else learned.mean())
    found = {OURS: score(table.task, truth, predicted)}
    inputs = [numeric(each.drop(columns=[table.target])) for each in (train, test)]
    for rival, make in table.rivals.items():
        pipeline = tuned(make, inputs[0], learned, table.task, seconds, seed)
        found[rival] = score(table.task, truth, pipeline.predict(inputs[1]))
    if automl.installed() and table.rivals is RIVALS:
        predicted = automl.predictions(
            train.assign(**{table.target: learned}), table.target, table.task, seconds, test
        )
        found[automl.AUTOGLUON] = score(table.task, truth, predicted)
    return found


def _predictions(
    session: Connection, table: RealTable, frames: Frames, seconds: float, seed: int
) -> np.ndarray:
    """What the model of a bare call predicts of the rows that it has not seen; nothing is chosen
    but time and seed.
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
