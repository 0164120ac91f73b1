"""Packing of new rows into a copy of the packed rows of an earlier run of the same model.

This takes time in proportion to the new rows. A growing column identifies them; older rows are
assumed to be unchanged.
"""

from __future__ import annotations

from operator import attrgetter
from typing import NamedTuple

from cerebro_plpy.configs.run_spec import RunSpec
from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.database.sql.literals import literal
from cerebro_plpy.errors import DataCorrupted
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.operations.fit.input_tables import find_packed_inputs
from cerebro_plpy.operations.train.holdout_predictions import has_packed_rows
from cerebro_plpy.operations.train.pack_training_data import (
    PackingRequest,
    RawRows,
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
"""Each addition leaves buffers that are not full, and a batch ends with its buffer."""
read_packing_fields = attrgetter(
    "relation", "target", "task", "split.rule", "split.seed", "split.bound", "recipe", "classes"
)
"""Reads the fields of a spec that must be equal if rows are packed alike."""


class PackedRun(NamedTuple):
    """A run whose packed rows a later run can extend."""

    run_id: int
    spec: RunSpec
    train_spec: TrainSpec


def can_extend(session: Session, run: PackedRun, train_spec: TrainSpec, column: str) -> bool:
    """Return whether the packed rows of a run exist and newer rows can be added to them.

    Weights are divided by the mean weight of all rows, and a sample is a share of all rows: neither
    can be extended.

    Args:
        train_spec: of the version that is refreshed; the rows of the run are packed like its rows.
        column: a growing column, which identifies newer rows.
    """
    packed = run.train_spec
    if read_packing_fields(packed) != read_packing_fields(train_spec):
        return False
    for spec in (packed, train_spec):
        if spec.split.share != 1 or spec.weight is not None:
            return False
    if (
        packed.source.newest.get(column) is None
        or packed.source.hashes is None
        or packed.source.profile is None
    ):
        return False
    if packed.source.additions >= MAX_ADDITIONS:
        return False
    return all(has_packed_rows(session, run.run_id, side) for side in SPLITS)


def extend_packed_rows(
    catalog: Catalog,
    context: CallContext,
    read_table: ReadTable,
    run_id: int,
    extension: tuple[PackedRun, PackingRequest],
) -> TrainingData:
    """Copy the packed rows of an earlier run, and add the new rows that `read_table` returns."""
    run, request = extension
    control = context.control
    packed = run.train_spec
    assert packed.source.hashes is not None
    with open_source(context, request) as rows:
        table = read_table(rows)
        training, validation = write_raw_tables(context, rows, table)
        for side, new_rows in zip(SPLITS, (training, validation)):
            _copy_packed(control, run.run_id, run_id, side)
            if new_rows.digest.rows:
                _pack_new_rows(control, table, new_rows, run_id, side)
                _append_new_rows(control, table, run_id, side, run.spec.segments)
        reading = describe_reading(rows, table, request.reading, context.custom_settings)
    inputs = find_packed_inputs(catalog, *(packed_table_name(run_id, side) for side in SPLITS))
    data = inputs.read(catalog, context.reader)
    training_rows = packed.split.training_rows + training.digest.rows
    if data.source.rows != training_rows:
        raise DataCorrupted(
            f"{catalog.module} error: run {run.run_id} has "
            f"{count_nouns(data.source.rows - training.digest.rows, 'packed row')}; expected "
            f"{packed.split.training_rows}",
            hint="SELECT cerebro.vacuum_runs(); then all rows are packed again.",
        )
    validation_rows = packed.split.validation_rows + validation.digest.rows
    training_hashes, validation_hashes = packed.source.hashes
    return TrainingData(
        table=replace(
            table,
            target=table.target._replace(rows=training_rows),
            validation_rows=validation_rows,
        ),
        profile=Profile.from_json(packed.source.profile, Recipe.from_json(packed.recipe)),
        inputs=inputs,
        data=data,
        hashes=(
            training_hashes + training.digest.hashes,
            validation_hashes + validation.digest.hashes,
        ),
        counts=(),
        reading={**reading, "rows": training_rows + validation_rows},
        additions=packed.source.additions + 1,
    )


def _copy_packed(control: Session, old_run_id: int, run_id: int, side: str) -> None:
    for name in (side, f"{side}_summary"):
        output = packed_table_name(run_id, name)
        statement = sql(
            "features.copy_packed",
            source=packed_table_name(old_run_id, name),
            output=output,
            literal=literal(output),
        )
        control.run(statement)


def _pack_new_rows(
    control: Session, table: RawTable, raw_rows: RawRows, run_id: int, side: str
) -> None:
    """Pack the new rows of a side into a table of their own."""
    output = _new_table_name(run_id, side)
    if side == SPLITS[0]:
        pack_training(control, table, raw_rows, output, table.target.values)
    else:
        pack_validation(
            control, table, raw_rows.table, output, packed_table_name(run_id, SPLITS[0])
        )


def _append_new_rows(
    control: Session, table: RawTable, run_id: int, side: str, segments: tuple[int, ...]
) -> None:
    """Append the buffers of the new rows to the copied ones, over the same segments."""
    names = [*(network_input.name for network_input in network_inputs(table.recipe)), "label"]
    new_table = _new_table_name(run_id, side)
    statement = sql(
        "features.add_packed",
        output=packed_table_name(run_id, side),
        columns=", ".join([*names, *(name + SHAPE for name in names)]),
        source=new_table,
        segments=str(len(segments)),
    )
    control.run(statement, (list(segments),))
    for name in (new_table, _new_table_name(run_id, side, "_summary")):
        control.run(sql("run.drop_table", table=name))


def _new_table_name(run_id: int, side: str, suffix: str = "") -> str:
    return packed_table_name(run_id, f"{side}_more{suffix}")
