"""Sessions: Python methods for the SQL functions and views of cerebro_db.

A session cannot do anything that SQL cannot. Names of tables and columns are written as in SQL
('flowers', 'lab.flowers', '"My Table"'). The server resolves them by the search_path of the
session.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

import sqlalchemy as sa

from cerebro_db.administration import Administration
from cerebro_db.arguments import (
    AutomlOptions,
    ByomOptions,
    EvaluateOptions,
    FitOneOptions,
    FitOptions,
    Parameters,
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
from cerebro_db.display.live_bar import is_shown_by_default, show_progress
from cerebro_db.display.notices import NoticePrinter
from cerebro_db.display.run_list import RunList
from cerebro_db.driver import NoticeHandler, TickHandler, get_engine
from cerebro_db.errors import ObjectNotReady
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


def connect(target: str | sa.URL | sa.Engine, *, on_notice: NoticeHandler | None = None) -> Session:
    """Return a session with a database; it connects at the first call.

    Args:
        target: a postgresql:// URL, an SQLAlchemy URL, or an engine. An engine remains open after
            the session.
        on_notice: receives each message of the server as soon as it is sent, such as those of a
            fit after each epoch. By default messages go to the logger `cerebro_db` if it has a
            handler; otherwise notices and warnings are printed to the standard error.
    """
    owns_engine = not isinstance(target, sa.Engine)
    return Session(get_engine(target), owns_engine=owns_engine, on_notice=on_notice)


class Session(DataPreparation, NamedModels, Administration, Exports, RunControl, Plans):
    """A user's session with one database.

    Calls (train, predict, evaluate, fit, …) run one at a time in one database session,
    and each call commits. Methods that only read use the engine.

    If the server reports an error, every method raises the class of cerebro_db.errors that has the
    SQLSTATE of the error.
    """

    def __init__(
        self, engine: sa.Engine, *, owns_engine: bool, on_notice: NoticeHandler | None
    ) -> None:
        RunReader.__init__(self, engine)
        self._owns_engine = owns_engine
        self._printer = NoticePrinter()
        self._sql = SqlSession(engine, on_notice or self._printer.handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the database session of the calls, and the engine if `connect` created it."""
        self._sql.close()
        if self._owns_engine:
            self.engine.dispose()

    def cancel(self) -> None:
        """Cancel the call in another thread; the completed visits of its run remain."""
        self._sql.cancel()

    @property
    def schema(self) -> str:
        """Schema of the functions, which CREATE EXTENSION named."""
        return self._sql.schema

    def runs(self) -> RunList:
        """Return all runs, the newest first; printed, a table with the errors below it."""
        return RunList(super().runs())

    def leaderboard(self, run_id: int) -> Board:
        """Return the configs of a run, the best first; printed, a table of their differences."""
        return Board(super().leaderboard(run_id))

    def learning_curve(self, run_id: int) -> Curves:
        """Return every metric of every config after every epoch in which it was computed.

        A notebook displays the result as a chart.
        """
        return Curves(super().learning_curve(run_id), partial(self.leaderboard, run_id))

    def current_run(self) -> int | None:
        """Return the newest run of this session; it may be in progress in another thread."""
        if self._sql.pid is None:
            return None
        return self.newest_run_of(self._sql.pid)

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
        """Train all configurations and return the id of the run (madlib_fit_multiple_model).

        Ctrl-C cancels the run.

        Args:
            progress: show a live bar, or lines if the standard output is not a terminal; by
                default, the bar is shown on terminals and in notebooks only.
        """
        return self._fit(
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
        compile_params: Parameters,
        fit_params: Parameters,
        num_iterations: int,
        *,
        progress: bool | None = None,
        **options: Unpack[FitOneOptions],
    ) -> int:
        """Train one model, averaged over segments after each iteration (madlib_fit).

        The other arguments and the result are those of `fit`.
        """
        return self._fit(
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

    def _fit(self, function: str, progress: bool | None, **arguments: object) -> int:
        """Call a function that trains, and return the id of its run."""
        with self._show_progress(progress) as on_tick:
            self._sql.call(function, on_tick, **arguments)
        run_id = self.current_run()
        if run_id is None:
            raise ObjectNotReady("the fit ended without leaving a run that its user can see")
        return run_id

    @contextmanager
    def _show_progress(self, enabled: bool | None) -> Iterator[TickHandler]:
        """Show the progress of runs that are not the current one yet, when the result is called."""
        previous_run = self.current_run()

        def read_progress() -> Progress | None:
            run_id = self.current_run()
            if run_id is None or run_id == previous_run:
                return None
            return self.progress(run_id)

        hides_status = enabled is not None or is_shown_by_default()
        with self._printer.hide_status(hides_status), show_progress(read_progress, enabled) as tick:
            yield tick

    @accept_options(AutomlOptions)
    def automl(
        self,
        source_table: str,
        model_output_table: str,
        model_arch_table: str,
        model_selection_table: str,
        model_id_list: Sequence[int],
        compile_params_grid: Parameters,
        fit_params_grid: Parameters,
        *,
        progress: bool | None = None,
        **options: Unpack[AutomlOptions],
    ) -> None:
        """Search for the configuration with the lowest loss, in one run (madlib_automl).

        The model of the best configuration is stored. Grids are those of `configs`, and `progress`
        is that of `fit`. Ctrl-C cancels the search.
        """
        with self._show_progress(progress) as on_tick:
            self._sql.call(
                "madlib_automl",
                on_tick,
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
        """Start a fit in the background and return the id of the run (cerebro.submit).

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
        """Start any call that trains in the background; return the run's id (cerebro.submit).

        Args:
            function: name of the function, such as 'madlib_automl'.
            arguments: arguments by their names in SQL.
        """
        return int(self._sql.call_cerebro("submit", call=function, arguments=json.dumps(arguments)))

    def wait(self, run_id: int, timeout: timedelta | None = None) -> str:
        """Wait until no session works for a run, and return its status (cerebro.wait).

        After the timeout, the status is 'running'.
        """
        return str(self._sql.call_cerebro("wait", run_id=run_id, timeout=timeout))

    def cancel_run(self, run_id: int) -> bool:
        """Cancel a run of any session (cerebro.cancel); return False if none works for it."""
        return bool(self._sql.call_cerebro("cancel", run_id=run_id))

    def resume(self, run_id: int, *, background: bool = False) -> None:
        """Resume an interrupted, cancelled or failed run; write its outputs (cerebro.resume)."""
        self._sql.call_cerebro("resume", run_id=run_id, background=background)

    def write_outputs(self, run_id: int, output: str) -> None:
        """Write output tables of a run's current results (cerebro.write_outputs).

        Args:
            output: name of the model output table.
        """
        self._sql.call_cerebro("write_outputs", run_id=run_id, output=output)

    @accept_options(EvaluateOptions)
    def madlib_evaluate(
        self,
        model_table: str,
        test_table: str,
        output_table: str,
        **options: Unpack[EvaluateOptions],
    ) -> None:
        """Write loss and metric of a model on a packed table to a table (madlib_evaluate)."""
        self._sql.call(
            "madlib_evaluate",
            model_table=model_table,
            test_table=test_table,
            output_table=output_table,
            **options,
        )

    @accept_options(PredictOptions)
    def madlib_predict(
        self,
        model_table: str,
        test_table: str,
        id_col: str,
        independent_varname: str,
        output_table: str,
        **options: Unpack[PredictOptions],
    ) -> None:
        """Write predictions for the rows of an unpacked table to a table (madlib_predict)."""
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
        """Write predictions of a model that was loaded with its weights (madlib_predict_byom)."""
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
        source: str | Frame | None = None,
        target: str | None = None,
        *,
        table: str | None = None,
        progress: bool | None = None,
        **options: Unpack[TrainOptions],
    ) -> Board:
        """Train a model by name that predicts a column from the others (cerebro.train).

        Ctrl-C cancels the run.

        Args:
            source: a raw table, or a DataFrame, which is first written to a table. A call with
                the option `query` has none, and names its arguments: target, query and model.
            target: column to predict.
            table: table for the rows of a DataFrame; by default `<target>_rows`.
            progress: as in `fit`.

        Returns:
            The configurations of the run, the best first; with `background=True`, the run has
            only just started.
        """
        source_table = None
        if source is not None:
            source_table = self._write_source(source, target, table)
        arguments = {"source": source_table, "target": target, **encode_options(options)}
        with self._show_progress(progress) as on_tick:
            rows = self._sql.query_cerebro("train", on_tick, **arguments)
        return self.leaderboard(rows[0][0])
