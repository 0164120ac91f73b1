"""New rows are packed beside those that an earlier run of the same model has packed, which are
copied as they are.

So it takes as long as there are new rows. Which ones are new, a column tells that grows; that the
others are as they were is taken for granted.
"""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.configs.run_spec import RunSpec
from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.database.sql.literals import literal
from cerebro_plpy.errors import DataCorrupted
from cerebro_plpy.operations.fit.input_tables import find_packed_inputs
from cerebro_plpy.operations.train.holdout_predictions import has_packed_rows
from cerebro_plpy.operations.train.pack_training_data import (
    PackingRequest,
    ReadTable,
    TrainingData,
    describe_reading,
    open_source,
    pack_training,
    pack_validation,
    write_raw_tables,
)
from cerebro_plpy.packing.packed_columns import SHAPE
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.platform.state_tables import SPLITS, packed_table_name
from cerebro_plpy.preprocessing.learning.raw_table import RawTable
from cerebro_plpy.preprocessing.recipe.encoding import network_inputs
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.scoring.drift_profile import Profile
from cerebro_plpy.records import replace

MAX_ADDITIONS = 8
"""Times: each leaves buffers that are not full, and batches end where a buffer does."""
EQUAL_FIELDS = ("relation", "target", "task", "split", "split_seed", "bound", "recipe", "classes")


class PackedRun(NamedTuple):
    """A run whose packed rows are all but the new ones, and what it was asked."""

    run_id: int
    spec: RunSpec
    train_spec: TrainSpec


def can_extend(session: Session, before: PackedRun, asked: TrainSpec, column: str) -> bool:
    """Whether the packed rows of a run are there, and rows beyond a value can be packed as those of
    a version were.

    Weights are divided by the mean of all, and what is drawn is a share of all.
    """
    train = before.train_spec
    alike = all(getattr(train, name) == getattr(asked, name) for name in EQUAL_FIELDS)
    whole = train.share == asked.share == 1 and train.weight is None and asked.weight is None
    known = (
        train.newest.get(column) is not None
        and train.hashes is not None
        and train.profile is not None
    )
    if not (alike and whole and known and train.additions < MAX_ADDITIONS):
        return False
    return all(has_packed_rows(session, before.run_id, side) for side in SPLITS)


def extend_packed_rows(
    catalog: Catalog,
    workplace: CallContext,
    look: ReadTable,
    run_id: int,
    of: tuple[PackedRun, PackingRequest],
) -> TrainingData:
    """The packed rows of an earlier run and, beside them, the new ones that `look` finds."""
    before, preparation = of
    control, train = workplace.control, before.train_spec
    assert train.hashes is not None
    with open_source(workplace, preparation) as rows:
        table = look(rows)
        raw, found = write_raw_tables(workplace, rows, table)
        for side, output, each in zip(SPLITS, raw, found):
            _copy(control, before.run_id, run_id, side)
            if each.rows:
                _pack(control, table, (output, run_id, side), each.rows)
                _add(control, table, (run_id, side), before.spec.segments)
        stored = describe_reading(rows, table, preparation.reading, workplace.custom_settings)
    inputs = find_packed_inputs(catalog, *(packed_table_name(run_id, name) for name in SPLITS))
    data = inputs.read(catalog, workplace.reader)
    rows_trained = train.training_rows + found[0].rows
    if data.source.rows != rows_trained:
        raise DataCorrupted(
            f"{catalog.module} error: run {before.run_id} has {data.source.rows - found[0].rows} "
            f"packed rows; expected {train.training_rows}",
            hint="SELECT cerebro.vacuum_runs(); then all rows are packed again.",
        )
    whole = replace(
        table,
        target=table.target._replace(rows=rows_trained),
        validation_rows=train.validation_rows + found[1].rows,
    )
    rows_of_all = rows_trained + whole.validation_rows
    seen = Profile.from_json(train.profile, Recipe.from_json(train.recipe))
    hashes = train.hashes[0] + found[0].hashes, train.hashes[1] + found[1].hashes
    return TrainingData(
        whole, seen, inputs, data, hashes, (), {**stored, "rows": rows_of_all}, train.additions + 1
    )


def _copy(control: Session, old: int, new: int, side: str) -> None:
    for name in (side, f"{side}_summary"):
        output = packed_table_name(new, name)
        copied = sql(
            "features.copy_packed",
            source=packed_table_name(old, name),
            output=output,
            literal=literal(output),
        )
        control.run(copied)


def _pack(control: Session, table: RawTable, where: tuple[str, int, str], rows: int) -> None:
    """Pack the new rows of a side into a table of their own."""
    raw, run_id, side = where
    if side == SPLITS[0]:
        pack_training(control, table, (raw, _more(run_id, side)), (rows, list(table.target.values)))
    else:
        pack_validation(
            control, table, (raw, _more(run_id, side), packed_table_name(run_id, SPLITS[0]))
        )


def _add(
    control: Session, table: RawTable, where: tuple[int, str], segments: tuple[int, ...]
) -> None:
    """Let the buffers of that table follow those that were there, spread over the same segments."""
    names = [*(each.name for each in network_inputs(table.recipe)), "label"]
    statement = sql(
        "features.add_packed",
        output=packed_table_name(*where),
        columns=", ".join([*names, *(name + SHAPE for name in names)]),
        source=_more(*where),
        segments=str(len(segments)),
    )
    control.run(statement, (list(segments),))
    for name in (_more(*where), _more(*where, "_summary")):
        control.run(sql("run.drop_table", table=name))


def _more(run_id: int, side: str, suffix: str = "") -> str:
    return packed_table_name(run_id, f"{side}_more{suffix}")
