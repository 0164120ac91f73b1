"""Which form of a program trains fastest: timed on its first batches, so far as the work ahead pays
for it.

No form is best for every network: compiling the whole loop makes a small MLP many times faster and
a convolution many times slower. Trying a form costs its compilation, so one is tried only where the
best time known, over all rows still to come, is many times what compiling is expected to take.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.errors import RequestError, summary
from cerebro_trainer.programs.program import FALLBACK, Program
from cerebro_trainer.wire.fields import integer, number, record

WORTH = 10.0
"""A form is tried if the rows still to come take so many times its expected compilation."""
WORTH_SOONER, SHORT_STEP = 4.0, 1e-4
"""So many times where there is reason to hope: the form before it was faster than all others, or it
is for several states, and a step takes less than so many seconds. Most of that is around its
arithmetic, which states share."""
HOPELESS = 3.0
"""A form so many times slower than the best, after one call, is not measured any further, nor are
those after it.
"""
CALL_SECONDS = 5e-3
"""What calling a form may cost beside its batches; a single batch does not show how little that
matters.
"""
SAMPLE_SECONDS = 0.1
"""What a sample is to take. One that takes less than a third of it is taken again, of more rows: it
was mostly what a call costs beside its batches, such as to hand a large buffer over."""

Order = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Timing:
    """Seconds that a form takes per row, and once to compile; infinite where it does not work."""

    seconds_per_row: float
    compile_seconds: float

    def as_header(self) -> dict[str, float | None]:
        """As JSON has it, where infinity is null."""
        finite = math.isfinite(self.seconds_per_row)
        return {
            "seconds_per_row": self.seconds_per_row if finite else None,
            "compile_seconds": self.compile_seconds,
        }


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The fields of a request that concern forms.

    The form to use, or the work that remains and the timings of earlier runs.
    """

    use: str | None = None
    remaining_rows: int = 0
    known: Mapping[str, Timing] = field(default_factory=dict)

    @classmethod
    def from_header(cls, header: Mapping[str, Any]) -> Wanted:
        """Read the `forms` object of a request; without one the first form is used."""
        if "forms" not in header:
            return cls()
        forms = record(header, "forms")
        known = record(forms, "known")
        return cls(
            use=forms.get("use"),
            remaining_rows=integer(forms, "remaining_rows", minimum=0),
            known={name: _timing(record(known, name)) for name in known},
        )


DOES_NOT_WORK = Timing(math.inf, 0.0)


class Forms:
    """What is known about the forms of one program at one batch size; `failures` are a form's, not
    the call's.

    The `others` are those of its other batch sizes: what was compiled for one may serve all, and is
    found compiled.
    """

    def __init__(
        self,
        failures: tuple[type[Exception], ...],
        memory_errors: tuple[type[Exception], ...],
        others: Collection[Forms] = (),
    ) -> None:
        self._failures = failures
        self._memory_errors = memory_errors
        self._others = others
        self._timings: dict[str, Timing] = {}
        self._compiled: set[str] = set()
        self._measured: dict[str, Timing] = {}
        self.reason: str | None = None
        """Why no form works, so that Keras' own loop is used."""

    def choose(
        self,
        program: Program,
        wanted: Wanted,
        buffer: Buffer,
        order: Order,
        batch_size: int,
        states: int = 1,
    ) -> str:
        """Return the form for so many states, from a sample of this buffer; variables stay as
        they are.
        """
        if wanted.use is not None:
            if not program.understands(wanted.use):
                raise RequestError(
                    f"form {wanted.use!r} is unknown; this trainer has {', '.join(program.forms)}"
                )
            return wanted.use
        for form, timing in wanted.known.items():
            if form in (*program.forms, *program.lanes):
                self._timings.setdefault(form, timing)
        trial = _Trial(program, buffer, order, batch_size)
        first = program.forms[0]
        if first not in self._compiled:
            self._measure(first, trial, wanted.remaining_rows)
        for before, form in pairwise(program.forms):
            worth = WORTH_SOONER if before != first and self._is_fastest(before, program) else WORTH
            if self._is_worth_trying(form, program, wanted.remaining_rows, worth) and trial.shows(
                form
            ):
                self._measure(form, trial, wanted.remaining_rows)
            if form in self._timings and self._is_hopeless(self._timings[form], trial):
                break
        beside = program.side_by_side(states)
        worth = WORTH_SOONER if self._best(program) * batch_size < SHORT_STEP else WORTH
        if beside and self._is_worth_trying(beside, program, wanted.remaining_rows, worth):
            self._measure(beside, trial, wanted.remaining_rows)
        able = [form for form in self._timings if form == beside or form not in program.lanes]
        lanes = {form: program.lanes.get(form, states) / states for form in able}
        best = min(able, key=lambda form: self._cost(form, wanted.remaining_rows, lanes[form]))
        if math.isinf(self._timings[best].seconds_per_row):
            return FALLBACK
        self._compiled.add(best)
        return best

    def timing(self, form: str) -> Timing:
        """What is known of a form that `choose` gave; FALLBACK was never timed."""
        return self._timings.get(form, DOES_NOT_WORK)

    def measured(self) -> dict[str, Timing]:
        """The timings that are new since this was asked last."""
        new, self._measured = self._measured, {}
        return new

    def _is_worth_trying(
        self, form: str, program: Program, remaining_rows: int, worth: float
    ) -> bool:
        best = self._best(program)
        if form in self._timings or math.isinf(best):
            return form not in self._timings
        return _pays(best * remaining_rows, program, self._timings[program.forms[0]], worth)

    def _best(self, program: Program) -> float:
        """Seconds per row of the fastest form known that trains states one by one."""
        known = (timing for form, timing in self._timings.items() if form not in program.lanes)
        return min((timing.seconds_per_row for timing in known), default=math.inf)

    def _is_fastest(self, form: str, program: Program) -> bool:
        return self.timing(form).seconds_per_row == self._best(program) < math.inf

    def _is_hopeless(self, timing: Timing, trial: _Trial) -> bool:
        slow = timing.seconds_per_row >= HOPELESS * (
            self._best(trial.program) + CALL_SECONDS / trial.batch_size
        )
        return slow and math.isfinite(timing.seconds_per_row)

    def _cost(self, form: str, remaining_rows: int, lanes: float) -> float:
        """What so many rows take, where there are so many lanes for each state."""
        timing = self._timings[form]
        compiling = 0.0 if form in self._compiled else timing.compile_seconds
        return timing.seconds_per_row * max(1, remaining_rows) * lanes + compiling

    def _at_least(self, form: str, timing: Timing) -> Timing:
        """Compiling takes no less than it took for another batch size."""
        before = (
            other._timings[form].compile_seconds
            for other in self._others
            if form in other._compiled
        )
        return replace(timing, compile_seconds=max(timing.compile_seconds, *before, 0.0))

    def _measure(self, form: str, trial: _Trial, remaining_rows: int) -> None:
        saved = trial.program.read()
        try:
            timing = self._at_least(form, trial.start(form))
            promising = (
                not self._is_hopeless(timing, trial)
                if self._timings
                else _pays(timing.seconds_per_row * remaining_rows, trial.program, timing)
            )
            if trial.shows(form) and promising:
                timing = trial.sample(form, timing)
            if trial.shows(form) and (promising or self._timings):
                self._measured[form] = timing
        except self._memory_errors:
            if not self._timings:
                raise
            timing = self._measured[form] = DOES_NOT_WORK
        except self._failures as error:
            self.reason = self.reason or f"{type(error).__name__}: {summary(error)}"
            timing = self._measured[form] = DOES_NOT_WORK
        finally:
            trial.program.write(saved)
        self._compiled.add(form)
        self._timings[form] = timing


@dataclass(frozen=True)
class _Trial:
    """A few batches of a buffer to time forms on."""

    program: Program
    buffer: Buffer
    order: Order
    batch_size: int

    def least_rows(self, form: str) -> int:
        """The rows of one call of a form."""
        return self.program.batches_at_once.get(form, 1) * self.batch_size

    def shows(self, form: str) -> bool:
        """Whether there are as many rows as a call of the form takes."""
        return len(self.order) >= self.least_rows(form)

    def start(self, form: str) -> Timing:
        """Compile a form, and time it on one call. Found compiled, it took as long before, as will
        others.
        """
        rows = min(self.least_rows(form), len(self.order))
        self.program.spared()
        first, second = self._seconds(form, rows), self._seconds(form, rows)
        return Timing(
            second / (rows * self.lanes(form)), max(0.0, first - second) + self.program.spared()
        )

    def sample(self, form: str, rough: Timing) -> Timing:
        """Time a compiled form on more calls."""
        least, lanes = self.least_rows(form), self.lanes(form)
        calls = int(SAMPLE_SECONDS / (rough.seconds_per_row * least * lanes))
        rows = max(1, min(calls, len(self.order) // least)) * least
        seconds = min(self._seconds(form, rows) for _ in range(2))
        timing = Timing(min(rough.seconds_per_row, seconds / (rows * lanes)), rough.compile_seconds)
        whole = rows + least > len(self.order)
        return timing if whole or seconds > SAMPLE_SECONDS / 3 else self.sample(form, timing)

    def lanes(self, form: str) -> int:
        """How many states a form trains in one call; here all are the one that is held."""
        return self.program.lanes.get(form, 1)

    def _seconds(self, form: str, rows: int) -> float:
        began = time.perf_counter()
        self.program.train(self.buffer, self.order[:rows], self.batch_size, form)
        return time.perf_counter() - began


def _pays(seconds: float, program: Program, first: Timing, worth: float = WORTH) -> bool:
    """Whether so much work is worth trying a form, given what the first form took to compile."""
    return seconds > worth * program.compilation_factor * first.compile_seconds


def _timing(entry: Mapping[str, Any]) -> Timing:
    known = entry.get("seconds_per_row") is not None
    return Timing(
        number(entry, "seconds_per_row") if known else math.inf, number(entry, "compile_seconds")
    )
