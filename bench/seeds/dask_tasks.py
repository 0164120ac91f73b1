"""A peer: Dask, by its scheduler and worker processes on this machine. A worker gets the next task
when it has done one."""

from __future__ import annotations

import sys

import dask
from distributed import Client, LocalCluster

from bench.job import arguments, write_result
from bench.seeds import copies, files, loopback
from bench.seeds.curves import AT_REST, make_result, most_steps_first


def main() -> None:
    """Do the job of the command line."""
    job, result_path = arguments()
    loopback.opened()
    dask.config.set({"distributed.scheduler.worker-saturation": 1.0})
    options = {"host": loopback.HOST, "dashboard_address": None, "threads_per_worker": 1}
    with LocalCluster(n_workers=job.processes, **options) as cluster, Client(cluster) as client:
        before = loopback.sent()
        asked = {
            n + 1: client.submit(copies.curve, sys.argv[1], n, pure=False)
            for n in most_steps_first(job)
        }
        found = client.gather(asked)
        moved_bytes = loopback.sent() - before
    write_result(make_result(found, moved_bytes, **{AT_REST: files.size(job)}), result_path)


if __name__ == "__main__":
    main()
