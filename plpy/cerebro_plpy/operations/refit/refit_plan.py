"""The choice of the configurations that are trained again on all rows, and of the time for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.configs.architecture.boosted_trees import is_boosted_trees
from cerebro_plpy.configs.templates.budget import estimate_sufficient_seconds
from cerebro_plpy.configs.templates.registry import resumes_states
from cerebro_plpy.configs.train_spec import BaseVersion, TrainSpec
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.operations.refit.folds import may_fold
from cerebro_plpy.operations.refit.refit_request import RefitPlan
from cerebro_plpy.operations.refit.refit_terms import FOLDS
from cerebro_plpy.operations.train_budget import (
    MAX_FOLDED_CONFIGS,
    MAX_MEMBERS,
    compute_max_members,
)
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.tables.outputs.logged_run import LoggedRun

STARTUP_SECONDS = 0.5
"""Time to copy the rows and to start trainers."""
COMPILATION_SECONDS = 1.0
"""Time to compile networks."""
CAUTION = 1.1
"""Factor of the expected time: visits of configurations side by side slow each other down."""
MIN_FOLDS_SECONDS = 10.0
"""Time that folds may take, however short the call was before them."""
FOLDS_FACTOR = 2.0
"""Time that folds may take, in times of the call before them."""
FOLD_SECONDS = 0.1
"""Time to predict a fold by a configuration."""
MAX_FOLD_BYTES = 1 << 28
"""Disk for the states of configurations that are no members, on all rows and without each fold."""


class PastTraining(NamedTuple):
    """The training of a configuration until its best state."""

    mst_key: int
    epochs: int
    seconds: float
    state_bytes: int
    is_of_trees: bool


class Speed(NamedTuple):
    """The speed at which trainings are repeated on all rows."""

    workers: int
    factor: float  # of the time of a training


class RefitTime(NamedTuple):
    """The time for training again."""

    elapsed: float  # seconds of the call before it
    seconds: float  # in which it must end


def plan_refit(
    db: Database,
    context: CallContext,
    run: LoggedRun,
    library: Sequence[int],
    shares: Mapping[int, float],
    time_limit: RefitTime,
) -> RefitPlan:
    """Choose the members for which there is time: trees first, then those with large shares.

    If all of them are chosen, and the time is also enough for the folds of few rows, the members
    are trained without each fold, too. So are other configurations of the library for which the
    time is enough.

    Args:
        library: mst_key of the configurations that may be members, the best first.
        shares: of the members that the hold-out rows have chosen, by mst_key.
    """
    seconds = time_limit.seconds
    train_spec = run.spec.train
    assert train_spec is not None
    configs = {
        row["mst_key"]: row for row in db.peek(sql("provenance.configs"), run.run_id, [*library])
    }
    trainings = _read_trainings(db, run.run_id, configs)
    repeatable = [trainings[key] for key in shares if key in trainings]
    clones = len(shares) - len(repeatable)
    _report_omitted(db, clones, len(shares), "clones began from states of others")
    split = train_spec.split
    rows = split.training_rows + split.validation_rows
    speed = Speed(len(run.spec.segments), CAUTION * rows / split.training_rows)
    selection: list[PastTraining] = []
    for past in sorted(repeatable, key=lambda past: (not past.is_of_trees, -shares[past.mst_key])):
        extended = [*selection, past]
        if estimate_refit_seconds(extended, speed) <= seconds:
            selection = extended
    late = len(repeatable) - len(selection)
    _report_omitted(db, late, len(shares), f"the budget has {seconds:.1f} s left")
    folds = 0
    if len(selection) == len(shares) and may_fold(context, train_spec):
        limit = limit_folds(train_spec, estimate_refit_seconds(selection, speed), time_limit)
        if estimate_folded_seconds(selection, speed) <= limit:
            folds = FOLDS
            outputs = len(train_spec.classes) or 1
            count = compute_max_members(
                train_spec.ensemble, train_spec.budget, rows, outputs, limit_candidates(train_spec)
            )
            extras = [trainings[key] for key in library if key in trainings and key not in shares]
            selection = add_extras(selection, extras[: count - len(shares)], speed, limit)
    epochs = {past.mst_key: past.epochs for past in selection}
    return RefitPlan(run, configs, epochs, _find_start(db, train_spec), folds)


def limit_candidates(train_spec: TrainSpec) -> int:
    """Return the largest number of configurations among which folds choose the members.

    A call that gives its effort must have the same result again: its candidates are few, so that
    folds of all of them have time.
    """
    return MAX_FOLDED_CONFIGS if train_spec.may_return else MAX_MEMBERS


def limit_folds(train_spec: TrainSpec, needed: float, time_limit: RefitTime) -> float:
    """Return the seconds for folds and for training the members on all rows.

    Args:
        needed: seconds for the members on all rows.
    """
    if not train_spec.may_return:
        return time_limit.seconds
    sufficient = estimate_sufficient_seconds(train_spec.split.training_rows)
    usual = min(FOLDS_FACTOR * time_limit.elapsed, sufficient - time_limit.elapsed)
    return min(time_limit.seconds, needed + max(MIN_FOLDS_SECONDS, usual))


def _read_trainings(
    db: Database, run_id: int, configs: Mapping[int, Row]
) -> dict[int, PastTraining]:
    """Return the trainings of a run that can be repeated, by mst_key."""
    repeatable = [key for key, row in configs.items() if row["warm_started_from"] is None]
    return {
        row["mst_key"]: PastTraining(
            **row, is_of_trees=is_boosted_trees(configs[row["mst_key"]]["architecture"])
        )
        for row in db.peek(sql("refit.past_training"), run_id, repeatable)
    }


def add_extras(
    members: Sequence[PastTraining],
    extras: Sequence[PastTraining],
    speed: Speed,
    limit: float,
) -> list[PastTraining]:
    """Return members and other configurations, as far as there are time and disk for folds.

    Args:
        extras: the other configurations, the best first.
        limit: seconds for all of them.
    """
    selection = [*members]
    free_bytes = MAX_FOLD_BYTES
    for past in extras:
        needed_bytes = (1 + FOLDS) * past.state_bytes
        extended = [*selection, past]
        if needed_bytes > free_bytes or estimate_folded_seconds(extended, speed) > limit:
            continue
        selection = extended
        free_bytes -= needed_bytes
    return selection


def estimate_refit_seconds(trainings: Sequence[PastTraining], speed: Speed) -> float:
    """Return the time in which workers repeat trainings on all rows."""
    seconds = STARTUP_SECONDS + speed.factor * estimate_seconds(trainings, speed.workers)
    if not all(training.is_of_trees for training in trainings):
        seconds += COMPILATION_SECONDS
    return seconds


def estimate_folded_seconds(trainings: Sequence[PastTraining], speed: Speed) -> float:
    """Return the time for trainings on all rows and without each fold, and to predict the folds."""
    share = (FOLDS - 1) / FOLDS
    folded = [training._replace(seconds=share * training.seconds) for training in trainings]
    seconds = estimate_refit_seconds([*trainings, *folded * FOLDS], speed)
    return seconds + estimate_scoring_seconds(len(trainings))


def estimate_scoring_seconds(configs: int) -> float:
    """Return the time in which configurations predict all folds."""
    return FOLD_SECONDS * FOLDS * configs


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

    >>> trees = PastTraining(1, 3, 4.0, 9, is_of_trees=True)
    >>> network = PastTraining(2, 9, 2.0, 9, is_of_trees=False)
    >>> estimate_seconds([network], 2), estimate_seconds([trees, network, trees], 2)
    (2.0, 5.0)
    """
    longest = max((past.seconds for past in trainings), default=0.0)
    return max(longest, sum(past.seconds for past in trainings) / workers)
