"""The output tables of a run: which there will be, and how they are made when it is completed."""

from __future__ import annotations

from cerebro_plpy.calls import runs
from cerebro_plpy.calls.fit_arguments import FitArguments
from cerebro_plpy.calls.warm_start import existing_output
from cerebro_plpy.database.caller import Database, Row
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.checks import check_transaction
from cerebro_plpy.errors import NullNotAllowed
from cerebro_plpy.tables import outputs, single_output


def found_outputs(catalog: Catalog, arguments: FitArguments) -> tuple[dict[str, Relation], Relation]:
    """The output tables that a warm start goes on from, by suffix, and the first of those that will be written."""
    made = suffixes(arguments.one is not None)
    if not arguments.warm_start:
        return {}, catalog.output(arguments.model_output_table, made)
    before = existing_output(catalog, arguments.model_output_table, made)
    return before, before[""]


def finish(db: Database, run_id: int, output: Relation, arguments: FitArguments, *, refill: bool) -> None:
    """Make the output tables; with them, when the caller commits, states go that are not to be kept."""
    write_outputs(db, outputs.read_run(db, run_id), output, refill=refill)
    if arguments.keep_states is False:
        runs.drop_states(db, run_id)


def write_again(db: Database, run_id: int | None, name: str | None) -> None:
    """Make the output tables of a completed run once more, under another name."""
    check_transaction(db, "write_outputs")
    if run_id is None:
        raise NullNotAllowed("write_outputs error: run_id is NULL", hint="SELECT run_id, name FROM cerebro.run;")
    run = outputs.read_run(db, run_id)
    made = suffixes(bool(run["spec"].get("one")))
    write_outputs(db, run, Catalog(db, "write_outputs").output(name, made), refill=False)


def suffixes(one: bool) -> tuple[str, ...]:
    """What the names of the output tables end with, beside the first of them."""
    return single_output.SUFFIXES if one else outputs.SUFFIXES


def write_outputs(db: Database, run: Row, output: Relation, *, refill: bool) -> None:
    """Make the output tables of a completed run, or refill them."""
    if run["spec"].get("one"):
        single_output.write(db, run, output, refill=refill)
    else:
        outputs.write(db, run, output, refill=refill)
