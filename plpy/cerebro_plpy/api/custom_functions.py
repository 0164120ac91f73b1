"""One function per SQL function by which administrators register custom functions."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, bounded, call
from cerebro_plpy.configs.params import function_source
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.tables import object_table


def load_custom_function(
    plpy: Any,
    gd: Globals,
    table: str | None,
    source: bytes | str | None,
    name: str | None,
    note: str | None,
) -> None:
    """Register a function."""
    call(
        plpy,
        gd,
        lambda db: object_table.load(
            Catalog(db, "load_custom_function"), table, source, name, note
        ),
    )


@bounded
def load_top_k_accuracy_function(plpy: Any, gd: Globals, table: str | None, k: int | None) -> None:
    """Register a metric of the k most probable classes."""
    call(
        plpy,
        gd,
        lambda db: object_table.load(
            Catalog(db, "load_top_k_accuracy_function"),
            table,
            *function_source.top_k_accuracy(k),
            None,
        ),
    )


def delete_custom_function(
    plpy: Any, gd: Globals, table: str | None, key: int | str | None
) -> None:
    """Delete a function."""
    call(
        plpy, gd, lambda db: object_table.delete(Catalog(db, "delete_custom_function"), table, key)
    )
