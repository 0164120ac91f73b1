"""The template of boosted trees: its fields, its architecture, and the tables that it suits."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.architecture.architecture import check_architecture, read_architecture
from cerebro_plpy.configs.architecture.boosted_trees import (
    CLASS_NAME,
    check_any_architecture,
    is_boosted_trees,
)
from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.fit_params import parse_fit_params
from cerebro_plpy.configs.templates.layers.model_io import (
    IMAGE,
    LONG_VECTOR,
    SERIES,
    TEXT,
    Classes,
    Floats,
    Head,
    Measure,
    Table,
    Wide,
)
from cerebro_plpy.configs.templates.networks.linear import LINEAR
from cerebro_plpy.configs.templates.trees.boosting import BOOSTING, ROOM_BYTES, estimate_state_bytes
from cerebro_plpy.errors import FeatureNotSupported, InvalidParameter, InvalidText
from cerebro_trainer.boosting.model.spec import TreesSpec

FLOAT = Floats((Measure(10.0, 2.0, 5.0, 20.0),))
HEADS: st.SearchStrategy[Head] = st.one_of(st.just(FLOAT), st.integers(2, 50).map(Classes))
TEXT_COLUMN, IMAGE_COLUMN = Wide(TEXT, (5,), 9), Wide(IMAGE, (4, 4, 1))
RARITIES = bytes((40, 8, 24, 30, 0, 40, 40, 25))
NUMERIC_COLUMNS = Wide(SERIES, (7, 2)), Wide(LONG_VECTOR, (900,))


def read_config(text: str) -> dict[str, Any]:
    """Return the settings in an architecture."""
    architecture = json.loads(text)
    assert architecture.keys() == {"class_name", "config"}
    assert architecture["class_name"] == CLASS_NAME
    config: dict[str, Any] = architecture["config"]
    return config


@given(HEADS, st.integers(0, 99), st.integers(1, 300))
def test_an_architecture_has_the_fields_the_inputs_and_the_epochs(
    head: Head, seed: int, epochs: int
) -> None:
    table = Table(3, 2, (4, 30), (TEXT_COLUMN, *NUMERIC_COLUMNS), (), ((0, 3), (2, 3), (1, 4)))
    drawn = {field.name: field.distribution.draw(Random(seed)) for field in BOOSTING.fields}
    params = BOOSTING.params(head, 1000, drawn)
    text = BOOSTING.build_architecture(table, head, params, epochs)
    assert is_boosted_trees(text)
    assert check_any_architecture(read_architecture(text)).output_units == (head.units,)
    config = read_config(text)
    assert config.pop("inputs") == {
        "numbers": 3,
        "indicators": 2,
        "missing": [[0, 3], [2, 3], [1, 4]],
        "cardinalities": [4, 30],
        "vectors": [0, 14, 900],
    }
    bounds = [5.0, 20.0] if head == FLOAT else [None, None]
    assert [config.pop(name) for name in ("low", "high")] == bounds
    assert (config.pop("units"), config.pop("epochs")) == (head.units, epochs)
    TreesSpec.from_architecture(json.loads(text))  # a trainer reads it
    link = config.pop("link", "identity")
    assert link == (params["link"] if head == FLOAT else "identity")
    others = {name: params[name] for name in ("class_weight", "link", "text_words")}
    assert {**config, **others} == params
    assert type(params["trees"]) is int and params["trees"] >= 100
    assert estimate_state_bytes(head, params) <= ROOM_BYTES or params["trees"] == 100


def test_trees_count_the_most_frequent_words_of_texts() -> None:
    table = Table(1, wide=(NUMERIC_COLUMNS[0], Wide(TEXT, (5,), 9, RARITIES)))
    words_by_limit = {"auto": [2, 3, 5], 3: [2, 3, 5], 2: [2, 5], 1: [5]}
    for limit, words in words_by_limit.items():
        params = BOOSTING.params(FLOAT, 10, {"text_words": limit})
        architecture = BOOSTING.architecture(table, FLOAT, params)
        assert read_config(architecture)["inputs"]["words"] == [[], words]
        assert TreesSpec.from_architecture(json.loads(architecture)).inputs.widths == (
            14,
            len(words) + 1,
        )
    for params in (BOOSTING.params(FLOAT, 10, {"text_words": 0}), BOOSTING.params(FLOAT, 10, {})):
        if params["text_words"]:
            del params["text_words"]  # an older configuration
        assert "words" not in read_config(BOOSTING.architecture(table, FLOAT, params))["inputs"]


@given(st.integers(1, 20), st.integers(0, 511))
def test_columns_of_words_are_bounded(texts: int, limit: int) -> None:
    wide = (Wide(TEXT, (5,), 1025, bytes(1024)),) * texts
    params = BOOSTING.params(FLOAT, 10, {"text_words": limit})
    spec = TreesSpec.from_architecture(
        json.loads(BOOSTING.architecture(Table(1, wide=wide), FLOAT, params))
    )
    assert sum(spec.inputs.widths) <= 512


def test_compile_and_fit_parameters_are_those_of_networks_without_batches() -> None:
    for head in (Classes(3), FLOAT):
        params = BOOSTING.params(head, 1000, {"class_weight": "auto"})
        compiled = parse_compile_params(BOOSTING.compile_params(head, params, ["accuracy"]))
        assert compiled.loss == head.loss and len(compiled.metrics) == 1
        fit = parse_fit_params(BOOSTING.fit_params(params, counts=[10, 30]))
        assert fit.passes == 1 and dict(fit.class_weight or ()) == {0: 2.0, 1: 0.666667}


@pytest.mark.parametrize(
    ("table", "suits"),
    [
        (Table(1), True),
        (Table(0, 1), True),
        (Table(1, 1, missing=((0, 1),)), True),
        (Table(0, 0, (3,)), True),
        (Table(wide=NUMERIC_COLUMNS[:1]), True),
        (Table(wide=NUMERIC_COLUMNS[1:]), True),
        (Table(wide=(TEXT_COLUMN, IMAGE_COLUMN)), False),
        (Table(1, wide=(TEXT_COLUMN,)), True),
        (Table(wide=(Wide(LONG_VECTOR, (70_000,)),)), False),
    ],
)
def test_trees_need_a_column_that_is_not_a_text_or_an_image(table: Table, suits: bool) -> None:
    assert BOOSTING.suits(table) is suits


def test_defaults_differ_by_the_task() -> None:
    classes, numbers = (BOOSTING.params(head, 1000, {}) for head in (Classes(2), FLOAT))
    assert [(params["leaves"], params["min_rows"]) for params in (classes, numbers)] == [
        (50, 40),
        (100, 3),
    ]
    assert [params["learning_rate"] for params in (classes, numbers)] == [0.04, 0.05]


def test_few_rows_can_still_be_divided() -> None:
    head = Classes(2)
    assert [BOOSTING.params(head, rows, {})["min_rows"] for rows in (1, 100, 319, 320)] == [
        *(1, 12, 39, 40)
    ]
    assert BOOSTING.params(head, 100, {"min_rows": 40})["min_rows"] == 40


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"leaves": 1}, "leaves is 1, expected a whole number from 2 to 1024"),
        ({"learning_rate": 0}, "learning_rate is 0"),
        ({"trees": 20_000, "leaves": 1024}, "expected at most 33554432 leaves|33554432"),
        ({"num_leaves": 31}, "has no field 'num_leaves'"),
    ],
)
def test_what_a_field_of_trees_cannot_have_is_refused(
    values: dict[str, object], words: str
) -> None:
    with pytest.raises(InvalidParameter, match=words):
        BOOSTING.params(Classes(100), 100, values)


def test_nobody_loads_trees_as_a_network() -> None:
    text = BOOSTING.architecture(Table(1), FLOAT, BOOSTING.params(FLOAT, 10, {}))
    with pytest.raises(FeatureNotSupported, match=CLASS_NAME):
        check_architecture(read_architecture(text))
    network = LINEAR.architecture(Table(1), FLOAT, LINEAR.params(FLOAT, 10, {}))
    assert not is_boosted_trees(network) and not is_boosted_trees(f'["{CLASS_NAME}"]')
    for units in (None, 0, 1.0, True, 10**9):
        with pytest.raises(InvalidText):
            check_any_architecture({"class_name": CLASS_NAME, "config": {"units": units}})
    with pytest.raises(InvalidText):
        check_any_architecture({"class_name": CLASS_NAME, "config": []})
