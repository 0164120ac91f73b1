"""The part of a trainer's work that outlives a session: learners and their timings.

Everything else belongs to one session. When a session ends, the learners lose its rows and states,
and the next session of the same role finds them compiled.
"""

from __future__ import annotations

import ctypes
import gc
import random
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import count
from weakref import WeakKeyDictionary

import numpy as np

from cerebro_trainer.boosting.family import BoostedTrees, is_boosted_trees
from cerebro_trainer.boosting.row_memory import RowMemory
from cerebro_trainer.errors import CONFIG_EXCEPTIONS, ConfigError, ExceptionTypes, summary
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.programs.execution_modes import ModeSelector
from cerebro_trainer.programs.framework_warnings import FrameworkWarnings
from cerebro_trainer.programs.learner import Learner, Learners
from cerebro_trainer.programs.memory import MemoryBudget
from cerebro_trainer.programs.program import Framework, Program

STATE_COPIES = 3
"""States of boosted trees in memory at once: before and after a growth, and one to be stored."""
MAX_COMPILATIONS = 64
"""Of one program: one for each of a few batch sizes."""


class ProgramCache:
    """The learners of a process, which several sessions use one after another.

    Args:
        memory: bytes that the process may use; 0 for no limit.
    """

    def __init__(self, framework: Framework, memory: int = 0) -> None:
        self.framework = framework
        self.learners = Learners(self._make_learner)
        self._row_memory = RowMemory()
        self.warnings = FrameworkWarnings()
        self.budget = MemoryBudget(memory)
        self._config_errors: ExceptionTypes = (*framework.errors, *CONFIG_EXCEPTIONS)
        self._selectors: WeakKeyDictionary[Program, dict[int, ModeSelector]] = WeakKeyDictionary()
        self._compilations: WeakKeyDictionary[Learner, deque[str]] = WeakKeyDictionary()

    def _make_learner(self, spec: ProgramSpec, budget: MemoryBudget) -> Learner:
        """Create the learner of a spec, of the family that its architecture names."""
        if not is_boosted_trees(spec):
            return self.framework.make_program(spec, budget)
        trees = BoostedTrees(spec, self.framework.threads, self._row_memory)
        budget.check("boosted trees", STATE_COPIES * trees.layout.nbytes)
        return trees

    def get_learner(self, spec: ProgramSpec, mode: str | None = None) -> Learner:
        """Return the learner of a spec, and create it if necessary.

        Args:
            mode: an execution mode that the learner must have.
        """
        return self.learners.get(spec, self.budget._replace(mode=mode))

    def get_unused_learner(self, spec: ProgramSpec, used: Collection[Learner]) -> Learner:
        """Return a learner of a spec whose variables contain no other member of a job.

        Args:
            used: the learners of these members.
        """
        learners = (self.learners.get(spec, self.budget, copy) for copy in count())
        return next(learner for learner in learners if learner not in used)

    @contextmanager
    def catch_errors(self, *, hide_details: bool) -> Iterator[None]:
        """Turn errors that a framework raises for a config into a ConfigError; nothing else does.

        Args:
            hide_details: omit the framework's message, because it may contain numbers of a network
                that the user may not read.
        """

        def describe(error: Exception) -> str:
            return "" if hide_details else f": {summary(error)}"

        try:
            with self.warnings.record():
                yield
        except self.framework.fatal_errors:
            raise  # the process ends, and the backend starts another one
        except self.framework.memory_errors as error:
            raise ConfigError(
                f"the config ran out of memory{describe(error)}",
                sqlstate="53200",
                hint="A smaller batch_size or a smaller model needs less.",
            ) from error
        except self._config_errors as error:
            raise ConfigError(f"{type(error).__name__}{describe(error)}") from error

    def get_mode_selector(self, program: Program, batch_size: int) -> ModeSelector:
        """Return the selector of execution modes for a program and batch size."""
        selectors = self._selectors.setdefault(program, {})
        if batch_size not in selectors:
            selectors[batch_size] = ModeSelector(
                self._config_errors, self.framework.memory_errors, tuple(selectors.values())
            )
        return selectors[batch_size]

    def add_compilation(self, learner: Learner, name: str) -> None:
        """Record the backend's name for the code that is compiled for a learner now."""
        names = self._compilations.setdefault(learner, deque(maxlen=MAX_COMPILATIONS))
        if name not in names:
            names.append(name)

    @property
    def compilations(self) -> list[str]:
        """The names of all compiled code."""
        return sorted({name for names in self._compilations.values() for name in names})

    def release_rows(self) -> None:
        """Release rows that learners keep for the next visit."""
        self.learners.release_rows()

    def clear_session_data(self) -> None:
        """Overwrite the data of a session, release memory, and reseed the random generators."""
        self.warnings.discard()
        self.learners.wipe()
        self._row_memory.clear()
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        random.seed()
        np.random.seed()
