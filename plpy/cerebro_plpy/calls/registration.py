"""A run of `cerebro.train` that has come to its end: the best of its configurations becomes a version of its model."""

from __future__ import annotations

from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.caller import Database
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import ObjectNotReady
from cerebro_plpy.platform.workplace import Workplace
from cerebro_plpy.tables import outputs, registry
from cerebro_plpy.tables.outputs import LoggedRun
from cerebro_plpy.tables.registry import Name, Result


def register(db: Database, workplace: Workplace, run_id: int) -> None:
    """Make a version of the best configuration of a run; the states of the run are not needed any more."""
    run = outputs.read_run(db, run_id)
    train, result = _train(run), best_of(db, workplace, run)
    name, software = Name(train.split, train.split_seed, None), {"cerebro_db": run.spec.version}
    added = registry.add(workplace.control, train.model, name, result, software, run.spec.ranking.descending)
    ahead = added.version == added.deployed
    said = "predicts from now on" if ahead else f"is not better than version {added.deployed}, which goes on to predict"
    db.info(
        f"model {train.model!r}: version {added.version}, which is mst_key {result.mst_key} of run {run_id} with"
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


def _train(run: LoggedRun) -> TrainSpec:
    assert run.spec.train is not None
    return run.spec.train
