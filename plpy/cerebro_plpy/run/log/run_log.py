"""Writes what a run does into the tables of schema cerebro, through the control session.

Every call is a transaction of its own, so that other sessions see it at once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.search_space.sampler_space import Point
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.errors import (
    LOCK_NOT_AVAILABLE,
    CerebroError,
    ConnectionFailure,
    QueryCanceled,
    ServerGone,
)
from cerebro_plpy.platform import state_tables, statements
from cerebro_plpy.platform.resource_usage import Cost
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.run.log import program_costs
from cerebro_plpy.run.log.form_timings import TimingKey, Timings
from cerebro_plpy.run.request.run_request import Evaluation, FitRequest, WarmState
from cerebro_plpy.run.request.state_routing import count_state_tables
from cerebro_plpy.scheduling.planning.replanning import Replan
from cerebro_plpy.scheduling.planning.run_plan import RunPlan
from cerebro_plpy.scheduling.schedule.schedule import Visit
from cerebro_plpy.scheduling.search.promotion_rules import Action


class DecisionRow(NamedTuple):
    """A decision as it is logged: which one of the run it is, what the configuration had done by
    then, until which epoch it may train, whose result led to it, and why."""

    decision_no: int
    mst_key: int
    action: Action
    epoch: int
    visits: int
    last_epoch: int
    cause: int | None
    reason: str


class Origin(NamedTuple):
    """Where those that have joined come from: what they are clones of, whose state they may begin
    from, and how many visits had left that; which points of a space they are, by mst_key."""

    source: str
    cloned_from: int | None = None
    warm_started_from: int | None = None
    warm_started_visits: int | None = None
    points: Mapping[int, Point | None] = {}


class LogStatements(NamedTuple):
    """What logs configurations that join, or epochs, in the transaction of the act that lets
    them.
    """

    texts: Sequence[str]
    values: Sequence[object]


class Command(NamedTuple):
    """What somebody asks of the run, of a configuration of it if there is one."""

    command_id: int
    actor: str
    action: str
    mst_key: int | None
    change: Mapping[str, Any]


TABLES_AT_ONCE = 32  # of a large grid, whose tables are more than one transaction may lock


class RunLog:
    """The log of one run."""

    def __init__(self, control: Session, run_id: int) -> None:
        self._control, self.run_id = control, run_id
        self.ticket = os.urandom(16).hex()  # nobody else's: see sql/83-queue.sql
        self.has_trained, self.last_decision = (
            False,
            0,
        )  # whether a visit of it was begun; the newest decision's number

    def begin(self, request: FitRequest, pid: int) -> None:
        """Log the run and its configurations."""
        segments = list(request.source.segments)
        spec = json.dumps(request.spec.to_json())
        run = [
            self.run_id,
            request.spec.arguments.name,
            spec,
            pid,
            request.spec.epochs,
            segments,
            self.ticket,
        ]
        configs = [self._described(c, request) for c in request.configs]
        origins = self._origins(request)
        texts = [*(sql("run.config") for _ in configs), *(sql("run.origin") for _ in origins)]
        self._control.run(
            "; ".join([sql("run.begin"), *texts]),
            [*run, *chain.from_iterable([*configs, *origins])],
        )

    def _origins(self, request: FitRequest) -> list[Sequence[object]]:
        """Where configurations come from that the call did not name."""
        drawing, repeat = request.search.sampling if request.search else None, request.replay
        points = drawing.points if drawing else {}
        fresh = {
            key: source
            for key, source in repeat.added_sources.items()
            if key not in repeat.clone_starts
        }
        groups = {
            source: [key for key, each in fresh.items() if each == source]
            for source in fresh.values()
        }
        drawn = [self._origin(Origin("search", points=points), [*points])] if points else []
        # When a clone of a replay begins, the log hears after how many visits of its parent that
        # was.
        clones = [
            self._origin(Origin(repeat.added_sources[key], start.parent, start.parent), [key])
            for key, start in repeat.clone_starts.items()
        ]
        return [
            *drawn,
            *(self._origin(Origin(source), keys) for source, keys in groups.items()),
            *clones,
        ]

    def resume(self, pid: int) -> bool:
        """The run goes on; what its interrupted orchestrator left open has failed. False where the
        run is hidden.
        """
        run, reason = self.run_id, "the run was interrupted"
        text = "; ".join(
            sql(f"run.{name}")
            for name in ("stop_visits", "stop_evaluations", "resume_configs", "resume")
        )
        return bool(self._control.run(text, (reason, run, reason, run, run, pid, self.ticket, run)))

    def make_state_tables(
        self, request: FitRequest, mst_keys: Iterable[int], usable: Container[str] = ()
    ) -> None:
        """Make the state tables of these configurations, of which no visit was made yet, but for
        the usable ones.
        """
        names = (
            state_tables.state_tables(self.run_id, mst_key, count_state_tables(request))
            for mst_key in mst_keys
        )
        missing = [name for name in chain.from_iterable(names) if name not in usable]
        for start in range(0, len(missing), TABLES_AT_ONCE):
            statements = map(
                self._control.platform.state_table_sql, missing[start : start + TABLES_AT_ONCE]
            )
            self._control.run(sql("run.state_tables", statements="; ".join(statements)))

    def _described(self, config: Config, request: FitRequest) -> tuple[object, ...]:
        tables = state_tables.state_tables(self.run_id, config.mst_key, count_state_tables(request))
        key = (self.run_id, config.mst_key, tables)
        architecture, backend = (
            request.architectures[config.model_id].json,
            request.backends.get(config.mst_key),
        )
        texts = config.compile_text, config.fit_text, architecture, backend
        params = None if config.params is None else json.dumps(config.params)
        own = None if config.group is None else list(request.segments_of(config.group))
        return (*key, config.model_id, *texts, config.template, params, config.group, own)

    def log_backends(self, chosen: Mapping[int, str]) -> None:
        """Frameworks were chosen, by mst_key."""
        self._control.run(sql("run.backends"), (json.dumps(chosen), self.run_id))

    def log_cuts(self, chosen: Mapping[int, str]) -> None:
        """On what layers give configurations are trained, by mst_key."""
        self._control.run(sql("run.cuts"), (json.dumps(chosen), self.run_id))

    def log_software(self, versions: Mapping[str, str], plan: RunPlan | None) -> None:
        """With these versions it is trained from now on, and so it is expected to go."""
        planned = json.dumps(plan.to_json()) if plan else None
        self._control.run(sql("run.software"), (json.dumps(versions), planned, self.run_id))

    def log_config_running(self, mst_key: int) -> None:
        """A configuration makes its first visit."""
        self.has_trained = True
        self._control.run(sql("run.config_running"), (self.run_id, mst_key))

    def log_config_completed(self, mst_key: int) -> None:
        """A configuration completed its last epoch."""
        self._control.run(sql("run.config_completed"), (self.run_id, mst_key))

    def log_config_failed(self, mst_key: int, reason: str) -> None:
        """A configuration cannot go on."""
        self._control.run(sql("run.config_failed"), (reason, self.run_id, mst_key))

    def log_config_stopped(self, mst_key: int, reason: str) -> None:
        """A configuration is not trained to its last epoch."""
        self._control.run(sql("run.config_stopped"), (reason, self.run_id, mst_key))

    def log_decisions(
        self, rule: str, rows: Sequence[DecisionRow], joined: LogStatements | None = None
    ) -> None:
        """What a rule has decided at once, who has joined by that, and what it makes of the
        configurations.
        """
        if rows:
            told = json.dumps([row._asdict() for row in rows])
            before = joined or LogStatements([], [])
            text = "; ".join([*before.texts, sql("run.decide"), sql("run.configs_decided")])
            self._control.run(text, (*before.values, self.run_id, rule, told, told, self.run_id))

    def log_replan(self, row: Replan) -> None:
        """The run goes on by another strategy."""
        self._control.run(sql("run.replan"), (self.run_id, *row))

    def read_next_key(self) -> int:
        """The mst_key of the next configuration to join."""
        return int(self._control.run(sql("run.last_key"), (self.run_id,))[0][0]) + 1

    def copy_state(self, state: StoredState, mst_key: int, visits: int) -> str:
        """Copy a state, which so many visits have left, for the configuration that begins from it;
        the table.
        """
        platform, table = self._control.platform, state_tables.start_table(self.run_id, mst_key)
        texts = platform.state_table_sql(table), platform.copy_state_sql(*state, table)
        self._control.run(
            "; ".join([*texts, sql("run.warm_started")]), (visits, self.run_id, mst_key)
        )
        return table

    def make_warm_state(self, table: str, source: str) -> WarmState:
        """How a state is read that was copied so."""
        return WarmState(source, self._control.platform.state_rows_sql(table, None), ())

    def build_config_statements(
        self, request: FitRequest, configs: Sequence[Config], origin: Origin
    ) -> LogStatements:
        """What logs configurations that join a run, for the transaction of the act that lets
        them.
        """
        texts = [sql("run.config") for _ in configs]
        values = [*chain.from_iterable(self._described(config, request) for config in configs)]
        keys = [config.mst_key for config in configs]
        return LogStatements([*texts, sql("run.origin")], [*values, *self._origin(origin, keys)])

    def _origin(self, origin: Origin, mst_keys: Sequence[int]) -> Sequence[object]:
        *named, points = origin
        return (*named, json.dumps(points), self.run_id, list(mst_keys))

    def build_epoch_statements(self, epochs: int) -> LogStatements:
        """What logs that the run has more epochs, for the transaction of the act that gives it
        them.
        """
        return LogStatements([sql("run.more_epochs")], [epochs, self.run_id])

    def execute(self, joined: LogStatements) -> None:
        """Configurations have joined that a search has drawn."""
        self._control.run("; ".join(joined.texts), joined.values)

    def read_commands(self) -> list[Command]:
        """What was asked, and neither done nor refused yet."""
        rows = self._control.run(sql("run.acts"), (self.run_id,))
        return [
            Command(act_id, actor, action, key, json.loads(change))
            for act_id, actor, action, key, change in rows
        ]

    def log_command_done(
        self,
        act: Command,
        visits: int | None,
        rows: Sequence[DecisionRow] = (),
        joined: LogStatements | None = None,
    ) -> None:
        """An act holds, after so many visits of its configuration, by these decisions; others may
        have joined.
        """
        told = json.dumps([row._asdict() for row in rows])
        texts = [sql(f"run.{name}") for name in ("decide_by_act", "configs_decided", "act_done")]
        decided = (self.run_id, act.action, act.command_id, told, told, self.run_id)
        before = joined or LogStatements([], [])
        values = (*before.values, *decided, visits, self.run_id, act.command_id)
        self._control.run("; ".join([*before.texts, *texts]), values)

    def log_command_refused(self, act: Command, reason: str) -> None:
        """An act cannot be done."""
        self._control.run(sql("run.act_refused"), (reason, self.run_id, act.command_id))

    def log_paused(self, paused: bool) -> None:
        """Whether the run waits for somebody."""
        self._control.run(sql("run.paused"), ("paused" if paused else "running", self.run_id))

    def log_queued(self, queued: bool) -> None:
        """Whether the run waits for a place; one that is paused waits for somebody."""
        self._control.run(sql("queue.queued"), ("queued" if queued else "running", self.run_id))

    def log_configs_resting(self, mst_keys: Sequence[int]) -> None:
        """These configurations rest, as they did before the run was interrupted."""
        if mst_keys:
            self._control.run(
                sql("run.configs_resting"), (self.run_id, self.run_id, list(mst_keys))
            )

    def log_search_end(self) -> None:
        """Whoever rests goes on no more."""
        self._control.run(sql("run.search_over"), (self.run_id,))

    def log_metrics(self, evaluations: Sequence[Evaluation], names: Sequence[str]) -> None:
        """Metrics of one configuration after one epoch, at most one evaluation per data set."""
        found = {each.dataset: {"loss": each.loss, "metrics": each.metrics} for each in evaluations}
        first = evaluations[0]
        logged = statements.log_metrics((self.run_id, first.mst_key, first.epoch), found, names)
        self._control.run(logged.sql, logged.values)

    def read_costs(self, plan: RunPlan) -> program_costs.LoggedCosts:
        """What visits so far have taken, by the programs of a plan."""
        return program_costs.read_costs(self._control, self.run_id, plan)

    def read_timings(self, programs: Sequence[str]) -> Timings:
        """What earlier runs of this user measured of these programs."""
        return Timings(self._control.run(sql("run.known_timings"), (list(programs),)))

    def log_best_epoch(self, mst_key: int, epoch: int | None) -> None:
        """Of which epoch the state of a configuration is kept, after all."""
        self._control.run(sql("run.best_epoch"), (epoch, self.run_id, mst_key))

    def log_timings(self, situation: TimingKey, found: Mapping[str, Any]) -> None:
        """Keep what a trainer measured, for later runs."""
        for form, timing in found.items():
            values = (form, timing["seconds_per_row"], timing["compile_seconds"])
            self._control.run(sql("run.add_timing"), (*situation, *values))

    def drop_states(self, keep: Sequence[str]) -> int:
        """Remove the state tables but those to keep, as far as nobody, such as a backup, reads
        them; their bytes.
        """
        return sum(self.drop_states_stepwise(keep))

    def drop_states_stepwise(self, keep: Sequence[str]) -> Iterator[int]:
        """The same, some tables at a time.

        Those that are read by now go one by one after the others, until one of them cannot go.
        """
        spare = self._control.run(
            sql("run.spare_state_tables"), (self.run_id, list(keep), os.getpid())
        )
        free, used = (
            [(name, size) for name, size, used in spare if used is kind] for kind in (False, True)
        )
        groups = [
            free[start : start + TABLES_AT_ONCE] for start in range(0, len(free), TABLES_AT_ONCE)
        ]
        for group in [*groups, *([each] for each in used)]:
            if not self._drop([name for name, _ in group]):
                return
            yield sum(size for _, size in group)

    def release_states(self, mst_keys: Collection[int]) -> None:
        """The states of these configurations are of no use any more: their tables go now, or with
        the last ones of the run where somebody, such as a backup, reads them."""
        self._control.run(sql("run.released"), (self.run_id, list(mst_keys)))
        for key in mst_keys:
            rows = self._control.run(
                sql("run.states_of"), (self.run_id, state_tables.prefix(self.run_id, key))
            )
            if rows:
                self._drop([name for (name,) in rows])

    def _drop(self, names: Sequence[str]) -> bool:
        """Whether they could go."""
        text = sql("run.drop_state_tables", states=", ".join(names))
        try:
            self._control.run(text, state_tables.drop_values(self.run_id, names))
        except CerebroError as error:
            if error.sqlstate != LOCK_NOT_AVAILABLE:
                raise
            return False
        return True

    def log_lost_attempts(self, attempts: Iterable[tuple[Visit, int, int]], reason: str) -> None:
        """The session that made these visits, by their numbers and those of the attempts, is gone:
        whatever it committed does not count. All at once, because a later one without those before
        it would be no past."""
        texts, values = [], list[object]()
        for visit, visit_no, attempt in attempts:
            if visit.kind == "evaluate":
                texts.append(sql("run.evaluation_lost"))
                values += (
                    reason,
                    self.run_id,
                    visit.epoch,
                    visit.mst_key,
                    visit.segment_id,
                    attempt,
                )
            else:
                texts.append(sql("run.visit_lost"))
                values += (reason, self.run_id, visit.mst_key, visit_no, attempt)
        self._control.run("; ".join(texts), values)

    def is_owned(self) -> bool:
        """Whether the log still has the run as one of this role's; a server that is gone says
        nothing else.
        """
        try:
            return bool(self._control.run(sql("run.own"), (self.run_id,)))
        except (ConnectionFailure, ServerGone, QueryCanceled):
            return True
        except CerebroError:
            return False

    def log_cost(self, cost: Cost) -> None:
        """That was spent since the last time on what belongs to no visit and no evaluation."""
        self._control.run(sql("run.spent"), (*cost, self.run_id))

    def end(self) -> None:
        """The run is completed."""
        self._control.run(sql("run.end"), ("completed", None, self.run_id))

    def log_missing_outputs(self, reason: str) -> None:
        """The run is completed, but its output tables could not be made."""
        self._control.run(sql("run.outputs_missing"), (reason, self.run_id))

    def discard(self) -> None:
        """Remove a run of which nothing was trained, with its state tables."""
        self.drop_states(keep=[])
        self._control.run(
            "; ".join([sql("run.mark_dropped"), sql("run.remove_dropped")]),
            (self.run_id, self.run_id),
        )

    def stop(self, status: str, error: str, cost: Cost) -> None:
        """The run ended early, at that cost since the last time: in its log nothing goes on, its
        places are free.
        """
        run, parts = (
            self.run_id,
            ("stop_configs", "abandon_visits", "abandon_evaluations", "spent", "end"),
        )
        text = "; ".join([*(sql(f"run.{name}") for name in parts), sql("queue.leave")])
        self._control.run(
            text, (run, error, run, error, run, *cost, run, status, error, run, run, self.ticket)
        )
