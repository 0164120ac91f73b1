"""Writes what a run does into the tables of schema cerebro, through the control session.

Every call is a transaction of its own, so that other sessions see it at once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from cerebro_plpy import jobs
from cerebro_plpy.dispatch import Session
from cerebro_plpy.errors import LOCK_NOT_AVAILABLE, CerebroError
from cerebro_plpy.queries import sql
from cerebro_plpy.records import Config, Evaluation, FitRequest


class RunLog:
    """The log of one run."""

    def __init__(self, control: Session, run_id: int) -> None:
        self._control = control
        self.run_id = run_id

    def begin(self, request: FitRequest, pid: int) -> None:
        """Log the run and its configurations, and make their state tables."""
        segments = list(request.source.segments)
        spec = json.dumps(request.spec)
        self._control.run(sql("run.begin"), (self.run_id, request.name, spec, pid, request.epochs, segments))
        for config in request.configs:
            self._begin_config(config, request.architectures[config.model_id].json)

    def _begin_config(self, config: Config, architecture: str) -> None:
        tables = jobs.state_tables(self.run_id, config.mst_key)
        row = (self.run_id, config.mst_key, list(tables), config.model_id, config.compile_text, config.fit_text)
        self._control.run(sql("run.config"), (*row, architecture))
        self._control.run("; ".join(sql("run.state_table", state=name) for name in tables))

    def config_running(self, mst_key: int) -> None:
        """A configuration made its first visit."""
        self._control.run(sql("run.config_running"), (self.run_id, mst_key))

    def config_epoch(self, mst_key: int, epoch: int, last: bool) -> None:
        """A configuration completed an epoch."""
        self._control.run(
            sql("run.config_epoch"), (epoch, "completed" if last else "running", self.run_id, mst_key)
        )

    def config_failed(self, mst_key: int, reason: str) -> None:
        """A configuration cannot go on."""
        self._control.run(sql("run.config_failed"), (reason, self.run_id, mst_key))

    def metrics(self, evaluations: Sequence[Evaluation], names: Sequence[str]) -> None:
        """Metrics of one configuration after one epoch, at most one evaluation per data set."""
        rows = [
            {"dataset": item.dataset, "name": name, "value": repr(float(value))}
            for item in evaluations
            for name, value in zip(("loss", *names), (item.loss, *item.metrics))
        ]
        first = evaluations[0]
        self._control.run(sql("run.metrics"), (self.run_id, first.mst_key, first.epoch, json.dumps(rows)))

    def drop_states(self, keep: Sequence[str]) -> None:
        """Remove the state tables but those to keep; all stay while someone, such as a backup, reads one."""
        spare = [row[0] for row in self._control.run(sql("run.spare_state_tables"), (self.run_id, list(keep)))]
        if not spare:
            return
        drop = f"{sql('run.drop_state_tables', tables=', '.join(spare))}; {sql('run.keep_state_tables')}"
        try:
            self._control.run(drop, (spare, self.run_id))
        except CerebroError as error:
            if error.sqlstate != LOCK_NOT_AVAILABLE:
                raise

    def end(self, status: str, error: str | None = None) -> None:
        """The run is over."""
        if status != "completed":
            self._control.run(sql("run.stop_waiting"), (self.run_id,))
            self._control.run(sql("run.stop_visits"), (error, self.run_id))
        self._control.run(sql("run.end"), (status, error, self.run_id))
