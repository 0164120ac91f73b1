"""The functions of sql/40-configurations.sql."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, bounded, call
from cerebro_plpy.configs.params.custom_functions import Functions
from cerebro_plpy.configs.search_space import grid
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.sessions.spi import Row
from cerebro_plpy.limits import Poll
from cerebro_plpy.tables import architectures, model_selection_table


def load_keras_model(
    plpy: Any,
    gd: Globals,
    table: str | None,
    architecture: str | None,
    weights: bytes | None,
    name: str | None,
    description: str | None,
) -> None:
    """Add an architecture to a table."""
    call(
        plpy,
        gd,
        lambda db: architectures.load(
            Catalog(db, "load_keras_model"), table, architecture, weights, name, description
        ),
    )


def delete_keras_model(plpy: Any, gd: Globals, table: str | None, model_id: int | None) -> None:
    """Delete an architecture."""
    call(
        plpy,
        gd,
        lambda db: architectures.delete(Catalog(db, "delete_keras_model"), table, model_id),
    )


def load_model_selection_table(
    plpy: Any,
    gd: Globals,
    model_arch_table: str | None,
    table: str | None,
    model_ids: list[int | None] | None,
    compile_params: list[str | None] | None,
    fit_params: list[str | None] | None,
    object_table: str | None,
) -> None:
    """Make a model selection table of all combinations."""
    call(
        plpy,
        gd,
        lambda db: model_selection_table.load(
            Catalog(db, "load_model_selection_table"),
            model_arch_table,
            table,
            model_ids,
            (compile_params, fit_params),
            object_table,
        ),
    )


@bounded
def generate_model_configs(
    plpy: Any,
    gd: Globals,
    model_arch_table: str | None,
    table: str | None,
    model_ids: list[int | None] | None,
    compile_grid: str | None,
    fit_grid: str | None,
    search_type: str | None,
    num_configs: int | None,
    random_state: int | None,
    object_table: str | None,
) -> None:
    """Make or extend a model selection table by grid or random search."""

    def rows(ids: list[int], functions: Functions | None, poll: Poll) -> tuple[grid.ConfigRow, ...]:
        return grid.generate(
            compile_grid, fit_grid, ids, search_type, num_configs, random_state, functions, poll
        )

    call(
        plpy,
        gd,
        lambda db: model_selection_table.generate(
            Catalog(db, "generate_model_configs"),
            model_arch_table,
            table,
            model_ids,
            rows,
            object_table,
        ),
    )


def explore_layers(plpy: Any, gd: Globals, *arguments: Any) -> list[Row]:
    """Make an architecture table of the same head on several layers; the arguments are those of
    `Exploration`.
    """
    from cerebro_plpy.operations.fit.layer_probes import Exploration
    from cerebro_plpy.operations.fit.layer_probes import explore_layers as explore

    return call(plpy, gd, lambda db: explore(db, gd, Exploration(*arguments)))
