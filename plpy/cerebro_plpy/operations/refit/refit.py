"""The training of a version's members again, from the beginning and on all rows.

The states before that have never seen the hold-out rows: versions are compared by them. Those after
it predict.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from cerebro_plpy.configs.architecture.boosted_trees import is_boosted_trees
from cerebro_plpy.configs.templates.registry import resumes_states
from cerebro_plpy.configs.train_spec import BaseVersion, TrainSpec
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import CerebroError, QueryCanceled
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.operations.fit.drop_run_tables import discard_run, drop_packed_tables
from cerebro_plpy.operations.fit.input_tables import find_packed_inputs
from cerebro_plpy.operations.refit.all_rows import PackedRows, pack_all_rows
from cerebro_plpy.operations.refit.folds import (
    FOLDS,
    FoldStates,
    assign_keys,
    calibrate_by_folds,
    may_fold,
    read_layouts,
)
from cerebro_plpy.operations.refit.refit_request import RefitPlan, make_refit_request
from cerebro_plpy.operations.refit.refit_terms import RefitTerms
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.platform.state_tables import SPLITS, StoredState, packed_table_name
from cerebro_plpy.run.lifecycle import RunListeners, reserve_run_id, train
from cerebro_plpy.run.state.interrupted_run import await_workers
from cerebro_plpy.tables.models.model_registry import RunResult
from cerebro_plpy.tables.outputs import logged_run
from cerebro_plpy.tables.outputs.logged_run import LoggedRun

MODULE = "train"
STARTUP_SECONDS = 0.5
"""Time to copy the rows and to start trainers."""
COMPILATION_SECONDS = 1.0
"""Time to compile networks."""
CAUTION = 1.1
"""Factor of the expected time: visits of configurations side by side slow each other down."""
FOLDS_SHARE = 0.2
"""Share of the budget that training without each fold may take."""
FOLD_SECONDS = 0.2
"""Time to predict a fold by a member."""


class PastTraining(NamedTuple):
    """The training of a configuration until its best state."""

    mst_key: int
    epochs: int
    seconds: float
    is_of_trees: bool


def refit(
    db: Database, context: CallContext, run: LoggedRun, result: RunResult, seconds: float
) -> RunResult:
    """Train members of a result again on all rows, as far as there is time.

    An error does not spoil the result: its first states predict, too.

    Args:
        seconds: time in which that must end.

    Returns:
        The result with the states of the members that were trained again.
    """
    assert run.spec.train is not None
    terms = RefitTerms.from_spec(run.spec.train)
    if not terms.is_wanted:
        return result
    if terms.obstacle is not None:
        db.notice(f"the model is not trained again on all rows: {terms.obstacle}")
        return result
    _discard_abandoned_runs(db, context, run.run_id)
    plan = plan_refit(db, context, run, result, seconds)
    if not plan.epochs:
        return result
    try:
        refitted = _train_again(db, context, plan, result, seconds)
    except QueryCanceled:
        raise
    except CerebroError as error:
        db.notice(f"the model was not trained again on all rows: {error.message}")
        return result
    finally:
        with suppress(CerebroError):  # a lost session must not hide the first error
            context.show_run(run.run_id)
    if refitted.refit_run_id is None:
        db.notice("the model was not trained again on all rows: no member was complete in time")
    else:
        report_refit(db, run.spec.train, refitted)
    return refitted


def _train_again(
    db: Database, context: CallContext, plan: RefitPlan, result: RunResult, seconds: float
) -> RunResult:
    """Train configurations again; return the result with the states of complete ones.

    Nothing is left of a run in which no member was complete.
    """
    deadline = time.monotonic() + seconds
    shares = {member.mst_key: member.share for member in result.members}
    catalog = Catalog(db, MODULE)
    names = [packed_table_name(plan.run.run_id, side) for side in SPLITS]
    inputs = find_packed_inputs(catalog, *names)
    packed = PackedRows(inputs, inputs.read(catalog, context.reader))
    run_id = reserve_run_id(db, context)
    try:
        rows = pack_all_rows(catalog, context, packed, run_id, plan.folds)
        if plan.folds:
            seconds -= estimate_scoring_seconds(len(shares))
            layouts = read_layouts(context, rows.data.source, plan.folds)
            plan = plan.add_folds(assign_keys(layouts, [*plan.epochs]))
        request = make_refit_request(catalog, context, plan, packed.data.source, rows, seconds)
        train(db, context, request, None, RunListeners(), run_id)
        states = read_complete_states(db, run_id)
        if not states.keys() & shares.keys():
            discard_run(context.control, run_id)
            return result
        assert request.spec.train is not None
        folds = FoldStates(run_id, request.spec.train, plan.configs, states)
        calibration = calibrate_by_folds(context, rows.data.source, shares, folds, deadline)
    except BaseException:
        with suppress(CerebroError):  # if the session is lost, the resumed run discards it
            discard_run(context.control, run_id)
        raise
    finally:
        db.call_limit.run_id = plan.run.run_id  # that one is resumed
        with suppress(CerebroError):
            drop_packed_tables(context.control, run_id)
    result = result._replace(
        refit_run_id=run_id,
        refit={key: state for key, state in states.items() if key in shares},
    )
    if calibration is None:
        return result
    return result._replace(
        margin=calibration.margin,
        calibration=calibration,
        holdout_calibration=result.calibration,
    )


def _discard_abandoned_runs(db: Database, context: CallContext, run_id: int) -> None:
    """Remove the runs that have trained a run's members on all rows before it was resumed."""
    for row in db.peek(sql("refit.abandoned_runs"), run_id):
        abandoned = row["run_id"]
        await_workers(context, abandoned)
        discard_run(context.control, abandoned)


def report_refit(db: Database, train_spec: TrainSpec, result: RunResult) -> None:
    """Report which members predict with states of all rows."""
    split = train_spec.split
    rows = count_nouns(split.training_rows + split.validation_rows, "row")
    members = len(result.members)
    subject = "the model was"
    if len(result.refit) < members:
        subject = f"{len(result.refit)} of {count_nouns(members, 'member', 'was')}"
    calibrated = ""
    if result.holdout_calibration is not None:
        calibrated = f", and calibrated by {FOLDS} folds of them"
    db.info(
        f"{subject} trained again on all {rows} by run {result.refit_run_id}{calibrated}; "
        f"{train_spec.metric} is of the states before that"
    )


def plan_refit(
    db: Database, context: CallContext, run: LoggedRun, result: RunResult, seconds: float
) -> RefitPlan:
    """Choose the members for which there is time: trees first, then those with large shares.

    If all of them are chosen, and the time is also enough for the folds of few rows, the members
    are trained without each fold, too.
    """
    shares = {member.mst_key: member.share for member in result.members}
    configs = {
        row["mst_key"]: row for row in db.peek(sql("provenance.configs"), run.run_id, list(shares))
    }
    complete = [key for key, row in configs.items() if row["warm_started_from"] is None]
    clones = len(shares) - len(complete)
    _report_omitted(db, clones, len(shares), "clones began from states of others")
    trainings = [
        PastTraining(**row, is_of_trees=is_boosted_trees(configs[row["mst_key"]]["architecture"]))
        for row in db.peek(sql("refit.past_training"), run.run_id, complete)
    ]
    train_spec = run.spec.train
    assert train_spec is not None
    split = train_spec.split
    factor = CAUTION * (split.training_rows + split.validation_rows) / split.training_rows
    workers = len(run.spec.segments)
    selection: list[PastTraining] = []
    for past in sorted(trainings, key=lambda past: (not past.is_of_trees, -shares[past.mst_key])):
        extended = [*selection, past]
        if estimate_refit_seconds(extended, workers, factor) <= seconds:
            selection = extended
    late = len(complete) - len(selection)
    _report_omitted(db, late, len(shares), f"the budget has {seconds:.1f} s left")
    folds = 0
    if len(selection) == len(shares) and may_fold(context, train_spec):
        needed = estimate_refit_seconds(selection, workers, factor)
        limit = min(seconds, needed + FOLDS_SHARE * train_spec.budget)
        if estimate_folded_seconds(selection, workers, factor) <= limit:
            folds = FOLDS
    epochs = {past.mst_key: past.epochs for past in selection}
    return RefitPlan(run, configs, epochs, _find_start(db, train_spec), folds)


def estimate_refit_seconds(trainings: Sequence[PastTraining], workers: int, factor: float) -> float:
    """Return the time in which workers repeat trainings on all rows.

    Args:
        factor: of the time of a training.
    """
    seconds = STARTUP_SECONDS + factor * estimate_seconds(trainings, workers)
    if not all(training.is_of_trees for training in trainings):
        seconds += COMPILATION_SECONDS
    return seconds


def estimate_folded_seconds(
    trainings: Sequence[PastTraining], workers: int, factor: float
) -> float:
    """Return the time for trainings on all rows and without each fold, and to predict the folds."""
    share = (FOLDS - 1) / FOLDS
    folded = [training._replace(seconds=share * training.seconds) for training in trainings]
    seconds = estimate_refit_seconds([*trainings, *folded * FOLDS], workers, factor)
    return seconds + estimate_scoring_seconds(len(trainings))


def estimate_scoring_seconds(members: int) -> float:
    """Return the time in which members predict all folds."""
    return FOLD_SECONDS * FOLDS * members


def _report_omitted(db: Database, omitted: int, members: int, reason: str) -> None:
    """Report why members are not trained again, if there are any."""
    if not omitted:
        return
    subject = "the model is"
    if members > 1:
        subject = f"{omitted} of {count_nouns(members, 'member', 'is')}"
    db.notice(f"{subject} not trained again on all rows: {reason}")


def _find_start(db: Database, train_spec: TrainSpec) -> BaseVersion | None:
    """Return the states that a refreshing run's networks continue from on all rows, if it is one.

    If all of them were trained on all rows before, these states are continued.
    """
    start = train_spec.start
    if start is None:
        return None
    networks = [key for key, template in train_spec.templates.items() if resumes_states(template)]
    rows = db.peek(sql("refit.earlier_runs"), train_spec.model, start.run_id, networks)
    runs = {row["refit_run_id"] for row in rows}
    if len(runs) != 1 or None in runs:
        return start
    return start._replace(run_id=runs.pop())


def estimate_seconds(trainings: Sequence[PastTraining], workers: int) -> float:
    """Return the time in which workers repeat trainings that each took these seconds alone.

    A configuration hops from worker to worker, and is trained by one of them at a time.

    >>> trees = PastTraining(1, 3, 4.0, is_of_trees=True)
    >>> network = PastTraining(2, 9, 2.0, is_of_trees=False)
    >>> estimate_seconds([network], 2), estimate_seconds([trees, network, trees], 2)
    (2.0, 5.0)
    """
    longest = max((past.seconds for past in trainings), default=0.0)
    return max(longest, sum(past.seconds for past in trainings) / workers)


def read_complete_states(db: Database, run_id: int) -> Mapping[int, StoredState]:
    """Return the states of the configurations that the budget did not end early, by mst_key."""
    return {
        row["mst_key"]: state
        for row in logged_run.read_configs(db, run_id)
        if row["status"] == "completed" and (state := logged_run.stored_state(row))
    }
