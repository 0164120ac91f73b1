"""Resource usage of workers, which their sessions report with the results of jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.trainer_client.process.cpu_clock import read_seconds


class Cost(NamedTuple):
    """Resource usage of a trainer and its backend. The fields are columns of the log."""

    trainer_seconds: float = 0.0  # CPU
    backend_seconds: float = 0.0  # CPU
    gpu_seconds: float = 0.0  # duration of jobs on a GPU
    read_bytes: int = 0  # states
    peak_memory_bytes: int = 0  # of the trainer

    @classmethod
    def from_result(cls, result: JsonObject) -> Cost:
        """Return the cost in the result of a job."""
        return cls(**result["cost"])

    def subtract(self, part: Cost) -> Cost:
        """Return the cost without a part of it; the peak remains.

        >>> tuple(Cost(3.0, 1.0, 0.5, 10, 300).subtract(Cost(1.0, 0.5, 0.5, 10, 300)))
        (2.0, 0.5, 0.0, 0, 300)
        """
        return Cost(
            self.trainer_seconds - part.trainer_seconds,
            self.backend_seconds - part.backend_seconds,
            self.gpu_seconds - part.gpu_seconds,
            self.read_bytes - part.read_bytes,
            self.peak_memory_bytes,
        )


def total(costs: Iterable[Cost]) -> Cost:
    """Return the sum of costs, with the largest peak.

    >>> tuple(total([Cost(1.0, 0.5, 0.0, 10, 300), Cost(2.0, 0.5, 1.0, 0, 200)]))
    (3.0, 1.0, 1.0, 10, 300)
    """
    trainers, backends, gpus, read, peaks = zip(Cost(), *costs)
    return Cost(sum(trainers), sum(backends), sum(gpus), sum(read), max(peaks))


class Account:
    """The cost that a worker has reported in a run, and the part that the log assigns to visits."""

    def __init__(self) -> None:
        self.reported = Cost()
        self._charged = Cost()
        self._start_peak = 0  # bytes of memory, of trainers that had just started
        self._processes: tuple[int, ...] = ()  # trainer and backend, if on this machine
        self._clocks: tuple[float, ...] = ()  # CPU seconds of these processes at the last report

    def start(self, hello: JsonObject, processes: Sequence[int]) -> None:
        """Record that a trainer has started.

        Args:
            hello: the trainer's first message.
            processes: the trainer if it runs on this machine, and its backend if that is not the
                current process.
        """
        self._processes = tuple(processes)
        self._start_peak = max(self._start_peak, self.report(hello).peak_memory_bytes)

    def abandon(self) -> None:
        """Estimate the cost of a job that will not report it, from the clocks of its processes."""
        pairs = zip(self._read_clocks(), self._clocks)
        seconds = [max(0.0, now - earlier) for now, earlier in pairs]
        trainer, backend = [*seconds, 0.0, 0.0][:2]
        self.reported = total((self.reported, Cost(trainer, backend)))
        self._processes = ()

    def _read_clocks(self) -> tuple[float, ...]:
        return tuple(read_seconds(process) or 0.0 for process in self._processes)

    def report(self, result: JsonObject) -> Cost:
        """Add and return the cost of a job that has ended."""
        cost = Cost.from_result(result)
        self.reported = total((self.reported, cost))
        self._clocks = self._read_clocks()
        return cost

    def charge(self, cost: Cost) -> Cost:
        """Record and return a cost that the log assigns to a visit or an evaluation."""
        self._charged = total((self._charged, cost))
        return cost

    @property
    def unassigned(self) -> Cost:
        """The cost of no visit and no evaluation.

        Its peak is that of trainers that had just started.
        """
        unassigned = self.reported.subtract(self._charged)
        return unassigned._replace(peak_memory_bytes=self._start_peak)
