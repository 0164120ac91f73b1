"""Grids, random search and given lists: which rows they make, in which order, and what they
refuse.
"""

from __future__ import annotations

import math
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.fit_params import parse_fit_params
from cerebro_plpy.configs.search_space.distributions import Range
from cerebro_plpy.configs.search_space.grid import (
    ConfigRow,
    cross_product,
    drop_duplicates,
    expand_grid,
    generate_configs,
    random_search,
)
from cerebro_plpy.errors import CerebroError, InvalidParameter, InvalidText, NullNotAllowed

FAMILIES = """{
    'optimizer_params_list': [
        {'optimizer': ['adam'], 'lr': [0.001, 0.01]},
        {'optimizer': ['sgd', 'adamw'], 'lr': [0.1]} ],
    'metrics': ['accuracy'], 'loss': ['categorical_crossentropy'] }"""
FIT = "{'batch_size': [8, 16], 'epochs': [1]}"
RANDOM = """{'loss': ['mse', 'mae'], 'optimizer_params_list': [
    {'optimizer': ['Adam'], 'lr': [0.0001, 0.1, 'log']},
    {'optimizer': ['SGD'], 'lr': [0.1, 0.5, 'linear'], 'momentum': [0.5, 0.999,
        'log_near_one']}]}"""


def test_the_grid_in_its_order_and_wording() -> None:
    rows = generate_configs(FAMILIES, FIT, [1, 2], "g")
    optimizers = ["Adam(lr=0.001)", "Adam(lr=0.01)", "SGD(lr=0.1)", "AdamW(lr=0.1)"]
    assert rows == tuple(
        ConfigRow(
            model,
            f"optimizer='{optimizer}',metrics=['accuracy'],loss='categorical_crossentropy'",
            f"batch_size={size},epochs=1",
        )
        for optimizer, size, model in product(optimizers, (8, 16), (1, 2))
    )


def test_keys_vary_in_their_order_in_the_dict() -> None:
    rows = expand_grid("{'loss': ['mse', 'mae'], 'lr': [0.1, 0.2]}", None, [7])
    assert [row.compile_params for row in rows] == [
        f"optimizer='RMSprop(lr={rate})',loss='{loss}'"
        for loss in ("mse", "mae")
        for rate in (0.1, 0.2)
    ]
    assert {row.fit_params for row in rows} == {""}


def test_the_default_optimizer() -> None:
    (row,) = expand_grid("{'loss': ['mse']}", "{}", [1])
    assert row == ConfigRow(1, "optimizer='RMSprop()',loss='mse'", "")


def test_metrics_alone_and_in_lists() -> None:
    rows = expand_grid("{'loss': ['mse'], 'metrics': [['mae', 'mse'], 'mae', []]}", None, [1])
    assert [parse_compile_params(row.compile_params).metrics_as_written for row in rows] == [
        ("mae", "mse"),
        ("mae",),
        (),
    ]


def test_spaces_in_values_stay() -> None:
    (row,) = expand_grid("{'loss': ['mse'], 'name': ['my own, optimizer']}", None, [1])
    assert parse_compile_params(row.compile_params).optimizer.config == {
        "name": "my own, optimizer"
    }


def test_equal_combinations_come_once() -> None:
    overlapping = (
        "{'loss': ['mse'], 'optimizer_params_list': [{'optimizer': ['SGD']}, {'optimizer': "
        "['sgd']}]}"
    )
    assert len(expand_grid(overlapping, "{'epochs': [1, 1]}", [1, 1])) == 1


@given(
    st.lists(st.sampled_from(["mse", "mae", "bce"]), min_size=1, max_size=3),
    st.lists(st.floats(0, 1), min_size=1, max_size=4),
    st.lists(st.integers(1, 99), min_size=1, max_size=4),
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
)
def test_a_grid_is_the_product_of_its_distinct_values(
    losses: list[str], rates: list[float], sizes: list[int], models: list[int]
) -> None:
    rows = expand_grid(f"{{'loss': {losses}, 'lr': {rates}}}", f"{{'batch_size': {sizes}}}", models)
    distinct_rates = len({repr(rate) for rate in rates})
    assert len(rows) == len(set(losses)) * distinct_rates * len(set(sizes)) * len(set(models))
    assert len(set(rows)) == len(rows)


@pytest.mark.parametrize("search_type", ["random", "rand", "r", "Random "])
def test_random_search_makes_what_was_asked(search_type: str) -> None:
    rows = generate_configs(RANDOM, FIT, [1, 2], search_type, 40, 0)
    assert len(set(rows)) == len(rows) == 40
    for row in rows:
        parse_fit_params(row.fit_params)
        optimizer = parse_compile_params(row.compile_params).optimizer
        rate = optimizer.config["learning_rate"]
        assert isinstance(rate, float)
        if optimizer.class_name == "Adam":
            assert 0.0001 <= rate <= 0.1
        else:
            momentum = optimizer.config["momentum"]
            assert isinstance(momentum, float)
            assert 0.1 <= rate <= 0.5 <= momentum <= 0.999


@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1, -5])
def test_a_random_state_repeats_its_rows(seed: int) -> None:
    assert random_search(RANDOM, FIT, [1], 10, seed) == random_search(RANDOM, FIT, [1], 10, seed)


def test_random_states_differ_also_zero_and_none() -> None:
    draws = [random_search(RANDOM, FIT, [1], 10, seed) for seed in (0, 1, None, None)]
    assert len(set(draws)) == 4


def test_parameters_are_drawn_independently() -> None:
    grid = (
        "{'loss': ['mse'], 'beta_1': [0, 1, 'linear'], 'optimizer': ['Adam'], 'beta_2': [0, 1, "
        "'linear']}"
    )
    configs = [
        parse_compile_params(row.compile_params).optimizer.config
        for row in random_search(grid, None, [1], 400, 3)
    ]
    halves = [
        tuple(float(str(config[name])) > 0.5 for name in ("beta_1", "beta_2")) for config in configs
    ]
    assert all(60 < halves.count(half) < 140 for half in product((False, True), repeat=2))


def test_a_finite_space_is_exhausted_but_not_repeated() -> None:
    grid, fit = "{'loss': ['mse', 'mae']}", "{'batch_size': [4, 6, 'log'], 'epochs': [1, 2]}"
    rows = random_search(grid, fit, [1], 12, 0)
    assert len(set(rows)) == 12
    with pytest.raises(InvalidParameter, match="holds 12 different"):
        random_search(grid, fit, [1], 13, 0)


def test_overlapping_families_are_counted_once() -> None:
    grid = "{'loss': ['mse'], 'optimizer_params_list': [{'lr': [0.1, 0.2]}, {'lr': [0.2, 0.3]}]}"
    assert len(random_search(grid, None, [1], 3, 0)) == 3
    with pytest.raises(InvalidParameter, match="holds 3 different"):
        random_search(grid, None, [1], 4, 0)
    equal = "{'loss': ['mse'], 'optimizer_params_list': [{'lr': [0.1, 0.2]}, {'lr': [0.2, 0.1]}]}"
    with pytest.raises(InvalidParameter, match="holds 2 different"):
        random_search(equal, None, [1], 3, 0)


BOUNDS = (
    st.tuples(st.floats(1e-6, 0.999), st.floats(1e-6, 0.999))
    .map(sorted)
    .filter(lambda b: b[0] < b[1])
)


@given(BOUNDS, st.sampled_from(["linear", "log", "log_near_one"]), st.integers())
def test_draws_stay_within_their_bounds(bounds: list[float], distribution: str, seed: int) -> None:
    low, high = bounds
    value = Range(low, high, distribution).draw(Random(seed))
    assert isinstance(value, float) and low <= value <= high


@pytest.mark.parametrize(
    ("distribution", "middle"),
    [("linear", 0.5005), ("log", math.sqrt(0.001)), ("log_near_one", None)],
)
def test_the_median_of_a_distribution(distribution: str, middle: float | None) -> None:
    low, high = (0.001, 1.0) if middle else (0.0, 0.999)
    expected = middle if middle else 1 - math.sqrt(0.001)
    random = Random(0)
    below = sum(
        float(str(Range(low, high, distribution).draw(random))) < expected for _ in range(2000)
    )
    assert 900 < below < 1100


@pytest.mark.parametrize("distribution", ["linear", "log"])
def test_whole_numbers_are_drawn_as_such(distribution: str) -> None:
    random = Random(1)
    drawn = {Range(8, 12, distribution, is_integer=True).draw(random) for _ in range(300)}
    assert drawn == {8, 9, 10, 11, 12}
    assert all(type(value) is int for value in drawn)


REFUSED: list[tuple[str, str, str, int | None, type[CerebroError], str]] = [
    (
        "{'loss': ['mse']",
        "{}",
        "grid",
        None,
        InvalidText,
        "Invalid syntax in 'compile_params_dict'",
    ),
    ("['mse']", "{}", "grid", None, InvalidText, "Invalid syntax in 'compile_params_dict'"),
    (
        "{'loss': [open('x')]}",
        "{}",
        "grid",
        None,
        InvalidText,
        "Invalid syntax in 'compile_params_dict'",
    ),
    ("{'loss': ['mse'], 'loss': ['mae']}", "{}", "grid", None, InvalidText, "given twice"),
    ("{1: ['mse']}", "{}", "grid", None, InvalidText, "a key that is not text"),
    ("{**{}}", "{}", "grid", None, InvalidText, "a key that is not text"),
    (
        "{'loss': ['mse']}",
        "{'epochs': ",
        "grid",
        None,
        InvalidText,
        "Invalid syntax in 'fit_params_dict'",
    ),
    (
        "{'loss': 'mse'}",
        "{}",
        "grid",
        None,
        InvalidParameter,
        "DL: compile param values must be specified in a list",
    ),
    (
        "{'loss': ['mse']}",
        "{'epochs': 1}",
        "grid",
        None,
        InvalidParameter,
        "DL: fit param values must be specified in a list",
    ),
    ("{'loss': []}", "{}", "grid", None, InvalidParameter, "the list for 'loss' is empty"),
    (
        "{'loss': ['mse'], 'lr': []}",
        "{}",
        "grid",
        None,
        InvalidParameter,
        "the list for 'lr' is empty",
    ),
    (
        "{'loss': ['mse']}",
        "{}",
        "both",
        None,
        InvalidParameter,
        "DL: 'search_type' must be either 'grid' or 'random'",
    ),
    ("{'loss': ['mse']}", "{}", "", None, InvalidParameter, "DL: 'search_type' must be either"),
    (
        "{'loss': ['mse']}",
        "{}",
        "grid",
        3,
        InvalidParameter,
        "DL: 'num_configs' and 'random_state' must be NULL for grid search",
    ),
    (
        "{'loss': ['mse'], 'lr': [1, 2, 'log']}",
        "{}",
        "grid",
        None,
        InvalidParameter,
        "DL: Cannot search from a distribution with grid search",
    ),
    (
        "{'loss': ['mse']}",
        "{'batch_size': [1, 2, 'log']}",
        "grid",
        None,
        InvalidParameter,
        "DL: Cannot search from a distribution with grid search",
    ),
    (
        "{'loss': ['mse']}",
        "{}",
        "random",
        None,
        InvalidParameter,
        "DL: 'num_configs' cannot be NULL and needs to be a natural number for random search",
    ),
    ("{'loss': ['mse']}", "{}", "random", 0, InvalidParameter, "DL: 'num_configs' cannot be NULL"),
    ("{'loss': ['mse']}", "{}", "random", 10**9, InvalidParameter, "1000000000 configurations"),
    (
        "{'loss': ['mse'], 'lr': [1, 'log']}",
        "{}",
        "random",
        1,
        InvalidParameter,
        "DL: 'lr' should have exactly 3 elements if picking from a distribution",
    ),
    (
        "{'loss': ['mse'], 'lr': [1, 2, 'lg']}",
        "{}",
        "random",
        1,
        InvalidParameter,
        "DL: Please choose a valid distribution type for 'lr': ['linear', 'log', 'log_near_one']",
    ),
    (
        "{'loss': ['mse'], 'lr': [2, 1, 'log']}",
        "{}",
        "random",
        1,
        InvalidParameter,
        "DL: 'lr' should be of the format [lower_bound, upper_bound, distribution_type]",
    ),
    (
        "{'loss': ['mse'], 'lr': [0, 1, 'log']}",
        "{}",
        "random",
        1,
        InvalidParameter,
        "DL: 'lr' should be of the format",
    ),
    (
        "{'loss': ['mse'], 'lr': [0, 1, 'log_near_one']}",
        "{}",
        "random",
        1,
        InvalidParameter,
        "DL: 'lr' should be of the format",
    ),
    (
        "{'loss': ['mse'], 'lr': [None, 1, 'linear']}",
        "{}",
        "random",
        1,
        InvalidParameter,
        "DL: 'lr' should be of the format",
    ),
    (
        "{'loss': ['mse']}",
        "{'epochs': [1, 2.5, 'linear']}",
        "random",
        1,
        InvalidParameter,
        "DL: 'epochs' should be of the format",
    ),
    (
        "{'loss': ['mse'], 'lr': [0.1], 'optimizer_params_list': [{}]}",
        "{}",
        "grid",
        None,
        InvalidParameter,
        "DL: 'optimizer_params_list' key should only contain 'optimizer' and/or optimizer related "
        "params",
    ),
    (
        "{'optimizer_params_list': [{'loss': ['mse']}]}",
        "{}",
        "grid",
        None,
        InvalidParameter,
        "DL: 'optimizer_params_list' key should only contain 'optimizer' and/or optimizer related "
        "params",
    ),
    (
        "{'loss': ['mse'], 'optimizer_params_list': []}",
        "{}",
        "grid",
        None,
        InvalidParameter,
        "list of dicts",
    ),
    (
        "{'loss': ['mse'], 'optimizr': ['SGD']}",
        "{}",
        "grid",
        None,
        InvalidParameter,
        "optimizr is not currently accepted as a parameter.",
    ),
    (
        "{'loss': ['mse'], 'optimizer': ['foo']}",
        "{}",
        "grid",
        None,
        InvalidParameter,
        "model_keras error: invalid optimizer name: foo",
    ),
    ("{'loss': ['mes']}", "{}", "grid", None, InvalidParameter, "Compile param check failed for: "),
    (
        "{'optimizer': ['SGD']}",
        "{}",
        "grid",
        None,
        InvalidParameter,
        "loss is a required parameter for compile",
    ),
    (
        "{'loss': ['mse'], 'optimizer': ['SGD'], 'rho': [1]}",
        "{}",
        "grid",
        None,
        InvalidParameter,
        "rho is not currently accepted as a parameter of SGD.",
    ),
    (
        "{'loss': ['mse']}",
        "{'epochs': [0]}",
        "grid",
        None,
        InvalidParameter,
        "Fit param check failed for: ",
    ),
    (
        "{'loss': ['mse']}",
        f"{{'batch_size': {[*range(1, 1000)]}, 'epochs': {[*range(1, 200)]}}}",
        "grid",
        None,
        InvalidParameter,
        "198801 configurations",
    ),
]


@pytest.mark.parametrize(
    ("compile_grid", "fit_grid", "search_type", "num_configs", "error", "message"), REFUSED
)
def test_refused(
    compile_grid: str,
    fit_grid: str,
    search_type: str,
    num_configs: int | None,
    error: type[CerebroError],
    message: str,
) -> None:
    with pytest.raises(error) as caught:
        generate_configs(compile_grid, fit_grid, [1], search_type, num_configs)
    assert message in caught.value.message


def test_no_model_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="model_id_list is empty"):
        expand_grid("{'loss': ['mse']}", "{}", [])
    with pytest.raises(InvalidParameter, match="model_id_list is empty"):
        cross_product([], ["optimizer='SGD',loss='mse'"], [""])


def test_given_lists_collapse_what_differs_in_spaces_and_order_only() -> None:
    compile_list = [
        "loss='mse',optimizer='Adam(lr=0.1)'",
        " optimizer='Adam( lr=0.1 )', loss='mse'",
    ]
    fit_list = ["epochs=1,batch_size=4", "batch_size=4, epochs=1", None, "epochs=2,batch_size=4"]
    assert cross_product([3, 1, 3], compile_list, fit_list) == tuple(
        ConfigRow(model, "loss='mse',optimizer='Adam(lr=0.1)'", fit)
        for model, fit in product((3, 1), ("epochs=1,batch_size=4", "", "epochs=2,batch_size=4"))
    )


def test_given_lists_must_be_there_and_right() -> None:
    with pytest.raises(NullNotAllowed, match="compile_params_list cannot be NULL"):
        cross_product([1], [None], [""])
    with pytest.raises(NullNotAllowed, match="fit_params_list cannot be NULL"):
        cross_product([1], ["optimizer='SGD',loss='mse'"], [])
    with pytest.raises(
        InvalidParameter, match=r"^Compile param check failed for: .*Loss function x is not"
    ):
        cross_product([1], ["optimizer='SGD',loss='x'"], [""])
    with pytest.raises(InvalidParameter, match=r"^Fit param check failed for: .*epochs=0"):
        cross_product([1], ["optimizer='SGD',loss='mse'"], ["epochs=0"])


def test_rows_of_an_existing_table_are_not_repeated_even_odd_ones() -> None:
    existing = [
        ConfigRow(1, "loss='mse', optimizer='SGD'", ""),
        ConfigRow(1, "someone's (own text", ""),
    ]
    new = [
        ConfigRow(1, "optimizer='sgd()',loss='mse'", ""),
        existing[1],
        ConfigRow(2, existing[0][1], ""),
    ]
    assert list(drop_duplicates(new, existing)) == [new[2]]
