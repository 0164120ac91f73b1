"""What work on a worker has cost, as its session tells it with the results of jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.trainer_client.process.cpu_clock import seconds


class Cost(NamedTuple):
    """Processor seconds of a trainer and of the backend that has it, seconds of jobs on a GPU,
    bytes of states that were read, and the most memory that the trainer had. The fields are columns
    of the log."""

    trainer_seconds: float = 0.0
    backend_seconds: float = 0.0
    gpu_seconds: float = 0.0
    read_bytes: int = 0
    peak_memory_bytes: int = 0

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Cost:
        """That of a job, by what it came to."""
        return cls(**found["cost"])

    def less(self, other: Cost) -> Cost:
        """Without what is part of it; its peak stays.

        >>> tuple(Cost(3.0, 1.0, 0.5, 10, 300).less(Cost(1.0, 0.5, 0.5, 10, 300)))
        (2.0, 0.5, 0.0, 0, 300)
        """
        trainer, backend, gpu, read, peak = self
        return Cost(trainer - other[0], backend - other[1], gpu - other[2], read - other[3], peak)


def total(costs: Iterable[Cost]) -> Cost:
    """Of several: their sum, and the largest peak.

    >>> tuple(total([Cost(1.0, 0.5, 0.0, 10, 300), Cost(2.0, 0.5, 1.0, 0, 200)]))
    (3.0, 1.0, 1.0, 10, 300)
    """
    trainers, backends, gpus, read, peaks = zip(Cost(), *costs)
    return Cost(sum(trainers), sum(backends), sum(gpus), sum(read), max(peaks))


class Account:
    """What a worker was told in a run, and what of that the log has as the cost of a visit or an
    evaluation.
    """

    def __init__(self) -> None:
        self.told = Cost()
        self._charged = Cost()
        self._at_start = 0
        self._processes: tuple[
            int, ...
        ] = ()  # its trainer and its backend, where they are of this machine
        self._seen: tuple[float, ...] = ()  # by their clocks, when it was told last

    def start(self, hello: Mapping[str, Any], processes: Sequence[int]) -> None:
        """A trainer has started: its process, where that is of this machine, and its backend, if
        that is another one than this."""
        self._processes = tuple(processes)
        self._at_start = max(self._at_start, self.tell(hello).peak_memory_bytes)

    def abandon(self) -> None:
        """Nobody will hear of what is under way: what it has cost is taken from the clocks of its
        processes.
        """
        spent = (max(0.0, now - before) for now, before in zip(self._clocks(), self._seen))
        trainer, backend = (*spent, 0.0, 0.0)[:2]
        self.told = total((self.told, Cost(trainer, backend)))
        self._processes = ()

    def _clocks(self) -> tuple[float, ...]:
        return tuple(seconds(process) or 0.0 for process in self._processes)

    def tell(self, found: Mapping[str, Any]) -> Cost:
        """A job has ended."""
        cost = Cost.of(found)
        self.told, self._seen = total((self.told, cost)), self._clocks()
        return cost

    def charge(self, cost: Cost) -> Cost:
        """The log has it."""
        self._charged = total((self._charged, cost))
        return cost

    @property
    def rest(self) -> Cost:
        """What belongs to no visit and no evaluation; its peak is that of trainers which have just
        started.
        """
        return self.told.less(self._charged)._replace(peak_memory_bytes=self._at_start)
