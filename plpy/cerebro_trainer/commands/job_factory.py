"""The job that a request asks for, on a program that is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cerebro_trainer.commands.fit_options import Fit
from cerebro_trainer.commands.fusion_jobs import FusionJob, Trainee
from cerebro_trainer.commands.inspection_jobs import OTHERS
from cerebro_trainer.commands.jobs import AverageJob, Job, TimeJob, TrainJob
from cerebro_trainer.commands.program_cache import ProgramCache
from cerebro_trainer.data.buffers import Dataset
from cerebro_trainer.errors import ConfigError, RequestError
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.programs.program import Program
from cerebro_trainer.programs.tensorboard import Callbacks
from cerebro_trainer.wire.fields import integer, integers, items, record, text, typed

KINDS = ("train", "fusion", "time", "average", *OTHERS)
SEALED_KINDS = ("evaluate", "predict")

Header = Mapping[str, Any]


class JobMaker:
    """Makes jobs over the datasets that a trainer keeps."""

    def __init__(self, workshop: ProgramCache, datasets: Mapping[str, Dataset]) -> None:
        self._workshop, self._datasets = workshop, datasets

    def made(self, program: Program, header: Header, *, sealed: bool) -> Job:
        """The job of a request; a `sealed` one is over rows that are still to come."""
        kind = text(header, "job", choices=SEALED_KINDS if sealed else KINDS)
        if kind == "fusion":
            return self._fusion(program, header)
        keys = () if kind == "predict" else tuple(typed(header, "datasets", list))
        if not sealed:
            self._check(keys)
        job = self._of_kind(kind, program, keys, header)
        job.callbacks = Callbacks.from_header(header)
        chosen = record(header, "buffers") if "buffers" in header else {}
        job.chosen = {key: frozenset(integers(chosen, key)) for key in chosen}
        # The rows for a sealed job come when it has begun: who begins it must find none here.
        job.streamed = {key for key in keys if sealed or not self._datasets[key].is_complete}
        return job

    def trainee(self, program: Program, spec: ProgramSpec, header: Header) -> Trainee:
        """A state that a fusion is to train, as a request says."""
        visits = []
        for visit in items(header, "visits"):
            key, threads = text(visit, "dataset"), self._workshop.framework.threads
            self._check((key,))
            asked = {"fit": record(header, "fit"), "order": record(visit, "order")}
            asked |= {"forms": record(header, "forms")} if "forms" in header else {}
            fit = Fit.from_header(asked, self._datasets[key].sizes)
            visits.append(
                TrainJob(
                    program,
                    (key,),
                    fit,
                    self._workshop.get_mode_selector(program, fit.batch_size),
                    threads,
                )
            )
        return Trainee(text(header, "result_key"), spec, visits)

    def _fusion(self, program: Program, header: Header) -> FusionJob:
        keys = [text(visit, "dataset") for visit in items(header, "visits")]
        self._check(keys)
        if not keys or not all(self._datasets[key].is_complete for key in keys):
            raise RequestError(
                "a job of several states visits datasets that are kept, at least one"
            )
        if not program.trainable:
            raise ConfigError("the model has no trainable weights")
        batch_size = integer(record(header, "fit"), "batch_size", minimum=1)
        return FusionJob(program, keys, self._workshop.get_mode_selector(program, batch_size))

    def _check(self, keys: Sequence[str]) -> None:
        unknown = [key for key in keys if key not in self._datasets]
        if unknown:
            raise RequestError(f"datasets {unknown} were not opened", sqlstate="55000")

    def _of_kind(self, kind: str, program: Program, keys: tuple[str, ...], header: Header) -> Job:
        threads = self._workshop.framework.threads
        if kind in ("train", "time"):
            if not program.trainable:
                raise ConfigError("the model has no trainable weights")
            fit = Fit.from_header(
                header, [rows for key in keys for rows in self._datasets[key].sizes]
            )
            forms = self._workshop.get_mode_selector(program, fit.batch_size)
            if kind == "time":
                return TimeJob(program, keys, fit, forms)
            return TrainJob(program, keys, fit, forms, threads)
        if kind == "average":
            return AverageJob(program, keys, integers(record(header, "state"), "shares"), threads)
        return OTHERS[kind](program, keys, header)
