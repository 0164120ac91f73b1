"""The commands that open a job on a state, load the state, and finish the job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from cerebro_trainer.commands import row_outputs
from cerebro_trainer.commands.fusion_jobs import FusionJob
from cerebro_trainer.commands.grow_jobs import GrowJob
from cerebro_trainer.commands.job_factory import JobFactory, read_units
from cerebro_trainer.commands.jobs import AverageJob, Job, RestoreJob, TrainJob
from cerebro_trainer.commands.prediction_jobs import PredictJob, read_share
from cerebro_trainer.commands.program_cache import ProgramCache
from cerebro_trainer.commands.row_outputs import OutputRows, OutputsJob
from cerebro_trainer.commands.session_states import (
    SOURCES,
    CurrentState,
    SessionStates,
    Snapshot,
)
from cerebro_trainer.data.buffers import Buffer, Dataset
from cerebro_trainer.data.calibration import Calibration
from cerebro_trainer.data.recipe_values import RecipeEncoder
from cerebro_trainer.errors import RequestError, TrainerError
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.programs.learner import Learner
from cerebro_trainer.state.readers import Origin
from cerebro_trainer.wire import streams
from cerebro_trainer.wire.fields import Header, if_present, integer, optional, record, text, texts
from cerebro_trainer.wire.frames import Bytes, Messages, reply
from cerebro_trainer.wire.streams import Reader


class Loading(NamedTuple):
    """A state whose bytes follow."""

    reader: Reader
    learner: Learner
    spec: ProgramSpec


class JobHandler:
    """At most one open job at a time, over the datasets of a trainer.

    Args:
        check_peer: raises PeerGone if the backend has gone.
    """

    has_private_data = False
    """True once the process has had weights that its session may not read, or users' functions.

    Another session must then not reuse the process.
    """
    # True if the user may not read the state of the open job
    is_sealed = False
    # Preprocessing of raw values for the open job, which then accepts no inputs of the network
    recipe: RecipeEncoder | None = None

    def __init__(
        self,
        programs: ProgramCache,
        datasets: Mapping[str, Dataset],
        check_peer: Callable[[], None],
    ) -> None:
        self._programs = programs
        self._datasets = datasets
        self._check_peer = check_peer
        self._specs: dict[str, ProgramSpec] = {}
        self._factory = JobFactory(programs, datasets)
        self._states = SessionStates()
        self._job: Job | None = None
        self._loading: Loading | None = None
        self._outputs: Sequence[OutputRows] | None = None
        self._result_key = ""

    def begin(self, header: Header, payload: Bytes) -> Messages:
        """Open a job on a state; if the state comes in chunks, `load_chunk` receives them."""
        if header.get("beside") is True:
            return self._begin_beside(header)
        self.abandon()
        self._states.retain(if_present(header, "unstored", texts) or ())
        source = text(record(header, "state"), "source", choices=SOURCES)
        self._result_key = text(header, "result_key")
        self.is_sealed = header.get("sealed") is True
        self.has_private_data |= self.is_sealed
        self.recipe = None
        recipe = optional(header, "recipe", record)
        if recipe is not None:
            self.recipe = RecipeEncoder.from_header(recipe)
        spec = self._get_spec(header)
        forms = if_present(header, "forms", record) or {}
        with self.catch_errors():
            learner = self._programs.get_learner(spec, forms.get("use"))
            reader = self._states.load(learner, source, header)
            self._job = self._factory.create(learner, header, is_sealed=self.is_sealed)
            self._job.units = read_units(header, spec)
            self._job.calibration = Calibration.from_header(header)
            if isinstance(self._job, FusionJob):
                program = self._job.program
                state = self._factory.create_fused_state(program, spec, header)
                self._job.add_state(state)
            if header.get("compilation") is not None:
                self._programs.add_compilation(learner, text(header, "compilation"))
            self._start_loading(self._job, learner, reader, spec)
        return _reply_to_begin(learner, is_kept=source == "kept")

    def _begin_beside(self, header: Header) -> Messages:
        """Add another state to the open job: one to train, or a member that predicts."""
        kind = text(header, "job", choices=("fusion", "predict"))
        text(header, "result_key")  # required of every state, though members are never named
        job = self.get_open_job()
        spec = self._get_spec(header)
        source = text(record(header, "state"), "source", choices=SOURCES)
        if (header.get("sealed") is True) != self.is_sealed:
            raise RequestError(
                "either all states of a job are sealed, or none is", sqlstate="42501"
            )
        with self.catch_errors():
            learner: Learner | None = None
            if source != "kept" and kind == "fusion" and isinstance(job, FusionJob):
                learner = self._add_fused_state(job, spec, header)
            if source != "kept" and kind == "predict" and isinstance(job, PredictJob):
                learner = self._add_member(job, spec, header)
            if learner is None:
                raise RequestError(
                    "the open job takes no other state than that which it was begun with",
                    sqlstate="55000",
                )
            reader = self._states.load(learner, source, header)
            self._start_loading(job, learner, reader, spec)
        return _reply_to_begin(learner, is_kept=False)

    def _add_fused_state(self, job: FusionJob, spec: ProgramSpec, header: Header) -> Learner:
        """Add a state to a fusion; return its learner, which is the program of all of them."""
        job.check_program(self._programs.get_learner(spec, job.forced_mode))
        job.add_state(self._factory.create_fused_state(job.program, spec, header))
        return job.program

    def _add_member(self, job: PredictJob, spec: ProgramSpec, header: Header) -> Learner:
        """Add a member to a prediction; return its learner."""
        share = read_share(header)
        learner = self._programs.get_unused_learner(spec, job.learners)
        if header.get("compilation") is not None:
            self._programs.add_compilation(learner, text(header, "compilation"))
        job.add_member(learner, share)
        return learner

    def load_chunk(self, header: Header, payload: Bytes) -> Messages:
        """Load a chunk of the state that the open job waits for."""
        if self._loading is None:
            raise RequestError("no job waits for a state", sqlstate="55000")
        if header.get("sealed") is True and not self.is_sealed:
            raise RequestError("the open job is none for a sealed state", sqlstate="42501")
        with self.catch_errors():
            self._loading.reader.send(payload.data)
        return ()

    def process_streamed(self, dataset: str, buffer: Buffer, header: Header) -> bool:
        """Process a buffer if the open job streams its dataset; return whether it does."""
        if self._job is None or dataset not in self._job.streamed:
            return False
        job = self.get_open_job()
        if job.selects(dataset, buffer):
            with self.catch_errors():
                pass_no = if_present(header, "pass", partial(integer, minimum=0)) or 0
                job.process(dataset, buffer, pass_no)
        return True

    def finish(self, header: Header, payload: Bytes) -> Messages:
        """Process the cached datasets of the open job, and close it."""
        job = self.get_open_job()
        with self.catch_errors():
            self._process_cached(job)
            job.complete()
            if job.callbacks:
                job.write_board(job.callbacks)
            if isinstance(job, FusionJob):
                return self._finish_fusion(job)
        self._job = None
        self._set_current_state(job)
        self._outputs = None
        if isinstance(job, OutputsJob):
            self._outputs = job.list_outputs()
        if isinstance(job, (TrainJob, GrowJob)):
            self._states.origin = Origin(job.epoch, is_complete=True)
            job.warnings = self._programs.warnings.collect(job.learner)
        content = job.to_reply()
        frozen_weights = self._states.frozen_weights
        if isinstance(job, (TrainJob, GrowJob, AverageJob)):
            content["base"] = frozen_weights.find_digest(job.learner)
        return reply({**content, "lent_base": frozen_weights.available_digest})

    def _process_cached(self, job: Job) -> None:
        for pass_no, dataset in job.list_passes():
            if dataset in job.streamed:
                continue
            for buffer in self._datasets[dataset].buffers:
                if job.selects(dataset, buffer):
                    self._check_peer()
                    job.process(dataset, buffer, pass_no)

    def _finish_fusion(self, job: FusionJob) -> Messages:
        """Close a fusion; its states are kept until another job begins without their names."""
        self._job = None
        self._states.current = None
        frozen_weights = self._states.frozen_weights
        snapshots = {}
        for state in job.load_results():
            frozen_weights.invalidate(job.program)
            state.base_digest = frozen_weights.find_digest(job.program)
            current = CurrentState(state.key, job.program)
            snapshots[state.key] = Snapshot.take(current, state.epoch, state.base_digest)
        self._states.add_unstored(snapshots)
        warnings = self._programs.warnings.collect(job.program)
        lent_base = frozen_weights.available_digest
        return reply({**job.to_reply(), "warnings": warnings, "lent_base": lent_base})

    def send_state(self, header: Header, payload: Bytes) -> Messages:
        """Send a state in chunks: the current one, or one that is still to be stored."""
        key = text(header, "key")
        if self._job is not None:
            self.get_open_job()  # completes the current state
        snapshot = self._states.get_current(key)
        if snapshot is not None:
            return snapshot.send(header)
        if self.is_sealed and self._job is not None:
            raise RequestError("the state of this job is sealed", sqlstate="55000")
        return self.send_unstored_state(header)

    def send_unstored_state(self, header: Header) -> Messages:
        """Send a state that is still to be stored; another thread may call this during a job."""
        return self._states.get_unstored(text(header, "key")).send(header)

    def compute_results(self, header: Header, payload: Bytes) -> Messages:
        """Compute loss and metrics from sums over all segments."""
        sums = record(header, "sums")
        with self.catch_errors():
            spec = self._get_spec(header)
            learner = self._programs.get_learner(spec)
            results = {name: learner.compute_results(value) for name, value in sums.items()}
            units = read_units(header, spec)
            if units is not None:
                results = {name: units.convert_results(value) for name, value in results.items()}
        return reply(results)

    def send_outputs(self, header: Header, payload: Bytes) -> Messages:
        """Send the outputs that the last job has computed, and release them."""
        outputs = self._outputs
        self._outputs = None
        return row_outputs.send_chunks(outputs, header)

    def abandon(self) -> None:
        """Drop the open job with a state that is not loaded completely."""
        self._job = None
        self._loading = None
        self._outputs = None
        self._programs.warnings.discard()

    def reset(self) -> None:
        """Drop the open job, all states and all specs."""
        self.abandon()
        self._states.clear()
        self._specs.clear()
        self._programs.release_rows()

    def get_open_job(self) -> Job:
        """Return the open job with its state loaded; raise RequestError if no job is open."""
        if self._job is None:
            raise RequestError("no job is open", sqlstate="55000")
        if self._loading is not None:
            loading = self._loading
            self._loading = None
            with self.catch_errors():
                streams.finish_reader(loading.reader)
                self._complete_loading(self._job, loading.learner, loading.spec)
        return self._job

    def get_prediction_job(self) -> PredictJob:
        """Return the open job if it predicts rows."""
        job = self.get_open_job()
        if not isinstance(job, PredictJob):
            raise RequestError(
                "the open job takes no rows; expected one of kind 'predict'", sqlstate="55000"
            )
        return job

    def get_prediction_job_without_recipe(self) -> PredictJob:
        """Return the open job if its user may choose the inputs of the members."""
        job = self.get_prediction_job()
        if self.recipe is not None:
            raise RequestError(
                "the open job has a recipe: what its network takes is made of raw values here",
                sqlstate="42501",
            )
        return job

    @contextmanager
    def catch_errors(self) -> Iterator[None]:
        """Turn errors of the framework into ConfigError, and name the member that fails."""
        try:
            with self._programs.catch_errors(hide_details=self.recipe is not None):
                yield
        except TrainerError as error:
            if isinstance(self._job, PredictJob):
                self._job.name_member(error)
            raise

    def _start_loading(
        self, job: Job, learner: Learner, reader: Reader | None, spec: ProgramSpec
    ) -> None:
        """Wait for the chunks of a state, if there are any."""
        if reader is None:
            self._complete_loading(job, learner, spec)
        else:
            self._loading = Loading(streams.start_reader(reader), learner, spec)

    def _complete_loading(self, job: Job, learner: Learner, spec: ProgramSpec) -> None:
        """Prepare a job after a state was loaded into the variables of a learner."""
        origin = self._states.origin
        if origin.base_digest and not self.is_sealed:
            self._states.frozen_weights.set(learner, origin.base_digest)
        learner.set_hyperparameters(spec)
        learner.check_state()
        if isinstance(job, RestoreJob):
            job.is_complete = origin.is_complete
        if isinstance(job, FusionJob):
            job.save_loaded_state()
        if isinstance(job, (TrainJob, GrowJob, FusionJob)):
            self._states.current = None  # a state has no name while it is trained
        else:
            self._set_current_state(job)

    def _set_current_state(self, job: Job) -> None:
        """Name the state of a job, unless it is sealed: nobody may read or continue it.

        The states of several members have no names.
        """
        self._states.current = None
        has_members = isinstance(job, PredictJob) and len(job.learners) > 1
        if not self.is_sealed and not has_members:
            self._states.current = CurrentState(self._result_key, job.learner)

    def _get_spec(self, header: Header) -> ProgramSpec:
        """Return the spec that a request contains or names; names are valid until `reset`."""
        key = header.get("program_key")
        if "program" in header:
            spec = ProgramSpec.from_header(header)
            self.has_private_data |= bool(spec.sources)
            if isinstance(key, str):
                self._specs[key] = spec
            return spec
        if key not in self._specs:
            raise RequestError(
                f"program {key!r} is not known", sqlstate="55000", hint="Send the program itself."
            )
        return self._specs[key]


def _reply_to_begin(learner: Learner, *, is_kept: bool) -> Messages:
    return reply({"kept": is_kept, "state_bytes": learner.layout.nbytes})
