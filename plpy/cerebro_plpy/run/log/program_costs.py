"""What programs cost, as the log of a run has it, or as far as the timings of their forms say
it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, NamedTuple

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.records import replace
from cerebro_plpy.run.log.form_timings import LANES
from cerebro_plpy.scheduling.planning.run_plan import MEASURED, Program, RunPlan

EVALUATION_SHARE = 0.25
"""Of what a row takes to train, to evaluate it; the effort of `cerebro.train` expects as much."""
STATE_SECONDS, STATE_RATE = 0.005, 200e6
"""What a state takes to be read or stored, where nobody has measured it: so much, and a second for
so many bytes.
"""
VISITS_READ = 64
"""Of each configuration of an earlier run: costs of a visit do not change, and the log may be long.
"""


class Visits(NamedTuple):
    """Visits of a run that trained with one program: sums of seconds, and what they are of; see the
    query.

    `fused` are those that trained side by side with others."""

    program: str
    visits: int
    rows: float
    training: float
    spread: float
    form: str | None
    fused: int
    threads: int | None
    state_bytes: int | None
    later: int
    around: float
    moves: int
    moving: float
    firsts: int
    beginning: float
    stores: int
    storing: float
    stored_bytes: float

    @property
    def stay(self) -> float:
        """Seconds around training where a worker goes on with what it has."""
        stays = self.later - self.moves
        return (self.around - self.moving) / stays if stays > 0 else 0.0

    @property
    def hop(self) -> float:
        """And where it has to read the state."""
        return (
            self.moving / self.moves
            if self.moves
            else self.around / self.later
            if self.later
            else 0.0
        )

    @property
    def compiling(self) -> float:
        """What first visits on workers took beyond that, in all."""
        return max(0.0, self.beginning - self.firsts * self.hop)


class Evaluations(NamedTuple):
    """Evaluations of a run with one program."""

    program: str
    visits: int
    rows: float
    seconds: float


class LoggedCosts(NamedTuple):
    """What a run has logged, by program, and how many workers had `compiled` each before."""

    visits: Mapping[str, Visits]
    evaluations: Mapping[str, Evaluations]
    compiled: Mapping[str, int]

    @classmethod
    def from_rows(
        cls, plan: RunPlan, visits: Iterable[Iterable[Any]], evaluations: Iterable[Iterable[Any]]
    ) -> LoggedCosts:
        """Of the rows of both queries."""
        trained, evaluated = (
            [Visits(*row) for row in visits],
            [Evaluations(*row) for row in evaluations],
        )
        compiled = Counter(chain.from_iterable(plan.compiled.values()))
        return cls(
            {each.program: each for each in trained},
            {each.program: each for each in evaluated},
            compiled,
        )

    def estimate_compile_seconds(self, program: Program) -> float:
        """What it takes to compile a program, as it was known before where all workers had it."""
        found = self.visits[program.name]
        fresh = found.firsts - self.compiled.get(program.name, 0)
        return found.compiling / fresh if fresh > 0 else program.compile


def encode_programs(programs: Iterable[Program]) -> str:
    """The programs by mst_key, as the queries take them."""
    return json.dumps({str(key): each.name for each in programs for key in each.configs})


def read_costs(control: Session, run_id: int, plan: RunPlan) -> LoggedCosts:
    """What a run has logged of the programs of its plan, by the first visits of each
    configuration.
    """
    mapping = encode_programs(plan.programs)
    trained = control.run(sql("plan.visits"), (mapping, run_id, VISITS_READ))
    return LoggedCosts.from_rows(
        plan, trained, control.run(sql("plan.evaluations"), (mapping, run_id))
    )


def apply_costs(program: Program, log: LoggedCosts) -> Program:
    """The program with what a run has measured of it; as it is, where that has nothing of it."""
    found, evaluated = log.visits.get(program.name), log.evaluations.get(program.name)
    if found is None or not found.rows:
        return program
    row = (found.training + found.stay * found.visits) / found.rows
    return replace(
        program,
        source=MEASURED,
        row_seconds=row,
        evaluation_row_seconds=evaluated.seconds / evaluated.rows
        if evaluated and evaluated.rows
        else row * EVALUATION_SHARE,
        compile=log.estimate_compile_seconds(program),
        hop=max(0.0, found.hop - found.stay)
        if found.moves
        else estimate_transfer_seconds(found.state_bytes),
        store=found.storing / found.stores if found.stores else 0.0,
        form=found.form,
        state_bytes=found.state_bytes,
        spread=found.spread,
    )


def apply_timings(program: Program, forms: Mapping[str, Mapping[str, Any]], source: str) -> Program:
    """The program with what the timings of its forms say: the fastest one trains, of those for one
    state.
    """
    alone = {form: each for form, each in forms.items() if form not in LANES}
    known = {form: each for form, each in alone.items() if each["seconds_per_row"] is not None}
    if not known:
        return program
    form = min(known, key=lambda name: float(known[name]["seconds_per_row"]))
    row, state = (
        float(known[form]["seconds_per_row"]),
        estimate_transfer_seconds(program.state_bytes),
    )
    return replace(
        program,
        source=source,
        form=form,
        row_seconds=row,
        evaluation_row_seconds=row * EVALUATION_SHARE,
        compile=float(known[form]["compile_seconds"]),
        hop=state,
        store=state,
    )


def estimate_transfer_seconds(state_bytes: int | None) -> float:
    """Seconds to read or to store a state of so many bytes, where nobody has measured it.

    >>> estimate_transfer_seconds(None), estimate_transfer_seconds(200_000_000)
    (0.005, 1.005)
    """
    return STATE_SECONDS + (state_bytes or 0) / STATE_RATE
