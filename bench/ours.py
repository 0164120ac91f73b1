"""cerebro_db itself: one SQL call over the packed tables, whose metrics are read afterwards."""

from __future__ import annotations

from typing import Any

from psycopg2.extensions import connection as Connection

from bench.job import Job, Result, parse_arguments, write_result


def main() -> None:
    """Do the job of the command line."""
    job, result_path = parse_arguments()
    session = job.connect()
    run_id = fit(session, job)
    with session.cursor() as cursor:
        cursor.execute(
            "SELECT mst_key, validation_loss_final, validation_metrics_final FROM "
            f"{job.output}_info WHERE validation_loss_final IS NOT NULL"
        )
        scores = {key: (float(loss), float(metric)) for key, loss, metric in cursor.fetchall()}
    log_values = _read_log(session, run_id)
    moved_bytes = log_values["state_bytes"] * 2 + log_values["packed_bytes"]
    write_result(
        Result(
            scores=scores,
            moved_bytes=moved_bytes,
            more={"run_id": run_id, "forms": _count_forms(session, run_id), **log_values},
        ),
        result_path,
    )
    session.close()


def fit(session: Connection, job: Job) -> int:
    """Train; return the id of the run."""
    options: dict[str, Any] = {"seed": job.seed, "training_metrics": False, **job.settings}
    if job.framework != "tensorflow":
        options["backend"] = job.framework
    text = "".join(f", {name} => %s" for name in options)
    with session.cursor() as cursor:
        for suffix in ("", "_info", "_summary"):
            cursor.execute(f"DROP TABLE IF EXISTS {job.output}{suffix}")
        cursor.execute(
            f"SELECT madlib_fit_multiple_model(%s, %s, %s, %s, validation_table => %s{text})",
            (
                job.packed,
                job.output,
                job.selection,
                job.epochs,
                job.packed_valid,
                *options.values(),
            ),
        )
        cursor.execute(f"SELECT run_id FROM {job.output}_summary")
        return int(cursor.fetchone()[0])  # type: ignore[index]


def _read_log(session: Connection, run_id: int) -> dict[str, Any]:
    """Return bytes of states and packed rows, the number of visits, and the training seconds."""
    with session.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(state_bytes), 0), max(state_bytes), count(*), "
            "sum(training_seconds) FROM cerebro.visit WHERE run_id = %s",
            (run_id,),
        )
        states, largest, visits, training = cursor.fetchone()  # type: ignore[misc]
        cursor.execute(
            "SELECT sum(pg_table_size(t::regclass)) FROM cerebro.run r, unnest(ARRAY[r.spec ->> "
            "'source_table', r.spec ->> 'validation_table']) t WHERE run_id = %s",
            (run_id,),
        )
        (packed,) = cursor.fetchone()  # type: ignore[misc]
    logged = {"state_bytes": int(states), "largest_state": int(largest or 0), "visits": int(visits)}
    return {**logged, "packed_bytes": int(packed or 0), "training_seconds": training}


def _count_forms(session: Connection, run_id: int) -> dict[str, int]:
    """Return the number of visits by form."""
    with session.cursor() as cursor:
        cursor.execute(
            "SELECT form, count(*) FROM cerebro.visit WHERE run_id = %s GROUP BY 1 ORDER BY 2 DESC",
            (run_id,),
        )
        return {str(form): int(count) for form, count in cursor.fetchall()}


if __name__ == "__main__":
    main()
