"""The functions of sql/30-packing.sql."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, bounded, call, database
from cerebro_plpy.database import progress
from cerebro_plpy.database.sessions.spi import Database, raise_to_sql
from cerebro_plpy.operations.fit import preprocessors
from cerebro_plpy.trainer_client import argument_checks


@bounded
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
    given = preprocessors.PackArguments(
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
    call(plpy, gd, lambda db: preprocessors.pack_training(db, gd, given, options))


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
) -> None:
    """Pack a table for training whose rows are in random order already, or come group by group, and
    are known.
    """
    given = preprocessors.PackArguments(source, output, dependent, independent, None, None)

    def packed(db: Database) -> None:
        names = tuple(argument_checks.check_type("classes", classes, list))
        known = preprocessors.PreparedRows(
            argument_checks.check_integer("rows", rows, 1),
            names,
            argument_checks.parse_object("recipes", recipes),
            preprocessors.parse_buffer_layout(grouped),
        )
        preprocessors.pack_training(
            db,
            gd,
            given,
            preprocessors.TrainingOptions(None, None, None, None, dependent_type, weight, known),
        )

    call(plpy, gd, packed)


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
    given = preprocessors.PackArguments(
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
        lambda db: preprocessors.pack_validation(db, gd, given, training_preprocessor_table),
    )


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
    """Pack a table as its training table was packed, whose values were raw, too."""
    given = preprocessors.PackArguments(source, output, dependent, independent, None, None)

    def packed(db: Database) -> None:
        preprocessors.pack_validation(
            db,
            gd,
            given,
            training,
            argument_checks.parse_object("recipes", recipes),
            preprocessors.parse_buffer_layout(grouped),
        )

    call(plpy, gd, packed)


def rows_seen(plpy: Any, gd: Globals, rows: int | None) -> bool:
    """Let those who look know that so many rows have come; always true."""

    def seen() -> bool:
        progress.current_progress(gd).report(database(plpy), argument_checks.require("rows", rows))
        return True

    return raise_to_sql(plpy, seen)
