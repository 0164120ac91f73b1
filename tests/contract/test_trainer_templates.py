"""Templates in Keras and in the trainer: they predict whatever comes, and learn in any units."""

from __future__ import annotations

import itertools
import json
import math
from concurrent.futures import ProcessPoolExecutor
from random import Random
from typing import Any

import numpy as np
import plain_keras
import pytest
from test_trainer_training import NEW
from trainer_peer import Peer
from trainer_programs import Json, weights

from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.templates.clone_mutation import CloneMutation
from cerebro_plpy.configs.templates.layers import blocks, embeddings, encoders, sequences
from cerebro_plpy.configs.templates.layers.embeddings import CATEGORY_WIDTH, PIECEWISE
from cerebro_plpy.configs.templates.layers.embeddings import NUMBERS as NUMBERS_FIELD
from cerebro_plpy.configs.templates.layers.encoders import WORD_WIDTH
from cerebro_plpy.configs.templates.layers.keras_graph import Graph
from cerebro_plpy.configs.templates.layers.model_io import (
    FARTHEST,
    LOG,
    TEXT,
    Classes,
    Floats,
    Head,
    Measure,
    Table,
    Wide,
)
from cerebro_plpy.configs.templates.networks.cnn import CNN
from cerebro_plpy.configs.templates.networks.linear import LINEAR
from cerebro_plpy.configs.templates.networks.realmlp import REALMLP, SIMPLE
from cerebro_plpy.configs.templates.networks.resnet import RESNET
from cerebro_plpy.configs.templates.networks.series import SERIES
from cerebro_plpy.configs.templates.networks.tabm import TABM
from cerebro_plpy.configs.templates.networks.text import TEXT as TEXTS
from cerebro_plpy.configs.templates.registry import DEFAULT_TEMPLATES
from cerebro_plpy.configs.templates.registry import NETWORK_TEMPLATES as TEMPLATES
from cerebro_plpy.configs.templates.template import Template
from cerebro_plpy.preprocessing.learning.text_statistics import WordStatistics

NUMBERS, INDICATORS, CARDINALITIES = 3, 2, (4, 12)
PIECES = (-2.0, -0.5, 0.0, 1e6), (0.25,), ()
TABLE = Table(NUMBERS, INDICATORS, CARDINALITIES, pieces=PIECES)
WORDS = Wide(TEXT, (6,), 31)
RARE_WORDS = Wide(TEXT, (6,), 31, bytes(range(0, 240, 8)))
CLASSES = Classes(2)
FLOATS = Floats((Measure(1e9, 1e6, 0.0, 1e10), Measure(0.0, 1e-9, -1e-9, 2e-9)))
OF_ARRAYS = Table(
    1, 0, (), (Wide("series", (11, 2)), Wide("image", (9, 5, 1)), Wide("long vector", (70,)))
)
SHAPES = {"series": ((1, 1), (4, 2), (70, 3)), "image": ((1, 1, 1), (3, 40, 1), (17, 9, 3))}
CASES: tuple[tuple[Table, Head], ...] = (
    (TABLE, CLASSES),
    (TABLE, FLOATS),
    (Table(2), CLASSES),
    (Table(0, 3), FLOATS),
    (Table(0, 0, (5,)), CLASSES),
    (Table(1, 0, (5,), (WORDS,)), CLASSES),
    (Table(wide=(WORDS, RARE_WORDS)), FLOATS),
)
LARGEST = float(np.finfo(np.float32).max)
EXTREMES = (LARGEST, -LARGEST, math.inf, -math.inf, 1e20, 1e-40, 0.0)
ROWS = 96
ARRAYS = list[tuple[str, np.ndarray]]
FAST = [each for each in TEMPLATES if each in DEFAULT_TEMPLATES and each is not SIMPLE]
"""What is tried always: the simple RealMLP has parts of RealMLP alone."""


def by_name(*left_out: Template) -> pytest.MarkDecorator:
    """Each template but some."""
    chosen = [each for each in TEMPLATES if each not in left_out]
    params = [
        pytest.param(each, marks=[] if each in FAST else [pytest.mark.long]) for each in chosen
    ]
    return pytest.mark.parametrize("template", params, ids=lambda template: template.name)


of_columns = by_name(SERIES, CNN)
"""Without arrays those two are the network of texts, with fewer layers."""


def extreme_inputs(table: Table) -> list[np.ndarray]:
    """Rows of which each number, and each code, may be of any size; the last six differ in codes
    alone.
    """
    random, found = np.random.default_rng(0), []
    if table.columns:
        x = random.normal(size=(20, table.columns))
        for row, value in enumerate(EXTREMES):
            x[row], x[row + len(EXTREMES), 0] = value, value
        x[14:] = 0.5
        found.append(x.astype(np.float32))
    if table.cardinalities:
        codes = random.integers(0, table.cardinalities, (20, len(table.cardinalities)))
        codes[14:] = np.array(
            [[0], [-1], [-(10**6)], [1 << 24], [10**6], [max(table.cardinalities)]]
        )
        found.append(codes.astype(np.float32))
    for wide in table.wide:
        if wide.levels:
            words = random.integers(0, wide.levels, (20, *wide.shape))
            words[13], words[14:] = (
                0,
                np.array([[0], [-1], [-(10**6)], [1 << 24], [10**6], [wide.levels]]),
            )
            found.append(words.astype(np.float32))
            continue
        x = random.normal(size=(20, wide.elements))
        for row, value in enumerate(EXTREMES):
            x[row], x[row + len(EXTREMES), 0] = value, value
        x[14:] = 0.5
        found.append(x.astype(np.float32))
    return found


@pytest.mark.long_for(framework=("jax", "torch"))
@pytest.mark.long_for(template=CNN)
@pytest.mark.one_framework(
    framework="jax", template=tuple(each for each in TEMPLATES if each not in (LINEAR, RESNET))
)
@by_name()
def test_whatever_comes_is_predicted_within_bounds(
    plain: ProcessPoolExecutor, template: Template
) -> None:
    """By Keras alone, with weights of any size, and the same by what it writes of the model."""
    small: dict[str, object] = {"width": 16, "depth": 2} if template.name != "linear" else {}
    pieces = [{**small, "numbers": PIECEWISE}] if NUMBERS_FIELD in template.fields else []
    # Networks of arrays read columns as the ResNet does.
    tables = (CASES[1], CASES[5]) if template in (TEXTS, SERIES, CNN) else CASES
    cases = [(case, small) for case in (*tables, (OF_ARRAYS, CLASSES))]
    links = [{**small, "link": LOG}] if any(f.name == "link" for f in template.fields) else []
    for (table, head), params in [
        *cases,
        *((CASES[0], params) for params in pieces),
        *((CASES[1], params) for params in links),
    ]:
        text = template.architecture(table, head, template.params(head, ROWS, params))
        found, again = plain.submit(
            plain_keras.predictions_twice, text, extreme_inputs(table)
        ).result()
        assert found.shape == (20, head.units) and np.isfinite(found).all()
        np.testing.assert_array_equal(again, found)
        np.testing.assert_allclose(found[15:], np.tile(found[14], (5, 1)), rtol=1e-3)
        if isinstance(head, Floats):
            low, high = (
                np.array([getattr(t, key) for t in head.targets], np.float32)
                for key in ("low", "high")
            )
            assert (low <= found).all() and (found <= high).all()
        else:
            np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)


@pytest.mark.one_framework
def test_a_number_is_told_by_how_much_of_each_piece_lies_below(plain: ProcessPoolExecutor) -> None:
    graph, (given, _) = Graph("pieces"), extreme_inputs(TABLE)
    text = graph.to_json(blocks.concatenate(graph, embeddings.embed_numbers(graph, TABLE, None)))
    found, _ = plain.submit(plain_keras.predictions_twice, text, [given]).result()
    z = np.clip(given.astype(np.float64), -FARTHEST, FARTHEST)
    clipped = z / np.sqrt(1 + (z / 3) ** 2)
    pieces = [
        np.clip((z[:, place] - low) / (high - low), 0, 1)
        for place, edges in enumerate(PIECES)
        for low, high in itertools.pairwise(edges)
    ]
    expected = np.concatenate(
        [clipped[:, :NUMBERS], np.stack(pieces, axis=1), clipped[:, NUMBERS:]], axis=1
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.one_framework
def test_a_word_weighs_as_much_as_it_is_rare(plain: ProcessPoolExecutor) -> None:
    """Its inverse document frequency, in steps of which eight make it half as frequent; what is
    none weighs nothing.
    """
    having = [0, 1, 7, 100, 1000]
    known = WordStatistics(len(having) + 1, 1, 1000, tuple(enumerate(having, 1)))
    wide = Wide(TEXT, (len(having) + 1,), known.buckets + 1, known.rarities)
    graph, numbers = Graph("rarity"), np.array([[*range(1, len(having) + 1), 0]], np.float32)
    text = graph.to_json(encoders.weigh_words(graph, wide, blocks.add_wide_input(graph, 1, wide)))
    found, _ = plain.submit(plain_keras.predictions_twice, text, [numbers]).result()
    expected = 1 + np.log(1001 / (1 + np.array(having)))
    np.testing.assert_allclose(found[0, :-1], expected, rtol=0, atol=math.log(2) / 16 + 1e-6)
    assert found[0, -1] == 0 and found[0, len(having) - 1] == 1


@pytest.mark.one_framework
@by_name()
def test_keras_builds_whatever_a_space_holds(
    plain: ProcessPoolExecutor, template: Template
) -> None:
    """Build what searches draw, and the least that each field may be."""
    least: dict[str, object] = {
        field.name: field.limits[0] for field in template.fields if field.limits
    }
    drawn: list[dict[str, object]] = [
        {field.name: field.distribution.draw(Random(seed)) for field in template.fields}
        for seed in range(2)
    ]
    chosen = list(
        zip((*CASES, CASES[0]), (*drawn, {}, least, least, drawn[0], least, least), strict=True)
    )
    texts = [
        template.architecture(table, head, template.params(head, ROWS, params))
        for (table, head), params in chosen
    ]
    models = plain.submit(plain_keras.built, texts).result()
    for ((table, head), params), (output, shapes) in zip(chosen, models, strict=True):
        assert output == (None, head.units)
        if params is least:
            check_inputs(table, shapes, template.params(head, ROWS, least).get("width", 0))


def check_inputs(table: Table, shapes: list[tuple[int, ...]], width: Any) -> None:
    """Check that a network has weights over each kind of columns that a table has, and over no
    other kind.
    """
    levels = [shape for shape in shapes if shape[0] == table.levels]
    joined = table.columns + CATEGORY_WIDTH * len(table.cardinalities)
    with_words = joined + WORD_WIDTH * len(table.wide)
    wide = table.columns * width
    columns = [
        s
        for s in shapes
        if s[0] in (table.columns, table.numbers, joined, with_words) or s[-1] == wide
    ]
    assert bool(levels) == bool(table.cardinalities) and (bool(columns) or not table.columns)
    assert sum(shape[0] == WORDS.levels for shape in shapes) == len(table.wide)


@pytest.mark.long_for(template=(SERIES, CNN))
@pytest.mark.one_framework
@by_name()
def test_a_clone_predicts_with_the_weights_of_its_parent_what_that_does(
    plain: ProcessPoolExecutor, template: Template
) -> None:
    """And has the same other variables, such as those of what it drops."""
    small: dict[str, object] = {"width": 8, "depth": 2} if template.name != "linear" else {}
    for table, head in (CASES[0], CASES[1], (OF_ARRAYS, CLASSES)):
        params = template.params(head, ROWS, small)
        draws = {field.name: field.distribution for field in template.fields}
        moved = CloneMutation(template, table, head).mutate(params, draws, Random(4))
        assert moved != params
        texts = [template.architecture(table, head, each) for each in (params, moved)]
        (found, shapes), (again, same) = plain.submit(
            plain_keras.predictions_alike, texts, extreme_inputs(table)
        ).result()
        np.testing.assert_array_equal(found, again)
        assert shapes == same


@pytest.mark.long
@pytest.mark.one_framework
@pytest.mark.parametrize("kind", SHAPES)
def test_arrays_of_any_shape_are_read_as_the_graph_says(
    plain: ProcessPoolExecutor, kind: str
) -> None:
    """By every block, however few steps or pixels there are; shapes that the JSON has are those
    that Keras finds.
    """
    template = SERIES if kind == "series" else CNN
    blocks = [{"block": block} for block in sequences.BLOCKS] if kind == "series" else [{}]
    for shape in SHAPES[kind]:
        for chosen in blocks:
            params = template.params(CLASSES, ROWS, {"width": 8, "depth": 3, **chosen})
            text = template.architecture(Table(0, 0, (), (Wide(kind, shape),)), CLASSES, params)
            assert plain.submit(plain_keras.shapes_apart, text).result() == []


@pytest.mark.one_framework(framework="jax")
@pytest.mark.long_for(framework="torch")
@pytest.mark.parametrize(
    "head", [Classes(3), Floats((Measure(0.0, 1.0, -1e9, 1e9),))], ids=["classes", "floats"]
)
def test_members_are_trained_by_the_mean_of_their_losses(
    plain: ProcessPoolExecutor, head: Head
) -> None:
    params = TABM.params(head, ROWS, {"width": 8, "members": 4, "dropout": 0})
    drawn = np.random.default_rng(2).integers(0, 3, ROWS)
    targets = (
        np.eye(3, dtype=np.float32)[drawn]
        if isinstance(head, Classes)
        else columns()[1][:, np.newaxis]
    )
    text = TABM.architecture(TABLE, head, params)
    found, expected = plain.submit(
        plain_keras.members_apart, text, columns()[0], targets.astype(np.float32)
    ).result()
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.one_framework
def test_logarithms_are_trained_by_the_deviance_of_poisson(plain: ProcessPoolExecutor) -> None:
    """A step is that of the deviance, and the loss that of the target as it is."""
    measure = Measure(2.0, 0.5, 1.0, 9.0)
    head = Floats((measure,))
    params = SIMPLE.params(head, ROWS, {"width": 8, "link": LOG})
    counts = np.random.default_rng(2).poisson(1.0, (ROWS, 1))
    targets = (measure.low + np.minimum(counts, 8)).astype(np.float32)
    text = SIMPLE.architecture(TABLE, head, params)
    whole, twin, losses = plain.submit(
        plain_keras.counts_apart, text, columns()[0], targets, (1.0, 1.0, 0.5)
    ).result()
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for one, other in zip(whole, twin, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.one_framework
def test_labels_are_smoothed_in_training_alone(plain: ProcessPoolExecutor) -> None:
    """A step is that of Keras' smoothed loss, and the loss that of the labels as they are."""
    head, targets = (
        Classes(3),
        np.eye(3, dtype=np.float32)[np.random.default_rng(2).integers(0, 3, ROWS)],
    )
    small: dict[str, object] = {"width": 8, "dropout": 0}
    smooth, plain_labels = (
        REALMLP.architecture(
            TABLE, head, REALMLP.params(head, ROWS, {**small, "label_smoothing": share})
        )
        for share in (0.2, 0.0)
    )
    texts = (smooth, plain_labels)
    found, expected, loss, same = plain.submit(
        plain_keras.smoothed_apart, texts, columns()[0], targets, 0.2
    ).result()
    assert loss == pytest.approx(same, abs=1e-4)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)


def columns() -> tuple[list[np.ndarray], np.ndarray]:
    """Inputs of the table, and what depends on all of them but by chance."""
    random = np.random.default_rng(1)
    x = random.normal(size=(ROWS, NUMBERS + INDICATORS)).astype(np.float32)
    codes = random.integers(0, CARDINALITIES, (ROWS, len(CARDINALITIES))).astype(np.float32)
    return [x, codes], x[:, 0] + np.abs(x[:, 1]) + codes[:, 0] / 2 + np.sin(codes[:, 1])


def data(target: np.ndarray) -> list[ARRAYS]:
    return [[*(("x", column) for column in columns()[0]), ("y", target)]]


def program(
    template: Template, head: Head, table: Table = TABLE, **given: object
) -> tuple[Json, int]:
    """A program as the backend sends it, and its batch size."""
    params = template.params(head, ROWS, {"batch_size": 16, **given})
    kind: Json = (
        {"kind": "onehot", "classes": head.units}
        if isinstance(head, Classes)
        else {"kind": "float"}
    )
    made = {
        "architecture": json.loads(template.architecture(table, head, params)),
        "compile": parse_compile_params(template.compile_params(head, params)).to_json(),
        "targets": [kind],
    }
    return made, int(params["batch_size"])


def losses(
    trainer: Peer, chosen: tuple[Json, int], target: np.ndarray, epochs: int
) -> tuple[float, float, bytes]:
    """The loss before and after training, and the state after it."""
    made, size = chosen
    trainer.load("d", data(target))
    begun = trainer.initial(made, 3)
    _, state = trainer.train(made, NEW, epochs=epochs, batch_size=size)
    first, last = (trainer.evaluate(made, of)["d"]["sums"][0] for of in (begun, state))
    return first[0] / first[1], last[0] / last[1], state


def measured(target: np.ndarray) -> Floats:
    return Floats(
        (
            Measure(
                float(target.mean()), float(target.std()), float(target.min()), float(target.max())
            ),
        )
    )


@pytest.mark.one_framework(template=tuple(each for each in TEMPLATES if each is not REALMLP))
@pytest.mark.long_for(framework=("jax", "torch"))
@of_columns
def test_the_trainer_learns_classes(trainer: Peer, template: Template) -> None:
    classes = np.digitize(columns()[1], (1.0, 2.0))
    before, after, _ = losses(
        trainer, program(template, Classes(3)), np.eye(3, dtype=np.int16)[classes], 20
    )
    assert after < 0.8 * before


@pytest.mark.long
@pytest.mark.one_framework
@pytest.mark.parametrize("template", [TABM, TEXTS], ids=lambda template: template.name)
def test_the_trainer_learns_measures(trainer: Peer, template: Template) -> None:
    """By a rate that needs no schedule; all heads but that of several members are one
    function's.
    """
    target = (np.exp(columns()[1]) * 1e6).astype(np.float32)[:, np.newaxis]
    before, after, _ = losses(trainer, program(template, measured(target), lr=0.003), target, 20)
    assert after < 0.8 * before


@pytest.mark.long
@pytest.mark.one_framework
def test_units_of_a_target_make_no_difference(trainer: Peer) -> None:
    """Powers of two change no digits."""
    target = columns()[1].astype(np.float32)[:, np.newaxis]
    states = []
    for unit in (1.0, 2.0**30, 2.0**-30):
        scaled = (target * np.float32(unit)).astype(np.float32)
        trainer.load("d", data(scaled))
        made, size = program(SIMPLE, measured(scaled), width=16)
        states.append(trainer.train(made, NEW, epochs=5, batch_size=size)[1])
    for other in states[1:]:
        for expected, found in zip(weights(states[0]), weights(other), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.long
@pytest.mark.one_framework
def test_what_begins_out_of_bounds_learns_nevertheless(trainer: Peer) -> None:
    target = np.linspace(5, 6, ROWS, dtype=np.float32)[:, np.newaxis]
    head = Floats((Measure(0.0, 1.0, 5.0, 6.0),))
    before, after, _ = losses(trainer, program(SIMPLE, head, width=16, lr=0.2), target, 20)
    assert before == pytest.approx(float(((target - 5) ** 2).mean()), rel=1e-4)
    assert after < 0.8 * before


@pytest.mark.long
@pytest.mark.one_framework(template=tuple(each for each in TEMPLATES if each is not LINEAR))
@of_columns
def test_every_precision_predicts(trainer: Peer, template: Template) -> None:
    """Codes are not shortened on their way to a table of weights, and outputs are whole."""
    trainer.load("d", data(np.eye(3, dtype=np.int16)[np.digitize(columns()[1], (1.0, 2.0))]))
    made, size = program(template, Classes(3))
    short, scaled = (
        {**made, "dtype_policy": policy} for policy in ("mixed_bfloat16", "mixed_float16")
    )
    _, state = trainer.train(short, NEW, batch_size=size)
    (found, rows), (expected, _) = (
        trainer.evaluate(of, state)["d"]["sums"][0] for of in (short, made)
    )
    assert found / rows == pytest.approx(expected / rows, rel=0.05)
    _, state = trainer.train(scaled, NEW, batch_size=size)
    assert math.isfinite(trainer.evaluate(scaled, state)["d"]["sums"][0][0])


@pytest.mark.long
@pytest.mark.one_framework
def test_factors_of_learning_rates_are_those_of_steps(trainer: Peer) -> None:
    """A first step of Adam is lr long for each variable: a scale of columns moves by scale_rate·lr,
    kept as a sixth.
    """
    made, size = program(
        REALMLP, Classes(3), lr=0.01, weight_decay=0.0, dropout=0.0, scale_rate=6.0
    )
    trainer.load("d", data(np.eye(3, dtype=np.int16)[np.digitize(columns()[1], (1.0, 2.0))]))
    begun = weights(trainer.initial(made, 3))
    _, state = trainer.train(made, NEW, batch_size=size, steps_per_epoch=1)
    steps: list[Any] = [
        np.abs(after - before).max() for before, after in zip(begun, weights(state), strict=True)
    ]
    np.testing.assert_allclose(steps, 0.01, rtol=0.02)
    scales = [before for before in begun if np.allclose(before, 1 / 6)]
    assert len(scales) == 1
