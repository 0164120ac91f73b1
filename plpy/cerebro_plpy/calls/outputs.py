"""The output tables of a run: which there will be, and how they are made when it is completed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cerebro_plpy.calls import runs
from cerebro_plpy.calls.warm_start import existing_output
from cerebro_plpy.configs.spec import FitArguments
from cerebro_plpy.database.caller import Database
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.checks import check_transaction
from cerebro_plpy.errors import NullNotAllowed
from cerebro_plpy.tables import outputs, single_output


class Outputs(NamedTuple):
    """The output tables of a call: the first of them, and those that a warm start goes on from, by suffix."""

    table: Relation
    existing: Mapping[str, Relation]


def find_outputs(catalog: Catalog, arguments: FitArguments) -> Outputs:
    """The output tables that a fit call will write, or has to rewrite."""
    names = suffixes(arguments)
    if not arguments.warm_start:
        return Outputs(catalog.output(arguments.model_output_table, names), {})
    existing = existing_output(catalog, arguments.model_output_table, names)
    return Outputs(existing[""], existing)


def finish(db: Database, run_id: int, output: Outputs, *, keep_states: bool | None) -> None:
    """Make the output tables; with them, when the caller commits, states go that are not to be kept."""
    write_outputs(db, outputs.read_run(db, run_id), output.table, refill=bool(output.existing))
    if keep_states is False:
        runs.drop_states(db, run_id)


def write_again(db: Database, run_id: int | None, name: str | None) -> None:
    """Make the output tables of a completed run once more, under another name."""
    check_transaction(db, "write_outputs")
    if run_id is None:
        raise NullNotAllowed("write_outputs error: run_id is NULL", hint="SELECT run_id, name FROM cerebro.run;")
    run = outputs.read_run(db, run_id)
    output = Catalog(db, "write_outputs").output(name, suffixes(run.spec.arguments))
    write_outputs(db, run, output, refill=False)


def suffixes(arguments: FitArguments) -> tuple[str, ...]:
    """What the names of the output tables end with, beside the first of them."""
    return single_output.SUFFIXES if arguments.single else outputs.SUFFIXES


def write_outputs(db: Database, run: outputs.LoggedRun, output: Relation, *, refill: bool) -> None:
    """Make the output tables of a completed run, or refill them."""
    if run.spec.arguments.single:
        single_output.write(db, run, output, refill=refill)
    else:
        outputs.write(db, run, output, refill=refill)
