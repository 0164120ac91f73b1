"""The config of boosted trees: closed and bounded; and the columns that trees see."""

from __future__ import annotations

from typing import Any

import hostile
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tree_tables import CONFIG, INPUTS, make_architecture, make_buffer, make_program

from cerebro_db.export.recipe import tree_columns
from cerebro_trainer.boosting.columns import ColumnReader, count_words
from cerebro_trainer.boosting.family import BoostedTrees
from cerebro_trainer.boosting.model.errors import TreesError
from cerebro_trainer.boosting.model.spec import PackedInputs, TreesSpec
from cerebro_trainer.boosting.program import read_spec
from cerebro_trainer.boosting.results import Results
from cerebro_trainer.errors import ConfigError
from cerebro_trainer.models.program_spec import ProgramSpec, Target
from cerebro_trainer.wire.frames import Array

NUMBERS = {**INPUTS, "cardinalities": [], "vectors": [], "words": []}


def read(architecture: Any) -> TreesSpec:
    return TreesSpec.from_architecture(architecture)


@given(hostile.changed(make_architecture()))
def test_any_other_config_is_read_or_refused(architecture: Any) -> None:
    """An error of a config, never another one, whatever a stranger writes."""
    if not isinstance(architecture, dict):
        return
    try:
        spec = read(architecture)
    except TreesError as error:
        assert error.sqlstate in ("22023", "54000") and len(error.message) < 400
    else:
        assert spec.tree_room * spec.leaves <= 1 << 25 and spec.inputs.columns < 1 << 16


WRONG: dict[str, Any] = {
    "units": (0, 1.0, True, None, 1 << 16),
    "low": ("1", float("nan"), float("inf"), True),
    "trees": (0, 100_001, "1"),
    "epochs": (0,),
    "leaves": (1, 1025),
    "learning_rate": (0, -0.1, 11.0, float("nan"), True),
    "min_rows": (0, 1 << 31),
    "l2": (-1, float("inf")),
    "row_share": (0, 1.01),
    "column_share": (0, 1.01),
    "max_bins": (1, 4096),
    "category_levels": (-1, 4097),
}


@pytest.mark.parametrize("name", WRONG)
def test_every_value_has_bounds(name: str) -> None:
    for value in WRONG[name]:
        with pytest.raises(TreesError, match=f'"{name}" of boosted trees must be'):
            read(make_architecture(**{name: value}))


@pytest.mark.parametrize("name", ("link", "splits"))
def test_words_are_closed(name: str) -> None:
    for value in ("worst", 1, None):
        with pytest.raises(TreesError, match=f'"{name}" of boosted trees must be one of'):
            read(make_architecture(**{name: value}))


def test_keys_are_closed() -> None:
    with pytest.raises(TreesError, match="lacks no key, and has colour that is unknown"):
        read(make_architecture(colour=1))
    without = {name: value for name, value in CONFIG.items() if name != "l2"}
    with pytest.raises(TreesError, match="lacks l2, and has no key"):
        read({"class_name": "BoostedTrees", "config": without})
    with pytest.raises(TreesError, match="'Sequential', expected 'BoostedTrees'"):
        read({"class_name": "Sequential", "config": CONFIG})
    with pytest.raises(TreesError, match="has no module"):
        read({**make_architecture(), "module": "keras"})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"missing": [[3, 3]]}, "must pair a number below 3"),
        ({"missing": [[0, 2]]}, "must pair a number below 3"),
        ({"missing": [[0, 5]]}, "indicator below 5"),
        ({"missing": [[0, 3], [0, 4]]}, "has one number twice"),
        ({"missing": [[0]]}, "must pair"),
        ({"cardinalities": [1]}, '"cardinalities" of boosted trees must be'),
        ({"vectors": [-1]}, '"vectors" of boosted trees must be'),
        ({"vectors": None}, '"vectors" of boosted trees must be a list'),
        ({"words": [[], []]}, "list for each of 3 arrays, received 2"),
        ({"words": [[3], [], []]}, 'are of arrays that "vectors" has 0 for'),
        ({"words": [[], [], [5, 3]]}, "must increase in each list"),
        ({"words": [[], [], [3, 3]]}, "must increase in each list"),
        ({"words": [[], [], [0]]}, '"words" of boosted trees must be whole numbers from 1'),
        ({"words": [[], [], 3]}, '"words" of boosted trees must be a list'),
    ],
)
def test_inputs_fit_each_other(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TreesError, match=message):
        read(make_architecture(inputs={**INPUTS, **changes}))


def test_numbers_of_one_column_share_an_indicator() -> None:
    """The parts of a point in time, or the elements of an array, are missing together."""
    inputs = {**NUMBERS, "missing": [[0, 3], [2, 3]]}
    reader = ColumnReader(read(make_architecture(inputs=inputs)))
    rows = np.array([[1, 2, 3, 0, 5], [0, 2, 0, 1, 6]], np.float32)
    expected = [[1, 2, 3, 5], [np.nan, 2, np.nan, 6]]
    np.testing.assert_array_equal(reader.read([rows]), np.array(expected, np.float32))


def test_sizes_are_bounded() -> None:
    nothing = {"numbers": 0, "indicators": 0, "missing": [], "cardinalities": [], "vectors": [0]}
    with pytest.raises(TreesError, match="from 1 to 65535 columns, received 0"):
        read(make_architecture(inputs=nothing))
    with pytest.raises(TreesError, match="100000 trees, each with 1000 leaves"):
        read(make_architecture(trees=100_000, leaves=1000))
    with pytest.raises(TreesError, match="low is 1"):
        read(make_architecture(low=1, high=0))


@pytest.mark.parametrize(("units", "classes"), [(2, 3), (1, 1), (1, 2), (3, 0)])
def test_targets_fit_the_units(units: int, classes: int) -> None:
    program = ProgramSpec(make_architecture(units=units), {}, (Target(classes),))
    with pytest.raises(ConfigError, match=rf"{units} units?, but .* classes: \[{classes}\]"):
        read_spec(program)


@pytest.mark.parametrize(
    ("units", "loss", "message"),
    [
        (1, "categorical_crossentropy", "does not fit 1 unit"),
        (2, "mean_squared_error", "does not fit 2 units"),
        (1, "poisson", "no loss 'poisson'"),
        (1, None, "no loss None"),
        (1, ["mse"], "no loss"),
    ],
)
def test_the_loss_matters_where_it_is_computed(units: int, loss: Any, message: str) -> None:
    """A program that only predicts has any loss."""
    buffer = make_buffer(20, units)
    program = ProgramSpec(make_architecture(units=units), {"loss": loss},
                          (Target(units if units > 1 else 0),))  # fmt: skip
    learner = BoostedTrees(program, 1)
    assert learner.predict(buffer.inputs)[0].shape == (20, units)
    learner.collect("a", [buffer])
    for compute in (lambda: learner.grow(["a"], 1, 1), lambda: learner.evaluate(buffer)):
        with pytest.raises(ConfigError, match=message):
            compute()


def test_metrics_are_those_of_the_task() -> None:
    with pytest.raises(ConfigError, match="no metric 'accuracy' for numbers"):
        Results(["accuracy"], has_classes=False)
    with pytest.raises(ConfigError, match="no metric 'auc' for classes"):
        Results(["auc"], has_classes=True)


def test_rounds_are_divided_among_epochs() -> None:
    spec = read(make_architecture(trees=10, epochs=4, units=3))
    assert (spec.rounds_per_epoch, spec.outputs, spec.tree_room) == (3, 3, 30)
    assert read(make_architecture(units=2)).outputs == 1


def test_categories_with_many_levels_are_numbers() -> None:
    assert read(make_architecture(category_levels=4)).native_categories == ()
    assert read(make_architecture(category_levels=5)).native_categories == (4,)
    spec = read(make_architecture(category_levels=39))
    assert spec.native_categories == (4, 5) and spec.set_words == 2


def test_columns_are_those_of_the_table() -> None:
    """NaN is back, indicators of it are gone, others stay; what trees do not read is skipped."""
    spec = read_spec(make_program())
    buffer = make_buffer(200, seed=3)
    matrix = ColumnReader(spec).read(buffer.inputs)
    first, codes, vector, _, words = buffer.inputs
    assert np.isnan(matrix[:, 0]).tolist() == (first[:, 3] == 1).tolist()
    assert np.nan_to_num(matrix[:, 0]).tolist() == first[:, 0].tolist()
    assert matrix[:, 1:4].tolist() == first[:, [1, 2, 4]].tolist()
    assert np.isnan(matrix[:, 4:6]).tolist() == (codes == 0).tolist()
    assert np.nan_to_num(matrix[:, 4:6]).tolist() == codes.tolist()
    assert matrix[:, 6:8].tolist() == vector.tolist()
    counts = [(words == number).sum(axis=1) for number in (3, 5, 20)]
    assert matrix[:, 8:].T.tolist() == np.array([*counts, (words > 0).sum(axis=1)]).tolist()


@pytest.mark.parametrize(
    ("position", "array", "message"),
    [
        (0, np.zeros((2, 4)), "input of numbers of the trees has 5 columns, .* have 4"),
        (1, np.zeros((2, 3)), "input of categories of the trees has 2 columns, .* have 3"),
        (2, np.zeros((2, 1)), "wide input 1 of the trees has 2 columns, .* have 1"),
        (1, np.full((2, 2), 6), "category 1 has codes from 0 to 5, received 6"),
        (1, np.full((2, 2), 0.5), "received 0.5"),
        (1, np.full((2, 2), np.nan), "received nan"),
    ],
)
def test_other_inputs_are_refused(position: int, array: Any, message: str) -> None:
    inputs = [*make_buffer(2).inputs]
    inputs[position] = array.astype(np.float32)
    reader = ColumnReader(read_spec(make_program()))
    with pytest.raises(ConfigError, match=message):
        reader.read(inputs)
    with pytest.raises(ConfigError, match="5 inputs, but there are 3"):
        reader.read(inputs[:3])


@given(
    arrays(np.float32, (7, 4), elements=st.integers(0, 9).map(float)),
    st.sets(st.integers(1, 12), min_size=1).map(sorted),
)
def test_a_trainer_counts_words_as_an_exported_recipe_does(
    words: Array, counted: list[int]
) -> None:
    part = np.zeros((7, len(counted) + 1), np.float32)
    count_words(words, counted, part)
    assert part.tolist() == tree_columns.count_words(words, counted).tolist()
    assert part[:, -1].tolist() == (words > 0).sum(axis=1).tolist()
    if counted[-1] <= 9:
        assert part[:, 0].sum() == (words == counted[0]).sum()


def test_trees_of_earlier_versions_count_no_words() -> None:
    inputs = {name: value for name, value in INPUTS.items() if name != "words"}
    spec = read(make_architecture(inputs=inputs))
    assert spec.inputs.words == () and spec.inputs.widths == (2, 0, 0)


@given(st.integers(0, 3), st.integers(0, 3), st.booleans(), st.lists(st.integers(0, 2), max_size=3))
def test_counts_of_inputs_agree(
    numbers: int, indicators: int, has_codes: bool, vectors: list[int]
) -> None:
    pairs = tuple((number, numbers + number) for number in range(min(numbers, indicators)))
    inputs = PackedInputs(numbers, indicators, pairs, (3,) if has_codes else (), tuple(vectors))
    first = numbers + indicators - len(pairs)
    assert inputs.columns == first + has_codes + sum(vectors)
    assert inputs.arrays == (inputs.width > 0) + has_codes + len(vectors)
    assert inputs.first_category == first
