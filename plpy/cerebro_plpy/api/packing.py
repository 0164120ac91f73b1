"""The functions of sql/30-packing.sql."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, call, check_counts, get_database, report_errors
from cerebro_plpy.database import progress
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.operations.fit import preprocessors
from cerebro_plpy.trainer_client.argument_checks import (
    check_integer,
    check_type,
    parse_object,
    require,
)


@report_errors
@check_counts
def training_preprocessor(
    plpy: Any,
    gd: Globals,
    source_table: str | None,
    output_table: str | None,
    dependent_varname: str | None,
    independent_varname: str | None,
    buffer_size: int | None,
    normalizing_const: float | None,
    num_classes: list[int | None] | None,
    distribution_rules: str | None,
    n_segments: int | None,
    seed: int | None,
    dependent_type: str | None,
    sample_weight_varname: str | None,
) -> None:
    """Pack a table for training."""
    arguments = preprocessors.PackArguments(
        source_table,
        output_table,
        dependent_varname,
        independent_varname,
        buffer_size,
        distribution_rules,
    )
    options = preprocessors.TrainingOptions(
        normalizing_const, num_classes, n_segments, seed, dependent_type, sample_weight_varname
    )
    call(plpy, gd, lambda db: preprocessors.pack_training(db, gd, arguments, options))


@report_errors
@check_counts
def pack_mixed(
    plpy: Any,
    gd: Globals,
    source: str | None,
    output: str | None,
    dependent: str | None,
    independent: str | None,
    dependent_type: str | None,
    weight: str | None,
    rows: int | None,
    classes: list[str] | None,
    recipes: str | None,
    grouped: str | None,
    n_segments: int | None,
) -> None:
    """Pack a table for training whose rows are in random order already, or come group by group.

    Args:
        rows: number of rows.
        classes: class values of the target.
        recipes: JSON of the recipes that the packer applies to raw values, by names of inputs.
        grouped: JSON of the buffers of rows that come group by group.
        n_segments: None for as many as the rows are worth.
    """
    arguments = preprocessors.PackArguments(source, output, dependent, independent, None, None)

    def pack(db: Database) -> None:
        class_values = tuple(check_type("classes", classes, list))
        row_properties = preprocessors.RowProperties(
            check_integer("rows", rows, 1),
            class_values,
            parse_object("recipes", recipes),
            preprocessors.parse_buffer_layout(grouped),
        )
        options = preprocessors.TrainingOptions(
            None, None, n_segments, None, dependent_type, weight, row_properties
        )
        preprocessors.pack_training(db, gd, arguments, options)

    call(plpy, gd, pack)


@report_errors
def validation_preprocessor(
    plpy: Any,
    gd: Globals,
    source_table: str | None,
    output_table: str | None,
    dependent_varname: str | None,
    independent_varname: str | None,
    training_preprocessor_table: str | None,
    buffer_size: int | None,
    distribution_rules: str | None,
) -> None:
    """Pack a table as its training table was packed."""
    arguments = preprocessors.PackArguments(
        source_table,
        output_table,
        dependent_varname,
        independent_varname,
        buffer_size,
        distribution_rules,
    )
    call(
        plpy,
        gd,
        lambda db: preprocessors.pack_validation(db, gd, arguments, training_preprocessor_table),
    )


@report_errors
def pack_beside(
    plpy: Any,
    gd: Globals,
    source: str | None,
    output: str | None,
    dependent: str | None,
    independent: str | None,
    training: str | None,
    recipes: str | None,
    grouped: str | None,
) -> None:
    """Pack a table of raw values as its training table was packed; see `pack_mixed`."""
    arguments = preprocessors.PackArguments(source, output, dependent, independent, None, None)

    def pack(db: Database) -> None:
        preprocessors.pack_validation(
            db,
            gd,
            arguments,
            training,
            parse_object("recipes", recipes),
            preprocessors.parse_buffer_layout(grouped),
        )

    call(plpy, gd, pack)


@report_errors
def rows_seen(plpy: Any, gd: Globals, rows: int | None) -> bool:
    """Report that so many rows have been read, as the progress of the call; return True."""
    count = require("rows", rows)
    progress.current_progress(gd).report(get_database(plpy), count)
    return True
