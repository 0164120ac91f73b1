"""The commands that need a framework: which state is held, which job is open, and what ends
them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

from cerebro_trainer.commands import row_outputs
from cerebro_trainer.commands.frozen_weight_cache import HeldBase
from cerebro_trainer.commands.fusion_jobs import FusionJob
from cerebro_trainer.commands.job_factory import JobMaker
from cerebro_trainer.commands.jobs import AverageJob, Job, RestoreJob, TrainJob
from cerebro_trainer.commands.permutation_importance import (
    Shuffling,
    attribution_columns,
    places,
    rows_and_target,
)
from cerebro_trainer.commands.prediction_columns import Telling
from cerebro_trainer.commands.predictions import Want, as_columns, tabulate
from cerebro_trainer.commands.program_cache import ProgramCache
from cerebro_trainer.commands.row_outputs import Lines, OutputsJob
from cerebro_trainer.commands.state_snapshots import Held, Loading, Snapshot, not_held
from cerebro_trainer.data import raw_rows
from cerebro_trainer.data.arrays import format_literal
from cerebro_trainer.data.buffers import Buffer, Dataset, parse_buffer
from cerebro_trainer.data.recipe_values import RecipeEncoder
from cerebro_trainer.errors import RequestError
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.programs.program import Array, Program
from cerebro_trainer.state import averaging, readers
from cerebro_trainer.state.readers import Origin
from cerebro_trainer.state.serialization import bytes_of
from cerebro_trainer.wire import streams
from cerebro_trainer.wire.fields import integer, integers, record, text, texts, typed
from cerebro_trainer.wire.frames import Bytes, Message, Messages
from cerebro_trainer.wire.streams import Reader

Header: TypeAlias = Mapping[str, Any]
SOURCES = ("new", "kept", "chunks", "averaged", "joined", "weights", "weights_of_chunks", "warm")


class Work:
    """At most one job at a time, over datasets that the trainer keeps."""

    private = False
    """Whether it has had what must not stay in a process that another session may have: weights
    that its session was not to see, or functions of users."""

    def __init__(
        self,
        workshop: ProgramCache,
        datasets: Mapping[str, Dataset],
        check_peer: Callable[[], None],
    ) -> None:
        self._workshop = workshop
        self._datasets = datasets
        self._check_peer = check_peer
        self._specs: dict[str, ProgramSpec] = {}
        self._held: Held | None = None
        self._base = HeldBase()
        self._unstored: Mapping[str, Snapshot] = {}
        self._maker = JobMaker(workshop, datasets)
        self._job: Job | None = None
        self._loading: Loading | None = None
        self._outputs: Sequence[Lines] | None = None
        self._result_key = ""
        self._origin = Origin(0, is_complete=False)
        self._sealed = False
        self._recipe: RecipeEncoder | None = None

    def begin(self, header: Header, payload: Bytes) -> Messages:
        """Open a job on a state; where that comes in chunks, they follow and go straight into the
        program.
        """
        if header.get("beside") is True:
            return self._begin_beside(header)
        self.abandon()
        self._retain(texts(header, "unstored") if "unstored" in header else ())
        source = text(record(header, "state"), "source", choices=SOURCES)
        self._result_key = text(header, "result_key")
        self._sealed = header.get("sealed") is True
        self.private |= self._sealed
        recipe = header.get("recipe")
        self._recipe = (
            None if recipe is None else RecipeEncoder.from_header(record(header, "recipe"))
        )
        spec = self._spec(header)
        with self._boundary():
            program = self._workshop.get_program(
                spec, record(header, "forms").get("use") if "forms" in header else None
            )
            reading = self._load(program, source, header)
            self._job = self._maker.made(program, header, sealed=self._sealed)
            if isinstance(self._job, FusionJob):
                self._job.admit(self._maker.trainee(program, spec, header))
            if header.get("compilation") is not None:
                self._workshop.add_compilation(program, text(header, "compilation"))
            self._await(self._job, reading, spec)
        return (Message({"ok": {"kept": source == "kept", "state_bytes": program.layout.nbytes}}),)

    def _begin_beside(self, header: Header) -> Messages:
        """Have the open job train another state, too."""
        text(header, "job", choices=("fusion",))
        job, spec = self._open_job(), self._spec(header)
        source = text(record(header, "state"), "source", choices=SOURCES)
        if not isinstance(job, FusionJob) or source == "kept":
            raise RequestError(
                "the open job takes no other state than that which it was begun with",
                sqlstate="55000",
            )
        with self._boundary():
            job.check(self._workshop.get_program(spec, job.form_asked))
            job.admit(self._maker.trainee(job.program, spec, header))
            self._await(job, self._load(job.program, source, header), spec)
        return (Message({"ok": {"kept": False, "state_bytes": job.program.layout.nbytes}}),)

    def _await(self, job: Job, reading: Reader | None, spec: ProgramSpec) -> None:
        """The state is there, or will be read."""
        self._loading = None if reading is None else Loading(streams.start_reader(reading), spec)
        if reading is None:
            self._loaded(job, spec)

    def state(self, header: Header, payload: Bytes) -> Messages:
        """Take a chunk of the state that the open job waits for."""
        if self._loading is None:
            raise RequestError("no job waits for a state", sqlstate="55000")
        if header.get("sealed") is True and not self._sealed:
            raise RequestError("the open job is none for a sealed state", sqlstate="42501")
        with self._boundary():
            self._loading.reading.send(payload.data)
        return ()

    def stream(self, key: str, buffer: Buffer, header: Header) -> bool:
        """Work on a buffer at once if the open job streams its dataset; says whether it did."""
        if self._job is None or key not in self._job.streamed:
            return False
        job = self._open_job()
        if job.wants(key, buffer):
            with self._boundary():
                job.take(key, buffer, integer(header, "pass", minimum=0) if "pass" in header else 0)
        return True

    def finish(self, header: Header, payload: Bytes) -> Messages:
        """Do the job's work over cached datasets, and close it."""
        job = self._open_job()
        with self._boundary():
            for pass_no, key in job.rounds():
                for buffer in () if key in job.streamed else self._datasets[key].buffers:
                    if job.wants(key, buffer):
                        self._check_peer()
                        job.take(key, buffer, pass_no)
            if isinstance(job, TrainJob):
                job.end()
            if job.callbacks:
                job.show(job.callbacks)
            if isinstance(job, FusionJob):
                return self._finish_fusion(job)
        self._job, self._outputs = None, job.lines if isinstance(job, OutputsJob) else None
        if isinstance(job, TrainJob):
            self._origin = Origin(job.epoch, is_complete=True)
        self._held = None if self._sealed else Held(self._result_key, job.program)
        leaves = isinstance(job, (TrainJob, AverageJob))
        bases = self._base.told(job.program if leaves else None)
        if isinstance(job, TrainJob):
            job.warnings = self._workshop.warnings.collect(job.program)
        return (Message({"ok": {**job.result(), **bases}}),)

    def _finish_fusion(self, job: FusionJob) -> Messages:
        """Close a job of several states, which are held under their names until another one begins
        without them.
        """
        kept, self._job, self._held = dict(self._unstored), None, None
        for trainee in job.left():
            self._base.replaced(job.program)
            trainee.base = self._base.of(job.program)
            kept[trainee.key] = Snapshot.of(
                Held(trainee.key, job.program), trainee.epoch, trainee.base
            )
        self._unstored = kept
        warnings = self._workshop.warnings.collect(job.program)
        return (Message({"ok": {**job.result(), "warnings": warnings, **self._base.told(None)}}),)

    def state_get(self, header: Header, payload: Bytes) -> Messages:
        """A state that is held, in chunks."""
        key = text(header, "key")
        if self._job is not None:
            self._open_job()
        if self._held is not None and self._held.key == key:
            return self._snapshot(self._held).chunks(header)
        if self._sealed and self._job is not None:
            raise RequestError("the state of this job is sealed", sqlstate="55000")
        return self.replaced_state(header)

    def replaced_state(self, header: Header) -> Messages:
        """A state that is still to be stored, in chunks; any thread may ask for it while a job is
        done.
        """
        replaced = self._unstored.get(key := text(header, "key"))
        if replaced is None:
            raise not_held(key, self._held)
        return replaced.chunks(header)

    def results(self, header: Header, payload: Bytes) -> Messages:
        """Loss and metrics from added sums."""
        sums = record(header, "sums")
        with self._boundary():
            program = self._workshop.get_program(self._spec(header))
            return (
                Message(
                    {"ok": {key: program.compute_results(value) for key, value in sums.items()}}
                ),
            )

    def rows(self, header: Header, payload: Bytes) -> Messages:
        """Predictions for raw rows, under the open job's state."""
        job = self._open_to_inputs()
        counts = typed(header, "classes", list)
        if not all(count is None or (type(count) is int and count >= 0) for count in counts):
            raise RequestError(
                f'"classes" must be numbers of classes, or null, by output; received {counts!r}'[
                    :300
                ]
            )
        inputs = raw_rows.decode_inputs(header, payload)
        with self._boundary():
            found = tabulate(job.program.predict(inputs), counts, Want.from_header(header))
        return (Message({"ok": found.as_header()}),)

    def features(self, header: Header, payload: Bytes) -> Messages:
        """What a layer gives for the rows of a buffer, under the open job's state."""
        job = self._open_job()
        if self._sealed:
            raise RequestError(
                "the state of this job is sealed: what its layers give would tell it",
                sqlstate="42501",
            )
        buffer = parse_buffer(header, payload)
        with self._boundary():
            found = job.program.compute_features(text(header, "layer"), buffer.inputs)
        return (Message({"ok": {"shape": list(found.shape)}}, bytes_of(found)),)

    def outputs(self, header: Header, payload: Bytes) -> Messages:
        """Send the outputs of rows that the job that ended last has left; they can be fetched
        once.
        """
        lines, self._outputs = self._outputs, None
        return row_outputs.chunks(lines, header)

    def tell(self, header: Header, payload: Bytes) -> Messages:
        """For each of the raw rows the class or the number that the open job's state gives, ready
        for SQL.
        """
        job = self._open_job()
        telling = Telling.from_header(header)
        inputs = (self._recipe.encode if self._recipe else raw_rows.decode_inputs)(header, payload)
        with self._boundary():
            (output,) = job.program.predict(inputs)
            return as_columns(telling.columns(output))

    def permute(self, header: Header, payload: Bytes) -> Messages:
        """How much worse the open job's state predicts the raw rows where a column of their table
        is shuffled.
        """
        job = self._open_to_inputs()
        with self._boundary():
            inputs, target = rows_and_target(header, payload, self._datasets)
            asked = Shuffling.from_header(header, inputs)
            found = [
                format_literal(losses) for losses in asked.losses(self._output(job), inputs, target)
            ]
        return as_columns(found)

    def attribute(self, header: Header, payload: Bytes) -> Messages:
        """What each column of their table adds to what the open job's state gives for the raw rows,
        and each patch.
        """
        job = self._open_to_inputs()
        inputs = raw_rows.decode_inputs(header, payload)
        columns, patches = places(header, "columns", inputs), places(header, "patches", inputs)
        with self._boundary():
            found = job.program.attribute(inputs, columns, patches)
        return as_columns(attribution_columns(found))

    def _output(self, job: Job) -> Callable[[Sequence[Array]], Array]:
        """What the one output of the job's model gives for rows, as long as anybody waits for
        it.
        """

        def predict(inputs: Sequence[Array]) -> Array:
            self._check_peer()
            (output,) = job.program.predict(inputs)
            return output

        return predict

    def abandon(self) -> None:
        """Drop the open job, and a state that is not here as a whole. What a job was changing is
        not held yet.
        """
        self._job = self._loading = self._outputs = None
        self._workshop.warnings.discard()

    def reset(self) -> None:
        """Drop the state that is held, and all that belongs to it."""
        self.abandon()
        self._held, self._unstored = None, {}
        self._base.forget()
        self._specs.clear()

    def _retain(self, keys: Collection[str]) -> None:
        """Have the states of these names, which are still to be stored, whatever is done next; and
        no others.
        """
        kept = {key: snapshot for key, snapshot in self._unstored.items() if key in keys}
        if self._held and self._held.key in {*keys} - kept.keys():
            kept[self._held.key] = self._snapshot(self._held)
        self._unstored = kept

    def _snapshot(self, held: Held) -> Snapshot:
        return Snapshot.of(held, self._origin.epochs, self._base.of(held.program))

    def _spec(self, header: Header) -> ProgramSpec:
        """The program that a request names or brings; a name is remembered until `reset`."""
        key = header.get("program_key")
        if "program" in header:
            spec = ProgramSpec.from_header(header)
            self.private |= bool(spec.sources)
            if isinstance(key, str):
                self._specs[key] = spec
            return spec
        if key not in self._specs:
            raise RequestError(
                f"program {key!r} is not known", sqlstate="55000", hint="Send the program itself."
            )
        return self._specs[key]

    def _open_job(self) -> Job:
        """The open job, its state loaded."""
        if self._job is None:
            raise RequestError("no job is open", sqlstate="55000")
        if self._loading is not None:
            loading, self._loading = self._loading, None
            with self._boundary():
                streams.finish_reader(loading.reading)
                self._loaded(self._job, loading.spec)
        return self._job

    def _open_to_inputs(self) -> Job:
        """The open job, where whoever asks may say what the network is given."""
        job = self._open_job()
        if self._recipe is not None:
            raise RequestError(
                "the open job has a recipe: what its network takes is made of raw values here",
                sqlstate="42501",
            )
        return job

    def _load(self, program: Program, source: str, request: Header) -> Reader | None:
        """Make the program's variables the state; where that is still to come, what will read
        it.
        """
        header = record(request, "state")
        if source == "kept":
            key = text(header, "key")
            if self._held != Held(key, program):
                raise not_held(key, self._held)
            return None
        self._held = None
        base = text(header, "base") if source == "chunks" and "base" in header else None
        if base is None:
            self._base.replaced(program)
        else:
            self._base.bring(program, base)
        if source == "chunks":
            return readers.read_state(program.layout, program.assign, self._took, base)
        if source == "averaged":
            return averaging.read_mean(
                program.layout, program.assign, self._took, integers(header, "shares")
            )
        self._origin, seed = Origin(0, is_complete=False), integer(header, "seed")
        if source in ("weights", "weights_of_chunks"):
            program.reset_non_weights(seed)
            if source == "weights":
                return readers.read_flat_weights(program.layout, program.assign)
            return readers.read_weights(program.layout, program.assign, self._took)
        program.write(program.create_initial_state(seed))
        if source == "joined":
            return readers.read_merged_weights(
                program.layout, program.assign, len(integers(header, "shares"))
            )
        return (
            readers.read_warm_start(program.layout, program.assign, self._took)
            if source == "warm"
            else None
        )

    def _took(self, origin: Origin) -> None:
        self._origin = origin

    def _loaded(self, job: Job, spec: ProgramSpec) -> None:
        """The program now is the job's state. One in training has no name until it is done."""
        if self._origin.base_digest and not self._sealed:
            self._base.hold(job.program, self._origin.base_digest)
        job.program.set_hyperparameters(spec)
        if isinstance(job, RestoreJob):
            job.whole = self._origin.is_complete
        if isinstance(job, FusionJob):
            job.loaded()
        # Nor has a sealed one, which nobody is to get out or to go on from.
        unnamed = self._sealed or isinstance(job, (TrainJob, FusionJob))
        self._held = None if unnamed else Held(self._result_key, job.program)

    def _boundary(self) -> AbstractContextManager[None]:
        return self._workshop.catch_errors(hide_details=self._recipe is not None)
