"""What of a trainer's work outlives a session: its programs, and what was learnt of them while they
were compiled.

All else is of one session. When that is over, nothing of its rows or states is left in the programs
either, and the next session of the same role finds them compiled.
"""

from __future__ import annotations

import ctypes
import gc
import random
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

import numpy as np

from cerebro_trainer.errors import CONFIG_EXCEPTIONS, ConfigError, summary
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.programs.execution_modes import ModeSelector
from cerebro_trainer.programs.framework_warnings import FrameworkWarnings
from cerebro_trainer.programs.memory import MemoryBudget
from cerebro_trainer.programs.program import Framework, Program, Programs

NAMES = 64
"""Of what is compiled of a program: a few sizes of batches."""


class Workshop:
    """The programs of a process, of one session after another."""

    def __init__(self, framework: Framework, memory: int = 0) -> None:
        """`memory`: bytes that the process may have, 0 for any number."""
        self.framework = framework
        self._memory = memory
        self.failures: tuple[type[Exception], ...] = (*framework.errors, *CONFIG_EXCEPTIONS)
        self.programs = Programs(framework.make_program)
        self.warnings = FrameworkWarnings()
        self._forms: WeakKeyDictionary[Program, dict[int, ModeSelector]] = WeakKeyDictionary()
        self._names: WeakKeyDictionary[Program, deque[str]] = WeakKeyDictionary()

    def program(self, spec: ProgramSpec, form: str | None = None) -> Program:
        """The program of a spec, which has that form if one is named; made, if need be, for the
        memory that is left.
        """
        return self.programs.get(spec, MemoryBudget(self._memory, form))

    @contextmanager
    def boundary(self, *, silent: bool) -> Iterator[None]:
        """The one place where what a framework raises for a config becomes that config's failure.

        What it says may have numbers of the network, which who may not read it is not told: that is
        `silent`.
        """
        try:
            with self.warnings.record():
                yield
        except self.framework.fatal_errors:
            raise  # it ends the process, and the backend starts another one
        except self.framework.memory_errors as error:
            raise ConfigError(
                "the config ran out of memory" + ("" if silent else f": {summary(error)}"),
                sqlstate="53200",
                hint="A smaller batch_size or a smaller model needs less.",
            ) from error
        except self.failures as error:
            raise ConfigError(
                f"{type(error).__name__}{'' if silent else f': {summary(error)}'}"
            ) from error

    def forms(self, program: Program, batch_size: int) -> ModeSelector:
        """What is known of the forms of a program with batches of that size."""
        sizes = self._forms.setdefault(program, {})
        if batch_size not in sizes:
            sizes[batch_size] = ModeSelector(
                self.failures, self.framework.memory_errors, tuple(sizes.values())
            )
        return sizes[batch_size]

    def name(self, program: Program, compilation: str) -> None:
        """What is compiled of a program now is found by this name, also by later sessions."""
        names = self._names.setdefault(program, deque(maxlen=NAMES))
        if compilation not in names:
            names.append(compilation)

    @property
    def compilations(self) -> list[str]:
        """The names of all that is compiled."""
        return sorted({name for names in self._names.values() for name in names})

    def wipe(self) -> None:
        """A session is over: overwrite what it has left, give memory back, and draw other random
        numbers.
        """
        self.warnings.discard()
        self.programs.wipe()
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        random.seed()
        np.random.seed()
