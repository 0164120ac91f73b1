"""What a trainer is known to hold, so that it is told and given nothing twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cerebro_plpy.platform.job import Dataset, Job, StateSource, Sums


class TrainerMemory:
    """What one trainer holds: partitions, programs by key, and the state that its last job left.

    It may hold more, never less: whoever cannot tell what became of a job says so, by `lost_state`
    or `forget`.
    """

    def __init__(self) -> None:
        self.machine, self.threads, self.cache_bytes = "", 0, 0
        self.compilations: frozenset[str] = frozenset()
        self.software: Mapping[str, str] = {}
        self.forget()

    def forget(self) -> None:
        """The trainer is gone, and with it all that it held."""
        self.started = False
        self._datasets: dict[str, bool] = {}
        self._programs: set[str] = set()
        self._state = ""
        self._base: str | None = None
        self.unstored: tuple[str, ...] = ()
        """The names of states that are to be stored, which it must have until they are."""

    def start(self, hello: Mapping[str, Any], cache_bytes: int | None) -> None:
        """It runs; `cache_bytes` of partitions it may keep, or by default what its machine has room
        for.
        """
        self.started = True
        self.machine, self.threads = hello["machine"], hello["threads"]
        self.compilations = frozenset(hello["compilations"])
        self.software = {
            hello["framework"]: hello["framework_version"],
            "keras": hello["keras_version"],
            "python": hello["python_version"],
        }
        self.cache_bytes = hello["cache_bytes"] if cache_bytes is None else cache_bytes

    def lacks(self, dataset: Dataset) -> bool:
        """Whether it has not seen a partition yet."""
        return dataset.key not in self._datasets

    def loaded(self, dataset: Dataset, kept: bool) -> None:
        """It has seen a partition, and keeps it or not."""
        self._datasets[dataset.key] = kept

    def keeps(self, datasets: Iterable[Dataset]) -> bool:
        """Whether it has all of these partitions."""
        return all(self._datasets.get(dataset.key) for dataset in datasets)

    def passes(self, job: Job, dataset: Dataset) -> int:
        """How often a partition must be passed to it for a job."""
        return 0 if self._datasets.get(dataset.key) else job.passes

    def spec(self, job: Job, state: StateSource, datasets: Sequence[Dataset]) -> dict[str, Any]:
        """What it is told of a job, without what it has: the program, or the state to start
        from.
        """
        chosen = {each.key: list(each.buffers) for each in datasets if each.buffers is not None}
        source = "kept" if self._state == state.key and state.may_be_kept else state.source
        base = state.stored.base_digest if state.stored and source == "chunks" else None
        told = {
            "source": source,
            "key": state.key,
            "seed": state.seed,
            "shares": [rows for _, rows in state.of],
        }
        return {
            **job.to_json(known=job.program_key in self._programs),
            "state": {**told, "base": base} if base and base == self._base else told,
            "datasets": [dataset.key for dataset in datasets],
            **({"buffers": chosen} if chosen else {}),
            **({"unstored": self.unstored} if self.unstored else {}),
        }

    def sums(self, sums: Sums) -> dict[str, Any]:
        """What it is told of sums, without what it has."""
        return sums.to_json(known=sums.program_key in self._programs)

    def did(self, job: Job, base: str | None = None) -> None:
        """It has done a job, and says which frozen weights the next one can begin from, by their
        digest.
        """
        self._base = base
        self._programs |= {job.program_key} if job.program_key else set()
        self._state = job.result_key if job.leaves_state else ""

    def lost_state(self) -> None:
        """Whether it holds a state cannot be told."""
        self._state, self._base, self.unstored = "", None, ()
