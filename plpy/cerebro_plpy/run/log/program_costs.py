"""Costs of programs, from the log of a run or from timings of their execution modes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain, starmap
from typing import Any, NamedTuple

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.records import replace
from cerebro_plpy.run.log.form_timings import LANES
from cerebro_plpy.scheduling.planning.run_plan import MEASURED, Program, RunPlan

EVALUATION_SHARE = 0.25
"""Estimated time to evaluate a row, as a share of the time to train it.

The effort of `cerebro.train` expects as much.
"""
STATE_SECONDS = 0.005
"""Estimated time to read or store a state, in addition to the time for its bytes."""
STATE_BYTES_PER_SECOND = 200e6
MAX_VISIT_NO = 64
"""Later visits of a configuration are not read: costs do not change, and the log may be long."""


class VisitCosts(NamedTuple):
    """Sums over training visits with one program; the fields are columns of `plan.visits`.

    The overhead of a visit is its time apart from training.
    """

    program: str
    visits: int
    rows: float
    training_seconds: float
    spread: float  # of the seconds per row, relative to their mean
    form: str | None  # the most frequent mode
    fused_visits: int  # visits that trained together with others
    threads: int | None
    state_bytes: int | None
    later_visits: int  # visits on workers that had the program before
    later_overhead: float
    hops: int  # the later visits for which the worker had to read the state
    hop_overhead: float
    first_visits: int  # visits on workers that did not have the program
    first_overhead: float
    stores: int
    store_seconds: float
    stored_bytes: float

    @property
    def mean_stay_overhead(self) -> float:
        """The mean overhead of later visits for which the worker had the state."""
        stays = self.later_visits - self.hops
        return _average(self.later_overhead - self.hop_overhead, stays)

    @property
    def mean_hop_overhead(self) -> float:
        """The mean overhead of later visits for which the worker had to read the state."""
        if self.hops:
            return self.hop_overhead / self.hops
        return _average(self.later_overhead, self.later_visits)

    @property
    def compile_seconds(self) -> float:
        """The overhead of all first visits that is not explained by reading states."""
        return max(0.0, self.first_overhead - self.first_visits * self.mean_hop_overhead)


class EvaluationCosts(NamedTuple):
    """Sums over evaluations with one program; the fields are columns of `plan.evaluations`."""

    program: str
    visits: int
    rows: float
    seconds: float


class LoggedCosts(NamedTuple):
    """Costs in the log of a run, by program."""

    visits: Mapping[str, VisitCosts]
    evaluations: Mapping[str, EvaluationCosts]
    compiled: Mapping[str, int]  # workers that had compiled the program before the run

    @classmethod
    def from_rows(
        cls, plan: RunPlan, visits: Iterable[Iterable[Any]], evaluations: Iterable[Iterable[Any]]
    ) -> LoggedCosts:
        """Create costs from the rows of `plan.visits` and `plan.evaluations`."""
        return cls(
            {costs.program: costs for costs in starmap(VisitCosts, visits)},
            {costs.program: costs for costs in starmap(EvaluationCosts, evaluations)},
            Counter(chain.from_iterable(plan.compiled.values())),
        )

    def estimate_compile_seconds(self, program: Program) -> float:
        """Return the time to compile a program; the known one if no worker compiled it."""
        costs = self.visits[program.name]
        compilations = costs.first_visits - self.compiled.get(program.name, 0)
        return costs.compile_seconds / compilations if compilations > 0 else program.compile


def _average(seconds: float, count: int) -> float:
    return seconds / count if count > 0 else 0.0


def encode_programs(programs: Iterable[Program]) -> str:
    """Return the names of programs by mst_key, as JSON for the queries."""
    return json.dumps({str(key): program.name for program in programs for key in program.configs})


def read_costs(control: Session, run_id: int, plan: RunPlan) -> LoggedCosts:
    """Return the costs of a plan's programs from the first visits of each configuration."""
    mapping = encode_programs(plan.programs)
    visits = control.run(sql("plan.visits"), (mapping, run_id, MAX_VISIT_NO))
    evaluations = control.run(sql("plan.evaluations"), (mapping, run_id))
    return LoggedCosts.from_rows(plan, visits, evaluations)


def apply_costs(program: Program, log: LoggedCosts) -> Program:
    """Return the program with the costs that a run measured, or unchanged without any."""
    costs = log.visits.get(program.name)
    if costs is None or not costs.rows:
        return program
    stay_seconds = costs.mean_stay_overhead
    row_seconds = (costs.training_seconds + stay_seconds * costs.visits) / costs.rows
    evaluation_row_seconds = row_seconds * EVALUATION_SHARE
    evaluations = log.evaluations.get(program.name)
    if evaluations and evaluations.rows:
        evaluation_row_seconds = evaluations.seconds / evaluations.rows
    hop_seconds = estimate_transfer_seconds(costs.state_bytes)
    if costs.hops:
        hop_seconds = max(0.0, costs.mean_hop_overhead - stay_seconds)
    return replace(
        program,
        source=MEASURED,
        row_seconds=row_seconds,
        evaluation_row_seconds=evaluation_row_seconds,
        compile=log.estimate_compile_seconds(program),
        hop=hop_seconds,
        store=_average(costs.store_seconds, costs.stores),
        form=costs.form,
        state_bytes=costs.state_bytes,
        spread=costs.spread,
    )


def apply_timings(
    program: Program, timings: Mapping[str, Mapping[str, Any]], source: str
) -> Program:
    """Return the program with the costs of its fastest mode for one state."""
    working = {
        form: timing
        for form, timing in timings.items()
        if form not in LANES and timing["seconds_per_row"] is not None
    }
    if not working:
        return program
    form = min(working, key=lambda name: float(working[name]["seconds_per_row"]))
    row_seconds = float(working[form]["seconds_per_row"])
    transfer_seconds = estimate_transfer_seconds(program.state_bytes)
    return replace(
        program,
        source=source,
        form=form,
        row_seconds=row_seconds,
        evaluation_row_seconds=row_seconds * EVALUATION_SHARE,
        compile=float(working[form]["compile_seconds"]),
        hop=transfer_seconds,
        store=transfer_seconds,
    )


def estimate_transfer_seconds(state_bytes: int | None) -> float:
    """Return the estimated time to read or store a state.

    >>> estimate_transfer_seconds(None), estimate_transfer_seconds(200_000_000)
    (0.005, 1.005)
    """
    return STATE_SECONDS + (state_bytes or 0) / STATE_BYTES_PER_SECOND
