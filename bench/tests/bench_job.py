"""A job of the measurements, for tests that do none."""

from __future__ import annotations

from bench.job import Job
from bench.workloads import WORKLOADS

JOB = Job(
    url="u",
    train="t",
    valid="v",
    packed="p",
    packed_valid="pv",
    models="m",
    selection="s",
    output="o",
    classes=3,
    epochs=1,
    segments=2,
    seed=1,
    configs=WORKLOADS["F"].configs,
)
