"""A clone's learning rate may be given under either name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.params.literals import parse_call
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.operations.live.learning_rates import rename_rate, set_optimizer_rate

RATES = ("lr", "learning_rate")
OTHERS = st.dictionaries(st.sampled_from(["momentum", "beta_1", "nesterov"]), st.floats(0, 1))


@given(st.sampled_from([None, *RATES]), OTHERS, st.floats(1e-9, 10))
def test_the_rate_of_an_optimizer_is_replaced_and_nothing_else(
    name: str | None, others: dict[str, object], rate: float
) -> None:
    arguments = dict(others)
    if name:
        arguments[name] = 0.5
    text = f"SGD({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
    changed = set_optimizer_rate("m", text, rate)
    assert parse_call(changed) == ("SGD", {**others, "learning_rate": rate})
    assert parse_call(set_optimizer_rate("m", changed, None)) == ("SGD", others)


@given(st.sampled_from(RATES), st.sampled_from(RATES), OTHERS)
def test_both_names_are_one(name: str, wanted: str, others: dict[str, object]) -> None:
    assert rename_rate("m", {**others, name: 0.1}, wanted) == {**others, wanted: 0.1}
    assert rename_rate("m", others, wanted) == others
    with pytest.raises(InvalidParameter, match="the same"):
        rename_rate("m", {"lr": 1, "learning_rate": 2}, wanted)


def test_a_schedule_is_not_replaced() -> None:
    with pytest.raises(InvalidParameter, match="plain values") as caught:
        set_optimizer_rate("m", "Adam(learning_rate=Decay(0.1))", 0.1)
    assert caught.value.hint and "Adam(learning_rate=0.01)" in caught.value.hint
