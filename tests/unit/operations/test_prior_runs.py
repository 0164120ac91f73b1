"""Earlier runs that a search learns from, and those that a call names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from cerebro_plpy.configs.run_spec import Ranking
from cerebro_plpy.configs.search_space.sampler_space import PointSpace
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.errors import NullNotAllowed, UndefinedObject
from cerebro_plpy.operations.fit.prior_runs import (
    Comparison,
    PriorRun,
    PriorRunConfig,
    collect_prior_trials,
)
from cerebro_plpy.operations.train import prior_configs
from cerebro_plpy.tables.architectures import StoredModel

RANKING = Ranking("validation", "loss", descending=False)
SAME = Comparison("validation", "loss", descending=False, task=None, warm=False)
OTHERS = {
    "dataset": SAME._replace(dataset="training"),
    "metric": SAME._replace(metric="accuracy"),
    "order": SAME._replace(descending=True),
    "task": SAME._replace(task="regression"),
    "warm": SAME._replace(warm=True),
}


class Caller:
    """The database of a call, with the messages that the caller reads."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    @property
    def db(self) -> Caller:
        return self

    def info(self, text: str) -> None:
        self.messages.append(text)


class Space:
    """A space that has every configuration."""

    def find_point(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"alternative": 0, "values": {"lr": row["lr"]}}


def config(
    mst_key: int, model_id: int = 1, architecture: str = "network", template: str | None = None
) -> Any:
    row = {"model_id": model_id, "template": template, "lr": mst_key / 10}
    return PriorRunConfig(mst_key, mst_key / 2, False, row, architecture)


def learn(
    caller: Caller, runs: Sequence[PriorRun], models: Mapping[int, StoredModel]
) -> list[tuple[int, int]]:
    """Return the run and the configuration of each trial that a search learns from."""
    trials = collect_prior_trials(
        cast(Catalog, caller), runs, cast(PointSpace, Space()), RANKING, models=models
    )
    return [(trial.run_id, trial.mst_key) for trial in trials]


def test_a_configuration_of_another_network_lies_nowhere_in_the_space() -> None:
    models = {1: StoredModel(1, "network", False), 2: StoredModel(2, "another", False)}
    others = (config(2, architecture="an older one"), config(3, model_id=2), config(4, model_id=9))
    run = PriorRun(5, SAME, (config(1), *others, config(6, template="realmlp")))
    caller = Caller()
    assert learn(caller, [run], models) == [(5, 1)]
    assert caller.messages == [
        "the sampler is told how 1 configuration of earlier runs stood: runs 5"
    ]


@pytest.mark.parametrize("comparison", OTHERS.values(), ids=OTHERS)
def test_a_run_that_compares_otherwise_is_named_and_not_learned_from(
    comparison: Comparison,
) -> None:
    models = {1: StoredModel(1, "network", False)}
    caller = Caller()
    runs = [PriorRun(4, comparison, (config(1),)), PriorRun(5, SAME, (config(2),))]
    assert learn(caller, runs, models) == [(5, 2)]
    assert "not told of run 4" in caller.messages[0]


class Log:
    """A session whose role has one model, `orders`, and no run."""

    def run(self, statement: str, values: Sequence[object] = ()) -> list[tuple[str]]:
        return [] if values else [("orders",)]


@pytest.mark.parametrize(
    ("name", "error", "hint"),
    [
        (None, NullNotAllowed, "cerebro.model"),
        ("order", UndefinedObject, "orders"),
        ("run:0", UndefinedObject, "run_id"),
    ],
)
def test_start_from_names_what_the_caller_has(
    name: str | None, error: type[Exception], hint: str
) -> None:
    with pytest.raises(error, match="train error: start_from") as refused:
        prior_configs.read_named_configs("train", cast(Any, Log()), [name])
    assert hint in str(cast(Any, refused.value).hint)
