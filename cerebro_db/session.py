"""Python methods over the SQL functions and views of cerebro_db: nothing here that SQL cannot do.

Names of tables and columns are given as in SQL ('flowers', 'lab.flowers', '"My Table"'); the server resolves
them by the search_path of the session.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from numpy.typing import NDArray

from cerebro_db import errors, tables
from cerebro_db.arguments import (
    ConfigOptions,
    EvaluateOptions,
    FitOptions,
    KerasModel,
    PackOptions,
    PackValidationOptions,
    PredictOptions,
    architecture_json,
    flat_weights,
    grid_text,
)
from cerebro_db.driver import Caller, Notice, engine_for, translated
from cerebro_db.runs import RunReader

if TYPE_CHECKING:
    from typing_extensions import Unpack


def connect(target: str | sa.URL | sa.Engine) -> Session:
    """A session with the database of a postgresql:// URL, an SQLAlchemy URL or an engine.

    Nothing is connected before the first call. An engine that was handed in stays open after the session.
    """
    return Session(engine_for(target), owns_engine=not isinstance(target, sa.Engine))


class Session(RunReader):
    """One user's work with one database. Calls (load, pack, configs, fit, evaluate, predict) run one at a
    time in one database session, and each commits; what is read comes through the engine.

    Every method raises a class of cerebro_db.errors, chosen by SQLSTATE, when the server refuses.
    """

    def __init__(self, engine: sa.Engine, *, owns_engine: bool) -> None:
        super().__init__(engine)
        self._owns_engine = owns_engine
        self._caller = Caller(engine)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the database session of the calls, and the engine where this session made it."""
        self._caller.close()
        if self._owns_engine:
            self.engine.dispose()

    @cached_property
    def schema(self) -> str:
        """The schema that holds the functions: the one named in CREATE EXTENSION."""
        query = (
            sa.select(tables.NAMESPACE.c.nspname)
            .join(tables.EXTENSION, tables.EXTENSION.c.extnamespace == tables.NAMESPACE.c.oid)
            .where(tables.EXTENSION.c.extname == "cerebro_db")
        )
        with translated(), self.engine.connect() as connection:
            name = connection.execute(query).scalar_one_or_none()
        if name is None:
            raise errors.ObjectNotReady(
                f"database {self.engine.url.database!r} does not have the extension cerebro_db",
                hint="Run CREATE EXTENSION cerebro_db CASCADE in it as a superuser.",
            )
        return str(name)

    def load_model(
        self,
        model: KerasModel | Mapping[str, Any] | str,
        table: str,
        *,
        name: str | None = None,
        description: str | None = None,
        weights: Iterable[NDArray[Any]] | None = None,
    ) -> None:
        """Stores an architecture (a Keras model, its JSON text, or that as a dict) as a row of `table`.

        `weights`, as of model.get_weights(), are where training starts, as flat float32 in that order.
        """
        self._call(
            "load_keras_model",
            keras_model_arch_table=table,
            model_arch=architecture_json(model),
            model_weights=None if weights is None else flat_weights(weights),
            name=name,
            description=description,
        )

    def pack(
        self,
        source_table: str,
        output_table: str,
        dependent_varname: str,
        independent_varname: str,
        **options: Unpack[PackOptions],
    ) -> None:
        """Packs rows into buffers and spreads them over segments: training_preprocessor_dl."""
        self._call(
            "training_preprocessor_dl",
            source_table=source_table,
            output_table=output_table,
            dependent_varname=dependent_varname,
            independent_varname=independent_varname,
            **options,
        )

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
        self._call(
            "validation_preprocessor_dl",
            source_table=source_table,
            output_table=output_table,
            dependent_varname=dependent_varname,
            independent_varname=independent_varname,
            training_preprocessor_table=training_preprocessor_table,
            **options,
        )

    def configs(
        self,
        model_arch_table: str,
        model_selection_table: str,
        model_id_list: Sequence[int],
        compile_params_grid: Mapping[str, Any] | str,
        fit_params_grid: Mapping[str, Any] | str,
        **options: Unpack[ConfigOptions],
    ) -> None:
        """Writes training configurations: generate_model_configs. A grid is a dict whose values are lists."""
        self._call(
            "generate_model_configs",
            model_arch_table=model_arch_table,
            model_selection_table=model_selection_table,
            model_id_list=list(model_id_list),
            compile_params_grid=grid_text(compile_params_grid),
            fit_params_grid=grid_text(fit_params_grid),
            **options,
        )

    def fit(
        self,
        source_table: str,
        model_output_table: str,
        model_selection_table: str,
        num_iterations: int,
        on_notice: Notice = lambda _: None,
        **options: Unpack[FitOptions],
    ) -> int:
        """Trains every configuration: madlib_fit_multiple_model. Returns the run's id when it has ended.

        `on_notice` gets each message of the server when it is sent: at least one per epoch.
        """
        self._call(
            "madlib_fit_multiple_model",
            on_notice,
            source_table=source_table,
            model_output_table=model_output_table,
            model_selection_table=model_selection_table,
            num_iterations=num_iterations,
            **options,
        )
        run = self.current_run()
        if run is None:
            raise errors.ObjectNotReady("the fit ended without leaving a run that its user can see")
        return run

    def current_run(self) -> int | None:
        """The newest run that this session started; while a fit goes on in another thread, that one."""
        pid = self._caller.pid
        return None if pid is None else self.newest_run_of(pid)

    def cancel(self) -> None:
        """Cancels the call that goes on in another thread; what its run has completed stays."""
        self._caller.cancel()

    def evaluate(
        self, model_table: str, test_table: str, output_table: str, **options: Unpack[EvaluateOptions]
    ) -> None:
        """Writes loss and metric of a model on a packed table to `output_table`: madlib_evaluate."""
        self._call(
            "madlib_evaluate",
            model_table=model_table,
            test_table=test_table,
            output_table=output_table,
            **options,
        )

    def predict(
        self,
        model_table: str,
        test_table: str,
        id_col: str,
        independent_varname: str,
        output_table: str,
        **options: Unpack[PredictOptions],
    ) -> None:
        """Writes predictions for the rows of an unpacked table to `output_table`: madlib_predict."""
        self._call(
            "madlib_predict",
            model_table=model_table,
            test_table=test_table,
            id_col=id_col,
            independent_varname=independent_varname,
            output_table=output_table,
            **options,
        )

    def _call(self, function: str, on_notice: Notice = lambda _: None, **arguments: object) -> None:
        given = {name: value for name, value in arguments.items() if value is not None}
        self._caller.call((self.schema, function), given, on_notice)
