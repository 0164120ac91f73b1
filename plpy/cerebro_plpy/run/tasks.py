"""What the epoch loop gives its workers to do, and what it needs of the place that it runs in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Union

from cerebro_plpy.errors import ConnectionFailure, OutOfMemory, TrainerFailure
from cerebro_plpy.hopping.schedule import Visit
from cerebro_plpy.platform.job import Sums
from cerebro_plpy.platform.protocol import BestState, Worker
from cerebro_plpy.run.request import Evaluation

# Errors after which the same task may succeed with a new trainer or session.
PASSING = (TrainerFailure, OutOfMemory, ConnectionFailure)


@dataclass(frozen=True)
class Surroundings:
    """What a run needs of the place it runs in.

    `check` is called often and may raise; `epoch` hears of each epoch that all configurations have completed
    (its number, its seconds, all evaluations so far, mean losses while training by mst_key), `failed` of each
    configuration that fails, `note` what else the caller should know; `reopen` gives a worker a new session after
    it lost its own, or says that it cannot.
    """

    check: Callable[[], None]
    epoch: Callable[[int, float, Sequence[Evaluation], Mapping[int, float]], None]
    failed: Callable[[int, str], None]
    note: Callable[[str], None]
    reopen: Callable[[Worker], bool]


@dataclass(frozen=True)
class Results:
    """The task of computing final metrics after an epoch, from sums over segments; `visit` was the last to add some."""

    visit: Visit
    sums: Sums
    attempt: int = 1

    @property
    def mst_key(self) -> int:
        return self.visit.mst_key


@dataclass(frozen=True)
class Keeping:
    """The task of keeping a state as that of the best epoch; meanwhile nothing else is done with its configuration."""

    best: BestState
    attempt: int = 1

    @property
    def mst_key(self) -> int:
        return self.best.mst_key


Further = Union[Results, Keeping]
"""What follows an evaluation; any worker can do it."""
Task = Union[Visit, Further]
