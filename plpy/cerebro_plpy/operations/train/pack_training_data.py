"""Packing of a raw table for a run of `cerebro.train`, in one transaction of one session.

The packed tables lie in schema cerebro_state and belong to the caller. They remain as long as the
run may be resumed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from cerebro_plpy.configs.train_spec import ComparedVersion, SourceRecord
from cerebro_plpy.database.call_status import PACKING
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.custom_settings import check_custom_settings
from cerebro_plpy.database.lock_waits import WaitLimit, bounded_waits
from cerebro_plpy.database.platform_protocol import Reader, Table
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.reading import Reading, record
from cerebro_plpy.database.sessions.async_dispatcher import transaction
from cerebro_plpy.database.source_rows import SourceRows, read_kind, session_rows
from cerebro_plpy.errors import CerebroError
from cerebro_plpy.operations.fit.drop_run_tables import drop_packed_tables
from cerebro_plpy.operations.fit.input_tables import PackedData, PackedInputs, find_packed_inputs
from cerebro_plpy.operations.train.incumbent_holdout import find_version_to_compare, pack_compared
from cerebro_plpy.packing.buffer_sizes import choose_buffer_rows
from cerebro_plpy.packing.grouped_buffers import BufferLayout, GroupedLayouts, lay_out_groups
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.platform.state_tables import SPLITS, packed_table_name
from cerebro_plpy.preprocessing.learning.raw_table import SETTINGS, RawTable
from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION
from cerebro_plpy.preprocessing.recipe.encoding import network_inputs
from cerebro_plpy.preprocessing.recipe.split_encoding import constants_by_input
from cerebro_plpy.preprocessing.rows.fingerprint import Digest, compute_digest, fingerprint
from cerebro_plpy.preprocessing.rows.row_subset import raw_rows_statement
from cerebro_plpy.preprocessing.scoring import drift_profile
from cerebro_plpy.preprocessing.scoring.drift_profile import Profile
from cerebro_plpy.tables.models import column_types

MODULE = "train"
SNAPSHOT = "REPEATABLE READ"
ReadTable = Callable[[SourceRows], RawTable]
"""Reads a table in the transaction in which it is packed."""


class TrainingData(NamedTuple):
    """A raw table, and the packed tables made from it."""

    table: RawTable
    profile: Profile  # of the training rows
    inputs: PackedInputs
    data: PackedData
    hashes: tuple[int, int]  # of training and validation rows; the fingerprint is made from them
    counts: tuple[int, ...]  # training rows of each class; empty if unknown
    reading: Mapping[str, Any]  # record of the settings under which the source was read
    additions: int = 0  # number of times that new rows were added to the packed tables
    group_layouts: GroupedLayouts | None = None
    compared: ComparedVersion | None = None

    @property
    def fingerprint(self) -> str:
        """The hash of all rows, as the recipe encodes them."""
        return fingerprint(*self.hashes)

    def make_source_record(self) -> SourceRecord:
        """Return the record of the source's rows for the log."""
        return SourceRecord(
            fingerprint=self.fingerprint,
            hashes=self.hashes,
            identity=self.table.identity,
            reading=self.reading,
            profile=self.profile.to_json(),
            newest=self.table.newest,
            additions=self.additions,
        )


class PackingRequest(NamedTuple):
    """The source of a run, and the model that the run trains."""

    source: Table
    reading: Reading
    wait_limit: WaitLimit  # for a lock of another session on the source
    model: str | None = None  # its deployed version is compared with the new one, if named
    segments: int | None = None  # None: as many as the rows are worth


class RawRows(NamedTuple):
    """The raw rows of one side, in a temporary table."""

    table: str
    digest: Digest


@contextmanager
def drop_after_error(context: CallContext, run_id: int) -> Iterator[None]:
    """Drop the packed tables of a run after an error, unless the run is in the log."""
    try:
        yield
    except BaseException:
        with suppress(CerebroError):  # if the session is lost, cerebro.vacuum_runs drops them
            if not context.control.run(sql("run.logged"), (run_id,)):
                drop_packed_tables(context.control, run_id)
        raise


def pack_training_data(
    catalog: Catalog,
    context: CallContext,
    read_table: ReadTable,
    run_id: int,
    request: PackingRequest,
) -> TrainingData:
    """Pack the training and the validation rows of a table for a run."""
    layouts = None
    compared = None
    with open_source(context, request) as rows:
        table = read_table(rows)
        context.show_preparation(run_id, PACKING)
        training, validation = write_raw_tables(context, rows, table)
        if table.groups:
            layouts = plan_group_layouts(catalog, table)
        sides = (training, validation)
        _pack_sides(rows.session, table, run_id, sides, layouts, request.segments)
        if request.model is not None:
            version = find_version_to_compare(catalog, request.model, table)
            if version is not None:
                count = validation.digest.rows
                compared = pack_compared(catalog, rows, table, version, run_id, count)
        profile = drift_profile.measure(rows, table.source, table.source.rows or 0, table.recipe)
        reading = describe_reading(rows, table, request.reading, context.custom_settings)
    inputs = find_packed_inputs(catalog, *(packed_table_name(run_id, side) for side in SPLITS))
    return TrainingData(
        table=table,
        profile=profile,
        inputs=inputs,
        data=inputs.read(catalog, context.reader),
        hashes=(training.digest.hashes, validation.digest.hashes),
        counts=tuple(training.digest.counts.get(name, 0) for name in table.target.values),
        reading=reading,
        group_layouts=layouts,
        compared=compared,
    )


@contextmanager
def open_source(context: CallContext, request: PackingRequest) -> Iterator[SourceRows]:
    """Yield the rows of a source, which are read in one transaction of the control session."""
    control = context.control
    pinned = {**SETTINGS, "lock_timeout": request.wait_limit.setting}
    check_custom_settings(control, context.custom_settings)
    waits = bounded_waits(
        context.db,
        control,
        request.source,
        request.wait_limit,
        lambda: context.lock_watch.blocker,
    )
    session = session_rows(control, request.reading, pinned)
    with transaction(control, SNAPSHOT), waits, session as rows:
        yield rows
        for copy in rows.copies:
            context.db.info(
                f"{copy.source.spelling} was read once, into a table of {copy.bytes / 1e6:.1f} MB"
            )


def describe_reading(
    rows: SourceRows, table: RawTable, reading: Reading, names: Iterable[str]
) -> dict[str, Any]:
    """Return the record that a version stores of its reading.

    Args:
        names: names of custom settings, whose values are never stored.
    """
    types = column_types.ColumnTypes(
        column_types.read_types_of(rows.session, table.relation),
        column_types.read_base_type(rows.session, table.target.column.type),
    )
    return record(
        reading.formats,
        **column_types.to_record(types),
        kind=read_kind(rows.session, table.relation),
        names=sorted(names),
        columns={column.name: column.type for column in table.columns if column.readable},
        rows=table.rows + table.validation_rows,
    )


def write_raw_tables(context: CallContext, rows: SourceRows, table: RawTable) -> list[RawRows]:
    """Write the raw rows of the training and of the validation side in their final order.

    The tables exist until the end of the transaction.
    """
    order = table.groups and table.groups.order
    has_classes = table.target.task == CLASSIFICATION
    raw_rows = []
    for part in table.parts:
        name = rows.name_table("rows")
        rows.session.run(*raw_rows_statement(context.platform, part, name, order))
        digest = compute_digest(rows.session, part, name, has_classes)
        raw_rows.append(RawRows(name, digest))
    return raw_rows


def plan_group_layouts(catalog: Catalog, table: RawTable) -> GroupedLayouts:
    """Plan the buffers of the rows of groups."""
    assert table.groups is not None
    distribution = catalog.db.platform.choose_distribution(catalog.db, MODULE, None, None)
    keys = distribution.take_first(table.rows).keys
    block_rows = choose_buffer_rows(table.recipe.room + table.target.head.units)
    return lay_out_groups(table.groups, keys, block_rows)


def _pack_sides(
    control: Reader,
    table: RawTable,
    run_id: int,
    sides: tuple[RawRows, RawRows],
    layouts: GroupedLayouts | None,
    segments: int | None,
) -> None:
    training, validation = sides
    training_table, validation_table = (packed_table_name(run_id, side) for side in SPLITS)
    classes = [name for name in training.digest.counts if name is not None]
    layout = layouts and layouts.training
    pack_training(control, table, training, training_table, classes, layout, segments)
    pack_validation(
        control,
        table,
        validation.table,
        validation_table,
        training_table,
        layouts and layouts.validation,
    )


def pack_training(
    control: Reader,
    table: RawTable,
    raw_rows: RawRows,
    output: str,
    classes: Sequence[str],
    layout: BufferLayout | None = None,
    segments: int | None = None,
) -> None:
    """Pack the raw training rows into a table of that name.

    Args:
        segments: their number; None for as many as the rows are worth.
    """
    values = (
        raw_rows.table,
        output,
        _input_names(table),
        "class" if table.target.task == CLASSIFICATION else "float",
        None if table.weight is None else "weight",
        raw_rows.digest.rows,
        list(classes),
        _recipe_constants(control, table, 0),
        _layout_json(layout),
        segments,
    )
    control.run(sql("features.pack_training"), values)


def pack_validation(
    control: Reader,
    table: RawTable,
    raw_table: str,
    output: str,
    training: str,
    layout: BufferLayout | None = None,
) -> None:
    """Pack the raw validation rows into a table of that name.

    Args:
        training: the packed training rows.
    """
    constants = _recipe_constants(control, table, 1)
    values = (raw_table, output, _input_names(table), training, constants, _layout_json(layout))
    control.run(sql("features.pack_validation"), values)


def _layout_json(layout: BufferLayout | None) -> str | None:
    return None if layout is None else json.dumps(layout.to_json())


def _recipe_constants(control: Reader, table: RawTable, side: int) -> str:
    """Return as JSON the constants that turn the raw values of a side into inputs."""
    return json.dumps(constants_by_input(control, table.parts[side].recipe))


def _input_names(table: RawTable) -> str:
    return ", ".join(network_input.name for network_input in network_inputs(table.recipe))
