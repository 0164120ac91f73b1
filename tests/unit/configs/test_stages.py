"""What a search trains next: laws of Hyperband's diagonals and of Hyperopt's batches, for any losses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.grid import ConfigRow
from cerebro_plpy.configs.hyperopt import Hyperopt
from cerebro_plpy.configs.points import described
from cerebro_plpy.configs.space import read_space
from cerebro_plpy.configs.stages import Search, Stage, Trials, hyperband, hyperopt
from cerebro_plpy.hopping.hyperband import Hyperband
from cerebro_trainer.commands.suggestions import suggest

METHODS = st.sampled_from([Hyperband(R, eta, skip) for R, eta in ((6, 3), (9, 3), (9, 2), (27, 3)) for skip in (0, 1)])
SPACE = read_space("{'loss': ['mse'], 'optimizer': ['SGD', 'sgd'], 'lr': [0.1, 0.2]}", "{'batch_size': [1, 2]}", [7])


def rows(count: int) -> list[ConfigRow]:
    return [ConfigRow(1, f"loss='mse',optimizer='SGD(lr={n})'", "") for n in range(1, count + 1)]


def worked(search: Search, losses: st.DataObject, failing: bool) -> list[tuple[Stage, dict[int, float]]]:
    """The stages of a search with losses drawn as it goes; where `failing`, some configurations have none."""
    done: list[tuple[Stage, dict[int, float]]] = []
    stage = next(search, None)
    while stage is not None:
        values = st.floats(0, 1) | st.none() if failing else st.floats(0, 1)
        drawn = {key: losses.draw(values) for key in stage.rows}
        told = {key: value for key, value in drawn.items() if value is not None}
        done.append((stage, told))
        try:
            stage = search.send(told)
        except StopIteration:
            stage = None
    return done


@given(METHODS, st.data())
def test_diagonals_follow_the_schedule(method: Hyperband, data: st.DataObject) -> None:
    done = worked(hyperband(method, rows(200)), data, failing=False)
    planned = [{(r.s, r.i): r.configs for r in diagonal} for diagonal in method.diagonals()]
    counted = [
        {place: list(stage.places.values()).count(place) for place in set(stage.places.values())} for stage, _ in done
    ]
    assert counted == planned
    assert [stage.iterations for stage, _ in done] == [d[0].iterations for d in method.diagonals()]


@given(METHODS, st.booleans(), st.data())
def test_a_configuration_stays_in_its_bracket_and_never_returns(
    method: Hyperband, failing: bool, data: st.DataObject
) -> None:
    done = worked(hyperband(method, rows(200)), data, failing)
    when: dict[int, list[tuple[int, int]]] = {}
    for stage, _ in done:
        for key, place in stage.places.items():
            when.setdefault(key, []).append(place)
            assert stage.rows[key] == rows(200)[key - 1]
    for places in when.values():
        assert len({s for s, _ in places}) == 1
        assert [i for _, i in places] == list(range(len(places)))


@given(METHODS, st.data())
def test_who_failed_is_out_and_the_best_of_each_bracket_goes_on(method: Hyperband, data: st.DataObject) -> None:
    done = worked(hyperband(method, rows(200)), data, failing=True)
    for (stage, losses), (later, _) in pairwise(done):
        for s, i in set(stage.places.values()):
            here = {key: losses.get(key) for key, place in stage.places.items() if place == (s, i)}
            on = {key for key, place in later.places.items() if place == (s, i + 1)}
            real = {key: loss for key, loss in here.items() if loss is not None}
            assert on <= real.keys()
            if on:
                assert min(real, key=lambda key: (real[key], key)) in on


def test_the_message_is_madlib_s() -> None:
    search = hyperband(Hyperband(6, 3, 0), rows(5))
    assert next(search).message == (
        "*** Diagonally evaluating 3 configs under bracket=1 & round=0 with 2 iterations ***"
    )
    assert search.send({1: 0.1, 2: 0.2, 3: 0.3}).message == (
        "*** Diagonally evaluating 1 configs under bracket=1 & round=1, 2 configs under bracket=0 & round=0"
        " with 6 iterations ***"
    )


@given(st.integers(1, 40), st.integers(1, 9))
def test_batches_share_all_configurations_out(configs: int, segments: int) -> None:
    batches = Hyperopt(configs, 1, "tpe").batches(segments)
    assert sum(batches) == configs and all(batch > 0 for batch in batches)
    assert all(batch == segments for batch in batches[:-1])
    assert batches[-1] < 2 * segments


@given(st.integers(0, 99), st.integers(1, 4), st.booleans(), st.data())
def test_hyperopt_trains_nothing_twice_and_tells_all_losses(
    seed: int, segments: int, failing: bool, data: st.DataObject
) -> None:
    heard: list[Trials] = []

    def answer(trials: Trials, count: int) -> Sequence[Any]:
        heard.append(json.loads(json.dumps(list(trials))))
        return suggest(
            {"space": described(SPACE), "trials": heard[-1], "count": count, "seed": seed, "algorithm": "rand"}
        )

    done = worked(hyperopt(Hyperopt(6, 3, "rand"), segments, SPACE, answer), data, failing)
    trained = [(key, row) for stage, _ in done for key, row in stage.rows.items()]
    assert [key for key, _ in trained] == list(range(1, len(trained) + 1))
    assert len({row for _, row in trained}) == len(trained) <= 4, "'SGD' and 'sgd' are one optimizer"
    losses = [loss for _, told in done for loss in told.values()]
    for before, after in pairwise(heard):
        assert after[: len(before)] == before and len(after) > len(before)
        assert {trial["loss"] for trial in after} - {None} <= set(losses)
