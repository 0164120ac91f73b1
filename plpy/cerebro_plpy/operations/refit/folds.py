"""Folds of all rows of a run: each is predicted by configurations that have not learned from it.

The rows that were held back are a small part of few rows. The predictions for all of them choose
the members of a version once more (AutoGluon's bagging: Erickson et al., 2020), and calibrate what
has learned from all rows (cross-conformal predictors: Vovk, 2015).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.configs.templates.registry import resumes_states
from cerebro_plpy.configs.train_spec import GroupLayout, TrainSpec
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Row
from cerebro_plpy.operations.explain.importance import FALLBACK_METRICS
from cerebro_plpy.operations.refit.refit_terms import suits_folds
from cerebro_plpy.operations.train.holdout_predictions import (
    HoldoutRequest,
    Network,
    make_holdout_rows,
    predict_in_parallel,
)
from cerebro_plpy.operations.train.train_ensemble import choose_shares
from cerebro_plpy.packing.packed_columns import SHAPE
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.rows.split import read_split
from cerebro_plpy.preprocessing.scoring.calibration import Calibration
from cerebro_plpy.preprocessing.scoring.ensemble_selection import add_rows, rank_rows
from cerebro_plpy.preprocessing.scoring.fit_calibration import fit_calibration
from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRows

MODULE = "train"


class FoldStates(NamedTuple):
    """The configurations of a run that were trained without each fold of its rows."""

    run_id: int  # the run that trained them
    train_spec: TrainSpec  # of that run; its groups are the folds
    configs: Mapping[int, Row]  # as the log contains them, by mst_key
    states: Mapping[int, StoredState]  # complete ones, by mst_key


def may_fold(context: CallContext, train_spec: TrainSpec) -> bool:
    """Return whether folds of a run's rows may choose and calibrate the members of its version.

    Networks that continue from a version have seen all rows.
    """
    split = train_spec.split
    continues = train_spec.start is not None and any(
        resumes_states(template) for template in train_spec.templates.values()
    )
    return (
        suits_folds(read_split(MODULE, split.rule), split.training_rows + split.validation_rows)
        and not continues
        and not context.platform.binds_workers
    )


def read_layouts(context: CallContext, table: PackedTable, folds: int) -> dict[str, GroupLayout]:
    """Return the buffers to train and to predict for each fold, by its number.

    Args:
        table: each of its buffers was cut into so many parts; part p of each is in fold p.
    """
    statement = sql(
        "features.buffers",
        table=table.relation.quoted,
        key=table.key,
        shape=table.independent[0] + SHAPE,
    )
    buffers = context.reader.run(statement)
    layouts = {}
    for fold in range(folds):
        training: dict[int, tuple[int, ...]] = {}
        validation: dict[int, tuple[int, ...]] = {}
        sizes = []
        for segment, buffer_id, rows in buffers:
            side = training
            if buffer_id % folds == fold:
                side = validation
            else:
                sizes.append(rows)
            side[segment] = (*side.get(segment, ()), buffer_id)
        layouts[str(fold + 1)] = GroupLayout(tuple(sizes), training, validation)
    return layouts


def predict_folds(
    context: CallContext,
    rows: PackedTable,
    folds: FoldStates,
    members: Collection[int],
    deadline: float,
) -> dict[int, ScoredRows]:
    """Return predictions for all rows, each by a configuration that has not learned from it.

    Args:
        rows: all rows, with the buffers of the folds.
        folds: the configurations, trained without each fold.
        members: those that predict, by the mst_key of their training on all rows.
        deadline: by time.monotonic().

    Returns:
        The predictions of each of the members, in the same order of the rows. A member is missing
        if it was not trained without each fold, or if the time is over.
    """
    spec = folds.train_spec
    recipe = Recipe.from_json(spec.recipe)
    fold_keys = spec.fold_keys
    batches = {}
    for member in members:
        keys = fold_keys[member]
        if not folds.states.keys() >= {*keys.values()}:
            continue
        batches[member] = [
            HoldoutRequest(
                Network.from_config(
                    folds.configs[key],
                    recipe,
                    spec.classes,
                    f"{folds.run_id}/{key}/last",
                    folds.states[key],
                ),
                fold,
            )
            for fold, key in keys.items()
        ]
    holdout = make_holdout_rows(rows, spec)
    results = predict_in_parallel(context, holdout, list(batches.values()), deadline)
    return {
        member: ScoredRows.concatenate(parts) for member, parts in zip(batches, results) if parts
    }


def calibrate_by_folds(
    train_spec: TrainSpec, predictions: Mapping[int, ScoredRows], shares: Mapping[int, float]
) -> Calibration | None:
    """Return the calibration of a version by predictions for the folds of its rows.

    Args:
        predictions: of configurations, by mst_key.
        shares: of the members, by mst_key.

    Returns:
        None if there are no predictions of a member.
    """
    if not predictions.keys() >= shares.keys():
        return None
    parts = [(predictions[key], shares[key]) for key in sorted(shares)]
    return fit_calibration(train_spec.task, train_spec.metric, add_rows(parts), train_spec.costs)


def choose_by_folds(
    context: CallContext,
    train_spec: TrainSpec,
    predictions: Mapping[int, ScoredRows],
    shares: Mapping[int, float],
) -> Mapping[int, float]:
    """Return the shares of the configurations that predict the folds best together, by mst_key.

    Args:
        predictions: of configurations, by mst_key.
        shares: by the rows held back; they remain if there are no predictions of one of these.
    """
    if train_spec.ensemble == 1 or not predictions.keys() >= shares.keys():
        return shares
    metrics = (train_spec.metric, FALLBACK_METRICS[train_spec.task])
    library = rank_rows(predictions, metrics)
    shares_by_place = choose_shares(context, train_spec, [predictions[key] for key in library])
    return {library[place]: share for place, share in shares_by_place.items()}


def assign_keys(
    layouts: Mapping[str, GroupLayout], members: Sequence[int]
) -> dict[str, GroupLayout]:
    """Return the layouts of folds with keys for the members that are trained without each fold.

    >>> empty = GroupLayout((), {}, {})
    >>> folds = assign_keys({"1": empty, "2": empty}, [4, 2])
    >>> [layout.mst_keys for layout in folds.values()]
    [(5, 6), (7, 8)]

    Args:
        members: mst_key of the members; the keys of a fold are in the ascending order of these.
    """
    first = max(members) + 1
    count = len(members)
    return {
        fold: layout._replace(
            mst_keys=tuple(range(first + number * count, first + (number + 1) * count))
        )
        for number, (fold, layout) in enumerate(layouts.items())
    }
