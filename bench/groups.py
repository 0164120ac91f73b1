"""A model selection for each of 50 groups in one run, beside one run for each group, one after the
other; and one model for all rows beside one for each group, over real tables.

Both runs try as many configurations of the same template for as many epochs. Of the runs by group
some are made, before the one run and after it, and their median time counts for each of the others.
The one run trains a model of all rows, too, which goes through as many rows as all groups together:
so it stands beside the runs of groups alone, and beside these and one run over all rows.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas
from psycopg2.extensions import connection as Connection

from bench.bench_server import BenchServer
from bench.examples import numeric
from bench.real_tables import TABLES as TABLES_OF_PACKAGES
from bench.real_tables import write

GROUPS, ROWS, DATA_SEED, SOME, TURNS = 50, 200, 21, 5, 3
TRAIN = """
    SELECT count(*) FROM cerebro.train(
        %s, 'y', %s, models => '{realmlp_simple}', columns => '* except g', configs => 2,
            epochs => 8, ensemble => 1,
        seed => 1, budget => '2 hours'"""
SPLIT_SEED, HELD = 5, 0.25
TABLES: Mapping[str, str] = {"chile": "region", "slid": "language", "computers": "ram"}
"""Real tables, and what their rows are grouped by."""
LEARN = """
    SELECT count(*) FROM cerebro.train(%s, %s, %s, split => %s, models => '{realmlp_simple}',
        configs => 3,
                                       epochs => 40, ensemble => 1, seed => 1, budget => '1 hour'"""
SIDE_BY_SIDE = """
    SELECT "group", metric, one.value, own.value FROM cerebro.evaluate(%s, %s, %s) one
    JOIN cerebro.evaluate(%s, %s, %s) own USING ("group", metric)
    WHERE one.class IS NULL AND own.class IS NULL AND "group" IS NOT NULL"""
COMPARED = {"classification": "accuracy", "regression": "rmse"}
Echo = Callable[[str], None]


def measure_groups(server: BenchServer, echo: Echo) -> str:
    """What both comparisons have come to."""
    return f"{timed(server, echo)}\n\n{compared(server, echo)}"


def compared(server: BenchServer, echo: Echo) -> str:
    """How good one model and those of groups are, for rows of each group that neither was trained
    on.
    """
    lines = [
        "| table | group | rows to train on | metric | one model | a model for each group |",
        "|---|---|---:|---|---:|---:|",
    ]
    with server.session() as session, session.cursor() as cursor:
        for name, column in TABLES.items():
            table = TABLES_OF_PACKAGES[name]
            frame = table.frame()
            held = np.random.default_rng(SPLIT_SEED).random(len(frame)) < HELD
            write(session, name, frame[~held])
            write(session, f"{name}_held", frame[held])
            for model, more in ((f"{name}_one", ""), (f"{name}_own", f", group_by => '{column}'")):
                cursor.execute(f"{LEARN}{more})", (name, table.target, model, f"table {name}_held"))
                echo(f"  {model} is trained")
            cursor.execute(
                SIDE_BY_SIDE,
                (f"{name}_one", f"{name}_held", [column], f"{name}_own", f"{name}_held", [column]),
            )
            found = {
                str(group[column]): (metric, *values)
                for group, metric, *values in cursor
                if metric == COMPARED[table.task]
            }
            cursor.execute(
                "SELECT group_value, training_rows FROM cerebro.model_group WHERE model = %s",
                (f"{name}_own",),
            )
            for group, rows in sorted(cursor, key=lambda row: -row[1]):
                metric, one, own = found[group]
                lines.append(
                    f"| `{name}` | {column} {group} | {rows} | {metric} | {one:.4g} | {own:.4g} |"
                )
    return "\n".join(lines)


class Turn(NamedTuple):
    """Seconds of the one run, of runs of one group, and of a run over all rows."""

    whole: float
    each: Sequence[float]
    rest: float

    @property
    def others(self) -> float:
        """What a run for each group takes; the first one compiles."""
        return GROUPS * statistics.median(self.each)

    @property
    def ratios(self) -> tuple[float, float]:
        """Of the one run to those of groups, and to these and one over all rows."""
        return self.whole / self.others, self.whole / (self.others + self.rest)


def timed(server: BenchServer, echo: Echo) -> str:
    """Seconds of the one run, and of the runs by group, in turns."""
    x, y = numeric(np.random.default_rng(DATA_SEED), GROUPS * ROWS)
    frame = pandas.DataFrame(x, columns=[f"x{number}" for number in range(x.shape[1])])
    frame = frame.assign(
        y=[f"class {label}" for label in y], g=[f"group {n % GROUPS}" for n in range(len(x))]
    )
    with server.session() as session:
        write(session, "grouped", frame)
        for number in range(SOME + 1):
            write(session, f"part_{number}", frame[frame.g == f"group {number}"])
        turns = [_turn(session, echo) for _ in range(TURNS)]
    alone, beside = (", ".join(f"{each.ratios[number]:.2f}" for each in turns) for number in (0, 1))
    turn = sorted(turns, key=lambda each: each.ratios)[TURNS // 2]
    return (
        f"{GROUPS} groups of {ROWS} rows, 2 configurations of 8 epochs for each: one run took "
        f"{turn.whole:.1f} s, a run of one group {statistics.median(turn.each):.1f} s (median of "
        f"{len(turn.each)}, {min(turn.each):.1f} to {max(turn.each):.1f} s), and so {GROUPS} of "
        f"them about {turn.others:.0f} s: {turn.ratios[0]:.2f} of their time (in {TURNS} turns "
        f"{alone}). With a run over all rows, whose model the one run has trained as well "
        f"({turn.rest:.1f} s): {turn.ratios[1]:.2f} ({beside})."
    )


def _turn(session: Connection, echo: Echo) -> Turn:
    _seconds(
        session, f"{TRAIN})", f"part_{SOME}"
    )  # so that a nursery is there, and the machine is warm
    each = [_seconds(session, f"{TRAIN})", f"part_{number}") for number in range(SOME)]
    whole = _seconds(session, f"{TRAIN}, group_by => 'g')", "grouped")
    echo(f"  one run over {GROUPS} groups: {whole:.1f} s")
    each += [_seconds(session, f"{TRAIN})", f"part_{number}") for number in range(SOME)]
    echo(f"  a run of one group: {', '.join(f'{seconds:.1f}' for seconds in each)} s")
    rest = _seconds(session, f"{TRAIN})", "grouped")
    echo(f"  a run over all rows: {rest:.1f} s")
    return Turn(whole, each, rest)


def _seconds(session: Connection, call: str, table: str) -> float:
    """Of a call that trains a model, which is dropped: with another version there is more to do."""
    model = f"model_{table}"
    with session.cursor() as cursor:
        began = time.perf_counter()
        cursor.execute(call, (table, model))
        seconds = time.perf_counter() - began
        cursor.execute("SELECT cerebro.drop_model(%s)", (model,))
    return seconds
