"""Boosted trees as a learner: what any table grows to, whatever was kept, lost or restored."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache, partial
from itertools import count
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import tree_tables
from hypothesis import given
from hypothesis import strategies as st
from tree_tables import COLUMNS, make_buffer, make_grown, make_program, units_and_buffers

from cerebro_trainer.boosting import growing, library
from cerebro_trainer.boosting.columns import ColumnReader
from cerebro_trainer.boosting.family import BoostedTrees
from cerebro_trainer.boosting.growing import make_seed
from cerebro_trainer.boosting.model.model_text import write_model
from cerebro_trainer.boosting.row_memory import RowMemory
from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.errors import ConfigError, DamagedState, RequestError
from cerebro_trainer.state import readers, serialization
from cerebro_trainer.wire import streams
from cerebro_trainer.wire.frames import Arrays

grown = cache(make_grown)
UNITS = pytest.mark.parametrize("units", (1, 2, 3))


def is_equal(first: Arrays, second: Arrays) -> bool:
    """Whether arrays have the same bits."""
    return all(a.tobytes() == b.tobytes() for a, b in zip(first, second, strict=True))


@UNITS
def test_trees_learn(units: int) -> None:
    learner, buffers = grown(units)
    learner.write(learner.create_initial_state(0))
    losses = tree_tables.grow(learner, buffers)
    assert losses == sorted(losses, key=lambda loss: -(loss or 0)) and learner.step == 12
    results = learner.compute_results(learner.evaluate(buffers[0]))
    blank = learner.compute_results(BoostedTrees(make_program(units), 1).evaluate(buffers[0]))
    assert float(str(results["loss"])) < 0.8 * float(str(blank["loss"]))


@given(units_and_buffers(), st.integers(0, 3))
def test_any_rows_grow_to_a_state_that_can_be_read(
    drawn: tuple[int, list[Buffer]], visits: int
) -> None:
    """Few rows, one class, constant columns: the state is whole, predictions are finite, and a
    learner that continues from the bytes has the bits of one that never stopped.
    """
    units, buffers = drawn
    learner = BoostedTrees(make_program(units), 1)
    for visit in range(3):
        if visit == visits:
            restored = BoostedTrees(make_program(units), 1)
            restored.write([np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape)
                            for a in learner.read()])  # fmt: skip
            assert is_equal(restored.read(), learner.read())
            learner = restored
        learner.collect("a", buffers)
        learner.grow(["a"], 4, make_seed(visit))
    whole = BoostedTrees(make_program(units), 1)
    tree_tables.grow(whole, buffers, 0)
    for visit in range(3):
        whole.collect("a", buffers)
        whole.grow(["a"], 4, make_seed(visit))
    assert is_equal(whole.read(), learner.read())
    for buffer in buffers:
        (outputs,) = learner.predict(buffer.inputs)
        assert outputs.shape == (buffer.rows, units) and np.isfinite(outputs).all()
        assert learner.evaluate(buffer) == whole.evaluate(buffer)


@UNITS
def test_threads_do_not_matter(units: int) -> None:
    other, _ = make_grown(units, 100, threads=2)
    learner, _ = make_grown(units, 100)
    assert is_equal(learner.read(), other.read())


@UNITS
def test_sums_of_buffers_are_those_of_their_rows(units: int) -> None:
    """A score that is advanced epoch by epoch, and one that is computed at once, are equal."""
    learner, buffers = make_grown(units)
    advanced = [learner.evaluate(buffer) for buffer in buffers]
    fresh = BoostedTrees(make_program(units), 1)
    fresh.write(learner.read())
    assert [fresh.evaluate(buffer) for buffer in buffers] == advanced
    both = fresh.zero_sums()
    for sums in advanced:
        both = [
            [a + b for a, b in zip(*pair, strict=True)] for pair in zip(both, sums, strict=True)
        ]
    outputs = np.concatenate([learner.predict(buffer.inputs)[0] for buffer in buffers])
    target = np.concatenate([buffer.targets[0] for buffer in buffers])
    results = learner.compute_results(both)
    if units == 1:
        loss = float(np.square(outputs.astype(np.float64) - target).mean())
        metric = math.sqrt(loss)
    else:
        loss = float(-np.log((outputs * target).sum(axis=1)).mean())
        metric = float((outputs.argmax(axis=1) == target.argmax(axis=1)).mean())
    metrics: Any = results["metrics"]
    # Outputs are single precision; sums are not.
    assert results["loss"] == pytest.approx(loss, rel=1e-6)
    assert metrics[0] == pytest.approx(metric, rel=1e-6)
    assert learner.compute_results(learner.zero_sums()) == {"loss": None, "metrics": [None]}


@UNITS
@pytest.mark.parametrize("rows", [1, 400, 3000])
def test_rows_held_back_have_the_same_scores_after_each_epoch_and_at_once(
    units: int, rows: int
) -> None:
    """After an epoch LightGBM scores them by the trees that it has just grown, else numpy does."""
    buffers = [make_buffer(300, units, seed=3), make_buffer(100, units, seed=4)]
    held_back = make_buffer(rows, units, seed=9)
    learner = BoostedTrees(make_program(units), 1)
    for visit in range(3):
        learner.collect("a", buffers)
        learner.grow(["a"], 4, make_seed(visit))
        fresh = BoostedTrees(make_program(units), 1)
        fresh.write(learner.read())
        for buffer in (held_back, *buffers):
            assert learner.evaluate(buffer) == fresh.evaluate(buffer)


CONFIGS = st.tuples(
    st.fixed_dictionaries(
        {
            "learning_rate": st.sampled_from((0.1, 0.3)),
            "leaves": st.sampled_from((3, 6)),
            "min_rows": st.sampled_from((1, 9)),
            "l2": st.sampled_from((0.0, 5.0)),
            "row_share": st.sampled_from((0.5, 1.0)),
            "column_share": st.sampled_from((0.5, 1.0)),
            "max_bins": st.sampled_from((31, 63)),
            "category_levels": st.sampled_from((0, 3, 20)),
            "splits": st.sampled_from(("best", "random")),
        }
    ),
    st.sampled_from((None, (1.0, 1.0), (1.0, 9.0))),
)
"""Values of configs, each with weights of classes."""


@given(
    st.lists(CONFIGS, min_size=2, max_size=3),
    st.lists(st.integers(0, 2), min_size=2, max_size=6),
)
def test_configs_that_share_buffers_grow_as_each_does_alone(
    configs: list[tuple[dict[str, Any], tuple[float, ...] | None]], order: list[int]
) -> None:
    """Rows in bins and scores are kept for all of them, but nothing of a config is."""
    memory = RowMemory()
    buffers = [make_buffer(120, 2, seed=3), make_buffer(50, 2, seed=4)]
    shared = [BoostedTrees(make_program(2, **values), 1, memory) for values, _ in configs]
    alone = [BoostedTrees(make_program(2, **values), 1) for values, _ in configs]
    for epoch, number in enumerate(order):
        position = number % len(configs)
        weights = configs[position][1]
        class_weight = None if weights is None else np.array(weights, np.float32)
        for learners in (shared, alone):
            learners[position].collect("a", buffers, class_weight)
            learners[position].grow(["a"], 4, make_seed(epoch))
    for first, second in zip(shared, alone, strict=True):
        assert is_equal(first.read(), second.read())
        assert list(map(first.evaluate, buffers)) == list(map(second.evaluate, buffers))


@given(st.integers(1, 6), st.integers(1, 6))
def test_a_growth_that_time_ends_has_the_first_rounds(rounds: int, moments: int) -> None:
    """Each look at the clock is a moment later, and a replay grows as many rounds."""
    buffers = [make_buffer(200, seed=3)]
    states = []
    for planned, until in ((rounds, float(moments)), (min(rounds, moments), math.inf)):
        learner = BoostedTrees(make_program(), 1)
        clock = count(1.0)
        with patch.object(growing, "time", SimpleNamespace(time=partial(next, clock))):
            learner.collect("a", buffers)
            learner.grow(["a"], planned, 5, until)
        is_cut = math.isfinite(until) and moments < rounds
        assert learner.cut_rounds == (moments if is_cut else None)
        states.append(learner.read())
    assert is_equal(*states)


def test_a_cut_into_datasets_does_not_matter_but_their_order_does() -> None:
    buffers = [make_buffer(200, seed=3), make_buffer(90, seed=4)]
    states = []
    for parts in ({"a": buffers}, {"a": buffers[:1], "b": buffers[1:]},
                  {"a": buffers[1:], "b": buffers[:1]}):  # fmt: skip
        learner = BoostedTrees(make_program(), 1)
        for key, part in parts.items():
            learner.collect(key, part)
        learner.grow([*parts], 4, 5)
        states.append(learner.read())
    assert is_equal(states[0], states[1]) and not is_equal(states[0], states[2])
    with pytest.raises(RequestError, match="dataset 'a' are not collected"):
        learner.grow(["a"], 4, 5)


def test_weights_of_rows_and_classes_count() -> None:
    plain, weighted = make_buffer(300, 2, seed=5), make_buffer(300, 2, seed=5, weighted=True)
    losses = []
    for buffer, class_weight in ((plain, None), (weighted, None), (plain, np.array([1, 9], "f4"))):
        learner = BoostedTrees(make_program(2), 1)
        learner.collect("a", [buffer], class_weight)
        losses.append(learner.grow(["a"], 4, 5))
        (outputs,) = learner.predict(buffer.inputs)
        if class_weight is not None:
            assert outputs[:, 1].mean() > plain.targets[0][:, 1].mean() + 0.1
    assert len(set(losses)) == 3


def test_few_codes_are_split_one_by_one_and_many_by_sets() -> None:
    learner, _ = make_grown(rows=2000, category_levels=39)
    sizes: dict[int, set[int]] = {4: set(), 5: set()}
    for position in range(learner.forest.size):
        tree = learner.forest.get_tree(position)
        for node in np.flatnonzero(tree.decisions & 1):
            bits = sum(int(word).bit_count() for word in tree.sets[node])
            sizes[int(tree.features[node])].add(bits)
    assert sizes[4] == {1} and max(sizes[5]) > 1


def test_a_state_has_room_for_its_trees_only() -> None:
    learner, buffers = make_grown()
    assert learner.step == learner.spec.trees == 12
    before = learner.read()
    learner.collect("a", buffers)
    loss = learner.grow(["a"], 4, 9)
    assert loss is not None and is_equal(before, learner.read())


def test_a_state_goes_through_bytes() -> None:
    learner, buffers = make_grown(3)
    header = serialization.build_header(learner.layout, serialization.Progress(learner.step, 3))
    chunks = serialization.dump(learner.read(), learner.layout, header, 1000)
    data = b"".join(b"".join(chunk) for chunk in chunks)
    for read in (readers.read_state, readers.read_weights):
        other = BoostedTrees(make_program(3), 1)
        reader = streams.start_reader(read(other.layout, other.assign, lambda origin: None))
        for begin in range(0, len(data), 777):
            reader.send(memoryview(data[begin : begin + 777]))
        streams.finish_reader(reader)
        assert is_equal(other.read(), learner.read())
        assert other.evaluate(buffers[0]) == learner.evaluate(buffers[0])


def weigh_first(buffer: Buffer) -> np.ndarray:
    """Return weights of one unit of each row."""
    return np.ones((buffer.rows, 1))


def test_a_wiped_learner_has_nothing_left() -> None:
    learner, buffers = make_grown()
    learner.collect("a", buffers)
    learner.wipe()
    assert all(not array.any() for array in learner.read())
    with pytest.raises(RequestError, match="not collected"):
        learner.grow(["a"], 1, 1)


def test_a_damaged_state_is_refused_when_it_is_used() -> None:
    learner, buffers = make_grown()
    values = [array.copy() for array in learner.read()]
    values[9][0, 0] = np.nan
    learner.write(values)
    for use in (
        learner.read,
        lambda: learner.evaluate(buffers[0]),
        lambda: learner.predict(buffers[0].inputs),
        learner.check_state,
        lambda: learner.attribute(buffers[0].inputs, COLUMNS, weigh_first(buffers[0])),
        lambda: learner.predict_baseline(buffers[0].inputs),
    ):
        with pytest.raises(DamagedState, match="leaf is not finite"):
            use()


@UNITS
def test_contributions_add_up_to_what_the_output_gains(units: int) -> None:
    learner, buffers = grown(units)
    inputs = [array[:40] for array in buffers[0].inputs]
    (outputs,) = learner.predict(inputs)
    weights = np.random.default_rng(1).normal(size=outputs.shape)
    values = learner.attribute(inputs, COLUMNS, weights)
    assert values.shape == (40, len(COLUMNS))
    gain = ((outputs - learner.predict_baseline(inputs)) * weights).sum(axis=1)
    np.testing.assert_allclose(values.sum(axis=1), gain, atol=1e-5)
    assert not values[:, [2, 7]].any() and values[:, [0, 4]].all()


def test_too_many_rows_are_not_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, buffers = make_grown()
    monkeypatch.setattr("cerebro_trainer.boosting.contributions.MAX_WORK", 1000)
    with pytest.raises(ConfigError, match="too long to explain by 12 trees") as caught:
        learner.attribute(buffers[0].inputs, COLUMNS, weigh_first(buffers[0]))
    assert caught.value.sqlstate == "54000"


def test_without_lightgbm_trees_predict_but_do_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, buffers = make_grown()
    (expected,) = learner.predict(buffers[0].inputs)
    monkeypatch.setattr(library, "_import", lambda: None)
    other = BoostedTrees(make_program(), 1)
    other.write(learner.read())
    monkeypatch.setattr("cerebro_trainer.boosting.family.MIN_STEPS_TO_LOAD", 0)
    assert is_equal(other.predict(buffers[0].inputs), [expected])
    other.collect("a", [make_buffer(50)])
    fresh = BoostedTrees(make_program(), 1)
    fresh.collect("a", buffers)
    with pytest.raises(ConfigError, match="LightGBM") as caught:
        fresh.grow(["a"], 1, 1)
    assert caught.value.sqlstate == "0A000" and "pip install" in str(caught.value.hint)


def make_counts(rows: int, seed: int) -> Buffer:
    """Return rows with counts whose means are exponentials of a sum, in steps of a deviation."""
    buffer = make_buffer(rows, seed=seed)
    generator = np.random.default_rng(seed)
    counts = generator.poisson(np.exp(buffer.targets[0].clip(-3, 3))).clip(max=60)
    return replace(buffer, targets=((counts / 4 - 0.5).astype(np.float32),))


COUNTED: dict[str, Any] = {"low": -0.5, "high": 14.5, "link": "log"}


@cache
def grow_counts() -> tuple[BoostedTrees, list[Buffer]]:
    """Return trees that predict by logarithms, and the buffers that they have grown over."""
    learner = BoostedTrees(make_program(trees=60, **COUNTED), 1)
    buffers = [make_counts(400, seed) for seed in (1, 2)]
    tree_tables.grow(learner, buffers, rounds=20)
    return learner, buffers


def test_logarithms_are_those_of_lightgbm_by_poissons_deviance() -> None:
    """Outputs are low + exp(score); the mean of predictions is that of the target."""
    learner, buffers = grow_counts()
    spec = learner.spec
    booster = library.get().Booster(model_str=write_model(spec, learner.forest))
    predicted = []
    for buffer in buffers:
        (outputs,) = learner.predict(buffer.inputs)
        theirs = booster.predict(ColumnReader(spec).read(buffer.inputs))
        np.testing.assert_allclose(outputs[:, 0], np.minimum(-0.5 + theirs, 14.5), rtol=1e-5)
        assert outputs.min() > -0.5
        predicted.append(outputs)
    counts = np.concatenate([buffer.targets[0] for buffer in buffers]) + 0.5
    means = np.concatenate(predicted) + 0.5
    assert means.mean() == pytest.approx(counts.mean(), rel=0.02)
    deviances = [(m - counts * np.log(m)).mean() for m in (means, counts.mean())]
    assert deviances[0] < deviances[1] - 0.1


def test_random_places_of_splits_depend_on_the_seed_alone() -> None:
    random, again, best = (
        make_grown(threads=threads, splits=splits)[0].read()
        for threads, splits in ((1, "random"), (2, "random"), (1, "best"))
    )
    assert [array.tobytes() for array in random] == [array.tobytes() for array in again]
    assert any(
        array.tobytes() != other.tobytes() for array, other in zip(random, best, strict=True)
    )


def test_contributions_to_logarithms_add_up_to_what_the_number_gains() -> None:
    learner, buffers = grow_counts()
    inputs = [array[:40] for array in buffers[0].inputs]
    values = learner.attribute(inputs, COLUMNS, np.ones((40, 1)))
    gain = learner.predict(inputs)[0][:, 0] - learner.predict_baseline(inputs)
    np.testing.assert_allclose(values.sum(axis=1), gain, atol=1e-5)


def test_rows_of_the_lowest_number_alone_are_learned_by_logarithms() -> None:
    learner = BoostedTrees(make_program(**COUNTED), 1)
    buffer = make_counts(100, 1)
    buffer = replace(buffer, targets=(np.full((100, 1), -0.5, np.float32),))
    assert tree_tables.grow(learner, [buffer])[-1] == pytest.approx(0.0, abs=1e-12)
    assert np.isfinite(learner.predict(buffer.inputs)[0]).all()


@pytest.mark.parametrize(
    "values",
    [{"link": "logit"}, {"link": 1}, {"link": "log"}, {"link": "log", "low": 1.0, "high": 1.0}],
)
def test_a_link_is_known_and_has_bounds(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="link"):
        BoostedTrees(make_program(**values), 1)
    with pytest.raises(ConfigError, match="is for a number"):
        BoostedTrees(make_program(2, **COUNTED), 1)


def test_predictions_of_numbers_have_bounds() -> None:
    learner, buffers = make_grown(low=-0.25, high=0.5)
    (outputs,) = learner.predict(buffers[0].inputs)
    assert outputs.min() == np.float32(-0.25) and outputs.max() == np.float32(0.5)
