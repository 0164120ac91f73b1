"""Python methods over the SQL functions and views of cerebro_db: nothing here that SQL cannot do.

Names of tables and columns are given as in SQL ('flowers', 'lab.flowers', '"My Table"'); the server
resolves them by the search_path of the session.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from types import TracebackType
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
    TrainOptions,
    encode_options,
    format_grid,
    format_parameters,
    pad_rows,
)
from cerebro_db.data_preparation import DataPreparation
from cerebro_db.display.board_list import Board
from cerebro_db.display.curve_list import Curves
from cerebro_db.display.live_bar import shown
from cerebro_db.driver import NoticeHandler, get_engine, log_notice
from cerebro_db.export.methods import Exports
from cerebro_db.named_models import NamedModels
from cerebro_db.options import accept_options
from cerebro_db.plans import Plans
from cerebro_db.records import Progress
from cerebro_db.run_control import RunControl
from cerebro_db.run_reader import RunReader
from cerebro_db.sql_session import SqlSession

if TYPE_CHECKING:
    from typing import Self, Unpack

    from cerebro_db.frames import Frame


def connect(target: str | sa.URL | sa.Engine, *, on_notice: NoticeHandler = log_notice) -> Session:
    """A session with the database of a postgresql:// URL, an SQLAlchemy URL or an engine.

    Nothing is connected before the first call. An engine that was handed in stays open after the
    session. `on_notice` gets each message of the server when it is sent, such as those that a fit
    sends per epoch; by default they go to the logger `cerebro_db`.
    """
    return Session(
        get_engine(target), owns_engine=not isinstance(target, sa.Engine), on_notice=on_notice
    )


class Session(DataPreparation, NamedModels, Administration, Exports, RunControl, Plans):
    """One user's work with one database. Calls (load, pack, configs, fit, evaluate, predict) run
    one at a time in one database session, and each commits; what is read comes through the engine.

    Every method raises a class of cerebro_db.errors, chosen by SQLSTATE, when the server refuses.
    """

    def __init__(self, engine: sa.Engine, *, owns_engine: bool, on_notice: NoticeHandler) -> None:
        RunReader.__init__(self, engine)
        self._owns_engine = owns_engine
        self._sql = SqlSession(engine, on_notice)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the database session of the calls, and the engine where this session made it."""
        self._sql.close()
        if self._owns_engine:
            self.engine.dispose()

    def cancel(self) -> None:
        """Cancels the call that goes on in another thread; what its run has completed stays."""
        self._sql.cancel()

    @property
    def schema(self) -> str:
        """The schema that holds the functions: the one named in CREATE EXTENSION."""
        return self._sql.schema

    def leaderboard(self, run_id: int) -> Board:
        """The configs of a run, best first. Shown, it is a table of what tells them apart."""
        return Board(super().leaderboard(run_id))

    def learning_curve(self, run_id: int) -> Curves:
        """Every metric of every config after every epoch at which it was computed. A notebook shows
        it as a picture.
        """
        return Curves(super().learning_curve(run_id))

    def current_run(self) -> int | None:
        """The newest run that this session started; while a fit goes on in another thread, that
        one.
        """
        return None if self._sql.pid is None else self.newest_run_of(self._sql.pid)

    @accept_options(FitOptions)
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
        """Trains every configuration: madlib_fit_multiple_model. Returns the run's id when it has
        ended.

        `progress` shows a live bar, or some lines where the standard output is not a terminal; by
        default the bar is shown on terminals only. Ctrl-C cancels the run.
        """
        return self._fitted(
            "madlib_fit_multiple_model",
            progress,
            source_table=source_table,
            model_output_table=model_output_table,
            model_selection_table=model_selection_table,
            num_iterations=num_iterations,
            **encode_options(options),
        )

    @accept_options(FitOneOptions)
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
        """Trains one model, averaged over segments after each iteration: madlib_fit. Otherwise as
        `fit`.
        """
        return self._fitted(
            "madlib_fit",
            progress,
            source_table=source_table,
            model=model,
            model_arch_table=model_arch_table,
            model_id=model_id,
            compile_params=format_parameters(compile_params),
            fit_params=format_parameters(fit_params),
            num_iterations=num_iterations,
            **options,
        )

    def _fitted(self, function: str, progress: bool | None, **arguments: object) -> int:
        """SqlSession a function that trains; the run's id."""
        self._watched(function, progress, **arguments)
        run = self.current_run()
        if run is None:
            raise errors.ObjectNotReady("the fit ended without leaving a run that its user can see")
        return run

    def _watched(self, function: str, progress: bool | None, **arguments: object) -> None:
        """SqlSession a function that trains, and shows how its runs go on."""
        before = self.current_run()
        with shown(lambda: self._begun_after(before), progress) as look:
            self._sql.call(function, look, **arguments)

    def _begun_after(self, before: int | None) -> Progress | None:
        run = self.current_run()
        return None if run is None or run == before else self.progress(run)

    @accept_options(AutomlOptions)
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
        """Searches for the configuration with the lowest loss, in one run, and keeps its model:
        madlib_automl.

        Grids are as of `configs`; `progress` shows the run that goes on, as `fit` does. Ctrl-C
        cancels the search.
        """
        self._watched(
            "madlib_automl",
            progress,
            source_table=source_table,
            model_output_table=model_output_table,
            model_arch_table=model_arch_table,
            model_selection_table=model_selection_table,
            model_id_list=list(model_id_list),
            compile_params_grid=format_grid(compile_params_grid),
            fit_params_grid=format_grid(fit_params_grid),
            **options,
        )

    @accept_options(FitOptions)
    def submit(
        self,
        source_table: str,
        model_output_table: str,
        model_selection_table: str,
        num_iterations: int,
        **options: Unpack[FitOptions],
    ) -> int:
        """Begins what `fit` does, in the background, and returns the run's id as soon as it is
        logged: cerebro.submit.

        The run needs neither this session nor its connection.
        """
        run_id = self._sql.call_cerebro(
            "submit",
            source_table=source_table,
            model_output_table=model_output_table,
            model_selection_table=model_selection_table,
            num_iterations=num_iterations,
            **encode_options(options),
        )
        return int(run_id)

    def submit_call(self, function: str, arguments: Mapping[str, object]) -> int:
        """Begins any call that trains in the background, and returns the run's id: cerebro.submit.

        Such as 'madlib_automl', with its arguments by their names in SQL.
        """
        return int(self._sql.call_cerebro("submit", call=function, arguments=json.dumps(arguments)))

    def wait(self, run_id: int, timeout: timedelta | None = None) -> str:
        """Waits until nobody works for a run any more; its status, or 'running' after the timeout:
        cerebro.wait.
        """
        return str(self._sql.call_cerebro("wait", run_id=run_id, timeout=timeout))

    def cancel_run(self, run_id: int) -> bool:
        """Cancels a run, in the background or not; False where nobody works for it:
        cerebro.cancel.
        """
        return bool(self._sql.call_cerebro("cancel", run_id=run_id))

    def resume(self, run_id: int, *, background: bool = False) -> None:
        """Goes on with a run that was interrupted, cancelled or failed, and makes its output
        tables: cerebro.resume.
        """
        self._sql.call_cerebro("resume", run_id=run_id, background=background)

    def write_outputs(self, run_id: int, name: str) -> None:
        """Makes output tables of a run, under any name, of what it has come to so far:
        cerebro.write_outputs.
        """
        self._sql.call_cerebro("write_outputs", run_id=run_id, name=name)

    @accept_options(EvaluateOptions)
    def evaluate(
        self,
        model_table: str,
        test_table: str,
        output_table: str,
        **options: Unpack[EvaluateOptions],
    ) -> None:
        """Writes loss and metric of a model on a packed table to `output_table`:
        madlib_evaluate.
        """
        self._sql.call(
            "madlib_evaluate",
            model_table=model_table,
            test_table=test_table,
            output_table=output_table,
            **options,
        )

    @accept_options(PredictOptions)
    def predict(
        self,
        model_table: str,
        test_table: str,
        id_col: str,
        independent_varname: str,
        output_table: str,
        **options: Unpack[PredictOptions],
    ) -> None:
        """Writes predictions for the rows of an unpacked table to `output_table`:
        madlib_predict.
        """
        self._sql.call(
            "madlib_predict",
            model_table=model_table,
            test_table=test_table,
            id_col=id_col,
            independent_varname=independent_varname,
            output_table=output_table,
            **options,
        )

    @accept_options(ByomOptions)
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
        """Writes predictions with a model that was loaded with its weights, not trained here:
        madlib_predict_byom.
        """
        if options.get("class_values"):
            options["class_values"] = pad_rows(options["class_values"])
        self._sql.call(
            "madlib_predict_byom",
            model_arch_table=model_arch_table,
            model_id=model_id,
            test_table=test_table,
            id_col=id_col,
            independent_varname=independent_varname,
            output_table=output_table,
            **options,
        )

    @accept_options(TrainOptions)
    def train(
        self,
        source: str | Frame,
        target: str,
        *,
        table: str | None = None,
        progress: bool | None = None,
        **options: Unpack[TrainOptions],
    ) -> Board:
        """Trains a model by name that predicts a column of a raw table from its others:
        cerebro.train.

        Rows of a DataFrame are written to `table` before, as `write_frame` does; else it is called
        `<target>_rows`.

        Returns the configurations that were tried, best first; with `background=True` those of a
        run that has just begun. `progress` shows the run as `fit` does. Ctrl-C cancels it.
        """
        before, name = self.current_run(), self.source_of(source, target, table)
        with shown(lambda: self._begun_after(before), progress) as look:
            found = self._sql.query_cerebro(
                "train", look, source=name, target=target, **encode_options(options)
            )
        return self.leaderboard(found[0][0])
