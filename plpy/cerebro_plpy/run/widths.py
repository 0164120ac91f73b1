"""How many workers a run has, where its caller leaves that open: as many as earlier runs of its programs suggest.

What a program takes with one number of threads and with another is known from runs that had other numbers of workers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from cerebro_plpy.configs.config import Config
from cerebro_plpy.database.queries import sql
from cerebro_plpy.hopping import widths
from cerebro_plpy.hopping.schedule import AVERAGING
from cerebro_plpy.hopping.widths import Work
from cerebro_plpy.platform.workplace import Workplace
from cerebro_plpy.run import visits
from cerebro_plpy.run.request import FitRequest
from cerebro_plpy.run.timings import Timings, digest
from cerebro_plpy.trainer import machine, settings


def workers(workplace: Workplace, request: FitRequest) -> int:
    """As many as the request has; or fewer with more threads each, where these are expected to be done sooner, or where
    the run had so many threads before."""
    usual, wanted = request.workers, request.repeat.threads
    threads = {} if workplace.local or request.spec.arguments.workers else workplace.platform.widths(usual)
    if not threads or request.repeat.orders:
        return usual
    if wanted:
        return with_threads(threads, wanted, usual)
    return expected(workplace, request, threads) if usual > 1 and is_open(request) else usual


def with_threads(threads: Mapping[int, int], wanted: int, usual: int) -> int:
    """How many workers there are cores for, where each trainer has as many threads as `wanted`.

    >>> with_threads({1: 8, 2: 4, 3: 2, 4: 2}, 4, 4), with_threads({1: 8, 2: 4, 3: 2, 4: 2}, 2, 4)
    (2, 4)
    """
    return max((number for number, each in threads.items() if each >= wanted), default=usual)


def is_open(request: FitRequest) -> bool:
    """Whether measured times may decide. Not where all segments train at once, or on a GPU; a search has as many
    workers in all of its runs, and a budget was planned for the usual number."""
    spec = request.spec
    return not (spec.train or spec.search or spec.schedule == AVERAGING or request.gpus) and bool(request.backends)


def expected(workplace: Workplace, request: FitRequest, threads: Mapping[int, int]) -> int:
    """The number of workers that are expected to be done soonest, of those with room for as many rows; the caller is
    told of an unusual one."""
    usual, room = request.workers, partial(settings.cache_bytes, workplace.settings)
    rows = sum(table.decoded_bytes for table in (request.source, request.validation) if table)
    possible = {number: each for number, each in threads.items() if number == usual or number * room(number) >= rows}
    found = widths.workers(works(workplace, request), len(request.source.segments), possible, usual)
    if found != usual:
        wide = f"{found} of {usual} workers, with {threads[found]} threads each"
        workplace.db.info(f"{wide}: they are expected to be done sooner, by the times of earlier runs")
    return found


def works(workplace: Workplace, request: FitRequest) -> list[Work]:
    """What each configuration is to train, and what is known of its program's speed on this machine."""
    programs = [digest(visits.program(request, config)) for config in request.configs]
    timings = Timings(workplace.control.run(sql("run.known_timings"), (sorted({*programs}),)))
    found = []
    for config, program in zip(request.configs, programs):
        here = machine.described(request.backends[config.mst_key])
        found.append(Work(rows(request, config), timings.speeds(here, program, config.fit.batch_size)))
    return found


def rows(request: FitRequest, config: Config) -> int:
    """The rows that a configuration trains in all its epochs, if nothing ends it sooner."""
    fit, source = config.fit, request.source
    a_pass = source.rows
    if fit.steps_per_epoch is not None:
        a_pass = min(a_pass, fit.steps_per_epoch * fit.batch_size * len(source.segments))
    return a_pass * fit.passes * request.spec.epochs
