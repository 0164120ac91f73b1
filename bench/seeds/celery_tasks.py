"""A peer: Celery, whose broker is a folder, and whose workers are processes of this module."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from celery import Celery

from bench.job import Job, parse_arguments, write_result
from bench.seeds import copies, files, loopback
from bench.seeds.curves import AT_REST, make_result, order_by_steps

WORKER = "worker"
POLL_SECONDS = 0.05


def main() -> None:
    """Do the job of the command line; as a worker, its tasks."""
    job, result_path = parse_arguments()
    app = make_application(job)
    job_path = sys.argv[1]
    if sys.argv[3:] == [WORKER]:
        options = (
            "--pool=solo",
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
            "--loglevel=ERROR",
        )
        app.worker_main([WORKER, *options])
        return
    loopback.enable()
    command = [sys.executable, "-m", "bench.seeds.celery_tasks", *sys.argv[1:], WORKER]
    workers = [subprocess.Popen(command) for _ in range(job.processes)]
    try:
        tasks = {
            number + 1: app.send_task("curve", (job_path, number)) for number in order_by_steps(job)
        }
        curves = {number: task.get(interval=POLL_SECONDS) for number, task in tasks.items()}
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    write_result(
        make_result(curves, loopback.count_sent_bytes(), **{AT_REST: files.measure_files(job)}),
        result_path,
    )


def make_application(job: Job) -> Celery:
    """Return an application with tasks and results as files in the folder of a job."""
    folders = {name: Path(job.folder) / name for name in ("messages", "control", "results")}
    for folder in folders.values():
        folder.mkdir(exist_ok=True)
    app = Celery("seeds", broker="filesystem://", backend=f"file://{folders['results']}")
    messages = str(folders["messages"])
    app.conf.update(
        broker_transport_options={
            "data_folder_in": messages,
            "data_folder_out": messages,
            "control_folder": str(folders["control"]),
            "polling_interval": POLL_SECONDS,
        },
        task_acks_late=True,
        worker_prefetch_multiplier=1,
    )
    app.task(name="curve")(copies.train_curve)
    return app


if __name__ == "__main__":
    main()
