"""The packed rows of both sides of a run as one table."""

from __future__ import annotations

from collections.abc import Sequence

from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.database.sql.literals import literal
from cerebro_plpy.operations.fit.input_tables import (
    PackedData,
    PackedInputs,
    find_packed_inputs,
)
from cerebro_plpy.packing.packed_columns import SHAPE
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.platform.state_tables import SPLITS, packed_table_name
from cerebro_plpy.records import dataclass


@dataclass(frozen=True)
class PackedRows:
    """Packed tables that a run can train on."""

    inputs: PackedInputs
    data: PackedData


def pack_all_rows(
    catalog: Catalog, context: CallContext, rows: PackedRows, run_id: int, folds: int
) -> PackedRows:
    """Copy the training rows of a run, and append its hold-out rows in buffers of their own.

    Args:
        rows: of the run, both sides.
        run_id: the run that will train on all of them.
        folds: each buffer is cut into so many, if there are any.
    """
    source = rows.data.source
    validation = rows.data.validation
    summary = rows.inputs.source.summary
    assert validation is not None and summary is not None
    side, _ = SPLITS
    output = packed_table_name(run_id, side)
    _copy_table(context, source.relation, output)
    _copy_table(context, summary, packed_table_name(run_id, f"{side}_summary"))
    names = (*source.independent, *source.dependent)
    statement = sql(
        "features.add_packed",
        output=output,
        columns=", ".join([*names, *(name + SHAPE for name in names)]),
        source=validation.relation.quoted,
        segments=str(len(source.segments)),
    )
    context.control.run(statement, (list(source.segments),))
    if folds:
        cut_buffers(context.control, output, names, folds)
    inputs = find_packed_inputs(catalog, output, None)
    return PackedRows(inputs, inputs.read(catalog, context.reader))


def cut_buffers(session: Session, output: str, names: Sequence[str], parts: int) -> None:
    """Cut each buffer of a packed table into parts of neighbouring rows.

    Rows lie in the order of a hash, so a part is a sample of them.
    """
    cuts = []
    for name in names:
        shape = f"b.{name}{SHAPE}"
        row_bytes = f"(pg_catalog.octet_length(b.{name}) / {shape}[1])"
        cuts.append(
            f"pg_catalog.substring(b.{name}, 1 + p.start * {row_bytes}, p.rows * {row_bytes})"
        )
        cuts.append(f"ARRAY[p.rows] OPERATOR(pg_catalog.||) {shape}[2:]")
    statement = sql(
        "features.cut_packed",
        output=output,
        columns=", ".join(f"{name}, {name}{SHAPE}" for name in names),
        cuts=", ".join(cuts),
        parts=str(parts),
        shape=names[0] + SHAPE,
    )
    session.run(statement)


def _copy_table(context: CallContext, table: Relation, output: str) -> None:
    statement = sql(
        "features.copy_packed", source=table.quoted, output=output, literal=literal(output)
    )
    context.control.run(statement)
