"""No count of a caller is without a maximum, and no loop over one goes on when its statement is
cancelled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy import limits
from cerebro_plpy.configs.architecture import allowlist, probe_models
from cerebro_plpy.configs.json_arguments import read_json, read_lists
from cerebro_plpy.configs.params.fit_params import parse_fit_params
from cerebro_plpy.configs.run_spec import list_metric_epochs
from cerebro_plpy.configs.search_space import grid, search_arguments
from cerebro_plpy.configs.search_space.search_rules import PARAMETERS
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.limits import Poll
from cerebro_plpy.operations.fit.automl_arguments import METHODS, AutomlArguments, read_method
from cerebro_plpy.preprocessing.scoring.ensemble_selection import select_greedily
from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRow, ScoredRows
from cerebro_plpy.records import fields
from cerebro_plpy.scheduling.search.pbt import Pbt
from cerebro_plpy.trainer_client.settings import Settings

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "limits.md"
COMPILE = "optimizer='SGD(lr={})',loss='mse'"
RATES = "{'loss': ['mse'], 'optimizer': ['SGD'], 'lr': [0.001, 0.1, 'log']}"
LISTS = f"{{'loss': ['mse'], 'optimizer': ['SGD'], 'lr': {[n / 1000 for n in range(1, 1001)]}}}"
SIZES = f"{{'batch_size': {[*range(1, 101)]}}}"
TOLD = [
    ScoredRows.collect(ScoredRow("3", {}, float(number + row)) for row in range(3))
    for number in range(8)
]


class Cancelled(Exception):
    """What a cancel raises."""


def cancel_after(polls: int) -> Poll:
    numbers = count(1)

    def poll() -> None:
        if next(numbers) > polls:
            raise Cancelled

    return poll


@given(st.integers(0, 300), st.integers(1, 100), st.integers(0, 300))
def test_a_loop_over_any_number_of_items_ends_by_a_cancel(
    items: int, every: int, polls: int
) -> None:
    seen = []
    try:
        for item in limits.poll_between(range(items), cancel_after(polls), every):
            seen.append(item)
    except Cancelled:
        assert len(seen) == polls * every < items
    else:
        assert seen == [*range(items)] and items <= polls * every


LOOPS: dict[str, Callable[[Poll], object]] = {
    "random search": lambda poll: grid.random_search(
        RATES, "{}", [1], limits.CONFIGS.maximum, 1, poll=poll
    ),
    "grid": lambda poll: grid.expand_grid(LISTS, SIZES, [1], poll=poll),
    "given lists": lambda poll: grid.cross_product(
        [1], [COMPILE.format(n / 1e5) for n in range(1, 1000)], [""], None, poll
    ),
    "weights of a head": lambda poll: probe_models.draw_weights(
        1024, probe_models.Head((), 1024, "softmax"), 1, poll
    ),
    "picks": lambda poll: select_greedily(TOLD, ["mae"], limits.PICKS.maximum, poll),
}


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_loops_over_the_largest_counts_are_polled(loop: Callable[[Poll], object]) -> None:
    with pytest.raises(Cancelled):
        loop(cancel_after(3))


def test_each_count_in_json_and_in_settings_is_in_the_table() -> None:
    searches = {key for parameters in PARAMETERS.values() for key in parameters}
    methods = {key for defaults in METHODS.values() for key in defaults} - {"algorithm"}
    bounds = {search_arguments.LIVE_STATES, search_arguments.MAX_VISITS}
    assert {*search_arguments.MINIMA, *searches, *methods, *bounds} <= {*limits.PARAMETERS}
    numbers = {field.name for field in fields(Settings) if str(field.type).startswith("int")}
    assert numbers == {*limits.SETTINGS}


@pytest.mark.parametrize(
    ("search", "key"), [(name, key) for name, keys in PARAMETERS.items() for key in keys]
)
def test_counts_of_a_search_have_a_maximum(search: str, key: str) -> None:
    large = {**PARAMETERS[search], key: limits.PARAMETERS[key].maximum + 1}
    space = {"space": {"fit_params": {"batch_size": [8]}}, "configs": 2} if search == "pbt" else {}
    with pytest.raises(InvalidParameter, match=f"{key} in search_params is .* at most"):
        search_arguments.read_search_rule("module", search, json.dumps({**large, **space}), None)


@pytest.mark.parametrize("key", [search_arguments.LIVE_STATES, search_arguments.MAX_VISITS])
def test_bounds_of_a_search_have_a_maximum(key: str) -> None:
    with pytest.raises(InvalidParameter, match=f"{key} in search_params is .* at most"):
        search_arguments.read_search_rule(
            "module", "grid", json.dumps({key: limits.PARAMETERS[key].maximum + 1}), None
        )


@pytest.mark.parametrize(
    ("method", "key"), [(name, key) for name in METHODS for key in METHODS[name]]
)
def test_counts_of_automl_have_a_maximum(method: str, key: str) -> None:
    nothing: dict[str, Any] = dict.fromkeys(each.name for each in fields(AutomlArguments))
    if key != "algorithm":
        given_params = {"automl_method": method, "automl_params": f"{key}={limits.INTEGER}"}
        with pytest.raises(InvalidParameter, match=f"{key} in automl_params is .* at most"):
            read_method(AutomlArguments(**{**nothing, **given_params}))


@pytest.mark.parametrize("key", ["epochs", "steps_per_epoch", "batch_size"])
def test_counts_of_fit_parameters_have_a_maximum(key: str) -> None:
    most = limits.PARAMETERS[key].maximum
    assert getattr(parse_fit_params(f"{key}={most}"), key) == most
    with pytest.raises(InvalidParameter) as caught:
        parse_fit_params(f"{key}={most + 1}")
    assert str(most) in str(caught.value.hint)


def test_json_of_a_caller_has_a_length() -> None:
    assert read_lists("space", '{"lr": [1, 2]}') == {"lr": [1, 2]}
    with pytest.raises(InvalidParameter, match="characters of space"):
        read_json("space", " " * limits.JSON_CHARACTERS.maximum + "{}")
    with pytest.raises(InvalidParameter, match="values of lr"):
        read_lists("space", json.dumps({"a": [{"lr": [0] * (limits.LISTED_VALUES.maximum + 1)}]}))


@given(st.integers(1, 200), st.integers(1, 200))
def test_metrics_come_after_each_frequency_and_the_last_epoch(epochs: int, frequency: int) -> None:
    expected = [each for each in range(1, epochs + 1) if each % frequency == 0 or each == epochs]
    assert [*list_metric_epochs(epochs, frequency)] == expected


@given(st.integers(1, 60), st.integers(1, 60))
def test_a_population_is_evaluated_wherever_a_clone_may_end(epochs: int, interval: int) -> None:
    ends = Pbt(epochs, interval).ends
    expected = {end - begun for end in ends for begun in (0, *ends[:-1]) if begun < end}
    assert [*Pbt(epochs, interval).decision_epochs] == sorted(expected)


def test_a_population_may_have_the_most_epochs() -> None:
    """On each pair of ends there would be 10^12 steps of arithmetic."""
    assert len(Pbt(limits.EPOCHS.maximum, 1).decision_epochs) == limits.EPOCHS.maximum


def test_the_client_refuses_the_architectures_that_the_server_refuses() -> None:
    """The client exports networks of other roles, and has the trainer's list of layers by a
    link.
    """
    assert limits.NETWORK_LAYERS.maximum == allowlist.MAX_LAYERS
    assert limits.ARCHITECTURE_CHARACTERS.maximum == allowlist.MAX_CHARACTERS


def test_the_page_of_limits_has_each_maximum() -> None:
    """Of all counts that may not be as large as their type."""
    section = PAGE.read_text().partition("\n## Counts\n")[2].partition("All others")[0]
    rows = [row.split(" | ") for row in section.splitlines() if row.startswith("| `")]
    documented = {
        name: int(row[1].replace(",", ""))
        for row in rows
        for name in re.findall(r"`([\w.]+)`", row[0])
    }
    counts = {**limits.PARAMETERS, **limits.ARGUMENTS}
    assert documented == {
        name: limit.maximum for name, limit in counts.items() if limit.maximum < limits.INTEGER
    }
