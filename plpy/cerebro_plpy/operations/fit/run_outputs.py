"""The output tables of a run: their names before it, and their rows when it is completed."""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.configs.run_spec import FitArguments
from cerebro_plpy.database.call_checks import check_transaction
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Globals
from cerebro_plpy.errors import NullNotAllowed
from cerebro_plpy.operations.fit.drop_run_tables import drop_states
from cerebro_plpy.operations.fit.warm_start import ExistingOutput, find_existing_output
from cerebro_plpy.platform.call_context import CallContext, open_context
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.run.workers.run_context import NoSideWork, SideWork
from cerebro_plpy.tables.outputs import automl_output, fit_output, logged_run, single_output
from cerebro_plpy.tables.outputs.incremental_output import IncrementalOutput


class RunOutputs(NamedTuple):
    """The output tables of a call."""

    table: Relation  # the model output table, after which the others are named
    existing: ExistingOutput | None  # with warm start: the tables to rewrite
    incremental: IncrementalOutput | None = None  # writes new tables during the run

    @property
    def observer(self) -> SideWork:
        """Return the observer of the run that writes tables, or one that does nothing."""
        return self.incremental or NoSideWork()

    def list_existing(self) -> list[Relation]:
        """Return the tables that exist before the run."""
        if self.existing is None:
            return []
        return self.existing.list_tables()


def find_outputs(catalog: Catalog, arguments: FitArguments) -> RunOutputs:
    """Reserve the names of a fit call's output tables; find existing ones for a warm start."""
    suffixes = _get_suffixes(arguments)
    if not arguments.warm_start:
        return RunOutputs(catalog.reserve_output(arguments.model_output_table, suffixes), None)
    existing = find_existing_output(catalog, arguments.model_output_table, suffixes)
    return RunOutputs(existing.model, existing)


def begin_incremental_output(
    db: Database, context: CallContext, request: FitRequest, outputs: RunOutputs
) -> RunOutputs:
    """Have the output tables written during the run, if possible.

    The caller's session must be idle during the run and stay in its transaction. The tables must
    be new, so that no other session reads or locks them.
    """
    is_busy = context.is_local or db.in_procedure
    if is_busy or not context.platform.writes_during_run or outputs.existing:
        return outputs
    if request.spec.arguments.single or len(request.configs) == 1 or request.spec.search:
        return outputs
    return outputs._replace(incremental=IncrementalOutput(db, outputs.table))


def finish(
    db: Database, gd: Globals, run_id: int, outputs: RunOutputs, *, keep_states: bool | None
) -> None:
    """Write the output tables of a run.

    A background run is completed in the log in the transaction of its tables or, on a server that
    does not allow this, right after it.

    Args:
        keep_states: False to remove all states of the run in the same transaction.
    """
    if not db.in_procedure:
        _write(db, run_id, outputs, keep_states)
        return
    end_time = str(db.value(sql("run.moment")))
    try:
        if db.platform.logs_with_output:
            db.rows(sql("run.complete"), None, end_time, run_id)
        _write(db, run_id, outputs, keep_states)
        db.commit()
    except BaseException as error:  # the log must record it, because no client waits for it
        db.rollback()
        _complete(db, gd, run_id, f"the output tables were not made: {error}", end_time)
        raise
    if not db.platform.logs_with_output:
        _complete(db, gd, run_id, None, end_time)
    if keep_states is not False:
        _drop_unused_states(db, gd, run_id)


def _write(db: Database, run_id: int, outputs: RunOutputs, keep_states: bool | None) -> None:
    run = logged_run.read_run(db, run_id)
    _write_tables(db, run, outputs)
    if run.spec.is_automl:
        automl_output.write_best(db, run)
    if keep_states is False:
        drop_states(db, run_id)


def _complete(db: Database, gd: Globals, run_id: int, error: str | None, end_time: str) -> None:
    """Log that a run is completed, outside the transaction of its tables."""
    if db.platform.logs_with_output:
        db.rows(sql("run.complete"), error, end_time, run_id)
        db.commit()
        return
    with open_context(db, gd, (), None) as context:
        context.control.run(sql("run.complete"), (error, end_time, run_id))


def _drop_unused_states(db: Database, gd: Globals, run_id: int) -> None:
    """Remove the states that the output tables do not need.

    Until the tables exist, a resumed run may start from any state.
    """
    states = map(logged_run.stored_state, logged_run.read_newest_states(db, run_id))
    needed = [table for state in states if state for table in state.tables]
    with open_context(db, gd, (), None) as context:
        RunLog(context.control, run_id).drop_states(keep=needed)


def rewrite_outputs(db: Database, run_id: int | None, name: str | None) -> None:
    """Write output tables from the newest states of a run, under any name."""
    check_transaction(db, "write_outputs")
    if run_id is None:
        raise NullNotAllowed(
            "write_outputs error: run_id is NULL", hint="SELECT run_id, name FROM cerebro.run;"
        )
    run = logged_run.read_run(db, run_id)
    output = Catalog(db, "write_outputs").reserve_output(name, _get_suffixes(run.spec.arguments))
    _write_tables(db, run, RunOutputs(output, None))


def _get_suffixes(arguments: FitArguments) -> tuple[str, ...]:
    """Return the suffixes of the further output tables."""
    if arguments.single:
        return single_output.SUFFIXES
    return fit_output.SUFFIXES


def _write_tables(db: Database, run: logged_run.LoggedRun, outputs: RunOutputs) -> None:
    """Create the output tables of a run, or refill existing ones."""
    states = outputs.existing.states if outputs.existing else None
    if run.spec.arguments.single:
        single_output.write(db, run, outputs.table, states)
    elif run.spec.is_automl:
        automl_output.write(db, run, outputs.table)
    else:
        partial = outputs.incremental.complete() if outputs.incremental else None
        fit_output.write(db, run, outputs.table, states, partial)
