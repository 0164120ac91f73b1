"""A peer: Ray, with a pool of actors that take one configuration after another."""

from __future__ import annotations

import ray
from ray.util import ActorPool

from bench.job import parse_arguments, write_result
from bench.seeds import copies, files, loopback
from bench.seeds.curves import AT_REST, make_result, order_by_steps


def main() -> None:
    """Do the job of the command line."""
    job, result_path = parse_arguments()
    loopback.enable()
    ray.init(
        num_cpus=job.processes,
        include_dashboard=False,
        log_to_driver=False,
        _node_ip_address=loopback.HOST,
    )
    bytes_before = loopback.count_sent_bytes()
    actor = ray.remote(num_cpus=1)(copies.Worker)
    pool = ActorPool([actor.remote(job, number) for number in range(job.processes)])
    order = order_by_steps(job)
    curves = list(pool.map(lambda worker, number: worker.train_curve.remote(number), order))
    moved_bytes = loopback.count_sent_bytes() - bytes_before
    ray.shutdown()
    curves_by_number = {number + 1: curve for number, curve in zip(order, curves, strict=True)}
    write_result(
        make_result(curves_by_number, moved_bytes, **{AT_REST: files.measure_files(job)}),
        result_path,
    )


if __name__ == "__main__":
    main()
