"""What comes before training: architectures, packed data, configurations. One method per SQL
function.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    ScheduleOptions,
    WindowOptions,
    encode_architecture,
    flatten_weights,
    format_grid,
    format_parameters,
)
from cerebro_db.errors import InvalidParameter
from cerebro_db.frames import write_frame
from cerebro_db.model_sources import Source, read_source, read_weights
from cerebro_db.options import accept_options
from cerebro_db.result_set import Records
from cerebro_db.sql_session import SqlSession

if TYPE_CHECKING:
    from typing import Unpack

    from cerebro_db.frames import Frame


EXPLORED = ("model_id", "layer", "features")


class DataPreparation:
    """Methods that write the tables which a fit reads."""

    engine: sa.Engine
    _sql: SqlSession

    def write_frame(self, frame: Frame, table: str) -> None:
        """Writes the rows of a DataFrame, of pandas or polars, to a table that anyone may read as
        any other.

        A table of that name is replaced where it was written from a DataFrame, too; DuplicateTable
        of any other.
        """
        write_frame(self.engine, frame, table)

    def source_of(self, source: str | Frame, target: str, table: str | None = None) -> str:
        """The table itself, named as in SQL; or one of the rows of a DataFrame, which it writes."""
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
        model: KerasModel | Mapping[str, Any] | str | Path,
        table: str,
        *,
        name: str | None = None,
        description: str | None = None,
        weights: Iterable[NDArray[Any]] | Path | None = None,
    ) -> None:
        """Stores an architecture (a Keras model, its JSON text, or that as a dict) as a row of
        `table`.

        `weights`, as of model.get_weights(), are where training starts, as flat float32 in that
        order; or the Path of a safetensors file, of an export or with a state_dict of PyTorch. The
        Path of a .keras file, or of a folder of an export, has both.
        """
        source = (
            Source(encode_architecture(model), None)
            if not isinstance(model, Path)
            else read_source(model)
        )
        given = read_weights(source.architecture, weights) if isinstance(weights, Path) else weights
        chosen = source.weights if given is None else given
        self._sql.call(
            "load_keras_model",
            keras_model_arch_table=table,
            model_arch=source.architecture,
            model_weights=None if chosen is None else flatten_weights(chosen),
            name=name,
            description=description,
        )

    def explore_layers(
        self,
        model_arch_table: str,
        explored_model: int,
        layers: Sequence[str],
        output_table: str,
        outputs: int,
        *,
        hidden: Sequence[int] = (),
        activation: str = "softmax",
        seed: int = 1,
    ) -> Records[dict[str, Any]]:
        """Makes an architecture for each layer of a network with weights, with the same head:
        cerebro.explore_layers.

        All in front of the head is frozen: trained as one run, they say which layer gives the best
        features.
        """
        rows = self._sql.query_cerebro(
            "explore_layers",
            model_arch_table=model_arch_table,
            explored_model=explored_model,
            layers=list(layers),
            output_table=output_table,
            outputs=outputs,
            hidden=list(hidden),
            activation=activation,
            seed=seed,
        )
        return Records([dict(zip(EXPLORED, row, strict=True)) for row in rows], list(EXPLORED))

    def delete_model(self, table: str, model_id: int) -> None:
        """Deletes an architecture, and with the last one its table: delete_keras_model."""
        self._sql.call("delete_keras_model", keras_model_arch_table=table, model_id=model_id)

    def load_function(
        self, object_table: str, source: str, name: str, *, description: str | None = None
    ) -> None:
        """Registers a loss or metric by its source: load_custom_function. For superusers.

        inspect.getsource() gives the source of a function; imports that it needs have to be added.
        """
        self._sql.call(
            "load_custom_function",
            object_table=object_table,
            object=source,
            name=name,
            description=description,
        )

    def load_top_k_accuracy(self, object_table: str, k: int) -> None:
        """Registers the metric top_<k>_accuracy: load_top_k_accuracy_function. For superusers."""
        self._sql.call("load_top_k_accuracy_function", object_table=object_table, k=k)

    def delete_function(self, object_table: str, function: int | str) -> None:
        """Deletes a custom function by its id or its name: delete_custom_function. For
        superusers.
        """
        key = {"name": function} if isinstance(function, str) else {"id": function}
        self._sql.call("delete_custom_function", object_table=object_table, **key)

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
        """Cuts series, one for each id in the order of ts, into windows of equal length:
        cerebro.window_series.
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
        """Packs rows into buffers and spreads them over segments: training_preprocessor_dl."""
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
        """Packs rows as an earlier training table was packed: validation_preprocessor_dl."""
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
        compile_params_grid: Mapping[str, Any] | str,
        fit_params_grid: Mapping[str, Any] | str,
        **options: Unpack[ConfigOptions],
    ) -> None:
        """Writes training configurations: generate_model_configs. A grid is a dict whose values are
        lists.
        """
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
        compile_params_list: Sequence[Mapping[str, Any] | str],
        fit_params_list: Sequence[Mapping[str, Any] | str],
        **options: Unpack[CombineOptions],
    ) -> None:
        """Writes every combination of models, compile and fit parameters:
        load_model_selection_table.
        """
        self._sql.call(
            "load_model_selection_table",
            model_arch_table=model_arch_table,
            model_selection_table=model_selection_table,
            model_id_list=list(model_id_list),
            compile_params_list=[format_parameters(one) for one in compile_params_list],
            fit_params_list=[format_parameters(one) for one in fit_params_list],
            **options,
        )

    @accept_options(ScheduleOptions)
    def hyperband_schedule(
        self, schedule_table: str, r: int, **options: Unpack[ScheduleOptions]
    ) -> None:
        """Writes the rounds that a search by Hyperband makes, with at most `r` iterations each:
        hyperband_schedule.
        """
        self._sql.call("hyperband_schedule", schedule_table=schedule_table, r=r, **options)
