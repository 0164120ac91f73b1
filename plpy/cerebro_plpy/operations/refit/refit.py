"""The training of a version's members again, from the beginning and on all rows.

The states before that have never seen the hold-out rows: versions are compared by them. Those after
it predict. Folds of few rows may choose other members than the hold-out rows did.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import CerebroError, QueryCanceled
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.operations.fit.drop_run_tables import discard_run, drop_packed_tables
from cerebro_plpy.operations.fit.input_tables import find_packed_inputs
from cerebro_plpy.operations.refit.all_rows import PackedRows, pack_all_rows
from cerebro_plpy.operations.refit.folds import (
    FoldStates,
    assign_keys,
    calibrate_by_folds,
    choose_by_folds,
    predict_folds,
    read_layouts,
)
from cerebro_plpy.operations.refit.refit_plan import (
    RefitTime,
    estimate_scoring_seconds,
    plan_refit,
)
from cerebro_plpy.operations.refit.refit_request import RefitPlan, make_refit_request
from cerebro_plpy.operations.refit.refit_terms import FOLDS, RefitTerms
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.platform.state_tables import SPLITS, StoredState, packed_table_name
from cerebro_plpy.preprocessing.scoring.calibration import Calibration
from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRows
from cerebro_plpy.run.lifecycle import RunListeners, reserve_run_id, train
from cerebro_plpy.run.state.interrupted_run import await_workers
from cerebro_plpy.tables.models.model_registry import RunResult
from cerebro_plpy.tables.outputs import logged_run
from cerebro_plpy.tables.outputs.logged_run import LoggedRun

MODULE = "train"


class Refit(NamedTuple):
    """The members of a version, and their states after training again on all rows."""

    shares: Mapping[int, float]  # of the members, by mst_key
    run_id: int | None = None  # the run that has trained them again
    states: Mapping[int, StoredState] = {}  # of that run, by mst_key
    calibration: Calibration | None = None  # by folds of all rows
    candidates: int = 0  # configurations among which the folds have chosen the members

    def complete(self, result: RunResult) -> RunResult:
        """Return the result of these members with the states, and with the calibration."""
        result = result._replace(refit_run_id=self.run_id, refit=self.states)
        if self.calibration is None:
            return result
        return result._replace(
            margin=self.calibration.margin,
            calibration=self.calibration,
            holdout_calibration=result.calibration,
        )


def refit(
    db: Database,
    context: CallContext,
    run: LoggedRun,
    library: Sequence[int],
    shares: Mapping[int, float],
    time_limit: RefitTime,
) -> Refit:
    """Train members of a version again on all rows, as far as there is time.

    An error does not spoil the version: its first states predict, too.

    Args:
        library: mst_key of the configurations that may be members, the best first.
        shares: of the members that the hold-out rows have chosen, by mst_key.

    Returns:
        The states of members that were trained again. With folds, the members are those that
        predict the rows of all folds best.
    """
    unchanged = Refit(shares)
    assert run.spec.train is not None
    terms = RefitTerms.from_spec(run.spec.train)
    if not terms.is_wanted:
        return unchanged
    if terms.obstacle is not None:
        db.notice(f"the model is not trained again on all rows: {terms.obstacle}")
        return unchanged
    _discard_abandoned_runs(db, context, run.run_id)
    plan = plan_refit(db, context, run, library, shares, time_limit)
    if not plan.epochs:
        return unchanged
    try:
        refitted = _train_again(db, context, plan, shares, time_limit.seconds)
    except QueryCanceled:
        raise
    except CerebroError as error:
        db.notice(f"the model was not trained again on all rows: {error.message}")
        return unchanged
    finally:
        with suppress(CerebroError):  # a lost session must not hide the first error
            context.show_run(run.run_id)
    if refitted.run_id is None:
        db.notice("the model was not trained again on all rows: no member was complete in time")
    else:
        report_refit(db, run.spec.train, refitted)
    return refitted


def _train_again(
    db: Database,
    context: CallContext,
    plan: RefitPlan,
    shares: Mapping[int, float],
    seconds: float,
) -> Refit:
    """Train configurations again; return the members with the states of complete ones.

    Nothing is left of a run in which no member was complete.
    """
    deadline = time.monotonic() + seconds
    train_spec = plan.run.spec.train
    assert train_spec is not None
    library = list(plan.epochs)
    catalog = Catalog(db, MODULE)
    names = [packed_table_name(plan.run.run_id, side) for side in SPLITS]
    inputs = find_packed_inputs(catalog, *names)
    packed = PackedRows(inputs, inputs.read(catalog, context.reader))
    run_id = reserve_run_id(db, context)
    try:
        rows = pack_all_rows(catalog, context, packed, run_id, plan.folds)
        if plan.folds:
            seconds -= estimate_scoring_seconds(len(library))
            layouts = read_layouts(context, rows.data.source, plan.folds)
            plan = plan.add_folds(assign_keys(layouts, library))
        request = make_refit_request(catalog, context, plan, packed.data.source, rows, seconds)
        train(db, context, request, None, RunListeners(), run_id)
        states = read_complete_states(db, run_id)
        if not states.keys() & shares.keys():
            discard_run(context.control, run_id)
            return Refit(shares)
        assert request.spec.train is not None
        folds = FoldStates(run_id, request.spec.train, plan.configs, states)
        predictions: Mapping[int, ScoredRows] = {}
        if plan.folds:
            predictions = predict_folds(context, rows.data.source, folds, library, deadline)
        complete = {key: scored for key, scored in predictions.items() if key in states}
        shares = choose_by_folds(context, train_spec, complete, shares)
        calibration = calibrate_by_folds(train_spec, predictions, shares)
    except BaseException:
        with suppress(CerebroError):  # if the session is lost, the resumed run discards it
            discard_run(context.control, run_id)
        raise
    finally:
        db.call_limit.run_id = plan.run.run_id  # that one is resumed
        with suppress(CerebroError):
            drop_packed_tables(context.control, run_id)
    return Refit(
        shares=shares,
        run_id=run_id,
        states={key: states[key] for key in shares if key in states},
        calibration=calibration,
        candidates=len(complete),
    )


def _discard_abandoned_runs(db: Database, context: CallContext, run_id: int) -> None:
    """Remove the runs that have trained a run's members on all rows before it was resumed."""
    for row in db.peek(sql("refit.abandoned_runs"), run_id):
        abandoned = row["run_id"]
        await_workers(context, abandoned)
        discard_run(context.control, abandoned)


def report_refit(db: Database, train_spec: TrainSpec, refitted: Refit) -> None:
    """Report which members predict with states of all rows."""
    split = train_spec.split
    rows = count_nouns(split.training_rows + split.validation_rows, "row")
    members = len(refitted.shares)
    subject = "the model was"
    if len(refitted.states) < members:
        subject = f"{len(refitted.states)} of {count_nouns(members, 'member', 'was')}"
    folds = ""
    if refitted.calibration is not None:
        folds = f"; {FOLDS} folds of them calibrate it"
        if refitted.candidates > 1:
            candidates = count_nouns(refitted.candidates, "configuration")
            folds = f"; {FOLDS} folds of them have chosen among {candidates}, and calibrate it"
    db.info(
        f"{subject} trained again on all {rows} by run {refitted.run_id}{folds}; "
        f"{train_spec.metric} is of the states before that"
    )


def read_complete_states(db: Database, run_id: int) -> Mapping[int, StoredState]:
    """Return the states of the configurations that the budget did not end early, by mst_key."""
    return {
        row["mst_key"]: state
        for row in logged_run.read_configs(db, run_id)
        if row["status"] == "completed" and (state := logged_run.stored_state(row))
    }
