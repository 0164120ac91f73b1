"""The log of a run in the tables of schema cerebro, written through the control session.

Every call is a transaction of its own, so that other sessions see it at once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Rows, Session, Statement
from cerebro_plpy.database.sessions.spi import Database
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
from cerebro_plpy.run.log.config_rows import (
    Origin,
    make_config_row,
    make_first_origin_rows,
    make_origin_row,
)
from cerebro_plpy.run.log.form_timings import Timings
from cerebro_plpy.run.log.step_log import Command, StepLog
from cerebro_plpy.run.request.run_request import FitRequest, WarmState
from cerebro_plpy.run.request.state_routing import count_state_tables
from cerebro_plpy.scheduling.planning.run_plan import RunPlan

T = TypeVar("T")
MAX_TABLES = 32
"""Tables per transaction: those of a large grid are more than one transaction may lock."""


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

    def _run(self, statement: str, *values: object) -> Rows:
        return self._control.run(statement, values)

    def begin(self, request: FitRequest, pid: int) -> None:
        """Log the run and its configurations."""
        spec = request.spec
        run = (
            self.run_id,
            spec.arguments.name,
            json.dumps(spec.to_json()),
            pid,
            spec.epochs,
            list(request.source.segments),
            self.ticket,
        )
        configs = [make_config_row(self.run_id, config, request) for config in request.configs]
        origins = make_first_origin_rows(self.run_id, request)
        statements = [Statement(sql("run.begin"), run)]
        statements += [Statement(sql("run.config"), row) for row in configs]
        statements += [Statement(sql("run.origin"), row) for row in origins]
        self.write(statements)

    def resume(self, pid: int) -> bool:
        """Log that the run is resumed, and that its open visits have failed.

        Returns:
            False if the run is hidden from the caller.
        """
        run_id = self.run_id
        reason = "the run was interrupted"
        texts = (
            sql("run.stop_visits"),
            sql("run.stop_evaluations"),
            sql("run.resume_configs"),
            sql("run.resume"),
        )
        values = (reason, run_id, reason, run_id, run_id, pid, self.ticket, run_id)
        return bool(self._control.run("; ".join(texts), values))

    def make_state_tables(
        self, request: FitRequest, mst_keys: Iterable[int], usable: Container[str] = ()
    ) -> None:
        """Create the state tables of configurations that have not been visited yet.

        Args:
            usable: tables that exist already.
        """
        count = count_state_tables(request)
        names = chain.from_iterable(
            state_tables.state_tables(self.run_id, mst_key, count) for mst_key in mst_keys
        )
        missing = [name for name in names if name not in usable]
        for tables in _split(missing):
            statements = "; ".join(map(self._control.platform.state_table_sql, tables))
            self._control.run(sql("run.state_tables", statements=statements))

    def write_backends(self, backends: Mapping[int, str]) -> None:
        """Log the chosen frameworks, by mst_key."""
        self._run(sql("run.backends"), json.dumps(backends), self.run_id)

    def write_cuts(self, layers: Mapping[int, str]) -> None:
        """Log the layers whose stored outputs configurations train on, by mst_key."""
        self._run(sql("run.cuts"), json.dumps(layers), self.run_id)

    def write_software(self, versions: Mapping[str, str], plan: RunPlan | None) -> None:
        """Log the versions of libraries that train from now on, and the plan of the run."""
        plan_json = plan and json.dumps(plan.to_json())
        self._run(sql("run.software"), json.dumps(versions), plan_json, self.run_id)

    def read_next_key(self) -> int:
        """Return the mst_key of the next configuration that is added."""
        ((last_key,),) = self._run(sql("run.last_key"), self.run_id)
        return int(last_key) + 1

    def copy_state(self, state: StoredState, mst_key: int, visits: int) -> str:
        """Copy a state for a configuration that starts from it; return the table of the copy.

        Args:
            visits: visits of the other configuration that led to the state.
        """
        platform = self._control.platform
        table = state_tables.start_table(self.run_id, mst_key)
        texts = (
            platform.state_table_sql(table),
            platform.copy_state_sql(*state, table),
            sql("run.warm_started"),
        )
        self._control.run("; ".join(texts), (visits, self.run_id, mst_key))
        return table

    def make_warm_state(self, table: str, source: str) -> WarmState:
        """Return the copied state in a table as one that a configuration starts from."""
        return WarmState(source, self._control.platform.state_rows_sql(table, None), ())

    def build_config_statements(
        self, request: FitRequest, configs: Sequence[Config], origin: Origin
    ) -> list[Statement]:
        """Return the statements that log added configurations."""
        rows = [make_config_row(self.run_id, config, request) for config in configs]
        mst_keys = [config.mst_key for config in configs]
        statements = [Statement(sql("run.config"), row) for row in rows]
        origin_row = make_origin_row(self.run_id, origin, mst_keys)
        return [*statements, Statement(sql("run.origin"), origin_row)]

    def read_commands(self) -> list[Command]:
        """Return the commands that were neither executed nor refused yet."""
        rows = self._run(sql("run.acts"), self.run_id)
        return [
            Command(command_id, actor, action, mst_key, json.loads(change))
            for command_id, actor, action, mst_key, change in rows
        ]

    def enter_phase(self, db: Database, phase: str, remaining: float) -> None:
        """Begin a phase of a call, for its caller and for other sessions.

        Args:
            db: the caller's session.
            phase: a constant of `call_status`.
            remaining: seconds of the budget; infinite without one.
        """
        db.status.enter(phase)
        self.write([self.log_phase(phase, remaining)])

    def write_queued(self, queued: bool) -> None:
        """Log whether the run waits for slots; a paused run stays paused."""
        self._run(sql("queue.queued"), "queued" if queued else "running", self.run_id)

    def read_costs(self, plan: RunPlan) -> program_costs.LoggedCosts:
        """Return the costs of visits so far, by the programs of a plan."""
        return program_costs.read_costs(self._control, self.run_id, plan)

    def read_timings(self, programs: Sequence[str]) -> Timings:
        """Return the timings of programs from earlier runs of this user."""
        return Timings(self._run(sql("run.known_timings"), list(programs)))

    def drop_states(self, keep: Sequence[str]) -> int:
        """Drop state tables, except those to keep and those in use; return their bytes."""
        return sum(self.drop_states_stepwise(keep))

    def drop_states_stepwise(self, keep: Sequence[str]) -> Iterator[int]:
        """Drop state tables like `drop_states`; yield the bytes after each transaction.

        Tables that are being read, for example by a backup, are dropped last, one by one, until one
        of them is locked.
        """
        values = (self.run_id, list(keep), os.getpid())
        spare = self._control.run(sql("run.spare_state_tables"), values)
        unused = [(name, size) for name, size, is_used in spare if not is_used]
        groups = _split(unused)
        groups += [[(name, size)] for name, size, is_used in spare if is_used]
        for group in groups:
            if not self._drop([name for name, _ in group]):
                return
            yield sum(size for _, size in group)

    def drop_released(self, mst_keys: Collection[int]) -> None:
        """Drop the state tables of released configurations.

        Tables that are being read, for example by a backup, are dropped with the last ones of the
        run.
        """
        for mst_key in mst_keys:
            prefix = state_tables.prefix(self.run_id, mst_key)
            rows = self._run(sql("run.states_of"), self.run_id, prefix)
            if rows:
                self._drop([name for (name,) in rows])

    def _drop(self, names: Sequence[str]) -> bool:
        """Drop tables in one transaction; return False if one of them is locked."""
        text = sql("run.drop_state_tables", states=", ".join(names))
        try:
            self._control.run(text, state_tables.drop_values(self.run_id, names))
        except CerebroError as error:
            if error.sqlstate != LOCK_NOT_AVAILABLE:
                raise
            return False
        return True

    def is_owned(self) -> bool:
        """Return whether the run still belongs to this role; True if the server does not answer."""
        try:
            return bool(self._run(sql("run.own"), self.run_id))
        except (ConnectionFailure, ServerGone, QueryCanceled):
            return True
        except CerebroError:
            return False

    def write_cost(self, cost: Cost) -> None:
        """Log costs since the last time that belong to no visit and no evaluation."""
        self._run(sql("run.spent"), *cost, self.run_id)

    def end(self) -> None:
        """Log that the run is completed."""
        self._run(sql("run.end"), "completed", None, None, self.run_id)

    def write_missing_outputs(self, reason: str) -> None:
        """Log that the run is completed, but its output tables could not be created."""
        self._run(sql("run.outputs_missing"), reason, self.run_id)

    def drop_empty_states(self) -> None:
        """Drop the state tables of a run without visits, which a resumed run creates again.

        Tables that are in use, for example by a backup, are left to `cerebro.vacuum_runs`.
        """
        no_tables: list[str] = []
        values = (self.run_id, no_tables, os.getpid())
        spare = self._control.run(sql("run.spare_state_tables"), values)
        unused = [name for name, _, is_used in spare if not is_used]
        for names in _split(unused):
            self._control.run(sql("run.drop_unread_table", table=", ".join(names)))

    def discard(self) -> None:
        """Remove a run in which nothing was trained, with its state tables."""
        self.drop_states(keep=[])
        text = "; ".join((sql("run.mark_dropped"), sql("run.remove_dropped")))
        self._control.run(text, (self.run_id, self.run_id))

    def stop(self, status: str, error: str, hint: str | None, cost: Cost) -> None:
        """Log the early end of the run, and free its slots.

        Args:
            hint: what the caller can do about the error.
            cost: costs since the last time that belong to no visit and no evaluation.
        """
        run_id = self.run_id
        statements = (
            Statement(sql("run.stop_configs"), (run_id,)),
            Statement(sql("run.abandon_visits"), (error, run_id)),
            Statement(sql("run.abandon_evaluations"), (error, run_id)),
            Statement(sql("run.spent"), (*cost, run_id)),
            Statement(sql("run.end"), (status, error, hint, run_id)),
            Statement(sql("queue.leave"), (run_id, self.ticket)),
        )
        self.write(statements)


def _split(items: Sequence[T]) -> list[Sequence[T]]:
    """Divide tables into groups that one transaction may lock."""
    return [items[start : start + MAX_TABLES] for start in range(0, len(items), MAX_TABLES)]
