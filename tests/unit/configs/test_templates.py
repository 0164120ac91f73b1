"""Templates without a framework: what they give may be loaded, and is as large as it should be."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.architecture.architecture import (
    Architecture,
    check_architecture,
    read_architecture,
)
from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.fit_params import parse_fit_params
from cerebro_plpy.configs.search_space.distributions import Choices
from cerebro_plpy.configs.templates.layers import encoders
from cerebro_plpy.configs.templates.layers.keras_graph import Graph
from cerebro_plpy.configs.templates.layers.model_io import (
    TEXT,
    Classes,
    Floats,
    Head,
    Measure,
    Table,
    Wide,
)
from cerebro_plpy.configs.templates.networks.linear import LINEAR
from cerebro_plpy.configs.templates.registry import (
    DEFAULT_TEMPLATES,
    NETWORK_TEMPLATES,
    TEMPLATES,
    choose_templates,
    find_template,
    select_suitable,
)
from cerebro_plpy.configs.templates.template import OTHER_NAMES, Field, Template, Value
from cerebro_plpy.errors import CerebroError, InvalidParameter, UndefinedObject

Params = dict[str, Value]
Json = Any

COUNTS = st.integers(0, 6)
WIDE = st.builds(
    lambda words, levels: Wide(TEXT, (words,), levels), st.integers(1, 9), st.integers(2, 40)
)
EDGES = st.lists(st.integers(-50, 50), max_size=5, unique=True).map(
    lambda found: tuple(map(float, sorted(found)))
)
TABLES = (
    st.tuples(
        COUNTS,
        COUNTS,
        st.lists(st.integers(2, 40), max_size=4).map(tuple),
        st.lists(WIDE, max_size=2).map(tuple),
    )
    .filter(any)
    .flatmap(
        lambda of: st.builds(
            Table, *map(st.just, of), st.lists(EDGES, min_size=of[0], max_size=of[0]).map(tuple)
        )
    )
)
FINITE = st.floats(-1e15, 1e15)
MEASURES = st.builds(
    lambda mean, deviation, bounds: Measure(mean, deviation, min(bounds), max(bounds)),
    FINITE,
    st.floats(1e-15, 1e15),
    st.tuples(FINITE, FINITE),
)
HEADS: st.SearchStrategy[Head] = st.one_of(
    st.integers(2, 5).map(Classes),
    st.lists(MEASURES, min_size=1, max_size=3).map(lambda all_: Floats(tuple(all_))),
)
FLOAT = Floats((Measure(10.0, 2.0, 5.0, 20.0),))
TABLE = Table(3, 2, (12, 40))


def allowed(field: Field) -> st.SearchStrategy[Value]:
    """Any value that a field may have; widths and depths stay small."""
    numbers: list[st.SearchStrategy[Value]] = []
    if field.limits:
        low, high = field.limits
        numbers = (
            [st.integers(int(low), min(int(high), 20))]
            if field.is_whole
            else [st.floats(low, high)]
        )
    return st.one_of(st.sampled_from(field.words), *numbers) if field.words else st.one_of(*numbers)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Template, Table, Head, Params]:
    template, head = draw(st.sampled_from(NETWORK_TEMPLATES)), draw(HEADS)
    chosen = {field.name: draw(allowed(field)) for field in template.fields if draw(st.booleans())}
    return template, draw(TABLES), head, template.params(head, draw(st.integers(1, 10**6)), chosen)


def built(
    template: Template, table: Table, head: Head, params: Params
) -> tuple[Json, Architecture]:
    model = read_architecture(template.architecture(table, head, params))
    return model, check_architecture(model)


def layers(model: Json) -> list[Json]:
    found: list[Json] = model["config"]["layers"]
    return found


def references(value: Json) -> Iterator[tuple[str, list[int | None]]]:
    """The tensors that a call takes, by their layers, and the shapes that the JSON says they
    have.
    """
    if isinstance(value, dict) and value.get("class_name") == "__keras_tensor__":
        yield value["config"]["keras_history"][0], value["config"]["shape"]
    elif isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from references(part)


def parameters(layer: Json) -> int:
    """How many a layer has, by what Keras' manual says of its class."""
    config, shape = layer["config"], [s for _, s in references(layer["inbound_nodes"])][:1]
    if layer["class_name"] == "Dense":
        return int(config["units"] * (shape[0][-1] + config.get("use_bias", True)))
    if layer["class_name"] == "Embedding":
        return int(config["input_dim"] * config["output_dim"])
    if layer["class_name"] == "EinsumDense":
        of, rest = config["equation"].split(",")
        kernel, gives = rest.split("->")
        sizes = {
            **dict(zip(of, shape[0], strict=True)),
            **dict(zip(gives[1:], config["output_shape"], strict=True)),
        }
        axes = [kernel, config["bias_axes"]] if config.get("bias_axes") else [kernel]
        return sum(math.prod(sizes[axis] for axis in axis_names) for axis_names in axes)
    last = shape[0][-1] or 0 if shape else 0
    if layer["class_name"] == "MultiHeadAttention":
        inner = int(config["num_heads"] * config["key_dim"])
        return 3 * (last + 1) * inner + (inner + 1) * last
    return {"BatchNormalization": 4, "LayerNormalization": 2}.get(layer["class_name"], 0) * last


def pair_levels(wide: Wide, units: int) -> int:
    """Four for each number of a word, but the weights of all of them are limited; a power of
    two.
    """
    return 1 << int(math.log2(min(4 * wide.levels, (1 << 22) // units)))


def expected_parameters(template: Template, table: Table, head: Head, params: Params) -> int:
    units, n, columns, levels = head.units, table.numbers, table.columns, table.levels
    words = sum(each.levels for each in table.wide)
    if template.name == "linear":
        pairs = sum(pair_levels(each, units) + 1 for each in table.wide if each.shape[0] > 1)
        return (columns + levels + words + pairs + 1) * units
    width, depth = int(params["width"]), int(params["depth"])
    if template.name == "resnet":
        first = (
            8 * levels
            + (columns + 8 * len(table.cardinalities) + 32 * len(table.wide) + 1) * width
            + 32 * words
        )
        block = 4 * width + (width + 1) * 2 * width + (2 * width + 1) * width
        return first + depth * block + 4 * width + (width + 1) * units
    if template.name == "transformer":
        inner, wide = 8 * math.ceil(width / 8), math.ceil(4 * width / 3)
        attention = 3 * (width + 1) * inner + (inner + 1) * width
        block = 4 * width + attention + 2 * (width + 1) * wide + (wide + 1) * width
        of_texts = 32 * words + len(table.wide) * (32 + 1) * width
        return (
            of_texts
            + (2 * columns + levels + 1) * width
            + depth * block
            + 2 * width
            + (width + 1) * units
        )
    if template.name == "text":
        word = int(params["word"])
        first = (
            8 * levels
            + (columns + 8 * len(table.cardinalities) + word * len(table.wide) + 1) * width
            + word * words
        )
        return first + (depth - 1) * (width + 1) * width + (width + 1) * units
    if template.name in ("series", "cnn"):  # of a table without such arrays
        hidden = {"series": 2, "cnn": 4}[template.name] * width
        before = columns + 8 * len(table.cardinalities) + 32 * len(table.wide)
        return 8 * levels + 32 * words + (before + 1) * hidden + (hidden + 1) * units
    deeper, out = width * width + width, (width + 1) * units
    if template.name == "realmlp_simple":
        of_texts = 32 * words + len(table.wide) * 32 * width
        return (
            of_texts
            + columns
            + columns * width
            + levels * (width + 1)
            + width
            + (depth - 1) * deeper
            + out
        )
    others = table.indicators + 8 * len(table.cardinalities) + 32 * len(table.wide)
    if params["numbers"] == "piecewise":
        features, periodic = (
            n + sum(max(0, len(edges) - 1) for edges in table.pieces) + others,
            32 * words,
        )
    else:
        features, periodic = 4 * n + others, n * (2 * 16 + 16 * 3 + 3) + 32 * words
    if template.name == "tabm":
        many = int(params["members"])
        own = many * (features + (depth - 1) * width + 2 * depth * width + (width + 1) * units)
        return periodic + 8 * levels + features * width + (depth - 1) * width * width + own
    return (
        periodic
        + 8 * levels
        + features
        + features * width
        + 2 * width
        + (depth - 1) * (deeper + width)
        + out
    )


@given(cases())
def test_what_a_template_gives_may_be_loaded(case: tuple[Template, Table, Head, Params]) -> None:
    _, table, head, _ = case
    summary = built(*case)[1]
    widths = [width for width in (table.columns, len(table.cardinalities)) if width]
    shapes = [*((width,) for width in widths), *(each.shape for each in table.wide)]
    assert list(summary.input_shapes) == shapes
    assert summary.output_units == (head.units,)
    assert summary.output_names == ("prediction",)


@given(cases())
def test_layers_come_after_what_they_take_and_have_names_of_their_own(
    case: tuple[Template, Table, Head, Params],
) -> None:
    model, _ = built(*case)
    before: set[str] = set()
    taken: set[str] = set()
    for layer in layers(model):
        assert layer["name"] == layer["config"]["name"] not in before
        needed = {name for name, _ in references(layer["inbound_nodes"])}
        assert needed <= before
        taken |= needed
        before.add(layer["name"])
    assert before - taken == {"prediction"}


@given(cases())
def test_it_has_as_many_parameters_as_it_should(case: tuple[Template, Table, Head, Params]) -> None:
    model, _ = built(*case)
    assert sum(map(parameters, layers(model))) == expected_parameters(*case)


@given(cases(), st.lists(st.sampled_from(["accuracy", "mae"]), max_size=2))
def test_parameters_of_a_configuration_can_be_read(
    case: tuple[Template, Table, Head, Params], metrics: list[str]
) -> None:
    template, _, head, params = case
    compiled = parse_compile_params(template.compile_params(head, params, metrics))
    assert compiled.optimizer.class_name == ("AdamW" if params["weight_decay"] else "Adam")
    assert compiled.optimizer.config["learning_rate"] == params["lr"]
    assert compiled.optimizer.config.get("weight_decay", 0.0) == params["weight_decay"]
    assert compiled.loss == head.loss
    assert len(compiled.metrics) == len(metrics)
    fit = parse_fit_params(template.fit_params(params))
    assert (fit.batch_size, fit.epochs) == (params["batch_size"], 1)


@given(st.sampled_from(TEMPLATES), HEADS, st.integers())
def test_what_a_search_draws_may_be_asked_for(template: Template, head: Head, seed: int) -> None:
    drawn = {field.name: field.distribution.draw(Random(seed)) for field in template.fields}
    assert set(template.params(head, 1000, drawn)) == set(drawn)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.name)
def test_the_same_json_comes_of_the_same_parameters(template: Template) -> None:
    params = template.params(FLOAT, 500, {})
    for table in (TABLE, Table(0, 0, (5, 3))):
        assert template.architecture(table, FLOAT, params) == template.architecture(
            table, FLOAT, dict(params)
        )


def test_defaults_go_by_the_task_and_the_rows() -> None:
    realmlp, simple = find_template("realmlp"), find_template("realmlp_simple")
    rates = [
        template.params(head, 5000, {})["lr"]
        for template in (realmlp, simple)
        for head in (Classes(2), FLOAT)
    ]
    assert rates == [0.04, 0.04, 0.04, 0.07]
    assert [realmlp.params(head, 1, {})["activation"] for head in (Classes(2), FLOAT)] == [
        "selu",
        "mish",
    ]
    heads: tuple[Head, ...] = (Classes(2), Classes(2, calibrated=True), FLOAT)
    assert [realmlp.params(head, 1, {})["label_smoothing"] for head in heads] == [0.1, 0.0, 0.0]
    assert realmlp.params(FLOAT, 5000, {})["batch_size"] == 128
    assert realmlp.params(FLOAT, 5000, {"batch_size": 7, "width": 20.0})["batch_size"] == 7
    assert simple.params(FLOAT, 1, {})["dropout"] == 0.0


@pytest.mark.parametrize("template", NETWORK_TEMPLATES, ids=lambda template: template.name)
def test_fields_are_shared_and_may_have_their_defaults(template: Template) -> None:
    shared = ["lr", "batch_size", "weight_decay", "dropout", "width", "depth"]
    assert sum(field.name == "class_weight" for field in template.fields) == 1
    names = [field.name for field in template.fields if field.name != "class_weight"]
    assert names[:3] == shared[:3] and (template.name == "linear" or names[:6] == shared)
    for field in template.fields:
        for head in (Classes(2), FLOAT):
            assert field.check_value(field.find_default(head)) == field.find_default(head)
        assert (
            isinstance(field.distribution, Choices)
            or field.distribution.low < field.distribution.high
        )


def test_a_field_is_found_by_its_name_elsewhere() -> None:
    """Each of these names leads to a field that some template has."""
    for field, others in OTHER_NAMES.items():
        template = next(t for t in TEMPLATES if field in {f.name for f in t.fields})
        for other in others:
            with pytest.raises(InvalidParameter) as error:
                template.params(Classes(2), 100, {other: 1})
            assert error.value.hint == f"Did you mean {field}?"


@pytest.mark.parametrize(
    ("given_params", "words"),
    [
        ({"width": 0}, "width is 0, expected a whole number from 1"),
        ({"width": 2.5}, "width is 2.5"),
        ({"width": True}, "width is True"),
        ({"dropout": 1}, "dropout is 1, expected a number from 0 to 0.95"),
        ({"lr": math.nan}, "lr is nan"),
        ({"lr": "auto"}, "lr is 'auto'"),
        ({"activation": "relu"}, "activation is 'relu', expected 'selu' or 'mish'"),
        ({"activation": 1}, "activation is 1"),
        ({"batch_size": "all"}, "batch_size is 'all', expected a whole number .* or 'auto'"),
        ({"depht": 3}, "template realmlp has no field 'depht'"),
    ],
)
def test_what_a_field_cannot_have_is_refused(given_params: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        find_template("realmlp").params(Classes(2), 100, given_params)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Table(),
        lambda: Table(-1, 2),
        lambda: Table(1, 0, (1,)),
        lambda: Table(1, 0, (1 << 25,)),
        lambda: Wide(TEXT, (), 5),
        lambda: Wide(TEXT, (3, 0), 5),
        lambda: Wide(TEXT, (3,), 1),
        lambda: Wide(TEXT, (3,), 1 << 25),
        lambda: Classes(1),
        lambda: Floats(()),
        lambda: Measure(0.0, 0.0, 0.0, 0.0),
        lambda: Measure(0.0, math.nan, -1.0, 1.0),
        lambda: Measure(0.0, math.inf, -1.0, 1.0),
        lambda: Measure(0.0, 1.0, 1.0, -1.0),
        lambda: Measure(0.0, 1.0, -math.inf, 1.0),
        lambda: Measure(math.nan, 1.0, -1.0, 1.0),
        lambda: find_template("realmpl"),
    ],
)
def test_what_makes_no_model_is_refused(make: Any) -> None:
    with pytest.raises(CerebroError):
        make()


def test_templates_for_columns_of_a_kind_are_tried_where_there_are_any() -> None:
    plain, with_text = Table(1), Table(1, wide=(Wide(TEXT, (5,), 9),))
    assert {each.name for each in TEMPLATES} - {
        each.name for each in select_suitable(TEMPLATES, plain)
    } >= {"text"}
    assert select_suitable(DEFAULT_TEMPLATES, with_text)[0] is find_template(
        "text"
    ) and select_suitable(DEFAULT_TEMPLATES, plain)[0] is find_template("boosting")


def test_of_texts_alone_networks_for_columns_learn_nothing_more() -> None:
    texts = Wide(TEXT, (5,), 9), Wide(TEXT, (7,), 20)
    assert [each.name for each in choose_templates(Table(wide=texts))] == ["text", "linear"]
    for others in (Table(1, wide=texts), Table(0, 1, wide=texts), Table(0, 0, (3,), texts)):
        assert choose_templates(others) == select_suitable(DEFAULT_TEMPLATES, others)


def test_an_unknown_template_is_told_with_those_that_there_are() -> None:
    with pytest.raises(UndefinedObject, match="there is no template 'realmpl'") as refused:
        find_template("realmpl")
    assert refused.value.hint and "realmlp" in refused.value.hint


def test_two_layers_of_one_name_are_an_error_of_the_template() -> None:
    graph = Graph("twice")
    graph.input("x", (2,))
    with pytest.raises(ValueError, match="two nodes named 'x'"):
        graph.input("x", (2,))


def test_what_json_cannot_say_is_not_written() -> None:
    graph = Graph("endless")
    x = graph.operation("Multiply", graph.input("x", (2,)), math.inf)
    with pytest.raises(ValueError):
        graph.to_json(x)


def test_operations_are_numbered_as_keras_does() -> None:
    graph = Graph("sums")
    x = graph.input("x", (2,))
    for _ in range(3):
        x = graph.operation("Add", x, 1.0)
    assert [layer["name"] for layer in layers(json.loads(graph.to_json(x)))] == [
        "x",
        "add",
        "add_1",
        "add_2",
    ]


@pytest.mark.parametrize("units", [1, 2, 100])
@pytest.mark.parametrize(
    "wide", [Wide("text", (9,), 257), Wide("text", (16,), 65_537), Wide("series", (30, 2))], ids=str
)
def test_the_weights_of_a_line_are_counted(wide: Wide, units: int) -> None:
    """All but the biases, and the levels that stand for nothing."""
    head = Classes(units) if units > 1 else Floats((Measure(0.0, 1.0, -9.0, 9.0),))
    text = LINEAR.architecture(Table(wide=(wide,)), head, LINEAR.params(head, 1000, {}))
    configs = [layer["config"] for layer in json.loads(text)["config"]["layers"]]
    found = sum(each["input_dim"] * each["output_dim"] for each in configs if "input_dim" in each)
    found += sum(
        each["units"] * wide.elements
        for each in configs
        if "units" in each and each["name"] != "bias"
    )
    assert 0 <= found - encoders.count_linear_weights(wide, units) <= units
