"""An epoch loop that checks each transition of phases, and may be killed at any stage of a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from phases import TRANSITIONS, Phase, find_phase

from cerebro_plpy.database.sessions.async_dispatcher import Statement
from cerebro_plpy.errors import CerebroError
from cerebro_plpy.records import dataclass
from cerebro_plpy.run.loop.epoch_loop import EpochLoop
from cerebro_plpy.run.loop.step import Step

STAGES = ("log", "changes", "tasks", "notes", "end")
"""A killed loop has done all stages before the named one, and nothing of that one."""


@dataclass(frozen=True)
class Noted(Statement):
    """A statement of which a log takes note when it is written."""

    note: Callable[[], object] = lambda: None


def die() -> NoReturn:
    """End the loop as if its process were gone."""
    raise CerebroError("killed")


class WatchedLoop(EpochLoop):
    """Checks that the phase of each configuration follows from the one before."""

    steps = 0
    kill_step = -1  # number of the step in which the loop is killed
    kill_stage = "log"
    resumes = False  # what an interrupted run has left is being completed

    def execute(self, step: Step) -> None:
        before = self._find_phases()
        if self.steps == self.kill_step:
            self._die_in(step)
        self.steps += 1
        super().execute(step)
        for key, phase in self._find_phases().items():
            previous = before.get(key, phase)
            is_late_copy = self.resumes and phase is Phase.SAVING_BEST
            assert phase is previous or phase in TRANSITIONS[previous] or is_late_copy, (
                f"mst_key {key} went from {previous} to {phase} by {step}"
            )

    def _resume(self) -> Iterator[Step]:
        self.resumes = True
        yield from super()._resume()
        self.resumes = False

    def _die_in(self, step: Step) -> NoReturn:
        if self.kill_stage == "end":
            super().execute(step)
        else:
            done = STAGES[: STAGES.index(self.kill_stage)]
            killed: dict[str, Any] = {stage: getattr(step, stage) for stage in done}
            super().execute(Step(**killed))
        die()

    def _find_phases(self) -> dict[int, Phase]:
        state = self._run.state
        return {key: find_phase(state, key) for key in state.configs}
