"""A peer: Dask, with its scheduler and worker processes on this machine."""

from __future__ import annotations

import sys

import dask
from distributed import Client, LocalCluster

from bench.job import parse_arguments, write_result
from bench.seeds import copies, files, loopback
from bench.seeds.curves import AT_REST, make_result, order_by_steps


def main() -> None:
    """Do the job of the command line."""
    job, result_path = parse_arguments()
    loopback.enable()
    dask.config.set({"distributed.scheduler.worker-saturation": 1.0})
    options = {"host": loopback.HOST, "dashboard_address": None, "threads_per_worker": 1}
    with LocalCluster(n_workers=job.processes, **options) as cluster, Client(cluster) as client:
        bytes_before = loopback.count_sent_bytes()
        tasks = {
            n + 1: client.submit(copies.train_curve, sys.argv[1], n, pure=False)
            for n in order_by_steps(job)
        }
        curves = client.gather(tasks)
        moved_bytes = loopback.count_sent_bytes() - bytes_before
    write_result(
        make_result(curves, moved_bytes, **{AT_REST: files.measure_files(job)}), result_path
    )


if __name__ == "__main__":
    main()
