"""The rule of early stopping decides as Keras' EarlyStopping, whatever the values are."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trials import trials

from cerebro_plpy.scheduling.search.early_stopping_rule import EarlyStoppingRule

# What float32 tells apart as float64 does, in which Keras compares.
NUMBERS = st.integers(-8, 8).map(lambda n: n / 4)
RULES = st.builds(
    EarlyStoppingRule,
    patience=st.integers(0, 4),
    min_delta=st.integers(0, 4).map(lambda n: n / 4),
    baseline=st.none() | NUMBERS,
    start_from_epoch=st.integers(0, 4),
    larger_is_better=st.booleans(),
)


@pytest.fixture(scope="module")
def early_stopping() -> type:
    return pytest.importorskip("keras").callbacks.EarlyStopping  # type: ignore[no-any-return]


@trials(100)
@given(rule=RULES, values=st.lists(NUMBERS, max_size=12))
def test_it_decides_as_keras_does(
    early_stopping: type, rule: EarlyStoppingRule, values: list[float]
) -> None:
    keras = early_stopping(
        monitor="loss", mode="max" if rule.larger_is_better else "min", patience=rule.patience,
        min_delta=rule.min_delta,
        baseline=rule.baseline, start_from_epoch=rule.start_from_epoch, restore_best_weights=True,
    )  # fmt: skip
    model = SimpleNamespace(stop_training=False, get_weights=list, set_weights=list)
    keras.set_model(model)
    keras.on_train_begin()
    stopped = None
    for epoch, value in enumerate(values):
        keras.on_epoch_end(epoch, {"loss": value})
        if model.stop_training:
            stopped = epoch + 1
            break
    best = None if keras.best is None else keras.best_epoch + 1
    assert rule.judge(enumerate(values, 1))[:2] == (best, stopped)


@trials(100)
@given(rule=RULES, values=st.lists(NUMBERS, max_size=12), others=st.lists(NUMBERS, max_size=12))
def test_what_is_certain_to_go_on_does_so_whatever_the_next_values_are(
    rule: EarlyStoppingRule, values: list[float], others: list[float]
) -> None:
    found = rule.judge(enumerate(values, 1))
    after = rule.judge(enumerate([*values, *others[: found.safe_values]], 1))
    assert found.stopped_epoch is not None or after.stopped_epoch is None
    assert found.stopped_epoch is None or found.safe_values == 0


@trials(100)
@given(rule=RULES, values=st.lists(NUMBERS | st.just(float("nan")), max_size=12))
def test_more_values_change_nothing_of_what_was_decided(
    rule: EarlyStoppingRule, values: list[float]
) -> None:
    found = [rule.judge(enumerate(values[:count], 1)) for count in range(len(values) + 1)]
    stopped = next((each for each in found if each.stopped_epoch), None)
    assert all(each == stopped for each in found if each.stopped_epoch)
    assert stopped is None or found[-1] == stopped
    assert all(
        each.best_epoch is None or values[each.best_epoch - 1] == values[each.best_epoch - 1]
        for each in found
    )


@given(
    st.lists(st.tuples(st.sampled_from((0.0, 0.5, 1.0)), st.floats(0.0, 1.0)), min_size=1),
    st.integers(1, 5),
    st.booleans(),
)
def test_of_equal_values_the_one_with_the_least_loss_is_the_best(
    pairs: list[tuple[float, float]], patience: int, larger: bool
) -> None:
    rule = EarlyStoppingRule(patience=patience, larger_is_better=larger)
    values = [(epoch, value) for epoch, (value, _) in enumerate(pairs, 1)]
    losses = {epoch: loss for epoch, (_, loss) in enumerate(pairs, 1)}
    status = rule.judge(values, losses)
    last = status.stopped_epoch or len(pairs)
    seen = [(-value if larger else value, losses[epoch]) for epoch, value in values[:last]]
    assert status.best_epoch is not None
    assert seen[status.best_epoch - 1] == min(seen)
