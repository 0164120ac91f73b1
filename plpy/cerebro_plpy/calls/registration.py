"""A run of `cerebro.train` that has come to its end: the best of its configurations becomes a version of its model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cerebro_plpy.calls.aim import importance_share, most_members
from cerebro_plpy.calls.ensembles import Candidate, assembled
from cerebro_plpy.calls.held_back import MODULE, Network, held_table, margin_of, predictions
from cerebro_plpy.calls.version_importance import Latest, add_importance
from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.caller import Database, Row
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import DataCorrupted, DatatypeMismatch, ObjectNotReady, UndefinedColumn
from cerebro_plpy.features.ensemble import is_better
from cerebro_plpy.features.recipe import Recipe
from cerebro_plpy.features.scores import SCORES, distances
from cerebro_plpy.features.target import REGRESSION
from cerebro_plpy.platform.job import StateSource
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.platform.workplace import Workplace, open_workplace
from cerebro_plpy.run.log import RunLog
from cerebro_plpy.tables import outputs, registry, versions
from cerebro_plpy.tables.outputs import LoggedRun
from cerebro_plpy.tables.registry import Name, Result

OTHERWISE = ("auc",)
"""What Keras computes in another way: of the probabilities of all classes at once."""
UNUSABLE = (ObjectNotReady, DataCorrupted, DatatypeMismatch, UndefinedColumn)


def register(db: Database, gd: dict[str, Any], run_id: int, ends: float) -> None:
    """Make a version of the best configuration of a run, whose budget ends then, by time.monotonic()."""
    run = outputs.read_run(db, run_id)
    with open_workplace(db, gd, (), run.spec.arguments.workers) as workplace:
        version, backend = _add(db, workplace, run)
        train = _train(run)
        if importance_share(train.budget):
            add_importance(workplace, Latest(train.model, version, backend), ends)


def _add(db: Database, workplace: Workplace, run: LoggedRun) -> tuple[int, str]:
    """Make the version; its number, and the framework that it predicts with."""
    train = _train(run)
    source = held_table(Catalog(db, MODULE), train)
    result, network, told = _best(db, workplace, run, source)
    before = registry.find_name(workplace.control, train.model)
    better = before is None or before.deployed is None
    if not told and (train.task == REGRESSION or train.metric in OTHERWISE or not better):
        told = predictions(workplace, train, source, network)
    if train.metric in OTHERWISE:
        result = result._replace(value=SCORES[train.metric](told))
    if not better:
        old = _old_score(db, workplace, train, source)
        better = is_better(SCORES[train.metric](told), old, run.spec.ranking.descending)
    if train.task == REGRESSION:
        result = result._replace(margin=margin_of(distances(told)))
    name = Name(train.split, train.split_seed, train.bound, None)
    added = registry.add(workplace.control, train.model, name, result, deploy=better)
    RunLog(workplace.control, run.run_id).drop_states(keep=[])  # the version has its own
    ahead = added.version == added.deployed
    said = "predicts from now on" if ahead else f"is not better than version {added.deployed}, which goes on to predict"
    keys = result.ensemble.members if result.ensemble else (result.mst_key,)
    db.info(
        f"model {train.model!r}: version {added.version}, which is {_listed(keys)} of run {run.run_id} with"
        f" {train.metric} {'unknown' if result.value is None else f'{result.value:.4g}'}, {said}"
    )
    return added.version, network.backend


def _listed(mst_keys: Sequence[int]) -> str:
    """What a version is made of, for messages.

    >>> _listed((3,)), _listed((1, 4))
    ('mst_key 3', 'an ensemble of mst_key 1 and 4')
    """
    text = f"mst_key {' and '.join(map(str, mst_keys))}"
    return text if len(mst_keys) == 1 else f"an ensemble of {text}"


def _best(db: Database, workplace: Workplace, run: LoggedRun, source: Relation) -> Candidate:
    """The best that a run has come to: a configuration, or an ensemble of several."""
    train = _train(run)
    logged = {row["mst_key"]: row for row in db.glance(sql("run.logged_configs"), run.run_id)}
    found = [Candidate(each, _network(run, each, logged[each.mst_key]), []) for each in best_of(db, workplace, run)]
    if len(found) < 2:
        return found[0]
    library = [each._replace(told=predictions(workplace, train, source, each.network)) for each in found]
    return assembled(workplace, train, run.spec.ranking, library)


def best_of(db: Database, workplace: Workplace, run: LoggedRun) -> list[Result]:
    """The best configurations of a run, by the rows that were held back: as many as its model may be made of."""
    rows = outputs.read_configs(db, run.run_id)
    states = {row["mst_key"]: state for row in rows if (state := outputs.state_of(row))}
    most = most_members(_train(run).ensemble, _train(run).budget)
    best = workplace.control.run(sql("version.best"), (run.run_id, list(states), most))
    if not best:
        raise ObjectNotReady(
            f"run {run.run_id} has no model that could be compared with others",
            hint=f"SELECT * FROM cerebro.leaderboard WHERE run_id = {run.run_id};",
        )
    return [Result(run.run_id, mst_key, value, None, states[mst_key]) for mst_key, value in best]


def _network(run: LoggedRun, result: Result, logged: Row) -> Network:
    """The network that a configuration has come to, which is logged so."""
    train = _train(run)
    state = StateSource("weights_of_chunks", f"{run.run_id}/{result.mst_key}/best", 0, stored=result.state)
    recipe, texts = Recipe.from_json(train.recipe), (logged["architecture"], logged["compile_params"])
    return Network(recipe, train.classes, *texts, state, logged["backend"])


def _old_score(db: Database, workplace: Workplace, train: TrainSpec, source: Relation) -> float:
    """The metric of the version that predicts so far, over the same rows; NaN where it cannot predict them."""
    try:
        return SCORES[train.metric](predictions(workplace, train, source, _deployed(db, train)))
    except UNUSABLE as error:
        db.notice(f"the version of model {train.model!r} that predicted so far cannot any more: {error.message}")
        return math.nan


def _deployed(db: Database, train: TrainSpec) -> Network:
    """The network that predicts so far."""
    version = versions.deployed(db, MODULE, train.model)
    state = StateSource("weights_of_chunks", version.state_table, 0, stored=StoredState(version.state_table, None))
    texts = version.architecture, version.compile_params
    return Network(version.recipe, version.classes, *texts, state, version.backend)


def _train(run: LoggedRun) -> TrainSpec:
    assert run.spec.train is not None
    return run.spec.train
