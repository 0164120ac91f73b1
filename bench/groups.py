"""Compare one run that selects models for 50 groups with a run for each group.

All runs try the same number of configurations of the same template for the same epochs. Only some
of the runs of single groups are made, before and after the joint run; their median time stands for
each of the others. The joint run trains a model of all rows as well, which reads as many rows as
all groups together. Its time is therefore compared with the runs of groups, and with these and a
run over all rows. One model for all rows is also compared with models for groups on real tables.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas
from psycopg2.extensions import connection as Connection

from bench.bench_server import BenchServer, Echo
from bench.examples import draw_numeric
from bench.real_tables import TABLES as TABLES_OF_PACKAGES
from bench.real_tables import write

GROUPS = 50
ROWS = 200
DATA_SEED = 21
SOME = 5
TURNS = 3
TRAIN = """
    SELECT count(*) FROM cerebro.train(
        %s, 'y', %s, models => '{realmlp_simple}', columns => '* except g', configs => 2,
            epochs => 8, ensemble => 1,
        seed => 1, budget => '2 hours'"""
SPLIT_SEED = 5
TEST_SHARE = 0.25
TABLES: Mapping[str, str] = {"chile": "region", "slid": "language", "computers": "ram"}
"""Real tables, and the columns that group their rows."""
LEARN = """
    SELECT count(*) FROM cerebro.train(%s, %s, %s, split => %s, models => '{realmlp_simple}',
        configs => 3,
                                       epochs => 40, ensemble => 1, seed => 1, budget => '1 hour'"""
SIDE_BY_SIDE = """
    SELECT group_values, metric, one.value, own.value FROM cerebro.evaluate(%s, %s, %s) one
    JOIN cerebro.evaluate(%s, %s, %s) own USING (group_values, metric)
    WHERE one.class IS NULL AND own.class IS NULL AND group_values IS NOT NULL"""
COMPARED = {"classification": "accuracy", "regression": "rmse"}


def measure_groups(server: BenchServer, echo: Echo) -> str:
    """Return the results of both comparisons."""
    return f"{compare_times(server, echo)}\n\n{compare_metrics(server, echo)}"


def compare_metrics(server: BenchServer, echo: Echo) -> str:
    """Compare the metrics of one model and of group models on the test rows of each group."""
    lines = [
        "| table | group | rows to train on | metric | one model | a model for each group |",
        "|---|---|---:|---|---:|---:|",
    ]
    with server.session() as session, session.cursor() as cursor:
        for name, column in TABLES.items():
            table = TABLES_OF_PACKAGES[name]
            frame = table.frame()
            is_test_row = np.random.default_rng(SPLIT_SEED).random(len(frame)) < TEST_SHARE
            write(session, name, frame[~is_test_row])
            write(session, f"{name}_held", frame[is_test_row])
            for model, more in ((f"{name}_one", ""), (f"{name}_own", f", group_by => '{column}'")):
                cursor.execute(f"{LEARN}{more})", (name, table.target, model, f"table {name}_held"))
                echo(f"  {model} is trained")
            cursor.execute(
                SIDE_BY_SIDE,
                (f"{name}_one", f"{name}_held", column, f"{name}_own", f"{name}_held", column),
            )
            metrics_by_group = {
                str(group[column]): (metric, *values)
                for group, metric, *values in cursor
                if metric == COMPARED[table.task]
            }
            cursor.execute(
                "SELECT group_value, training_rows FROM cerebro.model_group WHERE model = %s",
                (f"{name}_own",),
            )
            for group, rows in sorted(cursor, key=lambda row: -row[1]):
                metric, single_value, group_value = metrics_by_group[group]
                lines.append(
                    f"| `{name}` | {column} {group} | {rows} | {metric} | {single_value:.4g} | "
                    f"{group_value:.4g} |"
                )
    return "\n".join(lines)


class Turn(NamedTuple):
    """Seconds of the runs of a turn."""

    joint: float  # of the joint run
    separate: Sequence[float]  # of runs of single groups
    all_rows: float  # of a run over all rows

    @property
    def all_groups(self) -> float:
        """The estimated seconds of a run for each group, of which the first one compiles."""
        return GROUPS * statistics.median(self.separate)

    @property
    def ratios(self) -> tuple[float, float]:
        """The joint run relative to those of groups, and to these and the one over all rows."""
        return self.joint / self.all_groups, self.joint / (self.all_groups + self.all_rows)


def compare_times(server: BenchServer, echo: Echo) -> str:
    """Compare the seconds of the joint run and of the runs of groups, in turns."""
    x, y = draw_numeric(np.random.default_rng(DATA_SEED), GROUPS * ROWS)
    frame = pandas.DataFrame(x, columns=[f"x{number}" for number in range(x.shape[1])])
    frame = frame.assign(
        y=[f"class {label}" for label in y], g=[f"group {n % GROUPS}" for n in range(len(x))]
    )
    with server.session() as session:
        write(session, "grouped", frame)
        for number in range(SOME + 1):
            write(session, f"part_{number}", frame[frame.g == f"group {number}"])
        turns = [_take_turn(session, echo) for _ in range(TURNS)]
    separate_ratios, total_ratios = (
        ", ".join(f"{turn.ratios[number]:.2f}" for turn in turns) for number in (0, 1)
    )
    turn = sorted(turns, key=lambda turn: turn.ratios)[TURNS // 2]
    return (
        f"{GROUPS} groups of {ROWS} rows, 2 configurations of 8 epochs for each: one run took "
        f"{turn.joint:.1f} s, a run of one group {statistics.median(turn.separate):.1f} s (median "
        f"of {len(turn.separate)}, {min(turn.separate):.1f} to {max(turn.separate):.1f} s), and so "
        f"{GROUPS} of them about {turn.all_groups:.0f} s: {turn.ratios[0]:.2f} of their time (in "
        f"{TURNS} turns {separate_ratios}). With a run over all rows, whose model the one run has "
        f"trained as well ({turn.all_rows:.1f} s): {turn.ratios[1]:.2f} ({total_ratios})."
    )


def _take_turn(session: Connection, echo: Echo) -> Turn:
    # The first call starts the fork server and warms up the machine.
    _time_call(session, f"{TRAIN})", f"part_{SOME}")
    separate = [_time_call(session, f"{TRAIN})", f"part_{number}") for number in range(SOME)]
    joint = _time_call(session, f"{TRAIN}, group_by => 'g')", "grouped")
    echo(f"  one run over {GROUPS} groups: {joint:.1f} s")
    separate += [_time_call(session, f"{TRAIN})", f"part_{number}") for number in range(SOME)]
    echo(f"  a run of one group: {', '.join(f'{seconds:.1f}' for seconds in separate)} s")
    all_rows = _time_call(session, f"{TRAIN})", "grouped")
    echo(f"  a run over all rows: {all_rows:.1f} s")
    return Turn(joint, separate, all_rows)


def _time_call(session: Connection, call: str, table: str) -> float:
    """Return the seconds of a call that trains a model.

    The model is dropped, because a second version would make the next call slower.
    """
    model = f"model_{table}"
    with session.cursor() as cursor:
        began = time.perf_counter()
        cursor.execute(call, (table, model))
        seconds = time.perf_counter() - began
        cursor.execute("SELECT cerebro.drop_model(%s)", (model,))
    return seconds
