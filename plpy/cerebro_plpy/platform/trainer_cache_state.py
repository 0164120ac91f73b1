"""The known content of a trainer, so that nothing is sent to it twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.platform.job import Dataset, Job, StateSource


class TrainerCacheState:
    """The content of one trainer: partitions, programs by key, and the state of its last job.

    The trainer may have more, but never less. Call `lose_state` or `forget` if the outcome of a job
    is unknown.
    """

    def __init__(self) -> None:
        self.machine = ""
        self.threads = 0
        self.cache_bytes = 0
        self.compilations: frozenset[str] = frozenset()
        self.software: Mapping[str, str] = {}
        self.forget()

    def forget(self) -> None:
        """Record that the trainer has ended."""
        self.started = False
        self._datasets: dict[str, bool] = {}  # True if cached, by key
        self._programs: set[str] = set()
        self._state = ""
        self._base: str | None = None
        # Names of states that are still to be stored, and that it must keep until then.
        self.unstored: tuple[str, ...] = ()

    def start(self, hello: JsonObject, cache_bytes: int | None) -> None:
        """Record that the trainer has started.

        Args:
            hello: the trainer's first message.
            cache_bytes: bytes of partitions that it may cache; by default all that its machine
                allows.
        """
        self.started = True
        self.machine = hello["machine"]
        self.threads = hello["threads"]
        self.compilations = frozenset(hello["compilations"])
        self.software = {
            hello["framework"]: hello["framework_version"],
            "keras": hello["keras_version"],
            "python": hello["python_version"],
        }
        self.cache_bytes = hello["cache_bytes"] if cache_bytes is None else cache_bytes

    def lacks(self, dataset: Dataset) -> bool:
        """Return True if it has not received a partition yet."""
        return dataset.key not in self._datasets

    def add_dataset(self, dataset: Dataset, is_cached: bool) -> None:
        """Record that it has received a partition, which it may have cached."""
        self._datasets[dataset.key] = is_cached

    def has_cached(self, datasets: Iterable[Dataset]) -> bool:
        """Return True if it has cached all of these partitions."""
        return all(self._datasets.get(dataset.key) for dataset in datasets)

    def count_passes(self, job: Job, dataset: Dataset) -> int:
        """Return how often a job needs a partition to be sent."""
        if self._datasets.get(dataset.key):
            return 0
        return job.passes

    def job_spec(self, job: Job, state: StateSource, datasets: Sequence[Dataset]) -> JsonObject:
        """Return the JSON of a job, without a program or state that the trainer has."""
        source = state.source
        if self._state == state.key and state.may_be_cached:
            source = "kept"
        start_state = {
            "source": source,
            "key": state.key,
            "seed": state.seed,
            "shares": [rows for _, rows in state.of],
        }
        base = state.stored and state.stored.base_digest
        if source == "chunks" and base and base == self._base:
            start_state["base"] = base
        spec = {
            **job.to_json(self.has_program(job.program_key)),
            "state": start_state,
            "datasets": [dataset.key for dataset in datasets],
        }
        buffers = {
            dataset.key: list(dataset.buffers)
            for dataset in datasets
            if dataset.buffers is not None
        }
        if buffers:
            spec["buffers"] = buffers
        if self.unstored:
            spec["unstored"] = self.unstored
        return spec

    def has_program(self, key: str | None) -> bool:
        """Return True if it has the program of this name in its cache."""
        return key in self._programs

    def finish_job(self, job: Job, base: str | None = None) -> None:
        """Record that it has done a job.

        Args:
            base: digest of frozen weights that the next job can start from.
        """
        self._base = base
        if job.program_key:
            self._programs.add(job.program_key)
        self._state = job.result_key if job.leaves_state else ""

    def lose_state(self) -> None:
        """Record that it is unknown whether it has a state."""
        self._state = ""
        self._base = None
        self.unstored = ()
