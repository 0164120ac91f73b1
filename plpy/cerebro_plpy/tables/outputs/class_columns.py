"""The classes of targets as columns of summary tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cerebro_plpy.configs.run_spec import DataSpec
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.database.sql.literals import array_literal
from cerebro_plpy.packing.packed_summary import ClassCounts


def count_classes(source: DataSpec) -> ClassCounts:
    """Return the number of classes of each target with its padding, NULL for floats.

    With a single target, the list is NULL for floats, and empty if the user encoded the target.
    Predict distinguishes floats from encoded targets by this.
    """
    classes = source.class_values
    if len(classes) > 1:
        widths = _widths(source)
        return [
            None if is_float else width for is_float, width in zip(source.float_targets, widths)
        ]
    if source.float_targets[0]:
        return None
    if not classes[0]:
        return []
    return [*(_widths(source) or [len(classes[0])])]


def define_class_columns(source: DataSpec) -> str:
    """Return the definitions of the `<dependent>_class_values` columns."""
    return ", ".join(
        f"{quote_identifier(name + '_class_values')} {array_type}"
        for name, array_type in zip(source.dependent, source.class_types)
    )


def class_column_values(source: DataSpec) -> str:
    """Return the values of the class columns, padded with NULLs as in the packed table."""
    widths = _widths(source) or [0] * len(source.dependent)
    return ", ".join(_class_constants(source, widths))


def _class_constants(source: DataSpec, widths: Sequence[int]) -> Iterator[str]:
    for values, width, array_type in zip(source.class_values, widths, source.class_types):
        if values:
            padding = [None] * (width - len(values))
            yield f"{array_literal([*values, *padding])}::text[]::{array_type}"
        else:
            yield f"NULL::{array_type}"


def _widths(source: DataSpec) -> list[int]:
    """Return the width of each target; [] if an older version did not log the shapes."""
    return [shape[-1] for shape in source.target_shapes or ()]
