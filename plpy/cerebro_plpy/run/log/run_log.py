"""Writes what a run does into the tables of schema cerebro, through the control session.

Every call is a transaction of its own, so that other sessions see it at once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.search_space.sampler_space import Point
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session, Statement
from cerebro_plpy.errors import (
    LOCK_NOT_AVAILABLE,
    CerebroError,
    ConnectionFailure,
    QueryCanceled,
    ServerGone,
)
from cerebro_plpy.platform import state_tables
from cerebro_plpy.platform.resource_usage import Cost
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.run.log import program_costs
from cerebro_plpy.run.log.form_timings import Timings
from cerebro_plpy.run.log.step_log import Command, StepLog
from cerebro_plpy.run.request.run_request import FitRequest, WarmState
from cerebro_plpy.run.request.state_routing import count_state_tables
from cerebro_plpy.scheduling.planning.run_plan import RunPlan


class Origin(NamedTuple):
    """Where those that have joined come from: what they are clones of, whose state they may begin
    from, and how many visits had left that; which points of a space they are, by mst_key."""

    source: str
    cloned_from: int | None = None
    warm_started_from: int | None = None
    warm_started_visits: int | None = None
    points: Mapping[int, Point | None] = {}


TABLES_AT_ONCE = 32  # of a large grid, whose tables are more than one transaction may lock


class RunLog(StepLog):
    """The log of one run: it writes, and builds the statements of steps."""

    def __init__(self, control: Session, run_id: int) -> None:
        super().__init__(run_id)
        self._control = control
        self.ticket = os.urandom(16).hex()  # a secret of this run: see sql/83-queue.sql

    def write(self, statements: Sequence[Statement]) -> None:
        """Execute statements in one transaction."""
        if statements:
            values = chain.from_iterable(statement.values for statement in statements)
            self._control.run("; ".join(statement.sql for statement in statements), [*values])

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

    def write_backends(self, chosen: Mapping[int, str]) -> None:
        """Frameworks were chosen, by mst_key."""
        self._control.run(sql("run.backends"), (json.dumps(chosen), self.run_id))

    def write_cuts(self, chosen: Mapping[int, str]) -> None:
        """On what layers give configurations are trained, by mst_key."""
        self._control.run(sql("run.cuts"), (json.dumps(chosen), self.run_id))

    def write_software(self, versions: Mapping[str, str], plan: RunPlan | None) -> None:
        """With these versions it is trained from now on, and so it is expected to go."""
        planned = json.dumps(plan.to_json()) if plan else None
        self._control.run(sql("run.software"), (json.dumps(versions), planned, self.run_id))

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
    ) -> list[Statement]:
        """Return the statements that log added configurations."""
        keys = [config.mst_key for config in configs]
        return [
            *(Statement(sql("run.config"), self._described(config, request)) for config in configs),
            Statement(sql("run.origin"), self._origin(origin, keys)),
        ]

    def _origin(self, origin: Origin, mst_keys: Sequence[int]) -> Sequence[object]:
        *named, points = origin
        return (*named, json.dumps(points), self.run_id, list(mst_keys))

    def read_commands(self) -> list[Command]:
        """What was asked, and neither done nor refused yet."""
        rows = self._control.run(sql("run.acts"), (self.run_id,))
        return [
            Command(act_id, actor, action, key, json.loads(change))
            for act_id, actor, action, key, change in rows
        ]

    def write_queued(self, queued: bool) -> None:
        """Whether the run waits for a place; one that is paused waits for somebody."""
        self._control.run(sql("queue.queued"), ("queued" if queued else "running", self.run_id))

    def read_costs(self, plan: RunPlan) -> program_costs.LoggedCosts:
        """What visits so far have taken, by the programs of a plan."""
        return program_costs.read_costs(self._control, self.run_id, plan)

    def read_timings(self, programs: Sequence[str]) -> Timings:
        """What earlier runs of this user measured of these programs."""
        return Timings(self._control.run(sql("run.known_timings"), (list(programs),)))

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

    def drop_released(self, mst_keys: Collection[int]) -> None:
        """Drop the state tables of released configurations.

        A table that somebody reads, such as a backup, goes with the last ones of the run.
        """
        for key in mst_keys:
            prefix = state_tables.prefix(self.run_id, key)
            rows = self._control.run(sql("run.states_of"), (self.run_id, prefix))
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

    def write_cost(self, cost: Cost) -> None:
        """That was spent since the last time on what belongs to no visit and no evaluation."""
        self._control.run(sql("run.spent"), (*cost, self.run_id))

    def end(self) -> None:
        """The run is completed."""
        self._control.run(sql("run.end"), ("completed", None, self.run_id))

    def write_missing_outputs(self, reason: str) -> None:
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
