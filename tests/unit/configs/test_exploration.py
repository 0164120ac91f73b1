"""What population based training makes of the parameters of a clone."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.params.literals import parse_call, parse_keywords
from cerebro_plpy.configs.search_space.distributions import Choices, Range
from cerebro_plpy.configs.search_space.grid import ConfigRow
from cerebro_plpy.configs.search_space.perturbation import (
    RESAMPLE_PROBABILITY,
    perturb_config,
    perturb_value,
)
from cerebro_plpy.configs.search_space.space import make_space

SEEDS = st.integers(0, 999).map(Random)
RANGES = st.builds(
    Range,
    st.sampled_from([1, 2, 5]),
    st.sampled_from([8, 20]),
    st.sampled_from(["linear", "log"]),
    st.booleans(),
)


@given(RANGES, st.integers(1, 20), SEEDS)
def test_a_number_stays_within_its_range(draw: Range, value: int, random: Random) -> None:
    found = perturb_value(draw, value, random)
    assert (
        isinstance(found, int if draw.is_integer else (int, float))
        and draw.low <= found <= draw.high
    )


@given(st.integers(0, 4), st.integers(0, 999))
def test_a_choice_moves_to_a_neighbour_unless_it_is_drawn_anew(place: int, seed: int) -> None:
    values = ("a", "b", "c", "d", "e")
    found = values.index(str(perturb_value(Choices(values), values[place], Random(seed))))
    assert Random(seed).random() < RESAMPLE_PROBABILITY or abs(found - place) == (
        1 if 0 < place < 4 else found != place
    )


@given(SEEDS)
def test_nothing_changes_but_what_the_space_names(random: Random) -> None:
    space = make_space(
        {"optimizer": ["SGD"], "lr": [0.001, 0.1, "log"]}, {"batch_size": [8, 16]}, [7], None
    )
    row = ConfigRow(
        3,
        "optimizer='SGD(learning_rate=0.01,momentum=0.9)',loss='mse',metrics=['mae']",
        "batch_size=8,epochs=2",
    )
    found = perturb_config(space, row, random)
    compiled = parse_keywords(found.compile_params)
    name, arguments = parse_call(str(compiled["optimizer"]))
    assert (found.model_id, name, arguments["momentum"], compiled["loss"], compiled["metrics"]) == (
        3,
        "SGD",
        0.9,
        "mse",
        ["mae"],
    )
    assert arguments.keys() == {"momentum", "lr"} and 0.001 <= float(str(arguments["lr"])) <= 0.1
    fitted = parse_keywords(found.fit_params)
    assert fitted["epochs"] == 2 and fitted["batch_size"] in (8, 16)
