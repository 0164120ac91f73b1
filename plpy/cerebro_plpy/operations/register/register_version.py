"""Registration of the best configurations of a run of `cerebro.train` as a version of its model."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from cerebro_plpy.database.call_status import CHOOSING, EXPLAINING
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.errors import quote_text
from cerebro_plpy.nouns import count_nouns, match_verb
from cerebro_plpy.operations.explain.importance import FALLBACK_METRICS
from cerebro_plpy.operations.refit.refit import refit
from cerebro_plpy.operations.refit.refit_plan import RefitTime
from cerebro_plpy.operations.register.deployed_comparison import (
    Comparison,
    DeployedRows,
    compare_with_deployed,
    predict_by_deployed,
)
from cerebro_plpy.operations.register.final_metric import (
    calibrate_result,
    choose_group_result,
    count_group_candidates,
)
from cerebro_plpy.operations.register.member_candidates import (
    choose_holdout_shares,
    collect_candidates,
    list_first_places,
    predict_candidates,
)
from cerebro_plpy.operations.register.version_importance import NewVersion, add_importance
from cerebro_plpy.operations.train.holdout_predictions import (
    MODULE,
    HoldoutRows,
    predict_holdout,
    read_holdout_rows,
)
from cerebro_plpy.operations.train.run_results import RunResults, has_value
from cerebro_plpy.operations.train.train_ensemble import Candidate, combine_candidates
from cerebro_plpy.operations.train.train_report import report_threshold
from cerebro_plpy.operations.train_budget import (
    compute_refit_seconds,
    limit_importance_seconds,
    reserve_importance_seconds,
)
from cerebro_plpy.platform.call_context import open_context
from cerebro_plpy.preprocessing.learning.class_notices import (
    ClassAdvice,
    count_labels,
    list_unpredicted_classes,
    name_few,
)
from cerebro_plpy.preprocessing.learning.target import REGRESSION
from cerebro_plpy.preprocessing.scoring.metrics import SCORES
from cerebro_plpy.preprocessing.scoring.scored_rows import NO_ROWS, ScoredRows
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.tables.models import model_registry
from cerebro_plpy.tables.models.model_registry import (
    AddedVersion,
    GroupResult,
    ModelEntry,
    RunResult,
)
from cerebro_plpy.tables.outputs import logged_run

MAX_REPORTED_ROWS = 100_000
"""With more hold-out rows, they are not predicted for the notice about their classes alone."""


class Rating(NamedTuple):
    """The rows and the rival by which models are rated."""

    rows: HoldoutRows | None  # None if they were removed
    deployed: DeployedRows | Comparison | None
    """The rival's predictions, or the outcome of any comparison; None if no version is deployed."""


class RatedResult(NamedTuple):
    """A model that may become a version."""

    result: RunResult
    comparison: Comparison
    scored_rows: ScoredRows  # calibrated predictions for the hold-out rows; empty if not computed


def register_version(db: Database, gd: dict[str, Any], run_id: int, deadline: float) -> None:
    """Add the best configuration of a run to its model, as a version.

    Args:
        deadline: end of the budget, by time.monotonic().
    """
    run = logged_run.read_run(db, run_id)
    with open_context(db, gd, (), run.spec.arguments.workers) as context:
        context.show_run(run_id)
        log = RunLog(context.control, run_id)
        log.enter_phase(db, CHOOSING, deadline - time.monotonic())
        results = RunResults(db, context, run)
        version = _add_version(results, deadline)
        # The version has states of its own.
        logs = [log, *(RunLog(context.control, refit) for refit in version.refit_runs)]
        dropped_states = chain.from_iterable(
            state_log.drop_states_stepwise(keep=[]) for state_log in logs
        )
        budget = results.train_spec.budget
        if reserve_importance_seconds(budget):
            start = time.monotonic()
            seconds = limit_importance_seconds(budget, budget - (deadline - start))
            log.enter_phase(db, EXPLAINING, deadline - start)
            add_importance(
                context, version, start + seconds, lambda: next(dropped_states, None) is not None
            )
        deque(dropped_states, maxlen=0)


def _add_version(results: RunResults, deadline: float) -> NewVersion:
    """Add the version, and deploy it if it is better than the deployed one."""
    train_spec = results.train_spec
    control = results.context.control
    rows = _read_holdout_rows(results)
    library = collect_candidates(results, rows)
    places = list_first_places(results, library)
    library = predict_candidates(results, rows, library, places)
    shares = choose_holdout_shares(results, library, places)
    entry = model_registry.find_model(control, train_spec.model)
    deployed = None
    if entry is not None and entry.deployed is not None:
        deployed = predict_by_deployed(results, entry, rows)
    rating = Rating(rows, deployed)
    rated = _rate_members(results, rating, library, shares)
    if rated.comparison.better or rated.comparison.obstacle is not None:
        keys = [candidate.result.mst_key for candidate in library]
        refitted = refit(
            results.db,
            results.context,
            results.run,
            keys,
            {keys[place]: share for place, share in shares.items()},
            _limit_refit(train_spec.budget, deadline),
        )
        shares_of_folds = {keys.index(key): share for key, share in refitted.shares.items()}
        if shares_of_folds != shares:
            library = predict_candidates(results, rows, library, [*shares_of_folds])
            rated = _rate_members(results, rating, library, shares_of_folds)
        rated = rated._replace(result=refitted.complete(rated.result))
    result, comparison, calibrated_rows = rated
    added_version = model_registry.add(
        control,
        train_spec.model,
        ModelEntry(
            train_spec.split.rule,
            train_spec.split.seed,
            train_spec.split.bound,
            None,
            train_spec.source.identity,
        ),
        result,
        _choose_group_results(results, rows, deadline),
        deploy=comparison.better,
    )
    _report_version(results, result, added_version, comparison)
    if train_spec.task != REGRESSION:
        _report_unpredicted_classes(results, added_version.version, calibrated_rows)
    refit_runs = tuple(filter(None, (result.refit_run_id,)))
    return NewVersion(train_spec.model, added_version.version, added_version.backend, refit_runs)


def _limit_refit(budget: float, deadline: float) -> RefitTime:
    """Return the time for training members again.

    Args:
        deadline: end of the budget, by time.monotonic().
    """
    remaining = deadline - time.monotonic()
    return RefitTime(budget - remaining, compute_refit_seconds(budget, remaining))


def _rate_members(
    results: RunResults,
    rating: Rating,
    library: Sequence[Candidate],
    shares: Mapping[int, float],
) -> RatedResult:
    """Return the model that candidates make, compared with the deployed version.

    Args:
        shares: of its members, by their places in the library.
    """
    train_spec = results.train_spec
    rows = rating.rows
    result, network, scored_rows, _ = combine_candidates(train_spec, library, shares)
    is_value_known = has_value(result, train_spec.metric)
    is_regression = train_spec.task == REGRESSION
    has_rival = rating.deployed is not None
    needs_rows = is_regression or not is_value_known or has_rival or bool(train_spec.costs)
    if rows and not scored_rows and (needs_rows or rows.table.rows <= MAX_REPORTED_ROWS):
        scored_rows = predict_holdout(results.context, rows, network)
    if not is_value_known:
        result = result._replace(value=None)
    result, calibrated_rows = calibrate_result(train_spec, result, scored_rows)
    if calibrated_rows:
        loss = FALLBACK_METRICS[train_spec.task]
        result = result._replace(loss=SCORES[loss](calibrated_rows))
    if train_spec.start is not None:
        result = result._replace(base=(train_spec.start.run_id, train_spec.start.mst_key))
    comparison = Comparison(better=True)
    if rating.deployed is not None:
        comparison = compare_with_deployed(train_spec, calibrated_rows, rating.deployed)
    return RatedResult(result, comparison, calibrated_rows)


def _report_version(
    results: RunResults, result: RunResult, added_version: AddedVersion, comparison: Comparison
) -> None:
    train_spec = results.train_spec
    version = added_version.version
    outcome = "predicts from now on"
    if version != added_version.deployed:
        outcome = _explain_outcome(train_spec.model, added_version, comparison)
    keys = [member.mst_key for member in result.members]
    value = "unknown" if result.value is None else f"{result.value:.4g}"
    results.db.info(
        f"model {train_spec.model!r}: version {version}, which is {_list_keys(keys)} of run "
        f"{results.run.run_id} with {train_spec.metric} {value}, {outcome}"
    )
    report_threshold(results.db, train_spec, version, result.calibration)


def _report_unpredicted_classes(results: RunResults, version: int, scored_rows: ScoredRows) -> None:
    """Give a notice if the version predicts classes for none of the hold-out rows."""
    train_spec = results.train_spec
    classes = list_unpredicted_classes(scored_rows)
    if not classes:
        return
    advice = str(ClassAdvice(train_spec.metric, train_spec.space))
    labelled = count_labels(scored_rows, classes)
    pronoun = "it" if len(classes) == 1 else "them"
    results.db.notice(
        f"version {version} of model {train_spec.model!r} predicts {name_few(classes)} for none of "
        f"the {count_nouns(len(scored_rows), 'row')} held back, of which {labelled} "
        f"{match_verb(labelled, 'has')} {pronoun}{f': {advice}' if advice else ''}"
    )


def _read_holdout_rows(results: RunResults) -> HoldoutRows | None:
    """Return the packed hold-out rows of a run; give a notice if they were removed."""
    rows = read_holdout_rows(Catalog(results.db, MODULE), results.context.reader, results.run)
    if rows is None:
        results.db.notice(
            f"the packed rows of run {results.run.run_id} were removed: its version is a "
            "single configuration, without a margin, importances and other results from the rows "
            "held back"
        )
    return rows


def _list_keys(mst_keys: Sequence[int]) -> str:
    """Return the configurations of a version as text.

    >>> _list_keys((3,)), _list_keys((1, 4))
    ('mst_key 3', 'an ensemble of mst_key 1 and 4')
    """
    text = f"mst_key {' and '.join(map(str, mst_keys))}"
    return text if len(mst_keys) == 1 else f"an ensemble of {text}"


def _choose_group_results(
    results: RunResults, rows: HoldoutRows | None, deadline: float
) -> list[GroupResult]:
    """Return the best configuration of each group; a notice lists the groups without one.

    Args:
        rows: hold-out rows; None if they were removed.
        deadline: no value or margin is computed after it, by time.monotonic().
    """
    layouts = results.train_spec.grouping.layouts
    if not layouts:
        return []
    best = results.read_best_by_group(results.read_states())
    missing = sorted(layouts.keys() - best.keys())
    if missing:
        results.db.notice(
            f"the budget was over before groups {', '.join(missing)} had a model: the model of "
            "all rows predicts them"
        )
    configs = results.read_configs()
    group_results = []
    for group, layout in layouts.items():
        if group in best:
            result = best[group][0]
            if results.train_spec.final_metric is not None:
                candidates = best[group][: count_group_candidates(results)]
                pairs = [(candidate, configs[candidate.mst_key]) for candidate in candidates]
                result = choose_group_result(results, rows, pairs, deadline)
            config = configs[result.mst_key]
            result = _complete_group_result(results, result, config, rows, deadline)
            group_results.append(GroupResult(result, layout.rows))
    return group_results


def _complete_group_result(
    results: RunResults,
    result: RunResult,
    config: Row,
    rows: HoldoutRows | None,
    deadline: float,
) -> RunResult:
    """Compute the calibration, and the value that the log lacks."""
    metric = results.train_spec.metric
    if results.train_spec.final_metric is None and not has_value(result, metric):
        result = result._replace(value=None)
    scored_rows = NO_ROWS
    if rows is not None and time.monotonic() < deadline:
        network = results.make_network(result, config)
        scored_rows = predict_holdout(results.context, rows, network, config["group_value"])
    return calibrate_result(results.train_spec, result, scored_rows)[0]


def _explain_outcome(model: str, added_version: AddedVersion, comparison: Comparison) -> str:
    """Return the reason why a version is not deployed, for a message.

    >>> _explain_outcome("m", AddedVersion(2, 1, "jax"), Comparison(False))
    'is not better than version 1, which keeps predicting'
    """
    deployed = added_version.deployed
    if comparison.obstacle is None:
        return f"is not better than version {deployed}, which keeps predicting"
    command = f"SELECT cerebro.deploy({quote_text(model)}, '{added_version.version}');"
    return (
        f"cannot be compared with version {deployed}, which keeps predicting: "
        f"{comparison.obstacle}. {command} lets the new one predict"
    )
