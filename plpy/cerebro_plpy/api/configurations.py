"""The functions of sql/40-configurations.sql."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, call, check_counts, report_errors
from cerebro_plpy.configs.params.custom_functions import Functions
from cerebro_plpy.configs.search_space import grid
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.sessions.spi import Row
from cerebro_plpy.limits import Poll
from cerebro_plpy.tables import architectures
from cerebro_plpy.tables import model_selection_table as selection_tables


@report_errors
def load_keras_model(
    plpy: Any,
    gd: Globals,
    keras_model_arch_table: str | None,
    model_arch: str | None,
    model_weights: bytes | None,
    name: str | None,
    description: str | None,
) -> None:
    """Add an architecture to a table."""
    call(
        plpy,
        gd,
        lambda db: architectures.load(
            Catalog(db, "load_keras_model"),
            keras_model_arch_table,
            model_arch,
            model_weights,
            name,
            description,
        ),
    )


@report_errors
def delete_keras_model(
    plpy: Any, gd: Globals, keras_model_arch_table: str | None, model_id: int | None
) -> None:
    """Delete an architecture."""
    call(
        plpy,
        gd,
        lambda db: architectures.delete(
            Catalog(db, "delete_keras_model"), keras_model_arch_table, model_id
        ),
    )


@report_errors
def load_model_selection_table(
    plpy: Any,
    gd: Globals,
    model_arch_table: str | None,
    model_selection_table: str | None,
    model_id_list: list[int | None] | None,
    compile_params_list: list[str | None] | None,
    fit_params_list: list[str | None] | None,
    object_table: str | None,
) -> None:
    """Create a model selection table of all combinations."""
    call(
        plpy,
        gd,
        lambda db: selection_tables.load(
            Catalog(db, "load_model_selection_table"),
            model_arch_table,
            model_selection_table,
            model_id_list,
            (compile_params_list, fit_params_list),
            object_table,
        ),
    )


@report_errors
@check_counts
def generate_model_configs(
    plpy: Any,
    gd: Globals,
    model_arch_table: str | None,
    model_selection_table: str | None,
    model_id_list: list[int | None] | None,
    compile_params_grid: str | None,
    fit_params_grid: str | None,
    search_type: str | None,
    num_configs: int | None,
    random_state: int | None,
    object_table: str | None,
) -> None:
    """Create or extend a model selection table by grid or random search."""

    def generate_rows(
        ids: list[int], functions: Functions | None, poll: Poll
    ) -> tuple[grid.ConfigRow, ...]:
        return grid.generate_configs(
            compile_params_grid,
            fit_params_grid,
            ids,
            search_type,
            num_configs,
            random_state,
            functions,
            poll,
        )

    call(
        plpy,
        gd,
        lambda db: selection_tables.generate(
            Catalog(db, "generate_model_configs"),
            model_arch_table,
            model_selection_table,
            model_id_list,
            generate_rows,
            object_table,
        ),
    )


@report_errors
def explore_layers(plpy: Any, gd: Globals, *arguments: Any) -> list[Row]:
    """Create a table of architectures with the same head on several layers.

    Args:
        arguments: the fields of `ProbeArguments`.
    """
    from cerebro_plpy.operations.fit.layer_probes import ProbeArguments
    from cerebro_plpy.operations.fit.layer_probes import explore_layers as explore

    return call(plpy, gd, lambda db: explore(db, gd, ProbeArguments(*arguments)))
