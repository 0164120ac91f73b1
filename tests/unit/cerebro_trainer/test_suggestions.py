"""Points of a search space: where they lie, that they differ, that they can be repeated, and that
TPE learns.
"""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from trials import trials

from cerebro_plpy.configs.prior_trials import PriorTrial, compute_standings
from cerebro_plpy.configs.search_space.grid import drop_duplicates
from cerebro_plpy.configs.search_space.sampler_space import describe_space, make_config_row
from cerebro_plpy.configs.search_space.space import Space, read_space
from cerebro_plpy.run.workers.sampler import add_prior_trials
from cerebro_trainer.commands.suggestions import suggest
from cerebro_trainer.errors import RequestError

COMPILE = """{'loss': ['categorical_crossentropy'], 'optimizer_params_list': [
    {'optimizer': ['SGD'], 'lr': [0.001, 0.1, 'log'], 'momentum': [0.9, 0.99, 'log_near_one']},
    {'optimizer': ['Adam', 'Adagrad'], 'lr': [0.01, 0.02, 'linear']}], 'metrics': ['accuracy']}"""
FIT = "{'batch_size': [4, 16, 'linear'], 'epochs': [1, 2]}"
SPACE = read_space(COMPILE, FIT, [1, 2])
algorithms = st.sampled_from(["rand", "tpe", "cmaes"])


def asked(
    space: Space, algorithm: str, count: int, seed: int, trials: list[Any] | None = None
) -> list[Any]:
    """The points that a trainer would answer with, through JSON as on the wire."""
    request = {
        "space": describe_space(space), "algorithm": algorithm, "count": count, "seed": seed,
        "trials": trials or [],
    }  # fmt: skip
    return list(json.loads(json.dumps(suggest(json.loads(json.dumps(request))))))


def tried(points: list[Any], losses: list[float | None]) -> list[Any]:
    found = zip(points, losses, strict=True)
    return [
        {
            "point": p,
            "values": [] if v is None else [[3, v]],
            "state": "failed" if v is None else "completed",
        }
        for p, v in found
    ]


@given(algorithms, st.integers(-(2**31), 2**31 - 1))
def test_points_are_configurations_of_the_space(algorithm: str, seed: int) -> None:
    points = asked(SPACE, algorithm, 6, seed)
    rows = [make_config_row(SPACE, point) for point in points]
    assert len(list(drop_duplicates(rows))) == 6
    for row in rows:
        parts = dict(part.split("=", 1) for part in row.fit_params.split(","))
        assert row.model_id in (1, 2)
        assert 4 <= int(parts["batch_size"]) <= 16 and parts["epochs"] in ("1", "2")
        optimizer = row.compile_params.split("'")[1]
        low, high = (0.001, 0.1) if optimizer.startswith("SGD") else (0.01, 0.02)
        values = dict(
            part.split("=") for part in optimizer[optimizer.index("(") + 1 : -1].split(",")
        )
        assert low <= float(values["lr"]) <= high
        assert ("momentum" in values) == optimizer.startswith("SGD")
        assert 0.9 <= float(values.get("momentum", 0.95)) <= 0.99


@given(
    algorithms, st.integers(0, 99), st.lists(st.floats(0, 9) | st.none(), min_size=12, max_size=12)
)
@trials(20)
def test_the_same_request_has_the_same_answer(
    algorithm: str, seed: int, losses: list[float | None]
) -> None:
    first = asked(SPACE, algorithm, 12, seed)
    assert first == asked(SPACE, algorithm, 12, seed)
    before = tried(first, losses)
    second = asked(SPACE, algorithm, 3, seed, before)
    assert second == asked(SPACE, algorithm, 3, seed, before)
    assert not [point for point in second if point in first]


def test_another_seed_has_another_answer() -> None:
    answers = [
        json.dumps(asked(SPACE, algorithm, 3, seed))
        for algorithm in ("rand", "tpe", "cmaes")
        for seed in (0, 1)
    ]
    assert len(set(answers[::2])) == len(set(answers[1::2])) == 2
    assert all(one != other for one, other in zip(answers[::2], answers[1::2], strict=True))


@given(algorithms, st.integers(0, 99))
@example("cmaes", 0)
@trials(20)
def test_a_small_space_is_tried_whole_and_nothing_twice(algorithm: str, seed: int) -> None:
    space = read_space(
        "{'loss': ['mse'], 'lr': [0.1, 0.2, 0.3]}", "{'batch_size': [1, 2, 'linear']}", [7]
    )
    found: list[Any] = []
    while points := asked(space, algorithm, 4, seed, tried(found, [1.0] * len(found))):
        found += points
    assert len({json.dumps(point, sort_keys=True) for point in found}) == len(found) == 6


@pytest.mark.parametrize("learning", ["tpe", "cmaes"])
def test_what_learns_comes_nearer_to_the_best_than_chance(learning: str) -> None:
    space = read_space(
        "{'loss': ['mse'], 'lr': [0.0001, 1.0, 'log']}", "{'batch_size': [1, 512, 'linear']}", [1]
    )

    def best(algorithm: str, seed: int) -> float:
        before: list[Any] = []
        for _ in range(8):
            points = asked(space, algorithm, 4, seed, before)
            losses = [
                abs(p["values"]["compile/lr"] - 0.02)
                + abs(p["values"]["fit/batch_size"] - 40) / 512
                for p in points
            ]
            before += tried(points, list(losses))
        return float(min(trial["values"][0][1] for trial in before))

    assert sum(best(learning, seed) for seed in range(10)) < sum(
        best("rand", seed) for seed in range(10)
    )


@pytest.mark.parametrize("learning", ["tpe", "cmaes"])
def test_who_knows_an_earlier_run_comes_nearer_to_the_best(learning: str) -> None:
    """Though values lie elsewhere by now: those of the earlier run would all look better than any
    of this one.
    """
    space = read_space(
        "{'loss': ['mse'], 'lr': [0.0001, 1.0, 'log']}", "{'batch_size': [1, 512, 'linear']}", [1]
    )

    def loss(point: Any) -> float:
        rate, size = point["values"]["compile/lr"], point["values"]["fit/batch_size"]
        return float(abs(math.log(rate / 0.02)) + abs(size - 40) / 512)

    def best(seed: int, earlier: list[PriorTrial]) -> float:
        own: list[Any] = []
        for _ in range(4):
            points = asked(space, learning, 2, seed, [*add_prior_trials(earlier, own)])
            own += tried(points, [loss(point) + 100 for point in points])
        return float(min(loss(trial["point"]) for trial in own))

    found = []
    for seed in range(10):
        points = asked(space, "rand", 30, seed + 50)
        stood = compute_standings([(0.0, loss(point)) for point in points])
        before = [
            PriorTrial(1, key, *each) for key, each in enumerate(zip(points, stood, strict=True), 1)
        ]
        found.append((best(seed, before), best(seed, [])))
    assert sum(knowing for knowing, _ in found) < sum(alone for _, alone in found)


@pytest.mark.parametrize(
    "change",
    [
        {"space": []}, {"space": [[{"name": "a", "kind": "other"}]]}, {"space": [3]}, {"count": 0},
        {"seed": "x"},
        {"algorithm": "atpe"},
        {"trials": [{"point": {"alternative": 9, "values": {}}, "values": [], "state": "running"}]},
        {"trials": [{"point": {"alternative": 0, "values": {}}, "values": [], "state": "other"}]},
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_request_is_named(change: dict[str, Any]) -> None:
    request = {
        "space": describe_space(SPACE),
        "algorithm": "tpe",
        "count": 1,
        "seed": 1,
        "trials": [],
        **change,
    }
    with pytest.raises(RequestError):
        suggest(request)


def test_the_interpreter_s_generators_are_left_alone() -> None:
    random.seed(5)
    expected = random.Random(5).random()
    asked(SPACE, "tpe", 2, 1)
    assert random.random() == expected
