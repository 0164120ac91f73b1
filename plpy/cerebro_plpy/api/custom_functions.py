"""One function per SQL function with which administrators register custom functions."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, call, check_counts, report_errors
from cerebro_plpy.configs.params import function_source
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.tables import object_table as object_tables


@report_errors
def load_custom_function(
    plpy: Any,
    gd: Globals,
    object_table: str | None,
    object: bytes | str | None,
    name: str | None,
    description: str | None,
) -> None:
    """Register a function."""
    call(
        plpy,
        gd,
        lambda db: object_tables.load(
            Catalog(db, "load_custom_function"), object_table, object, name, description
        ),
    )


@report_errors
@check_counts
def load_top_k_accuracy_function(
    plpy: Any, gd: Globals, object_table: str | None, k: int | None
) -> None:
    """Register a metric of the k most probable classes."""
    call(
        plpy,
        gd,
        lambda db: object_tables.load(
            Catalog(db, "load_top_k_accuracy_function"),
            object_table,
            *function_source.make_top_k_accuracy(k),
            None,
        ),
    )


@report_errors
def delete_custom_function(
    plpy: Any, gd: Globals, object_table: str | None, id: int | str | None
) -> None:
    """Delete a function."""
    call(
        plpy,
        gd,
        lambda db: object_tables.delete(Catalog(db, "delete_custom_function"), object_table, id),
    )
