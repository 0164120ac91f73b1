"""The output tables of a run: which there will be, and how they are made when it is completed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

from cerebro_plpy.calls.run_tables import drop_states
from cerebro_plpy.calls.warm_start import ExistingOutput, existing_output
from cerebro_plpy.configs.spec import FitArguments
from cerebro_plpy.database.caller import Database
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.checks import check_transaction
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import NullNotAllowed
from cerebro_plpy.platform.workplace import Workplace, open_workplace
from cerebro_plpy.run.log import RunLog
from cerebro_plpy.run.request import FitRequest
from cerebro_plpy.run.tasks import Beside, Nothing
from cerebro_plpy.tables import automl_output, outputs, single_output
from cerebro_plpy.tables.early_output import EarlyOutput


class Outputs(NamedTuple):
    """The output tables of a call: the first of them, and those that a warm start goes on from; or what is written of
    new ones before the run is completed."""

    table: Relation
    existing: ExistingOutput | None
    early: EarlyOutput | None = None

    @property
    def beside(self) -> Beside:
        """What is done beside the run."""
        return self.early or Nothing()

    def relations(self) -> list[Relation]:
        """The tables that are there already."""
        return self.existing.relations() if self.existing else []


def find_outputs(catalog: Catalog, arguments: FitArguments) -> Outputs:
    """The output tables that a fit call will write, or has to rewrite."""
    names = suffixes(arguments)
    if not arguments.warm_start:
        return Outputs(catalog.output(arguments.model_output_table, names), None)
    existing = existing_output(catalog, arguments.model_output_table, names)
    return Outputs(existing.model, existing)


def begun_early(db: Database, workplace: Workplace, request: FitRequest, output: Outputs) -> Outputs:
    """The output tables, as far as they can be begun beside the run.

    That is new ones, by a session that has nothing else to do, and goes on in its transaction; not those that others
    may read, or have locked.
    """
    alone = workplace.local or db.in_procedure or not workplace.platform.works_beside
    if alone or output.existing or request.spec.arguments.single or len(request.configs) == 1 or request.spec.search:
        return output
    return output._replace(early=EarlyOutput(db, output.table))


def finish(db: Database, gd: dict[str, Any], run_id: int, output: Outputs, *, keep_states: bool | None) -> None:
    """Make the output tables; with them, when the caller commits, states go that are not to be kept."""
    with _completed(db, run_id) if db.in_procedure else nullcontext():
        run = outputs.read_run(db, run_id)
        write_outputs(db, run, output)
        if run.spec.is_automl:
            automl_output.write_best(db, run)
        if keep_states is False:
            drop_states(db, run_id)
    if db.in_procedure and keep_states is not False:
        db.commit()
        _drop_spare(db, gd, run_id)


def _drop_spare(db: Database, gd: dict[str, Any], run_id: int) -> None:
    """Remove what was not needed for the output tables: until they are there, the rest of a run may start from it."""
    states = map(outputs.state_of, outputs.newest_states(db, run_id))
    needed = [table for state in states if state for table in state.tables]
    with open_workplace(db, gd, (), None) as workplace:
        RunLog(workplace.control, run_id).drop_states(keep=needed)


@contextmanager
def _completed(db: Database, run_id: int) -> Iterator[None]:
    """Complete a run in the background by the transaction that makes its tables; without them where they cannot be."""
    ended = db.value(sql("run.moment"))
    db.rows(sql("run.complete"), None, ended, run_id)
    try:
        yield
    except BaseException as error:  # which nobody hears of
        db.rollback()
        db.rows(sql("run.complete"), f"the output tables were not made: {error}", ended, run_id)
        db.commit()
        raise


def write_again(db: Database, run_id: int | None, name: str | None) -> None:
    """Make output tables of a run that has states, under any name: of what it has come to so far."""
    check_transaction(db, "write_outputs")
    if run_id is None:
        raise NullNotAllowed("write_outputs error: run_id is NULL", hint="SELECT run_id, name FROM cerebro.run;")
    run = outputs.read_run(db, run_id)
    output = Catalog(db, "write_outputs").output(name, suffixes(run.spec.arguments))
    write_outputs(db, run, Outputs(output, None))


def suffixes(arguments: FitArguments) -> tuple[str, ...]:
    """What the names of the output tables end with, beside the first of them."""
    return single_output.SUFFIXES if arguments.single else outputs.SUFFIXES


def write_outputs(db: Database, run: outputs.LoggedRun, output: Outputs) -> None:
    """Make the output tables of a run, or refill them where they exist."""
    states = output.existing.states if output.existing else None
    if run.spec.arguments.single:
        single_output.write(db, run, output.table, states)
    elif run.spec.is_automl:
        automl_output.write(db, run, output.table)
    else:
        outputs.write(db, run, output.table, states, output.early.begun() if output.early else None)
