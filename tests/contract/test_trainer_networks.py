"""Attention, normalisation and the networks of keras_hub: each trains, and what hops is all of
it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import networks
import numpy as np
import plain_keras
import pytest
from models import tensor
from test_trainer_keras import TOLERANCE, keras
from test_trainer_training import NEW
from trainer_peer import PLPY, Peer, TrainerFailed
from trainer_programs import Json, content, dense, layer, program, sequential, weights

from cerebro_plpy.configs.architecture.allowlist import HUB
from cerebro_plpy.configs.architecture.architecture import check_architecture

__all__ = ["keras"]
OF_HUB = tuple(sorted(networks.OF_HUB.keys() - {"BertBackbone"}))
"""BERT is what the other tests train."""
STEADY = tuple(
    name
    for name in networks.OF_KERAS
    if name not in ("MultiHeadAttention", "SpectralNormalization")
)
"""Layers of Keras that change no variable but by gradients, and batch normalization, which has a
test of its own.
"""
BERT = networks.OF_HUB["BertBackbone"]
STILL = networks.texts(networks.bert(dropout=0.0), networks.ALL, pooled=True)
SERIES = tensor("series")
FROZEN = {
    "BERT": networks.texts(networks.bert(trainable=False), networks.ALL, pooled=True),
    "attention": networks.attending(
        "MultiHeadAttention", SERIES, SERIES, num_heads=2, key_dim=4, trainable=False
    ),
}
ROWS = 24


def rows(architecture: Json, count: int = ROWS) -> list[tuple[str, np.ndarray]]:
    """Rows that fit the inputs of a network, of three classes."""
    draw, arrays = np.random.default_rng(0), []
    for given in check_architecture(architecture).input_shapes:
        shape = (count, *(size or 1 for size in given))
        tokens = given == (networks.LENGTH,)
        arrays.append(
            draw.integers(0, networks.TOKENS, shape) if tokens else draw.normal(size=shape)
        )
    y = np.eye(3, dtype=np.int16)[np.arange(count) % 3]
    return [*(("x", array.astype(np.float32)) for array in arrays), ("y", y)]


def test_each_listed_class_has_a_network_here() -> None:
    assert {name for names in HUB.values() for name in names} == networks.OF_HUB.keys()
    for name, architecture in networks.OF_HUB.items():
        assert name in check_architecture(architecture).class_names


@pytest.mark.one_framework(framework="jax", name=(*OF_HUB, *STEADY))
@pytest.mark.one_framework(
    framework="torch", name=tuple(name for name in OF_HUB if name.endswith("Backbone"))
)
@pytest.mark.long_for(framework=("jax", "torch"))
@pytest.mark.long_for(name=(*OF_HUB, *STEADY[1:]))
@pytest.mark.parametrize("name", [*networks.OF_KERAS, *OF_HUB])
def test_each_trains_for_an_epoch(trainer: Peer, name: str) -> None:
    architecture = {**networks.OF_KERAS, **networks.OF_HUB}[name]
    chosen = program(architecture)
    trainer.load("d", [rows(architecture)])
    before = weights(trainer.initial(chosen, 3))
    result, state = trainer.train(chosen, NEW, batch_size=8)
    assert result["rows"] == ROWS and np.isfinite(result["loss"])
    for old, new in zip(before, weights(state), strict=True):
        assert old.ndim < 2 or (old != new).any(), f"a matrix of shape {old.shape} was not trained"


@pytest.mark.long_for(framework=("jax", "torch"))
def test_training_is_that_of_keras(trainer: Peer, plain: ProcessPoolExecutor) -> None:
    # What only rounding moves, such as the bias of keys, Adam would move as far as all else.
    chosen, given = program(STILL, "SGD"), rows(STILL, 40)
    trainer.load("d", [given])
    initial = weights(trainer.initial(chosen, 3))
    _, state = trainer.train(chosen, NEW, shuffle=False)
    parts: list[plain_keras.Arrays] = [given]
    _, expected = plain.submit(plain_keras.fit, (chosen, initial), parts, 8, 1).result()
    for left, right in zip(expected, weights(state), strict=True):
        np.testing.assert_allclose(right, left, rtol=TOLERANCE["rtol"], atol=TOLERANCE["atol"])


@pytest.mark.long
@pytest.mark.one_framework
def test_a_state_goes_on_from_one_trainer_to_the_next(trainer: Peer, second_trainer: Peer) -> None:
    """With dropout in each of its layers, whose generators are part of the state."""
    for peer in (trainer, second_trainer):
        peer.load("d", [rows(BERT)])
    _, once = trainer.train(program(BERT), NEW, shuffle=False)
    _, twice = second_trainer.train(program(BERT), once, shuffle=False)
    _, both = trainer.train(program(BERT), NEW, shuffle=False, epochs=2)
    assert content(twice) == content(both)


@pytest.mark.long_for(framework=("jax", "torch"))
@pytest.mark.long_for(name="BERT")
@pytest.mark.one_framework(name="BERT")
@pytest.mark.parametrize("name", FROZEN)
def test_what_is_frozen_stays_as_it_is(trainer: Peer, name: str) -> None:
    """Also the parts that a layer makes when it is built."""
    architecture = FROZEN[name]
    trainer.load("d", [rows(architecture)])
    before = weights(trainer.initial(program(architecture), 3))
    _, state = trainer.train(program(architecture), NEW)
    changed = [(old != new).any() for old, new in zip(before, weights(state), strict=True)]
    assert changed == [*(False for _ in before[2:]), True, True]


@pytest.mark.one_framework
def test_a_frozen_backbone_can_be_cut_off(trainer: Peer) -> None:
    """What it gives can be computed once; and what leads there is an architecture that is let in
    again.
    """
    architecture = networks.vit(trainable=False)
    trainer.begin("cuts", program(architecture), NEW, ())
    assert [cut["layer"] for cut in trainer.ask({"do": "finish"})["cuts"]] == ["vision", "mean"]
    trainer.begin("fronts", program(architecture), NEW, (), layers=["vision"])
    (front,) = trainer.ask({"do": "finish"})["fronts"]
    assert "ViTBackbone" in check_architecture(front["architecture"]).class_names


@pytest.mark.one_framework
def test_a_text_may_come_in_several_columns(trainer: Peer) -> None:
    architecture = networks.several_inputs(networks.bert())
    given = rows(architecture)
    given[1:3] = [(name, np.ones((ROWS, networks.LENGTH), np.float32)) for name, _ in given[1:3]]
    trainer.load("d", [given])
    assert np.isfinite(trainer.train(program(architecture), NEW)[0]["loss"])
    given[1] = ("x", np.full((ROWS, networks.LENGTH), 2, np.float32))
    trainer.load("d", [given])
    with pytest.raises(
        TrainerFailed, match="input 2 of the model has 2 embedded tokens, but 2 stands for a token"
    ):
        trainer.train(program(architecture), NEW)


@pytest.mark.one_framework
@pytest.mark.parametrize("architecture", [BERT, networks.tokens()], ids=["backbone", "layer"])
def test_what_is_no_token_is_told_before_it_trains(trainer: Peer, architecture: Json) -> None:
    given = rows(architecture)
    given[0][1][7, 2] = networks.TOKENS
    trainer.load("d", [given])
    with pytest.raises(
        TrainerFailed, match="has 20 embedded tokens, but 20 stands for a token"
    ) as failed:
        trainer.train(program(architecture), NEW)
    assert failed.value.error["kind"] == "config"


@pytest.mark.long_for(name="BertBackbone")
@pytest.mark.parametrize("name", ["BertBackbone", "TokenAndPositionEmbedding"])
def test_all_of_a_network_has_the_policy_and_tokens_are_not_shortened(
    keras: Any, name: str
) -> None:
    """bfloat16 holds whole numbers up to 256."""
    from cerebro_trainer.models import keras_model

    text = json.dumps(networks.OF_HUB[name]).replace(f": {networks.TOKENS},", ": 600,")
    architecture = json.loads(
        text.replace('"mask_zero": true', '"mask_zero": false')
    )  # keras_hub warns of a mask
    made = keras_model.build_seeded(keras_model.prepare(architecture, "mixed_bfloat16"), 1)
    inner = [
        entry
        for entry in made._flatten_layers()
        if entry.weights and not isinstance(entry, keras.Model)
    ]
    assert {entry.compute_dtype for entry in inner if entry.name != "out"} == {"bfloat16"}
    assert {variable.dtype for variable in made.trainable_variables} == {"float32"}
    table = next(weight for weight in made.weights if weight.shape[0] == 600)
    table.assign(np.random.default_rng(0).normal(size=table.shape))
    one, other = (np.full((1, networks.LENGTH), token, np.float32) for token in (513, 514))
    assert (np.asarray(made(one)) != np.asarray(made(other))).any()


HOSTILE = {
    "a task": networks.of_hub("BertTextClassifier", "evil", preset="bert_base_en", num_classes=3),
    "a tokenizer": networks.of_hub("BertTokenizer", "evil", vocabulary="/etc/passwd"),
    "a class that takes classes": networks.of_hub("MaskedLMHead", "evil", token_embedding=dense(3,
    "inner")),
    "a backbone of parts": networks.of_hub("SegFormerBackbone", "evil",
    image_encoder=networks.bert()),
    "a part within": networks.bert(vocabulary_size=layer("Lambda", "code", function="4wEAAAA=")),
    "a function": networks.of_hub("TransformerEncoder", "evil", **networks.ENCODER, activation={
        "module": "os", "class_name": "function", "config": "system", "registered_name": "system"}),
    "an initializer": networks.of_hub("PositionEmbedding", "evil", sequence_length=6, initializer={
        "module": "os", "class_name": "system", "config": {"command": "true"},
        "registered_name": None}),
    "another's class": {**networks.bert(), "registered_name": "mine>BertBackbone"},
    "another's module": {**networks.bert(), "module": "keras_hub_evil.models"},
    "a path": {**networks.bert(), "module": "keras_hub/../evil"},
    "a function of it": {**networks.of_hub("upload_preset", "evil", uri="x", preset="y"),
    "module": "keras_hub"},
    "a backbone of Keras": {**networks.bert(), "module": "keras.layers"},
    "a preset": networks.bert(preset="bert_base_en"),
}  # fmt: skip


@pytest.mark.one_framework
@pytest.mark.parametrize("evil", HOSTILE.values(), ids=HOSTILE)
def test_what_else_keras_hub_has_is_refused(trainer: Peer, evil: Json) -> None:
    architecture = sequential([6], evil, dense(3, "out", "softmax"))
    with pytest.raises(TrainerFailed) as failed:
        trainer.begin("predict", program(architecture, metrics=None), NEW, ())
    assert failed.value.error["kind"] == "config"


WATCHED = """
import json, sys
sys.path.insert(0, sys.argv[1])
from cerebro_trainer import frameworks
frameworks.load(sys.argv[2])
from cerebro_trainer.models import keras_model
seen = []
def hear(event, arguments):
    writes = event == "open" and not set("wax+").isdisjoint(str(arguments[1]) if arguments[1] else
        "")
    if writes or event.split(".")[0] in ("socket", "subprocess", "urllib") or event in ("os.mkdir",
        "os.system"):
        seen.append(f"{event} {arguments}")
sys.addaudithook(hear)
for architecture in json.load(sys.stdin):
    keras_model.build(keras_model.prepare(architecture, None))
loaded = [name for name in frameworks.DOWNLOADS if name in sys.modules]
print(json.dumps([seen, loaded, "keras_hub" in sys.modules]))
"""


@pytest.mark.long
@pytest.mark.one_framework
def test_nothing_is_downloaded_or_written(framework: str, tmp_path: Any) -> None:
    """Also where all that keras_hub downloads with is installed: it looks as if it were not."""
    for name in ("kagglehub", "sentencepiece"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')")
    environment = {
        "HOME": str(tmp_path),
        "PYTHONPATH": str(tmp_path),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, str(PLPY), framework],
        input=json.dumps(list(networks.OF_HUB.values())), capture_output=True, text=True,
        env=environment, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [[], [], True]
