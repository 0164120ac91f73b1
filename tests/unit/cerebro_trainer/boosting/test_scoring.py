"""Scores of numpy, of LightGBM, and of the text that we write: the same bits."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tree_tables import make_buffer, make_grown, make_program

from cerebro_trainer.boosting import library, scoring
from cerebro_trainer.boosting.blocks import MAX_NUMBERS, iterate_blocks
from cerebro_trainer.boosting.forest_parts import ForestParts, count_part_rounds
from cerebro_trainer.boosting.loaded_model import LoadedModel
from cerebro_trainer.boosting.model.forest import Forest, Tree
from cerebro_trainer.boosting.model.model_text import read_trees, write_model
from cerebro_trainer.boosting.model.spec import TreesSpec
from cerebro_trainer.boosting.program import read_spec
from cerebro_trainer.boosting.scoring import add_trees, repeat_base, score_rows
from cerebro_trainer.boosting.transforms import average_slopes, compute_outputs

grown = cache(make_grown)
SPECS = {units: read_spec(make_program(units)) for units in (1, 2, 3)}
THRESHOLDS = st.sampled_from((0.0, 1e-20, -1e-20, 0.1, 0.5, -2.5, 1e300, -1e300, 3.4e38, 1 / 3))
VALUES = st.one_of(st.floats(-1e3, 1e3), st.sampled_from((0.0, 1e-36, -1e-36, 5e-324)))
"""Values of leaves; LightGBM takes the smallest for zero where they are numbers of a column."""
NUMBERS = st.sampled_from((0.0, np.nan, 0.1, 0.5, -2.5, 1e-20, 3e38, -3e38, 1 / 3, 7.0))


@st.composite
def drawn_tree(draw: st.DrawFn, spec: TreesSpec) -> Tree:
    """A tree of any shape, with any split that a column can have."""
    leaves = draw(st.integers(1, spec.leaves))
    nodes = leaves - 1
    left, right = np.zeros(nodes, np.int16), np.zeros(nodes, np.int16)
    ends: list[tuple[np.ndarray, int]] = []  # children that are leaves so far
    for node in range(nodes):
        if node:
            side, parent = ends.pop(draw(st.integers(0, len(ends) - 1)))
            side[parent] = node
        ends += [(left, node), (right, node)]
    for leaf, (side, parent) in enumerate(ends):
        side[parent] = ~leaf
    features = np.array(
        [draw(st.integers(0, spec.inputs.columns - 1)) for _ in range(nodes)], np.uint16
    )
    is_category = np.isin(features, spec.native_categories)
    decisions = np.array(
        [draw(st.sampled_from((1, 9) if category else (0, 2, 8, 10))) for category in is_category],
        np.uint8,
    )
    thresholds = np.array([0.0 if c else draw(THRESHOLDS) for c in is_category])
    sets = np.zeros((nodes, spec.set_words), np.uint32)
    sets[is_category] = draw(st.integers(0, 2**32 - 1))
    values = np.array([draw(VALUES) for _ in range(leaves)])
    counts = np.arange(1, leaves + 1, dtype=np.int32)
    return Tree(features, thresholds, left, right, decisions, sets, values, counts)


@st.composite
def drawn_forest(draw: st.DrawFn) -> tuple[TreesSpec, Forest]:
    spec = SPECS[draw(st.sampled_from((1, 3)))]
    rounds = draw(st.integers(0, 4))
    trees = [draw(drawn_tree(spec)) for _ in range(rounds * spec.outputs)]
    base = np.array([draw(VALUES) for _ in range(spec.outputs)])
    forest = Forest.create_empty(spec).append(trees, base)
    return spec, Forest.from_arrays(spec, forest.to_arrays())


@st.composite
def drawn_matrix(draw: st.DrawFn, spec: TreesSpec) -> np.ndarray:
    """Rows of numbers, and of codes in the columns of categories."""
    rows = draw(st.integers(0, 5))
    matrix = np.zeros((rows, spec.inputs.columns), np.float32)
    for index in np.ndindex(*matrix.shape):
        if index[1] in spec.native_categories:
            matrix[index] = draw(st.sampled_from((np.nan, 1.0, 2.0, 5.0)))
        else:
            matrix[index] = draw(NUMBERS)
    return matrix


@given(st.data())
def test_any_trees_have_the_scores_of_lightgbm(data: st.DataObject) -> None:
    """Row by row, tree by tree, level by level, from any round on, and after the text."""
    spec, forest = data.draw(drawn_forest())
    matrix = data.draw(drawn_matrix(spec))
    scores = score_rows(forest, matrix)
    advanced = repeat_base(forest, len(matrix))
    middle = data.draw(st.integers(0, forest.rounds))
    part = Forest(*(array.copy() for array in forest.to_arrays()))
    part.progress[0] = middle
    add_trees(part, matrix, advanced, 0)
    add_trees(forest, matrix, advanced, middle)
    assert scores.tobytes() == advanced.tobytes()
    if len(matrix):
        assert LoadedModel(spec, forest, 1).score(matrix).tobytes() == scores.tobytes()


@given(st.data())
def test_parts_of_any_size_have_the_scores_of_all_trees(data: st.DataObject) -> None:
    spec, forest = data.draw(drawn_forest())
    matrix = data.draw(drawn_matrix(spec).filter(len))
    rounds = data.draw(st.integers(1, 5))
    scores = ForestParts(spec, forest, rounds, 1).score(matrix)
    assert scores.tobytes() == score_rows(forest, matrix).tobytes()


@pytest.mark.parametrize(
    ("units", "leaves", "rounds"), [(1, 31, 33), (1, 1024, 12), (3, 31, 11), (3, 4096, 4)]
)
def test_parts_have_few_leaves_but_no_fewer_trees_than_columns(
    units: int, leaves: int, rounds: int
) -> None:
    spec = replace(SPECS[units], leaves=leaves)
    assert spec.inputs.columns == 12
    assert count_part_rounds(spec) == rounds


@given(st.data())
def test_trees_come_back_from_the_text(data: st.DataObject) -> None:
    spec, forest = data.draw(drawn_forest())
    text = write_model(spec, forest)
    trees = list(read_trees(text, spec.set_words))
    assert [tree.values.tolist() for tree in trees[: spec.outputs]] == [[b] for b in forest.base]
    for position, tree in enumerate(trees[spec.outputs :]):
        original = forest.get_tree(position)
        for name in Tree._fields:
            if tree.leaves > 1 or name != "counts":
                assert getattr(tree, name).tobytes() == getattr(original, name).tobytes(), name


@pytest.mark.parametrize("units", (1, 2, 3))
def test_lightgbm_writes_what_we_have_written(units: int) -> None:
    """LightGBM reads our text, writes the same trees, and predicts the same."""
    learner, _ = grown(units)
    text = write_model(learner.spec, learner.forest)
    booster = library.get().Booster(model_str=text)
    again = booster.model_to_string()
    trees = [[*read_trees(each, learner.spec.set_words)] for each in (text, again)]
    for first, second in zip(*trees, strict=True):
        for name in Tree._fields:
            assert getattr(first, name).tobytes() == getattr(second, name).tobytes(), name
    buffer = make_buffer(500, units, seed=9)
    (outputs,) = learner.predict(buffer.inputs)
    expected = booster.predict(learner._read_matrix(buffer))
    if units == 2:
        expected = np.stack([1 - expected, expected], axis=1)
    assert np.abs(outputs - expected.reshape(outputs.shape)).max() < 1e-6  # of single precision


@pytest.mark.parametrize("units", (1, 2, 3))
@pytest.mark.parametrize("rows", (1, 7, 1500))
def test_all_ways_to_predict_have_the_same_bits(
    units: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, _ = grown(units)
    buffer = make_buffer(rows, units, seed=rows)
    module = "cerebro_trainer.boosting.family.MIN_STEPS_TO_LOAD"
    results = []
    for steps, few_rows in ((1 << 60, 1 << 20), (1 << 60, 0), (0, 0)):
        monkeypatch.setattr(module, steps)
        monkeypatch.setattr(scoring, "FEW_ROWS", few_rows)
        results.append(learner.predict(buffer.inputs)[0].tobytes())
    assert len(set(results)) == 1


@given(st.integers(0, 2000), st.integers(0, 10**8), st.integers(1, 500))
def test_blocks_are_all_rows_in_order(rows: int, width: int, most_rows: int) -> None:
    blocks = list(iterate_blocks(rows, width, most_rows))
    positions = [position for block in blocks for position in range(block.start, block.stop)]
    assert positions == list(range(rows))
    sizes = {block.stop - block.start for block in blocks}
    assert all(0 < size <= most_rows and size * width <= max(MAX_NUMBERS, width) for size in sizes)


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, buffers = make_grown(3)
    (outputs,) = learner.predict(buffers[0].inputs)
    monkeypatch.setattr("cerebro_trainer.boosting.blocks.MAX_NUMBERS", 100)
    other, _ = make_grown(3)
    assert other.predict(buffers[0].inputs)[0].tobytes() == outputs.tobytes()
    assert [other.evaluate(each) for each in buffers] == [
        learner.evaluate(each) for each in buffers
    ]


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(-2, 70), min_size=1, max_size=8))
def test_codes_are_looked_up_in_a_set(word: int, codes: list[int]) -> None:
    words = np.array([word, 1 << 3], np.uint32)
    members = {code for code in range(32) if word >> code & 1} | {35}
    numbers = np.array([*codes, np.nan], np.float32)
    expected = [code in members for code in codes] + [False]
    assert scoring.look_up_codes(words, numbers).tolist() == expected
    many = np.tile(words, (len(numbers), 1))
    assert scoring.look_up_codes(many, numbers).tolist() == expected


@given(
    st.sampled_from((1, 2, 3)),
    st.lists(st.floats(-10, 10), min_size=6, max_size=6),
    st.lists(st.floats(-1, 1), min_size=3, max_size=3),
)
def test_slopes_explain_the_difference_of_weighted_outputs(
    units: int, numbers: list[float], weights: list[float]
) -> None:
    spec = SPECS[units]
    begin = np.array(numbers[: spec.outputs])
    end = np.array(numbers[3 : 3 + spec.outputs])[np.newaxis]
    chosen = np.array([weights[:units]])
    slopes = average_slopes(spec, begin, end, chosen)
    gain = compute_outputs(spec, end) - compute_outputs(spec, begin[np.newaxis])
    error = ((end - begin) * slopes).sum() - (gain * chosen).sum()
    assert abs(error) < 1e-5  # of an integral by 32 points, for the steepest ways
