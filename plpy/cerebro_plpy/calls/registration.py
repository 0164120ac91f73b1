"""A run of `cerebro.train` that has come to its end: the best of its configurations becomes a version of its model."""

from __future__ import annotations

import json
from typing import Any

from cerebro_plpy.calls.residuals import Network, distances, margin_of
from cerebro_plpy.configs.compile_params import parse_compile_params
from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.caller import Database
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import ObjectNotReady
from cerebro_plpy.features.target import REGRESSION
from cerebro_plpy.platform.job import StateSource
from cerebro_plpy.platform.workplace import Workplace, open_workplace
from cerebro_plpy.tables import outputs, registry
from cerebro_plpy.tables.outputs import LoggedRun
from cerebro_plpy.tables.registry import Name, Result

MODULE = "train"


def register(db: Database, gd: dict[str, Any], run_id: int) -> None:
    """Make a version of the best configuration of a run."""
    run = outputs.read_run(db, run_id)
    with open_workplace(db, gd, (), run.spec.arguments.workers) as workplace:
        _add(db, workplace, run)


def _add(db: Database, workplace: Workplace, run: LoggedRun) -> None:
    train, result = _train(run), best_of(db, workplace, run)
    if train.task == REGRESSION:
        result = result._replace(margin=_margin(db, workplace, run, result))
    name, software = Name(train.split, train.split_seed, None), {"cerebro_db": run.spec.version}
    added = registry.add(workplace.control, train.model, name, result, software, run.spec.ranking.descending)
    ahead = added.version == added.deployed
    said = "predicts from now on" if ahead else f"is not better than version {added.deployed}, which goes on to predict"
    db.info(
        f"model {train.model!r}: version {added.version}, which is mst_key {result.mst_key} of run {run.run_id} with"
        f" {train.metric} {result.value:.4g}, {said}"
    )


def best_of(db: Database, workplace: Workplace, run: LoggedRun) -> Result:
    """The best configuration of a run, by the rows that were held back."""
    rows = outputs.read_configs(db, run.run_id)
    states = {row["mst_key"]: state for row in rows if (state := outputs.state_of(row))}
    best = workplace.control.run(sql("version.best"), (run.run_id, list(states)))
    if not best:
        raise ObjectNotReady(
            f"run {run.run_id} has no model that could be compared with others",
            hint=f"SELECT * FROM cerebro.leaderboard WHERE run_id = {run.run_id};",
        )
    mst_key, value = best[0]
    return Result(run.run_id, mst_key, value, None, states[mst_key])


def _margin(db: Database, workplace: Workplace, run: LoggedRun, result: Result) -> float | None:
    """How far nine tenths of the rows that were held back lie from what the model says; None of too few."""
    train, key = _train(run), result.mst_key
    (logged,) = (row for row in db.glance(sql("run.logged_configs"), run.run_id) if row["mst_key"] == key)
    program = {
        "architecture": json.loads(logged["architecture"]),
        "compile": parse_compile_params(logged["compile_params"], None).to_json(),
        "targets": [{"kind": "float"}],
        "dtype_policy": run.spec.dtype_policy,
    }
    state = StateSource("weights_of_chunks", f"{run.run_id}/{key}/best", 0, stored=result.state)
    source = Catalog(db, MODULE).relation(train.relation)
    return margin_of(distances(workplace, MODULE, train, source, Network(program, state, logged["backend"])))


def _train(run: LoggedRun) -> TrainSpec:
    assert run.spec.train is not None
    return run.spec.train
