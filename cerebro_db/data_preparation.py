"""Session methods that prepare a fit: architectures, packed data and configurations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from numpy.typing import NDArray

from cerebro_db.arguments import (
    CombineOptions,
    ConfigOptions,
    KerasModel,
    PackOptions,
    PackValidationOptions,
    Parameters,
    ScheduleOptions,
    WindowOptions,
    encode_architecture,
    flatten_weights,
    format_grid,
    format_parameters,
)
from cerebro_db.errors import InvalidParameter
from cerebro_db.frames import write_frame
from cerebro_db.model_sources import ModelSource, read_source, read_weights
from cerebro_db.options import accept_options
from cerebro_db.result_set import Rows, name_columns
from cerebro_db.sql_session import SqlSession

if TYPE_CHECKING:
    from typing import Unpack

    from cerebro_db.frames import Frame

PROBE_COLUMNS = ("model_id", "layer", "features")


class DataPreparation:
    """Session methods that write the tables that a fit reads."""

    engine: sa.Engine
    _sql: SqlSession

    def write_frame(self, frame: Frame, table: str) -> None:
        """Write the rows of a DataFrame, of pandas or polars, to a table.

        A table of that name is replaced if it was written from a DataFrame, too.

        Raises:
            DuplicateTable: the table exists and was not written from a DataFrame.
        """
        write_frame(self.engine, frame, table)

    def _write_source(self, source: str | Frame, target: str | None, table: str | None) -> str:
        """Return the name of the source table; write it first if the source is a DataFrame.

        Args:
            target: column to predict; names the table by default.
            table: name of the table for the rows of a DataFrame.
        """
        if isinstance(source, str):
            if table is not None:
                raise InvalidParameter(
                    f"table is {table!r}, but the rows are those of table {source} already",
                    hint="Leave table out; it names where the rows of a DataFrame are written to.",
                )
            return source
        name = table or self.engine.dialect.identifier_preparer.quote(f"{target}_rows")
        write_frame(self.engine, source, name)
        return name

    def load_model(
        self,
        model: KerasModel | Parameters | Path,
        table: str,
        *,
        name: str | None = None,
        description: str | None = None,
        weights: Iterable[NDArray[Any]] | Path | None = None,
    ) -> None:
        """Store an architecture as a row of `table` (load_keras_model).

        Args:
            model: a Keras model, or its JSON as a text or a dict; or the Path of a .keras file or
                of a folder of an export, which contain the weights, too.
            weights: initial weights, as from model.get_weights(); or the Path of a safetensors
                file: an export, or a state_dict of PyTorch.
        """
        if isinstance(model, Path):
            source = read_source(model)
        else:
            source = ModelSource(encode_architecture(model), None)
        if weights is None:
            weights = source.weights
        elif isinstance(weights, Path):
            weights = read_weights(source.architecture, weights)
        self._sql.call(
            "load_keras_model",
            keras_model_arch_table=table,
            model_arch=source.architecture,
            model_weights=None if weights is None else flatten_weights(weights),
            name=name,
            description=description,
        )

    def explore_layers(
        self,
        model_arch_table: str,
        explored_model: int,
        layers: Sequence[str],
        output: str,
        outputs: int,
        *,
        hidden: Sequence[int] = (),
        activation: str = "softmax",
        seed: int = 1,
    ) -> Rows:
        """Create an architecture with the same head for each layer (cerebro.explore_layers).

        All layers before the head are frozen. Training the architectures as one run shows which
        layer has the best features.

        Args:
            model_arch_table: table of the network, which has weights.
            explored_model: id of the network.
            layers: names of layers on which the head is placed.
            outputs: units of the last layer of the head.
            hidden: units of the other layers of the head.
            activation: activation of the last layer.
        """
        rows = self._sql.query_cerebro(
            "explore_layers",
            model_arch_table=model_arch_table,
            explored_model=explored_model,
            layers=list(layers),
            output=output,
            outputs=outputs,
            hidden=list(hidden),
            activation=activation,
            seed=seed,
        )
        return name_columns(rows, PROBE_COLUMNS)

    def delete_model(self, table: str, model_id: int) -> None:
        """Delete an architecture; the last one with its table (delete_keras_model)."""
        self._sql.call("delete_keras_model", keras_model_arch_table=table, model_id=model_id)

    def load_function(
        self, object_table: str, source: str, name: str, *, description: str | None = None
    ) -> None:
        """Register a loss or a metric (load_custom_function); for superusers.

        Args:
            source: Python source of the function, as from inspect.getsource(), with the imports
                that it needs.
        """
        self._sql.call(
            "load_custom_function",
            object_table=object_table,
            object=source,
            name=name,
            description=description,
        )

    def load_top_k_accuracy(self, object_table: str, k: int) -> None:
        """Register the metric top_<k>_accuracy (load_top_k_accuracy_function); for superusers."""
        self._sql.call("load_top_k_accuracy_function", object_table=object_table, k=k)

    def delete_function(self, object_table: str, function: int | str) -> None:
        """Delete a custom function by id or by name (delete_custom_function); for superusers."""
        key = {"name": function} if isinstance(function, str) else {"id": function}
        self._sql.call("delete_custom_function", object_table=object_table, **key)

    def load_example(self, name: str = "flowers", output: str | None = None) -> str:
        """Create a table of example data and return its name (cerebro.load_example)."""
        return str(self._sql.call_cerebro("load_example", name=name, output=output))

    @accept_options(WindowOptions)
    def window_series(
        self,
        source: str,
        output: str,
        id: str,
        ts: str,
        columns: str,
        width: int,
        **options: Unpack[WindowOptions],
    ) -> None:
        """Cut time series into windows of `width` samples (cerebro.window_series).

        Args:
            id: column that identifies the series of a row.
            ts: column of the time, which orders a series.
            columns: columns of the values.
        """
        self._sql.call_cerebro(
            "window_series",
            source=source,
            output=output,
            id=id,
            ts=ts,
            columns=columns,
            width=width,
            **options,
        )

    @accept_options(PackOptions)
    def pack(
        self,
        source_table: str,
        output_table: str,
        dependent_varname: str,
        independent_varname: str,
        **options: Unpack[PackOptions],
    ) -> None:
        """Pack rows into buffers and distribute them over segments (training_preprocessor_dl)."""
        self._sql.call(
            "training_preprocessor_dl",
            source_table=source_table,
            output_table=output_table,
            dependent_varname=dependent_varname,
            independent_varname=independent_varname,
            **options,
        )

    @accept_options(PackValidationOptions)
    def pack_validation(
        self,
        source_table: str,
        output_table: str,
        dependent_varname: str,
        independent_varname: str,
        training_preprocessor_table: str,
        **options: Unpack[PackValidationOptions],
    ) -> None:
        """Pack rows in the same way as a packed training table (validation_preprocessor_dl)."""
        self._sql.call(
            "validation_preprocessor_dl",
            source_table=source_table,
            output_table=output_table,
            dependent_varname=dependent_varname,
            independent_varname=independent_varname,
            training_preprocessor_table=training_preprocessor_table,
            **options,
        )

    @accept_options(ConfigOptions)
    def configs(
        self,
        model_arch_table: str,
        model_selection_table: str,
        model_id_list: Sequence[int],
        compile_params_grid: Parameters,
        fit_params_grid: Parameters,
        **options: Unpack[ConfigOptions],
    ) -> None:
        """Write training configurations (generate_model_configs); a grid is a dict of lists."""
        self._sql.call(
            "generate_model_configs",
            model_arch_table=model_arch_table,
            model_selection_table=model_selection_table,
            model_id_list=list(model_id_list),
            compile_params_grid=format_grid(compile_params_grid),
            fit_params_grid=format_grid(fit_params_grid),
            **options,
        )

    @accept_options(CombineOptions)
    def combine_configs(
        self,
        model_arch_table: str,
        model_selection_table: str,
        model_id_list: Sequence[int],
        compile_params_list: Sequence[Parameters],
        fit_params_list: Sequence[Parameters],
        **options: Unpack[CombineOptions],
    ) -> None:
        """Write all combinations of models and parameters (load_model_selection_table)."""
        self._sql.call(
            "load_model_selection_table",
            model_arch_table=model_arch_table,
            model_selection_table=model_selection_table,
            model_id_list=list(model_id_list),
            compile_params_list=[format_parameters(params) for params in compile_params_list],
            fit_params_list=[format_parameters(params) for params in fit_params_list],
            **options,
        )

    @accept_options(ScheduleOptions)
    def hyperband_schedule(
        self, schedule_table: str, r: int, **options: Unpack[ScheduleOptions]
    ) -> None:
        """Write the brackets of Hyperband for up to `r` iterations (hyperband_schedule)."""
        self._sql.call("hyperband_schedule", schedule_table=schedule_table, r=r, **options)
