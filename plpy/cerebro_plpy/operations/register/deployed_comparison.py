"""The comparison of a new version with the deployed one, over the rows that were held back."""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.errors import (
    ConfigFailure,
    DataCorrupted,
    DatatypeMismatch,
    ObjectNotReady,
)
from cerebro_plpy.operations.explain.importance import FALLBACK_METRICS
from cerebro_plpy.operations.train.holdout_predictions import (
    MODULE,
    HoldoutRequest,
    HoldoutRows,
    Network,
    predict_in_parallel,
    read_holdout_rows,
)
from cerebro_plpy.operations.train.run_results import RunResults
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.platform.job import StateSource
from cerebro_plpy.platform.state_tables import COMPARED, StoredState
from cerebro_plpy.preprocessing.learning.schema_matching import have_same_inputs
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.scoring.class_costs import Costs, average_cost
from cerebro_plpy.preprocessing.scoring.ensemble_selection import add_rows, predicts_better
from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRows
from cerebro_plpy.tables.models import model_versions
from cerebro_plpy.tables.models.model_registry import ModelEntry
from cerebro_plpy.tables.models.model_versions import Version

UNUSABLE = (ObjectNotReady, DataCorrupted, DatatypeMismatch, ConfigFailure)
"""Errors of a version that cannot predict."""


class Comparison(NamedTuple):
    """The comparison of a new version with the deployed one."""

    better: bool
    obstacle: str | None = None  # reason that prevented the comparison


class DeployedRows(NamedTuple):
    """The predictions of the deployed version for the rows on which new versions are compared."""

    scored_rows: ScoredRows  # calibrated
    costs: Costs  # those by which the version decides between classes


def predict_by_deployed(
    results: RunResults, entry: ModelEntry, rows: HoldoutRows | None
) -> DeployedRows | Comparison:
    """Return the predictions of the deployed version for the rows of a run.

    Args:
        entry: of the model.
        rows: hold-out rows; None if they were removed.

    Returns:
        The outcome of any comparison if there are no predictions. A version that cannot predict
        these rows is worse than any other.
    """
    train_spec = results.train_spec
    run = results.run
    try:
        deployed = model_versions.get_deployed(results.db, MODULE, train_spec.model)
        if deployed.task != train_spec.task or deployed.target != train_spec.target:
            return Comparison(False, "it predicts another target or task")
        compared = train_spec.compared
        is_recorded = compared is not None and compared.version == deployed.version
        if compared is not None and is_recorded and not compared.usable:
            return Comparison(True)
        if not _is_divided_alike(train_spec, entry):
            return Comparison(False, "its rows were split differently")
        has_rows = rows is not None
        if not have_same_inputs(deployed.recipe, Recipe.from_json(train_spec.recipe)):
            if not is_recorded:
                return Comparison(False, f"it was deployed while run {run.run_id} was under way")
            catalog = Catalog(results.db, MODULE)
            rows = read_holdout_rows(catalog, results.context.reader, run, COMPARED)
        if rows is None or not has_rows:
            return Comparison(False, "the packed rows of the run were removed")
        deployed_rows = deployed.calibration.correct(
            _predict_members(results.context, rows, deployed.before_refit)
        )
    except UNUSABLE as error:
        results.db.notice(
            f"the deployed version of model {train_spec.model!r} can no longer predict: "
            f"{error.message}"
        )
        return Comparison(True)
    return DeployedRows(deployed_rows, deployed.calibration.costs)


def compare_with_deployed(
    train_spec: TrainSpec, scored_rows: ScoredRows, deployed: DeployedRows | Comparison
) -> Comparison:
    """Compare predictions of a new version with those of the deployed one for the same rows.

    A version of other costs than the run is compared by the costs of the run first.

    Args:
        scored_rows: predictions of the new version.
        deployed: from `predict_by_deployed`.
    """
    if isinstance(deployed, Comparison):
        return deployed
    costs = train_spec.costs
    if costs and costs != deployed.costs:
        cost = average_cost(costs, scored_rows)
        deployed_cost = average_cost(costs, deployed.scored_rows)
        if cost != deployed_cost:
            return Comparison(cost < deployed_cost)
    metrics = (train_spec.metric, FALLBACK_METRICS[train_spec.task])
    return Comparison(predicts_better(metrics, scored_rows, deployed.scored_rows))


def _is_divided_alike(train_spec: TrainSpec, entry: ModelEntry) -> bool:
    """Return whether the rows of a run are divided like those of the versions of its model.

    They are not if the first versions of a model were trained at the same time, with two seeds, or
    if the source lost a column that identifies its rows.
    """
    split = train_spec.split
    if (split.rule, split.seed, split.bound) != (entry.split, entry.split_seed, entry.bound):
        return False
    return not entry.identity or {*train_spec.source.identity} == {*entry.identity}


def _predict_members(context: CallContext, rows: HoldoutRows, version: Version) -> ScoredRows:
    """Return the predictions of a version: the sum of its members' outputs times their shares."""
    batches = []
    for member in version.members:
        stored = StoredState(member.state_table, None)
        network = Network(
            recipe=version.recipe,
            classes=version.classes,
            architecture=member.architecture,
            compile_params=member.compile_params,
            state=StateSource("weights_of_chunks", member.state_table, 0, stored=stored),
            backend=version.backend,
        )
        batches.append([HoldoutRequest(network)])
    parts = predict_in_parallel(context, rows, batches)
    return add_rows([(scored, member.share) for (scored,), member in zip(parts, version.members)])
