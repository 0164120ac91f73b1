"""cerebro_db in the comparison of methods: a call, with curves and costs from its log."""

from __future__ import annotations

from typing import Any

from psycopg2.extensions import connection as Connection

from bench import ours
from bench.job import parse_arguments, write_result
from bench.seeds.curves import AT_REST, Point, make_result

CURVE = """
    SELECT loss.mst_key, extract(epoch FROM greatest(loss.time, other.time))::float8, loss.value,
        other.value
    FROM cerebro.learning_curve loss JOIN cerebro.learning_curve other USING (run_id, mst_key,
        epoch, dataset)
    WHERE run_id = %s AND dataset = 'validation' AND loss.name = 'loss' AND other.name = 'accuracy'
    ORDER BY mst_key, epoch"""
MOVED = """
    SELECT sum(coalesce(state_bytes, 0) + coalesce(read_bytes, 0)) FROM (
        SELECT state_bytes, read_bytes FROM cerebro.visit WHERE run_id = %(run)s
        UNION ALL SELECT 0, read_bytes FROM cerebro.evaluation WHERE run_id = %(run)s) moved"""
VISITS = """
    SELECT avg(extract(epoch FROM ended_at - started_at))::float8,
        coalesce(avg(extract(epoch FROM stored_at - ended_at)), 0)::float8
    FROM cerebro.visit WHERE run_id = %s AND epoch > 1 AND status = 'completed' AND kind = 'train'
    GROUP BY mst_key ORDER BY mst_key"""
STATES = """
    SELECT coalesce(sum(pg_table_size(to_regclass(t.name))), 0)
    FROM (SELECT DISTINCT state_table AS name FROM cerebro.visit WHERE run_id = %s
        AND dropped_at IS NULL) t"""


def main() -> None:
    """Do the job of the command line."""
    job, result_path = parse_arguments()
    session = job.connect()
    run_id = ours.fit(session, job)
    curves: dict[int, list[Point]] = {}
    for key, *point in _select(session, CURVE, (run_id,)):
        curves.setdefault(key, []).append(Point(*point))
    ((moved_bytes,),) = _select(session, MOVED, {"run": run_id})
    ((states,),) = _select(session, STATES, (run_id,))
    ((packed,),) = _select(session, "SELECT pg_table_size(%s)", (job.packed,))
    visits = _select(session, VISITS, (run_id,))
    session.close()
    extra = {
        AT_REST: int(packed),
        "states_at_rest": int(states),
        "visits": visits,
        "run_id": run_id,
    }
    write_result(make_result(curves, int(moved_bytes), **extra), result_path)


def _select(session: Connection, query: str, values: Any) -> list[Any]:
    with session.cursor() as cursor:
        cursor.execute(query, values)
        return list(cursor.fetchall())


if __name__ == "__main__":
    main()
