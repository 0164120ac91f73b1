"""The output tables of a run: which there will be, and how they are made when it is completed."""

from __future__ import annotations

from typing import Any, NamedTuple

from cerebro_plpy.configs.run_spec import FitArguments
from cerebro_plpy.database.call_checks import check_transaction
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import NullNotAllowed
from cerebro_plpy.operations.fit.drop_run_tables import drop_states
from cerebro_plpy.operations.fit.warm_start import ExistingOutput, find_existing_output
from cerebro_plpy.platform.call_context import CallContext, open_context
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.run.workers.tasks import Beside, Nothing
from cerebro_plpy.tables.outputs import automl_output, fit_output, logged_run, single_output
from cerebro_plpy.tables.outputs.incremental_output import IncrementalOutput


class RunOutputs(NamedTuple):
    """The output tables of a call: the first of them, and those that a warm start goes on from; or
    what is written of new ones before the run is completed."""

    table: Relation
    existing: ExistingOutput | None
    early: IncrementalOutput | None = None

    @property
    def beside(self) -> Beside:
        """What is done beside the run."""
        return self.early or Nothing()

    def relations(self) -> list[Relation]:
        """The tables that are there already."""
        return self.existing.relations() if self.existing else []


def find_outputs(catalog: Catalog, arguments: FitArguments) -> RunOutputs:
    """The output tables that a fit call will write, or has to rewrite."""
    names = suffixes(arguments)
    if not arguments.warm_start:
        return RunOutputs(catalog.reserve_output(arguments.model_output_table, names), None)
    existing = find_existing_output(catalog, arguments.model_output_table, names)
    return RunOutputs(existing.model, existing)


def begin_incremental_output(
    db: Database, workplace: CallContext, request: FitRequest, output: RunOutputs
) -> RunOutputs:
    """The output tables, as far as they can be begun beside the run.

    That is new ones, by a session that has nothing else to do, and goes on in its transaction; not
    those that others may read, or have locked.
    """
    alone = workplace.is_local or db.in_procedure or not workplace.platform.writes_during_run
    if (
        alone
        or output.existing
        or request.spec.arguments.single
        or len(request.configs) == 1
        or request.spec.search
    ):
        return output
    return output._replace(early=IncrementalOutput(db, output.table))


def finish(
    db: Database, gd: dict[str, Any], run_id: int, output: RunOutputs, *, keep_states: bool | None
) -> None:
    """Make the output tables of a run; states that are not to be kept go in the same transaction.

    A background run is completed in the log by the transaction of its tables or, on a server that
    does not allow this, right after it.
    """
    if not db.in_procedure:
        _make(db, run_id, output, keep_states)
        return
    ended = str(db.value(sql("run.moment")))
    try:
        if db.platform.logs_with_output:
            db.rows(sql("run.complete"), None, ended, run_id)
        _make(db, run_id, output, keep_states)
        db.commit()
    except BaseException as error:  # no client waits for it
        db.rollback()
        _complete(db, gd, run_id, f"the output tables were not made: {error}", ended)
        raise
    if not db.platform.logs_with_output:
        _complete(db, gd, run_id, None, ended)
    if keep_states is not False:
        _drop_spare(db, gd, run_id)


def _make(db: Database, run_id: int, output: RunOutputs, keep_states: bool | None) -> None:
    run = logged_run.read_run(db, run_id)
    write_outputs(db, run, output)
    if run.spec.is_automl:
        automl_output.write_best(db, run)
    if keep_states is False:
        drop_states(db, run_id)


def _complete(db: Database, gd: dict[str, Any], run_id: int, error: str | None, ended: str) -> None:
    """Log that a run is completed, outside the transaction of its tables."""
    if db.platform.logs_with_output:
        db.rows(sql("run.complete"), error, ended, run_id)
        db.commit()
        return
    with open_context(db, gd, (), None) as workplace:
        workplace.control.run(sql("run.complete"), (error, ended, run_id))


def _drop_spare(db: Database, gd: dict[str, Any], run_id: int) -> None:
    """Remove what was not needed for the output tables: until they are there, the rest of a run may
    start from it.
    """
    states = map(logged_run.stored_state, logged_run.read_newest_states(db, run_id))
    needed = [table for state in states if state for table in state.tables]
    with open_context(db, gd, (), None) as workplace:
        RunLog(workplace.control, run_id).drop_states(keep=needed)


def rewrite_outputs(db: Database, run_id: int | None, name: str | None) -> None:
    """Make output tables of a run that has states, under any name: of what it has come to so
    far.
    """
    check_transaction(db, "write_outputs")
    if run_id is None:
        raise NullNotAllowed(
            "write_outputs error: run_id is NULL", hint="SELECT run_id, name FROM cerebro.run;"
        )
    run = logged_run.read_run(db, run_id)
    output = Catalog(db, "write_outputs").reserve_output(name, suffixes(run.spec.arguments))
    write_outputs(db, run, RunOutputs(output, None))


def suffixes(arguments: FitArguments) -> tuple[str, ...]:
    """What the names of the output tables end with, beside the first of them."""
    return single_output.SUFFIXES if arguments.single else fit_output.SUFFIXES


def write_outputs(db: Database, run: logged_run.LoggedRun, output: RunOutputs) -> None:
    """Make the output tables of a run, or refill them where they exist."""
    states = output.existing.states if output.existing else None
    if run.spec.arguments.single:
        single_output.write(db, run, output.table, states)
    elif run.spec.is_automl:
        automl_output.write(db, run, output.table)
    else:
        fit_output.write(
            db, run, output.table, states, output.early.complete() if output.early else None
        )
