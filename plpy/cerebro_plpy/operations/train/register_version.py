"""A run of `cerebro.train` that has come to its end: the best of its configurations becomes a
version of its model.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sql.literals import quote_text
from cerebro_plpy.errors import ConfigFailure, DataCorrupted, DatatypeMismatch, ObjectNotReady
from cerebro_plpy.operations.train.group_models import choose_group_models
from cerebro_plpy.operations.train.holdout_predictions import (
    MODULE,
    HoldoutRows,
    Network,
    compute_margin,
    predict_holdout,
    read_holdout_rows,
)
from cerebro_plpy.operations.train.run_results import (
    has_value,
    make_network,
    read_best_configs,
    read_states,
)
from cerebro_plpy.operations.train.train_ensemble import Candidate, build_ensemble
from cerebro_plpy.operations.train.train_request import (
    compute_max_members,
    reserve_importance_seconds,
)
from cerebro_plpy.operations.train.version_importance import NewVersion, add_importance
from cerebro_plpy.platform.call_context import CallContext, open_context
from cerebro_plpy.platform.job import StateSource
from cerebro_plpy.platform.state_tables import COMPARED, StoredState
from cerebro_plpy.preprocessing.learning.schema_matching import have_same_inputs
from cerebro_plpy.preprocessing.learning.target import REGRESSION
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.scoring.ensemble_selection import is_better
from cerebro_plpy.preprocessing.scoring.metrics import SCORES, ScoredRow, absolute_errors
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.tables.models import model_registry, model_versions
from cerebro_plpy.tables.models.model_registry import AddedVersion, ModelEntry, RunResult
from cerebro_plpy.tables.models.model_versions import Version
from cerebro_plpy.tables.outputs import logged_run
from cerebro_plpy.tables.outputs.logged_run import LoggedRun

UNUSABLE = (ObjectNotReady, DataCorrupted, DatatypeMismatch, ConfigFailure)


class Comparison(NamedTuple):
    """Whether a new version is better than the one that predicts so far; if that is not known,
    why.
    """

    better: bool
    obstacle: str | None = None


def register_version(db: Database, gd: dict[str, Any], run_id: int, ends: float) -> None:
    """Make a version of the best configuration of a run, whose budget ends then, by
    time.monotonic().
    """
    run = logged_run.read_run(db, run_id)
    with open_context(db, gd, (), run.spec.arguments.workers) as workplace:
        workplace.show_run(run_id)
        version, backend = _add(db, workplace, run, ends)
        train = _train(run)
        dropped = RunLog(workplace.control, run.run_id).drop_states_stepwise(
            keep=[]
        )  # the version has its own
        if reserve_importance_seconds(train.budget):
            latest = NewVersion(train.model, version, backend)
            add_importance(workplace, latest, ends, lambda: next(dropped, None) is not None)
        deque(dropped, maxlen=0)


def _add(db: Database, workplace: CallContext, run: LoggedRun, ends: float) -> tuple[int, str]:
    """Make the version; its number, and the framework that it predicts with."""
    train, rows = _train(run), _held_rows(db, workplace, run)
    result, network, told, _ = _best(db, workplace, run, rows)
    before = model_registry.find_model(workplace.control, train.model)
    alone = before is None or before.deployed is None
    if (
        rows
        and not told
        and (train.task == REGRESSION or not has_value(result, train.metric) or not alone)
    ):
        told = predict_holdout(workplace, rows, network)
    if not has_value(result, train.metric):
        result = result._replace(value=SCORES[train.metric](told) if told else None)
    comparison = Comparison(better=True) if alone else _compare(db, workplace, run, rows, told)
    if train.task == REGRESSION:
        result = result._replace(margin=compute_margin(absolute_errors(told)))
    name = ModelEntry(train.split, train.split_seed, train.bound, None, train.identity)
    groups = choose_group_models(db, workplace, run, rows, ends)
    added = model_registry.add(
        workplace.control, train.model, name, result, groups, deploy=comparison.better
    )
    said = (
        "predicts from now on"
        if added.version == added.deployed
        else _why_not(train.model, added, comparison)
    )
    keys = result.ensemble.members if result.ensemble else (result.mst_key,)
    db.info(
        f"model {train.model!r}: version {added.version}, which is {_listed(keys)} of run "
        f"{run.run_id} with {train.metric} "
        f"{'unknown' if result.value is None else f'{result.value:.4g}'}, {said}"
    )
    return added.version, network.backend


def _held_rows(db: Database, workplace: CallContext, run: LoggedRun) -> HoldoutRows | None:
    """Return the rows that a run holds back; None if its packed rows were removed, which the caller
    is told.
    """
    rows = read_holdout_rows(Catalog(db, MODULE), workplace.reader, run)
    if rows is None:
        db.notice(
            f"the packed rows of run {run.run_id} were removed: its version is one configuration, "
            "without a margin, importances and all else that is computed from rows that were held "
            "back"
        )
    return rows


def _listed(mst_keys: Sequence[int]) -> str:
    """What a version is made of, for messages.

    >>> _listed((3,)), _listed((1, 4))
    ('mst_key 3', 'an ensemble of mst_key 1 and 4')
    """
    text = f"mst_key {' and '.join(map(str, mst_keys))}"
    return text if len(mst_keys) == 1 else f"an ensemble of {text}"


def _best(
    db: Database, workplace: CallContext, run: LoggedRun, rows: HoldoutRows | None
) -> Candidate:
    """Return the best that a run has come to: a configuration, or an ensemble of several."""
    logged = {row["mst_key"]: row for row in db.peek(sql("run.logged_configs"), run.run_id)}
    best = [(each, logged[each.mst_key]) for each in choose_best_configs(db, workplace, run)]
    found = [
        Candidate(each, make_network(run, each, row), [], row["template"]) for each, row in best
    ]
    if len(found) < 2 or rows is None:
        return found[0]
    library = [
        each._replace(scored_rows=predict_holdout(workplace, rows, each.network)) for each in found
    ]
    return build_ensemble(workplace, _train(run), run.spec.ranking, library)


def choose_best_configs(db: Database, workplace: CallContext, run: LoggedRun) -> list[RunResult]:
    """The best configurations of a run, by the rows that were held back: as many as its model may
    be made of.
    """
    train = _train(run)
    most = compute_max_members(train.ensemble, train.budget, train.validation_rows)
    best = read_best_configs(workplace, run, read_states(db, run), most)
    if not best:
        raise ObjectNotReady(
            f"run {run.run_id} has no model that could be compared with others",
            hint=f"SELECT * FROM cerebro.leaderboard WHERE run_id = {run.run_id};",
        )
    return best


def _compare(
    db: Database,
    workplace: CallContext,
    run: LoggedRun,
    rows: HoldoutRows | None,
    told: Sequence[ScoredRow],
) -> Comparison:
    """Compare a run with the version that predicts so far, over the same rows.

    A version that cannot predict these rows is worse than any.
    """
    train = _train(run)
    try:
        old = model_versions.get_deployed(db, MODULE, train.model)
        if (old.task, old.target) != (train.task, train.target):
            return Comparison(False, "it has another target or task")
        if not have_same_inputs(old.recipe, Recipe.from_json(train.recipe)):
            if train.compared is None or train.compared.version != old.version:
                return Comparison(False, f"it was deployed while run {run.run_id} was under way")
            if not train.compared.usable:
                return Comparison(True)
            rows = read_holdout_rows(Catalog(db, MODULE), workplace.reader, run, COMPARED)
        if not rows or not told:
            return Comparison(False, "the packed rows of the run were removed")
        score = SCORES[train.metric](predict_holdout(workplace, rows, _version_network(old)))
    except UNUSABLE as error:
        db.notice(
            f"the version of model {train.model!r} that predicted so far cannot any more: "
            f"{error.message}"
        )
        return Comparison(True)
    return Comparison(is_better(SCORES[train.metric](told), score, run.spec.ranking.descending))


def _why_not(model: str, added: AddedVersion, comparison: Comparison) -> str:
    """Say why a version does not predict, for messages.

    >>> _why_not("m", AddedVersion(2, 1), Comparison(False))
    'is not better than version 1, which goes on to predict'
    """
    if comparison.obstacle is None:
        return f"is not better than version {added.deployed}, which goes on to predict"
    return (
        f"cannot be compared with version {added.deployed}, which goes on to predict: "
        f"{comparison.obstacle}. SELECT cerebro.deploy({quote_text(model)}, '{added.version}'); "
        "lets the new one predict"
    )


def _version_network(version: Version) -> Network:
    """The network of a version."""
    state = StateSource(
        "weights_of_chunks", version.state_table, 0, stored=StoredState(version.state_table, None)
    )
    texts = version.architecture, version.compile_params
    return Network(version.recipe, version.classes, *texts, state, version.backend)


def _train(run: LoggedRun) -> TrainSpec:
    assert run.spec.train is not None
    return run.spec.train
