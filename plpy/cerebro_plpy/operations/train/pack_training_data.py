"""From a raw table to packed tables of a run: looked at, and packed by its recipe, in one
transaction of one session.

What it makes lies in schema cerebro_state and belongs to the caller; it stays as long as the run
may be resumed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from cerebro_plpy.configs.train_spec import ComparedVersion
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

MODULE = "train"
SNAPSHOT = "REPEATABLE READ"
ReadTable = Callable[[SourceRows], RawTable]
KINDS = {True: "class", False: "float"}


class TrainingData(NamedTuple):
    """A raw table, the packed tables that were made of it, and what its training rows were like.

    `counts` are those of each class, as far as they are known, and `hashes` what the fingerprint is
    made of; so many `additions` were packed beside rows of an earlier run. Rows of groups lie as
    `grouped` says. `reading` is what is stored of the settings under which the source was read.
    """

    table: RawTable
    profile: Profile
    inputs: PackedInputs
    data: PackedData
    hashes: tuple[int, int]
    counts: tuple[int, ...]
    reading: Mapping[str, Any]
    additions: int = 0
    group_layouts: GroupedLayouts | None = None
    compared: ComparedVersion | None = None

    @property
    def fingerprint(self) -> str:
        """What tells these rows from others."""
        return fingerprint(*self.hashes)


@contextmanager
def drop_after_error(workplace: CallContext, run_id: int) -> Iterator[None]:
    """Drop the packed tables of a run after an error, unless the run is in the log."""
    try:
        yield
    except BaseException:
        with suppress(CerebroError):  # if the session is lost, cerebro.vacuum_runs drops them
            if not workplace.control.run(sql("run.logged"), (run_id,)):
                drop_packed_tables(workplace.control, run_id)
        raise


class PackingRequest(NamedTuple):
    """How a run reads its source, and which model it is compared with."""

    source: Table
    reading: Reading
    wait_limit: WaitLimit  # on waiting for a source that somebody has locked
    model: str | None = None  # None: with none


def pack_training_data(
    catalog: Catalog, workplace: CallContext, look: ReadTable, run_id: int, of: PackingRequest
) -> TrainingData:
    """Pack both sides of a table for a run, as `look` finds it."""
    reading, model = of.reading, of.model
    with open_source(workplace, of) as rows:
        table = look(rows)
        raw, (training, validation) = write_raw_tables(workplace, rows, table)
        grouped = plan_group_layouts(catalog, table) if table.groups else None
        _pack(rows.session, table, run_id, (raw, training, grouped))
        other = find_version_to_compare(catalog, model, table) if model is not None else None
        compared = (
            pack_compared(catalog, rows, table, other, run_id, validation.rows) if other else None
        )
        seen = drift_profile.measure(rows, table.source, table.source.rows or 0, table.recipe)
        stored = describe_reading(rows, table, reading, workplace.custom_settings)
    inputs = find_packed_inputs(catalog, *(packed_table_name(run_id, name) for name in SPLITS))
    data = inputs.read(catalog, workplace.reader)
    counts = tuple(training.counts.get(name, 0) for name in table.target.values)
    hashes = training.hashes, validation.hashes
    return TrainingData(
        table, seen, inputs, data, hashes, counts, stored, group_layouts=grouped, compared=compared
    )


@contextmanager
def open_source(workplace: CallContext, of: PackingRequest) -> Iterator[SourceRows]:
    """Yield the sources of a run, which are read in one transaction of the control session."""
    control, pinned = workplace.control, {**SETTINGS, "lock_timeout": of.wait_limit.setting}
    check_custom_settings(control, workplace.custom_settings)
    waits = bounded_waits(
        workplace.db, control, of.source, of.wait_limit, lambda: workplace.lock_watch.blocker
    )
    with transaction(control, SNAPSHOT), waits, session_rows(control, of.reading, pinned) as rows:
        yield rows
        for each in rows.copies:
            workplace.db.info(
                f"{each.source.spelling} was read once, into a table of {each.bytes / 1e6:.1f} MB"
            )


def describe_reading(
    rows: SourceRows, table: RawTable, reading: Reading, names: Iterable[str]
) -> dict[str, Any]:
    """Return what a version stores of its reading; of custom settings their names alone."""
    columns = {each.name: each.type for each in table.columns if each.readable}
    count = table.rows + table.validation_rows
    kind = read_kind(rows.session, table.relation)
    return record(reading.formats, kind=kind, names=sorted(names), columns=columns, rows=count)


def write_raw_tables(
    workplace: CallContext, rows: SourceRows, table: RawTable
) -> tuple[list[str], list[Digest]]:
    """Put the raw rows of both sides in order, until the transaction ends; return their tables, and
    their digests.
    """
    control, classes = rows.session, table.target.task == CLASSIFICATION
    tables: list[str] = []
    found: list[Digest] = []
    for part in table.parts:
        output = rows.name_table("rows")
        statement = raw_rows_statement(
            workplace.platform, part, output, table.groups and table.groups.order
        )
        control.run(*statement)
        tables.append(output)
        found.append(compute_digest(control, part, output, classes))
    return tables, found


def plan_group_layouts(catalog: Catalog, table: RawTable) -> GroupedLayouts:
    """Where rows of groups are to lie on either side."""
    assert table.groups is not None
    keys = (
        catalog.db.platform.choose_distribution(catalog.db, MODULE, None, None)
        .take_first(table.rows)
        .keys
    )
    block = choose_buffer_rows(table.recipe.room + table.target.head.units)
    return lay_out_groups(table.groups, keys, block)


def _pack(
    control: Reader,
    table: RawTable,
    run_id: int,
    of: tuple[list[str], Digest, GroupedLayouts | None],
) -> None:
    (raw, training, grouped), (output, validation) = (
        of,
        (packed_table_name(run_id, name) for name in SPLITS),
    )
    known = training.rows, [name for name in training.counts if name is not None]
    pack_training(control, table, (raw[0], output), known, grouped and grouped.training)
    pack_validation(control, table, (raw[1], validation, output), grouped and grouped.validation)


def pack_training(
    control: Reader,
    table: RawTable,
    tables: tuple[str, str],
    known: tuple[int, list[str]],
    grouped: BufferLayout | None = None,
) -> None:
    """Pack the raw rows that are trained on, from the first of these tables into the second.

    It is `known` how many rows they are, and of what classes.
    """
    kind = KINDS[table.target.task == CLASSIFICATION]
    weight = None if table.weight is None else "weight"
    told = _recipes(control, table, 0), _layout(grouped)
    control.run(
        sql("features.pack_training"), (*tables, _inputs(table), kind, weight, *known, *told)
    )


def pack_validation(
    control: Reader,
    table: RawTable,
    tables: tuple[str, str, str],
    grouped: BufferLayout | None = None,
) -> None:
    """Pack the raw rows that are held back, from the first of these tables into the second.

    The third has the packed rows that are trained on.
    """
    raw, output, training = tables
    told = _recipes(control, table, 1), _layout(grouped)
    control.run(sql("features.pack_validation"), (raw, output, _inputs(table), training, *told))


def _layout(grouped: BufferLayout | None) -> str | None:
    return None if grouped is None else json.dumps(grouped.to_json())


def _recipes(control: Reader, table: RawTable, side: int) -> str:
    """What makes inputs of the raw values of a side, as JSON."""
    return json.dumps(constants_by_input(control, table.parts[side].recipe))


def _inputs(table: RawTable) -> str:
    return ", ".join(each.name for each in network_inputs(table.recipe))
