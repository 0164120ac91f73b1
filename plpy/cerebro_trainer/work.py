"""The commands that need a framework: which state is held, which job is open, and what ends them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

from cerebro_trainer import packing, state
from cerebro_trainer.buffers import Buffer, Dataset
from cerebro_trainer.errors import CONFIG_EXCEPTIONS, ConfigError, RequestError, summary
from cerebro_trainer.fields import integer, record, text, typed
from cerebro_trainer.forms import Forms
from cerebro_trainer.jobs import EvaluateJob, Fit, Job, PredictJob, TrainJob
from cerebro_trainer.predictions import Want, tabulate
from cerebro_trainer.programs import Framework, Program, Programs
from cerebro_trainer.specs import ProgramSpec
from cerebro_trainer.wire import Bytes, Message, Messages

Header: TypeAlias = Mapping[str, Any]


class Held(NamedTuple):
    """The state that a program's variables now are, under the name the backend gave it."""

    key: str
    program: Program


class Work:
    """At most one job at a time, over datasets that the trainer keeps."""

    def __init__(self, framework: Framework, datasets: Mapping[str, Dataset], check_peer: Callable[[], None]) -> None:
        self._framework = framework
        self._failures: tuple[type[Exception], ...] = (*framework.errors, *CONFIG_EXCEPTIONS)
        self._datasets = datasets
        self._check_peer = check_peer
        self._programs = Programs(framework.make)
        self._forms: WeakKeyDictionary[Program, dict[int, Forms]] = WeakKeyDictionary()
        self._chunks: list[Bytes] = []
        self._held: Held | None = None
        self._job: Job | None = None
        self._result_key = ""

    def state(self, header: Header, payload: Bytes) -> Messages:
        """Keep a chunk for the next `begin`."""
        self._chunks.append(payload)
        return ()

    def begin(self, header: Header, payload: Bytes) -> Messages:
        """Load a state into its program and open a job on it."""
        self._job = None
        source = text(record(header, "state"), "source", choices=("new", "weights", "chunks", "kept"))
        result_key = text(header, "result_key")
        spec = ProgramSpec.from_header(header)
        with self._boundary():
            program = self._programs.get(spec)
            self._load(program, source, record(header, "state"))
            program.set_numbers(spec)
            self._job = self._make_job(program, header)
        self._chunks = []
        # A state in training has no name until it is done.
        self._held = None if isinstance(self._job, TrainJob) else Held(result_key, program)
        self._result_key = result_key
        return (Message({"ok": {"kept": source == "kept"}}),)

    def stream(self, key: str, buffer: Buffer, header: Header) -> bool:
        """Work on a buffer at once if the open job streams its dataset; says whether it did."""
        if self._job is None or key not in self._job.streamed:
            return False
        with self._boundary():
            self._job.take(key, buffer, integer(header, "pass", minimum=0) if "pass" in header else 0)
        return True

    def finish(self, header: Header, payload: Bytes) -> Messages:
        """Do the job's work over cached datasets, and close it."""
        job = self._open_job()
        with self._boundary():
            for pass_no in range(job.passes):
                for key in job.datasets:
                    for buffer in () if key in job.streamed else self._datasets[key].buffers:
                        self._check_peer()
                        job.take(key, buffer, pass_no)
        self._job = None
        self._held = Held(self._result_key, job.program)
        return (Message({"ok": job.result()}),)

    def state_get(self, header: Header, payload: Bytes) -> Messages:
        """The held state, in chunks."""
        size = integer(header, "chunk_bytes", minimum=1)
        if self._held is None:
            raise RequestError("no state is held", sqlstate="55000")
        program = self._held.program
        data = memoryview(state.dump(program.read(), program.layout, program.step))
        starts = range(0, len(data), size)
        for start in starts:
            yield Message({"more": True}, data[start : start + size])
        yield Message({"ok": {"bytes": len(data), "chunks": len(starts)}})

    def results(self, header: Header, payload: Bytes) -> Messages:
        """Loss and metrics from added sums."""
        sums = record(header, "sums")
        with self._boundary():
            program = self._programs.get(ProgramSpec.from_header(header))
            return (Message({"ok": {key: program.results(value) for key, value in sums.items()}}),)

    def rows(self, header: Header, payload: Bytes) -> Messages:
        """Predictions for raw rows, under the open job's state."""
        job = self._open_job()
        classes = header.get("classes")
        counts = classes if isinstance(classes, list) else [integer(header, "classes", minimum=0)]
        inputs = packing.inputs(header, payload)
        with self._boundary():
            return (
                Message({"ok": tabulate(job.program.predict(inputs), counts, Want.from_header(header)).as_header()}),
            )

    def abandon(self) -> None:
        """Drop the open job, and chunks that no `begin` took. What a job was changing is not held yet."""
        self._chunks = []
        self._job = None

    def reset(self) -> None:
        """Drop the state that is held, and all that belongs to it."""
        self._chunks = []
        self._job = self._held = None

    def _open_job(self) -> Job:
        if self._job is None:
            raise RequestError("no job is open", sqlstate="55000")
        return self._job

    def _load(self, program: Program, source: str, header: Header) -> None:
        if source == "kept":
            key = text(header, "key")
            if self._held != Held(key, program):
                held = "no state" if self._held is None else f"state {self._held.key!r}"
                raise RequestError(
                    f"state {key!r} is not held, but {held}",
                    sqlstate="55000",
                    hint="Send the state's chunks.",
                )
            return
        self._held = None
        if source == "chunks":
            program.write(state.load(self._chunks, program.layout))
            return
        fresh = program.initial(integer(header, "seed"))
        program.write(fresh if source == "new" else state.with_flat_weights(fresh, self._chunks, program.layout))

    def _make_job(self, program: Program, header: Header) -> Job:
        kind = text(header, "job", choices=("train", "evaluate", "predict"))
        keys = () if kind == "predict" else tuple(typed(header, "datasets", list))
        unknown = [key for key in keys if key not in self._datasets]
        if unknown:
            raise RequestError(f"datasets {unknown} were not opened", sqlstate="55000")
        job = self._job_of_kind(kind, program, keys, header)
        job.streamed = {key for key in keys if not self._datasets[key].complete}
        return job

    def _job_of_kind(self, kind: str, program: Program, keys: tuple[str, ...], header: Header) -> Job:
        if kind == "train":
            fit = Fit.from_header(header, [rows for key in keys for rows in self._datasets[key].sizes])
            forms = self._forms.setdefault(program, {}).setdefault(fit.batch_size, self._new_forms())
            return TrainJob(program, keys, fit, forms, self._framework.threads)
        return EvaluateJob(program, keys) if kind == "evaluate" else PredictJob(program, keys)

    def _new_forms(self) -> Forms:
        return Forms(self._failures, self._framework.memory_errors)

    @contextmanager
    def _boundary(self) -> Iterator[None]:
        """The one place where what a framework raises for a config becomes that config's failure."""
        try:
            yield
        except self._framework.memory_errors as error:
            raise ConfigError(
                f"the config ran out of memory: {summary(error)}",
                sqlstate="53200",
                hint="A smaller batch_size or a smaller model needs less.",
            ) from error
        except self._failures as error:
            raise ConfigError(f"{type(error).__name__}: {summary(error)}") from error
