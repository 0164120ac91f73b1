"""A peer: Ray, by a pool of actors, each of which takes the next configuration when it has done
one.
"""

from __future__ import annotations

import ray
from ray.util import ActorPool

from bench.job import arguments, write_result
from bench.seeds import copies, files, loopback
from bench.seeds.curves import AT_REST, most_steps_first, result


def main() -> None:
    """Do the job that the command line names."""
    job, place = arguments()
    loopback.opened()
    ray.init(
        num_cpus=job.processes,
        include_dashboard=False,
        log_to_driver=False,
        _node_ip_address=loopback.HOST,
    )
    before = loopback.sent()
    actor = ray.remote(num_cpus=1)(copies.Worker)
    pool = ActorPool([actor.remote(job, number) for number in range(job.processes)])
    order = most_steps_first(job)
    curves = list(pool.map(lambda worker, number: worker.curve.remote(number), order))
    moved = loopback.sent() - before
    ray.shutdown()
    found = {number + 1: curve for number, curve in zip(order, curves, strict=True)}
    write_result(result(found, moved, **{AT_REST: files.size(job)}), place)


if __name__ == "__main__":
    main()
