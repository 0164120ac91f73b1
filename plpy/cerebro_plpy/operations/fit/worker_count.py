"""The number of workers that train a run, and of the copies of a configuration that it averages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from cerebro_plpy.configs.run_spec import RunSpec
from cerebro_plpy.operations.fit.input_tables import PackedData
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.scheduling.schedule.schedule import AVERAGING
from cerebro_plpy.trainer_client import settings


def choose_worker_count(context: CallContext, spec: RunSpec, data: PackedData, configs: int) -> int:
    """Return the number of concurrent workers: as requested, or as many as can be busy."""
    maximum = count_possible_workers(context, spec, data)
    if spec.arguments.workers or spec.schedule == AVERAGING:
        return maximum
    row_bytes = data.source.decoded_bytes
    if data.validation:
        row_bytes += data.validation.decoded_bytes
    cache_bytes = partial(settings.cache_bytes, context.settings)
    return _count_useful_workers(maximum, configs, row_bytes, cache_bytes)


def count_possible_workers(context: CallContext, spec: RunSpec, data: PackedData) -> int:
    """Return the requested or the default number of workers, at most one per segment.

    A run of `cerebro.train` has more if any of them serves any segment.
    """
    segments = len(data.source.segments)
    workers = spec.arguments.workers or context.platform.default_workers(segments)
    if spec.train and not context.platform.binds_workers:
        return workers
    return min(workers, segments)


def _count_useful_workers(
    maximum: int, configs: int, row_bytes: int, cache_bytes: Callable[[int], int]
) -> int:
    """Return the number of workers that configurations keep busy, or more to cache all rows.

    Args:
        row_bytes: size of all rows.
        cache_bytes: returns the cache size of each of a number of workers.

    >>> [_count_useful_workers(4, configs, 100, lambda workers: 60) for configs in (1, 3, 9)]
    [2, 3, 4]
    >>> _count_useful_workers(4, 1, 100, lambda workers: 0)
    4
    """
    for workers in range(min(maximum, configs), maximum):
        if workers * cache_bytes(workers) >= row_bytes:
            return workers
    return maximum


def choose_copy_count(workers: int, configs: int, segments: Sequence[int]) -> int:
    """Return the number of copies of each configuration that keep the workers busy.

    There are at least two, if there are as many segments.

    >>> [choose_copy_count(8, configs, range(8)) for configs in (1, 2, 3, 20)]
    [8, 4, 2, 2]
    >>> choose_copy_count(8, 1, range(1))
    1
    """
    return min(max(2, workers // configs), len(segments))
