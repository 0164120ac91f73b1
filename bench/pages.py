"""Measure the cost of the dashboard, and its delay after a commit.

The log has twenty completed runs, and a run of 200 configurations that has trained half of its 50
epochs. Visits with metrics are added to this run ten times a second. The rows are written into the
log, nothing is trained. The command needs chromium, and the URL of a server's superuser:

    PYTHONPATH=plpy:tests/support .venv/bin/python -m bench.pages postgresql://postgres@/database
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import Any

import psycopg2
from dashboards import Browser, browser, dashboard

CONFIGS = 200
EPOCHS = 50
SEGMENTS = 2
TICK = 100  # of /proc/*/stat, a second
RUN = """
INSERT INTO cerebro.run_log (name, status, spec, epochs, segments, pid)
VALUES ('pages', %(status)s,
    '{"rank_metric": "accuracy", "rank_dataset": "validation", "rank_descending": true}',
        %(epochs)s, ARRAY(SELECT generate_series(0, %(segments)s - 1)),
            pg_backend_pid()) RETURNING run_id"""
CONFIG = """
INSERT INTO cerebro.config_log
    (run_id, mst_key, params, status, model_id, compile_params, fit_params, architecture, template)
SELECT %(run)s, k, jsonb_build_object('lr', 0.0001 * 10 ^ (k %% 7 / 2.0), 'width',
    64 * (1 + k %% 4)),
       CASE %(status)s WHEN 'running' THEN 'running' ELSE 'completed' END, 1, '', '', '{}',
           'realmlp'
FROM generate_series(1, %(configs)s) k"""
VISIT = """
INSERT INTO cerebro.visit (run_id, epoch, mst_key, segment_id, visit_no, attempt, status,
    started_at, ended_at, rows)
SELECT %(run)s, e, k, s, (e - 1) * %(segments)s + s + 1, 1, 'completed', t, t + interval '80 ms',
    100
FROM generate_series(%(first)s, %(last)s) e, unnest(%(keys)s) k, generate_series(0,
    %(segments)s - 1) s,
     LATERAL (SELECT clock_timestamp() - interval '1 s' AS t) v"""
METRIC = """
INSERT INTO cerebro.metric (run_id, mst_key, epoch, dataset, name, value)
SELECT %(run)s, k, e, d, m, 1 - exp(-e * (0.02 + k %% 13 * 0.01)) * 0.7
FROM generate_series(%(first)s, %(last)s) e, unnest(%(keys)s) k,
    unnest('{training,validation}'::text[]) d,
     unnest('{loss,accuracy}'::text[]) m"""


class Log:
    """A run in the log, written as by its orchestrator and workers."""

    def __init__(self, session: Any, status: str, configs: int, epochs: int) -> None:
        self._session = session
        self._facts = {"status": status, "configs": configs, "epochs": epochs, "segments": SEGMENTS}
        self.run = self._execute(RUN)[0][0]
        self._facts["run"] = self.run
        if status == "running":  # the sign of a live run
            self._execute("SELECT pg_advisory_lock((1667590770::bigint << 32) # %(run)s)")
        self._execute(CONFIG)

    def train(self, first: int, last: int, keys: list[int]) -> None:
        """Log some epochs of configurations."""
        with self._session.cursor() as cursor:
            cursor.execute("BEGIN")
            for text in (VISIT, METRIC):
                cursor.execute(text, {**self._facts, "first": first, "last": last, "keys": keys})
            cursor.execute("COMMIT")

    def _execute(self, text: str) -> list[Any]:
        with self._session.cursor() as cursor:
            cursor.execute(text, self._facts)
            return list(cursor.fetchall()) if cursor.description else []


def read_cpu_seconds(session: Any) -> float:
    """Return the CPU seconds of the dashboard's sessions."""
    with session.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'cerebro-db-dashboard'"
        )
        stats = [
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            for (pid,) in cursor.fetchall()
        ]
    return sum(int(stat[11]) + int(stat[12]) for stat in stats) / TICK


def time_painting(page: Browser, address: str) -> float:
    """Return the seconds until curves and lanes are painted."""
    page.driver.get("about:blank")
    began = time.monotonic()
    page.driver.get(address)
    page.look("document.querySelectorAll('.u-over').length === 2")
    return time.monotonic() - began


def main(url: str) -> None:
    session = psycopg2.connect(url)
    session.autocommit = True
    for _ in range(20):
        completed_log = Log(session, "completed", 30, 20)
        completed_log.train(1, 20, list(range(1, 31)))
    log = Log(session, "running", CONFIGS, EPOCHS)
    log.train(1, EPOCHS // 2, list(range(1, CONFIGS + 1)))
    session.cursor().execute("ANALYZE")
    with dashboard(url) as site, browser() as page:
        page.driver.get(site.entrance)
        address = f"{site.root}/runs/{log.run}"
        first = [time_painting(page, address) for _ in range(5)]
        page.driver.execute_script(
            "window.seen = {}; document.body.addEventListener('curves', ({detail}) => {"
            "for (const [key] of detail) seen[key] = Date.now() / 1000})"
        )
        time.sleep(3)
        cpu_before = read_cpu_seconds(session)
        began = time.monotonic()
        committed: dict[str, float] = {}
        for number, key in enumerate([*range(1, CONFIGS + 1)] * 2):
            epoch = EPOCHS // 2 + 1 + number // CONFIGS
            log.train(epoch, epoch, [key])
            committed[str(key)] = time.time()
            time.sleep(max(0.0, began + number / 10 - time.monotonic()))
        share = (read_cpu_seconds(session) - cpu_before) / (time.monotonic() - began)
        time.sleep(2)
        shown_at = page.driver.execute_script("return seen")
    delays = sorted(shown_at[key] - at for key, at in committed.items())
    print(
        f"rendered in {statistics.median(first):.2f} s (median of 5, the longest {max(first):.2f} "
        "s)"
    )
    print(
        f"shown {statistics.median(delays):.2f} s after the commit (median, the longest "
        f"{delays[-1]:.2f} s)"
    )
    print(f"the dashboard's sessions took {100 * share:.1f} % of a core")


if __name__ == "__main__":
    main(sys.argv[1])
