"""The statements that log the steps of the epoch loop.

They are only built here. `RunLog.write` executes those of a step in one transaction.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Statement
from cerebro_plpy.platform import statements
from cerebro_plpy.run.log.form_timings import TimingKey
from cerebro_plpy.run.request.run_request import Evaluation
from cerebro_plpy.scheduling.planning.replanning import Replan
from cerebro_plpy.scheduling.schedule.schedule import Visit
from cerebro_plpy.scheduling.search.promotion_rules import Action


class DecisionRow(NamedTuple):
    """A logged decision on a configuration."""

    decision_no: int  # in the run
    mst_key: int
    action: Action
    epoch: int  # the newest one with a value; 0 if there is none
    visits: int  # stored by then
    last_epoch: int  # that the configuration may train
    cause: int | None  # the configuration whose result led to the decision
    reason: str


class Command(NamedTuple):
    """A user's command to a run, or to one of its configurations."""

    command_id: int
    actor: str  # role of the user
    action: str
    mst_key: int | None
    change: Mapping[str, Any]  # arguments


class StepLog:
    """Builds the statements of one run."""

    def __init__(self, run_id: int) -> None:
        self.run_id = run_id
        self.has_trained = False  # a visit was begun, so the run is worth keeping

    def log_config_running(self, mst_key: int) -> Statement:
        """Return the statement that logs the first visit of a configuration."""
        self.has_trained = True
        return Statement(sql("run.config_running"), (self.run_id, mst_key))

    def log_config_completed(self, mst_key: int) -> Statement:
        """Return the statement that logs that a configuration has trained its last epoch."""
        return Statement(sql("run.config_completed"), (self.run_id, mst_key))

    def log_config_failed(self, mst_key: int, reason: str) -> Statement:
        """Return the statement that logs the failure of a configuration."""
        return Statement(sql("run.config_failed"), (reason, self.run_id, mst_key))

    def log_config_stopped(self, mst_key: int, reason: str) -> Statement:
        """Return the statement that logs the end of a configuration before its last epoch."""
        return Statement(sql("run.config_stopped"), (reason, self.run_id, mst_key))

    def log_configs_resting(self, mst_keys: Sequence[int]) -> Statement:
        """Return the statement that lets configurations rest, as before an interruption."""
        return Statement(sql("run.configs_resting"), (self.run_id, self.run_id, list(mst_keys)))

    def log_decisions(self, rule: str, rows: Sequence[DecisionRow]) -> list[Statement]:
        """Return the statements that log what a rule has decided at once."""
        if not rows:
            return []
        decisions = _encode(rows)
        return [
            Statement(sql("run.decide"), (self.run_id, rule, decisions)),
            Statement(sql("run.configs_decided"), (decisions, self.run_id)),
        ]

    def log_command_done(
        self, command: Command, visits: int | None, rows: Sequence[DecisionRow] = ()
    ) -> list[Statement]:
        """Return the statements that log a command, and what it decides.

        Args:
            visits: visits of its configuration so far.
        """
        decisions = _encode(rows)
        return [
            Statement(
                sql("run.decide_by_act"),
                (self.run_id, command.action, command.command_id, decisions),
            ),
            Statement(sql("run.configs_decided"), (decisions, self.run_id)),
            Statement(sql("run.act_done"), (visits, self.run_id, command.command_id)),
        ]

    def log_command_refused(self, command: Command, reason: str) -> Statement:
        """Return the statement that logs the refusal of a command."""
        return Statement(sql("run.act_refused"), (reason, self.run_id, command.command_id))

    def log_phase(self, phase: str, remaining: float) -> Statement:
        """Return the statement that logs what the run is doing, and when its budget ends.

        Args:
            phase: a constant of `call_status`.
            remaining: seconds of the budget; infinite without one.
        """
        seconds: float | None = remaining
        if math.isinf(remaining):
            seconds = None
        return Statement(sql("run.phase"), (phase, seconds, self.run_id))

    def log_epochs(self, epochs: int) -> Statement:
        """Return the statement that logs that the run has more epochs."""
        return Statement(sql("run.more_epochs"), (epochs, self.run_id))

    def log_paused(self, paused: bool) -> Statement:
        """Return the statement that logs if the run is paused."""
        return Statement(sql("run.paused"), ("paused" if paused else "running", self.run_id))

    def log_search_end(self) -> Statement:
        """Return the statement that stops configurations that rest for good."""
        return Statement(sql("run.search_over"), (self.run_id,))

    def log_replan(self, row: Replan) -> Statement:
        """Return the statement that logs a change of strategy."""
        return Statement(sql("run.replan"), (self.run_id, *row))

    def log_metrics(self, evaluations: Sequence[Evaluation], names: Sequence[str]) -> Statement:
        """Return the statement that logs the metrics of a configuration after an epoch.

        Args:
            evaluations: at most one for each data set.
            names: names of the metrics.
        """
        results = {
            each.dataset: {"loss": each.loss, "metrics": each.metrics} for each in evaluations
        }
        key = (self.run_id, evaluations[0].mst_key, evaluations[0].epoch)
        return statements.log_metrics(key, results, names)

    def log_best_epoch(self, mst_key: int, epoch: int | None) -> Statement:
        """Return the statement that corrects the epoch whose state is retained."""
        return Statement(sql("run.best_epoch"), (epoch, self.run_id, mst_key))

    def log_timings(self, key: TimingKey, timings: Mapping[str, Any]) -> list[Statement]:
        """Return the statements that keep timings of execution modes for later runs."""
        return [
            Statement(
                sql("run.add_timing"),
                (*key, mode, timing["seconds_per_row"], timing["compile_seconds"]),
            )
            for mode, timing in timings.items()
        ]

    def log_released(self, mst_keys: Sequence[int]) -> Statement:
        """Return the statement that logs that the states of configurations are not needed."""
        return Statement(sql("run.released"), (self.run_id, list(mst_keys)))

    def log_lost_attempts(
        self, attempts: Iterable[tuple[Visit, int, int]], reason: str
    ) -> list[Statement]:
        """Return the statements that log attempts whose session is lost: they do not count.

        They belong into one transaction: a history must not lack visits before its last one.

        Args:
            attempts: visits, each with its number in the log and that of the attempt.
        """
        lost = []
        for visit, visit_no, attempt in attempts:
            values: list[object] = [reason, self.run_id]
            if visit.kind == "evaluate":
                values += [visit.epoch, visit.mst_key, visit.segment_id, attempt]
                lost.append(Statement(sql("run.evaluation_lost"), values))
            else:
                values += [visit.mst_key, visit_no, attempt]
                lost.append(Statement(sql("run.visit_lost"), values))
        return lost


def _encode(rows: Sequence[DecisionRow]) -> str:
    return json.dumps([row._asdict() for row in rows])
