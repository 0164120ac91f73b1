"""The factory of jobs, which creates the job of a request."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from cerebro_trainer.boosting.family import BoostedTrees
from cerebro_trainer.commands.fit_options import FitOptions
from cerebro_trainer.commands.fusion_jobs import FusedState, FusionJob
from cerebro_trainer.commands.grow_jobs import GrowJob, TimeGrowthJob
from cerebro_trainer.commands.inspection_jobs import FACTORIES
from cerebro_trainer.commands.jobs import AverageJob, DatasetKeys, Job, TimeJob, TrainJob
from cerebro_trainer.commands.program_cache import ProgramCache
from cerebro_trainer.data.buffers import Dataset
from cerebro_trainer.data.target_scale import ResultUnits
from cerebro_trainer.errors import ConfigError, RequestError
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.programs.learner import Learner
from cerebro_trainer.programs.program import Program, require_network
from cerebro_trainer.programs.tensorboard import Callbacks
from cerebro_trainer.wire.fields import (
    Header,
    if_present,
    integer,
    integers,
    items,
    number,
    record,
    text,
    texts,
    typed,
)

KINDS = ("train", "fusion", "time", "average", *FACTORIES)
SEALED_KINDS = ("evaluate", "predict")


class JobFactory:
    """Creates jobs over the datasets of a trainer."""

    def __init__(self, programs: ProgramCache, datasets: Mapping[str, Dataset]) -> None:
        self._programs = programs
        self._datasets = datasets

    def create(self, learner: Learner, header: Header, *, is_sealed: bool) -> Job:
        """Create the job of a request.

        Args:
            is_sealed: the user may not read the state, and the rows follow.
        """
        kind = text(header, "job", choices=SEALED_KINDS if is_sealed else KINDS)
        if kind == "fusion":
            return self._create_fusion(require_network(learner, kind), header)
        datasets = () if kind == "predict" else tuple(typed(header, "datasets", list))
        if not is_sealed:
            self._check_datasets(datasets)
        job = self._create(kind, learner, datasets, header)
        job.callbacks = Callbacks.from_header(header)
        if job.callbacks is not None:
            require_network(learner, "callbacks")
        selected_buffers = if_present(header, "buffers", record) or {}
        job.selected_buffers = {
            dataset: frozenset(integers(selected_buffers, dataset)) for dataset in selected_buffers
        }
        # A sealed job must not see rows that were sent before it has begun.
        job.streamed = {
            dataset for dataset in datasets if is_sealed or not self._datasets[dataset].is_complete
        }
        return job

    def create_fused_state(self, program: Program, spec: ProgramSpec, header: Header) -> FusedState:
        """Create a state of a fusion from a request."""
        threads = self._programs.framework.threads
        visits = []
        for visit in items(header, "visits"):
            dataset = text(visit, "dataset")
            self._check_datasets((dataset,))
            fit_header = {name: header[name] for name in ("fit", "forms") if name in header}
            fit_header["order"] = record(visit, "order")
            fit = FitOptions.from_header(fit_header, self._datasets[dataset].sizes)
            selector = self._programs.get_mode_selector(program, fit.batch_size)
            job = TrainJob(program, (dataset,), fit, selector, threads)
            job.units = read_units(header, spec)
            visits.append(job)
        return FusedState(text(header, "result_key"), spec, visits)

    def _create_growth(
        self, kind: str, trees: BoostedTrees, datasets: DatasetKeys, header: Header
    ) -> Job:
        """Create a visit of boosted trees, whose rows are all in memory.

        Raises:
            ConfigError: the rows of a dataset are not cached.
        """
        for dataset in datasets:
            if not self._datasets[dataset].is_complete:
                raise ConfigError(
                    "boosted trees are grown over all rows at once, but those of dataset "
                    f"{dataset!r} are not cached",
                    sqlstate="53200",
                    hint="Ask the administrator to raise cache_mb, or trainer_memory_mb if it is "
                    "lower, in cerebro.setting.",
                )
        sizes = [rows for dataset in datasets for rows in self._datasets[dataset].sizes]
        fit = FitOptions.from_header(header, sizes)
        if kind == "time":
            return TimeGrowthJob(trees, datasets, fit)
        grown_datasets = if_present(header, "grows", texts) or ()
        threads = self._programs.framework.threads
        until = if_present(header, "grow_until", number)
        if until is None or fit.mode_request.forced_mode is not None:
            until = math.inf
        budget = self._programs.budget
        return GrowJob(trees, datasets, fit, grown_datasets, budget, threads, until)

    def _create_fusion(self, program: Program, header: Header) -> FusionJob:
        datasets = [text(visit, "dataset") for visit in items(header, "visits")]
        self._check_datasets(datasets)
        if not datasets or not all(self._datasets[dataset].is_complete for dataset in datasets):
            raise RequestError(
                "a job of several states visits datasets that are kept, at least one"
            )
        _check_trainable(program)
        batch_size = integer(record(header, "fit"), "batch_size", minimum=1)
        return FusionJob(program, datasets, self._programs.get_mode_selector(program, batch_size))

    def _check_datasets(self, datasets: Sequence[str]) -> None:
        unknown = [dataset for dataset in datasets if dataset not in self._datasets]
        if unknown:
            raise RequestError(f"datasets {unknown} were not opened", sqlstate="55000")

    def _create(self, kind: str, learner: Learner, datasets: DatasetKeys, header: Header) -> Job:
        threads = self._programs.framework.threads
        if kind in ("train", "time") and isinstance(learner, BoostedTrees):
            return self._create_growth(kind, learner, datasets, header)
        if kind in ("train", "time"):
            program = require_network(learner, kind)
            _check_trainable(program)
            sizes = [rows for dataset in datasets for rows in self._datasets[dataset].sizes]
            fit = FitOptions.from_header(header, sizes)
            selector = self._programs.get_mode_selector(program, fit.batch_size)
            if kind == "time":
                return TimeJob(program, datasets, fit, selector)
            return TrainJob(program, datasets, fit, selector, threads)
        if kind == "average":
            shares = integers(record(header, "state"), "shares")
            return AverageJob(require_network(learner, kind), datasets, shares, threads)
        return FACTORIES[kind](learner, datasets, header)


def read_units(header: Header, spec: ProgramSpec) -> ResultUnits | None:
    """Return the units of the target that a request describes; None if labels are not scaled."""
    if header.get("scale") is None:
        return None
    return ResultUnits.from_header(header, spec.compile)


def _check_trainable(program: Program) -> None:
    if not program.trainable:
        raise ConfigError("the model has no trainable weights")
