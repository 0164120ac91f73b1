"""What a search saves: visits until it has a model as good as the best of all, over tables that ship in packages.

All configurations of a draw are trained to the end, and then the same ones by a rule, by the metric over the rows that
are held back. Nothing of it is a time.

    PYTHONPATH=tests/bench:tests/support .venv/bin/python -m bench.searching asha wine titanic wages
"""

from __future__ import annotations

import sys
from typing import NamedTuple

from psycopg2.extensions import connection as Connection

from bench import place
from bench.real_tables import TABLES, RealTable, write

CONFIGS, EPOCHS, SEEDS = 27, 27, (1, 2)
NEAR = 0.005
"""Of the best value: what counts as that good."""
CALL = """
    SELECT DISTINCT run_id FROM cerebro.train(
        %s, %s, %s, search => %s, configs => %s, epochs => %s, ensemble => 1, seed => %s, budget => '1 hour')"""
CURVE = """
    SELECT m.value, (SELECT count(*) FROM cerebro.visit v
                     WHERE v.run_id = m.run_id AND v.status = 'completed' AND v.stored_at <= m.time)
    FROM cerebro.metric m JOIN cerebro.run r USING (run_id)
    WHERE m.run_id = %s AND m.dataset = r.spec ->> 'rank_dataset' AND m.name = r.spec ->> 'rank_metric'
    ORDER BY m.time"""


class Curve(NamedTuple):
    """The best value so far, larger ones better, with the visits that it took; and all visits of the run."""

    best: list[tuple[float, int]]
    visits: int


def main() -> None:
    """Measure a rule beside the whole grid, over tables by their names."""
    rule, *names = sys.argv[1:]
    with place.started(print) as at:
        for name in names or TABLES:
            with at.session() as session:
                write(session, name, TABLES[name].frame())
            for seed in SEEDS:
                with at.session() as session:
                    _tell(
                        name, rule, seed, *(_curve(session, name, TABLES[name], each, seed) for each in ("grid", rule))
                    )


def _tell(name: str, rule: str, seed: int, whole: Curve, searched: Curve) -> None:
    best = whole.best[-1][0]
    near = best - NEAR * abs(best)
    ends = [next((visits for value, visits in each.best if value >= near), None) for each in (whole, searched)]
    part = f"{searched.visits / whole.visits:.2f}"
    reached = "never" if ends[1] is None else f"{ends[1]} ({ends[1] / whole.visits:.2f} of the grid's {whole.visits})"
    print(
        f"{name}, seed {seed}: {rule} comes as near as {NEAR:.1%} after {reached} visits, the grid after {ends[0]};"
        f" in all it makes {part} of them; best {searched.best[-1][0]:.4f}, of the grid {best:.4f}",
        flush=True,
    )


def _curve(session: Connection, name: str, table: RealTable, search: str, seed: int) -> Curve:
    with session.cursor() as cursor:
        cursor.execute(CALL, (name, table.target, f"{name}_{search}_{seed}", search, CONFIGS, EPOCHS, seed))
        (run,) = cursor.fetchone() or (None,)
        session.commit()
        cursor.execute("SELECT (spec ->> 'rank_descending')::boolean FROM cerebro.run WHERE run_id = %s", (run,))
        (larger,) = cursor.fetchone() or (False,)
        cursor.execute(CURVE, (run,))
        points = [(value if larger else -value, visits) for value, visits in cursor.fetchall() if value == value]
        cursor.execute("SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND status = 'completed'", (run,))
        (visits,) = cursor.fetchone() or (0,)
    best: list[tuple[float, int]] = []
    for value, made in points:
        if not best or value > best[-1][0]:
            best.append((value, made))
    return Curve(best, visits)


if __name__ == "__main__":
    main()
