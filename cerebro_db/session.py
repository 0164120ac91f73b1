"""Python methods over the SQL functions and views of cerebro_db: nothing here that SQL cannot do.

Names of tables and columns are given as in SQL ('flowers', 'lab.flowers', '"My Table"'); the server resolves
them by the search_path of the session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from cerebro_db import errors
from cerebro_db.administration import Administration
from cerebro_db.arguments import (
    AutomlOptions,
    ByomOptions,
    EvaluateOptions,
    FitOneOptions,
    FitOptions,
    PredictOptions,
    grid_text,
    parameter_text,
    rectangle,
)
from cerebro_db.bar import shown
from cerebro_db.driver import Notice, engine_for, log
from cerebro_db.preparation import Preparation
from cerebro_db.tables import Progress

if TYPE_CHECKING:
    from typing_extensions import Unpack


def connect(target: str | sa.URL | sa.Engine, *, on_notice: Notice = log) -> Session:
    """A session with the database of a postgresql:// URL, an SQLAlchemy URL or an engine.

    Nothing is connected before the first call. An engine that was handed in stays open after the session.
    `on_notice` gets each message of the server when it is sent, such as those that a fit sends per epoch;
    by default they go to the logger `cerebro_db`.
    """
    return Session(engine_for(target), owns_engine=not isinstance(target, sa.Engine), on_notice=on_notice)


class Session(Preparation, Administration):
    """One user's work with one database. Calls (load, pack, configs, fit, evaluate, predict) run one at a
    time in one database session, and each commits; what is read comes through the engine.

    Every method raises a class of cerebro_db.errors, chosen by SQLSTATE, when the server refuses.
    """

    def fit(
        self,
        source_table: str,
        model_output_table: str,
        model_selection_table: str,
        num_iterations: int,
        *,
        progress: bool | None = None,
        **options: Unpack[FitOptions],
    ) -> int:
        """Trains every configuration: madlib_fit_multiple_model. Returns the run's id when it has ended.

        `progress` shows a live bar, or some lines where the standard output is not a terminal; by default
        the bar is shown on terminals only. Ctrl-C cancels the run.
        """
        return self._fitted(
            "madlib_fit_multiple_model",
            progress,
            source_table=source_table,
            model_output_table=model_output_table,
            model_selection_table=model_selection_table,
            num_iterations=num_iterations,
            **options,
        )

    def fit_one(
        self,
        source_table: str,
        model: str,
        model_arch_table: str,
        model_id: int,
        compile_params: Mapping[str, Any] | str,
        fit_params: Mapping[str, Any] | str,
        num_iterations: int,
        *,
        progress: bool | None = None,
        **options: Unpack[FitOneOptions],
    ) -> int:
        """Trains one model, averaged over segments after each iteration: madlib_fit. Otherwise as `fit`."""
        return self._fitted(
            "madlib_fit",
            progress,
            source_table=source_table,
            model=model,
            model_arch_table=model_arch_table,
            model_id=model_id,
            compile_params=parameter_text(compile_params),
            fit_params=parameter_text(fit_params),
            num_iterations=num_iterations,
            **options,
        )

    def _fitted(self, function: str, progress: bool | None, **arguments: object) -> int:
        """Calls a function that trains; the run's id."""
        self._watched(function, progress, **arguments)
        run = self.current_run()
        if run is None:
            raise errors.ObjectNotReady("the fit ended without leaving a run that its user can see")
        return run

    def _watched(self, function: str, progress: bool | None, **arguments: object) -> None:
        """Calls a function that trains, and shows how its runs go on."""
        before = self.current_run()
        with shown(lambda: self._begun_after(before), progress) as look:
            self._call(function, look, **arguments)

    def _begun_after(self, before: int | None) -> Progress | None:
        run = self.current_run()
        return None if run is None or run == before else self.progress(run)

    def automl(
        self,
        source_table: str,
        model_output_table: str,
        model_arch_table: str,
        model_selection_table: str,
        model_id_list: Sequence[int],
        compile_params_grid: Mapping[str, Any] | str,
        fit_params_grid: Mapping[str, Any] | str,
        *,
        progress: bool | None = None,
        **options: Unpack[AutomlOptions],
    ) -> None:
        """Searches for the configuration with the lowest loss, in several runs, and keeps its model: madlib_automl.

        Grids are as of `configs`; `progress` shows the run that goes on, as `fit` does. Ctrl-C cancels the search.
        """
        self._watched(
            "madlib_automl",
            progress,
            source_table=source_table,
            model_output_table=model_output_table,
            model_arch_table=model_arch_table,
            model_selection_table=model_selection_table,
            model_id_list=list(model_id_list),
            compile_params_grid=grid_text(compile_params_grid),
            fit_params_grid=grid_text(fit_params_grid),
            **options,
        )

    def submit(
        self,
        source_table: str,
        model_output_table: str,
        model_selection_table: str,
        num_iterations: int,
        **options: Unpack[FitOptions],
    ) -> int:
        """Begins what `fit` does, in the background, and returns the run's id as soon as it is logged: cerebro.submit.

        The run needs neither this session nor its connection.
        """
        run_id = self._call_cerebro(
            "submit",
            source_table=source_table,
            model_output_table=model_output_table,
            model_selection_table=model_selection_table,
            num_iterations=num_iterations,
            **options,
        )
        return int(run_id)

    def wait(self, run_id: int, timeout: timedelta | None = None) -> str:
        """Waits until nobody works for a run any more; its status, or 'running' after the timeout: cerebro.wait."""
        return str(self._call_cerebro("wait", run_id=run_id, timeout=timeout))

    def cancel_run(self, run_id: int) -> bool:
        """Cancels a run, in the background or not; False where nobody works for it: cerebro.cancel."""
        return bool(self._call_cerebro("cancel", run_id=run_id))

    def resume(self, run_id: int, *, background: bool = False) -> None:
        """Goes on with a run that was interrupted, cancelled or failed, and makes its output tables: cerebro.resume."""
        self._call_cerebro("resume", run_id=run_id, background=background)

    def write_outputs(self, run_id: int, name: str) -> None:
        """Makes the output tables of a completed run again, under any name: cerebro.write_outputs."""
        self._call_cerebro("write_outputs", run_id=run_id, name=name)

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

    def predict_byom(
        self,
        model_arch_table: str,
        model_id: int,
        test_table: str,
        id_col: str,
        independent_varname: str,
        output_table: str,
        **options: Unpack[ByomOptions],
    ) -> None:
        """Writes predictions with a model that was loaded with its weights, not trained here: madlib_predict_byom."""
        if options.get("class_values"):
            options["class_values"] = rectangle(options["class_values"])
        self._call(
            "madlib_predict_byom",
            model_arch_table=model_arch_table,
            model_id=model_id,
            test_table=test_table,
            id_col=id_col,
            independent_varname=independent_varname,
            output_table=output_table,
            **options,
        )
