"""Custom losses and metrics in a trainer: every form trains with them as with Keras' own, and says
what went wrong.
"""

from __future__ import annotations

from typing import Any

import pytest
from test_trainer_evaluation import results
from test_trainer_execution_modes import SIZES, use
from test_trainer_training import NEW
from trainer_peer import Peer, TrainerFailed
from trainer_programs import MLP, NOISY, Json, buffers, content, dense, program, sequential

LOSS = "import keras\n\n\ndef {name}(y_true, y_pred):\n    return {body}\n"
CROSS = "keras.losses.categorical_crossentropy(y_true, y_pred)"
SOURCES = {
    "Own": LOSS.format(name="Own", body=CROSS),
    "own_class": "import keras\n\n\nclass own_class(keras.losses.CategoricalCrossentropy):\n    "
    "pass\n",
    "own_accuracy": LOSS.format(
        name="own_accuracy", body="keras.metrics.categorical_accuracy(y_true, y_pred)"
    ),
    "own_counts": "import keras\n\n\nclass own_counts(keras.metrics.CategoricalAccuracy):\n    "
    "pass\n",
    "own_sum": """
import keras


class own_sum(keras.metrics.Metric):
    def __init__(self):
        super().__init__(name="anything")
        self.total = self.add_weight(shape=(), initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.total.assign_add(keras.ops.sum(y_true * y_pred))

    def result(self):
        return self.total
""",
    "macro": "import keras\n\nmacro = keras.metrics.{name}(average='macro')\n",
    "newest": """
import keras


class newest(keras.metrics.Metric):
    def __init__(self):
        super().__init__()
        self.last = self.add_weight(shape=(), initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.last.assign(keras.ops.sum(y_pred[-1] * keras.ops.arange(3, dtype="float32")))

    def result(self):
        return self.last
""",
    "number": "number = 5\n",
    "leaves": "import sys\n\nsys.exit('left')\n\ndef leaves(y_true, y_pred):\n    pass\n",
    "broken": "def broken(y_true, y_pred):\n    return (\n",
    "late": LOSS.format(name="late", body="keras.ops.reshape(y_true, (-1, 7)) - y_pred"),
    "later": """
import keras


class later(keras.losses.Loss):
    def call(self, y_true, y_pred):
        return keras.ops.reshape(y_true, (-1, 7)) - y_pred
""",
    "absent": "x = 1\n",
    "abstract": "import keras\n\n\nclass abstract(keras.losses.Loss):\n    def __init__(self, "
    "needed):\n        pass\n",
}


def custom(
    loss: Any = "Own", metrics: tuple[str, ...] = ("own_accuracy",), architecture: Json = MLP
) -> Json:
    """A program with the sources of the functions that it names."""
    named = [
        name
        for name in ([loss] if isinstance(loss, str) else loss) + list(metrics)
        if name in SOURCES
    ]
    return {
        **program(architecture, loss=loss, metrics=metrics),
        "sources": {name: SOURCES[name] for name in named},
    }


@pytest.mark.long
@pytest.mark.one_framework(form=2)
@pytest.mark.parametrize("form", [0, 2], indirect=True)
def test_a_form_gives_the_bits_of_keras_own(trainer: Peer, form: str) -> None:
    """A function's and a class's, where frameworks calculate and where XLA does."""
    trainer.load("d", buffers(*SIZES))
    named = program(NOISY, metrics=["categorical_accuracy"])
    result, state = trainer.train(named, NEW, epochs=2, forms=use(form))
    sums = trainer.evaluate(named, state)
    for loss, metric in (("Own", "own_accuracy"), ("own_class", "own_counts")):
        again, state_again = trainer.train(
            custom(loss, (metric,), NOISY), NEW, epochs=2, forms=use(form)
        )
        assert again["loss"] == result["loss"]
        assert content(state_again) == content(state)
        assert trainer.evaluate(custom(loss, (metric,), NOISY), state) == sums


@pytest.mark.one_framework
@pytest.mark.parametrize("name", ["F1Score", "FBetaScore"])
def test_a_metric_of_several_numbers_is_their_mean(trainer: Peer, name: str) -> None:
    """Of classes that is what Keras calls macro."""
    trainer.load("d", buffers(24, 16))
    macro = custom(metrics=("macro",))
    macro["sources"]["macro"] = macro["sources"]["macro"].format(name=name)
    chosen = program(metrics=[name])
    evaluated = trainer.evaluate(chosen, NEW)
    (mean,) = results(trainer, chosen, evaluated)["d"]["metrics"]
    again = results(trainer, macro, trainer.evaluate(macro, NEW))["d"]["metrics"]
    assert 0 < mean < 1 and again == [pytest.approx(mean)]


@pytest.mark.one_framework
def test_keras_own_loop_takes_them_too(trainer: Peer) -> None:
    trainer.load("d", buffers(24))
    _, state = trainer.train(program(metrics=["categorical_accuracy"]), NEW, forms=use("keras_fit"))
    assert content(trainer.train(custom(), NEW, forms=use("keras_fit"))[1]) == content(state)


@pytest.mark.long_for(framework=("jax", "torch"))
def test_a_metric_that_keras_has_not(trainer: Peer) -> None:
    trainer.load("a", buffers(24))
    trainer.load("b", buffers(7))
    asked = custom(metrics=("own_sum",))
    sums = trainer.evaluate(asked, NEW | {"key": ""}, ("a", "b"))
    parts = [sums[name]["sums"] for name in ("a", "b")]
    added = [[x + y for x, y in zip(*pair, strict=True)] for pair in zip(*parts, strict=True)]
    found = trainer.ask({"do": "results", "program": asked, "sums": {"all": added}})["all"]
    assert found["metrics"] == [pytest.approx(parts[0][1][0] + parts[1][1][0])]


@pytest.mark.one_framework
def test_another_source_is_another_program(trainer: Peer) -> None:
    """Under the same name, in the same process."""
    trainer.load("d", buffers(24))
    before = trainer.train(custom(), NEW)[0]["loss"]
    other = {
        **custom(),
        "sources": {**custom()["sources"], "Own": LOSS.format(name="Own", body=f"2 * {CROSS}")},
    }
    assert trainer.train(other, NEW)[0]["loss"] > 1.5 * before
    assert trainer.train(custom(), NEW)[0]["loss"] == before


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (custom("broken"), "custom function 'broken': SyntaxError: '(' was never closed"),
        (custom("leaves"), "custom function 'leaves': SystemExit: left (line 3 of its source)"),
        (custom("late"), "(line 5 of its source)"),
        (custom("later"), "(line 7 of its source)"),
        (custom("absent"), "the source of custom function 'absent' does not define it"),
        (custom("abstract"), "custom function 'abstract': TypeError"),
        (custom("own_counts"), "custom function 'own_counts' is no loss but"),
        (custom(metrics=("own_class",)), "custom function 'own_class' is no metric but"),
        (custom(metrics=("number",)), "custom function 'number' is no metric but int"),
        (custom(metrics=("newest",)), "cannot be added to that over another"),
        (program(loss="Own"), "loss 'Own' is unknown to Keras"),
        (program(metrics=["own_accuracy"]), "metric 'own_accuracy' is unknown to Keras"),
    ],
)
@pytest.mark.long_for(framework=("jax", "torch"))
def test_what_goes_wrong_is_the_configuration_s(trainer: Peer, asked: Json, words: str) -> None:
    trainer.load("d", buffers(24))
    with pytest.raises(TrainerFailed) as caught:
        trainer.train(asked, NEW)
    assert caught.value.error["kind"] == "config" and words in caught.value.error["message"]
    trainer.train(custom(), NEW)


@pytest.mark.one_framework
def test_a_loss_is_named_by_its_output(trainer: Peer) -> None:
    trainer.load("d", buffers(24))
    wide = sequential([4], dense(8, "hidden"), dense(3, "out", "softmax"))
    by_name = {"out": "Own"}
    asked = {**custom(architecture=wide), "compile": {**custom()["compile"], "loss": by_name}}
    assert content(trainer.train(asked, NEW)[1]) == content(
        trainer.train(custom(architecture=wide), NEW)[1]
    )


@pytest.mark.one_framework
@pytest.mark.parametrize("sources", [[], "x", {"Own": 5}, {"Own": None}])
def test_sources_are_texts_by_name(trainer: Peer, sources: Any) -> None:
    with pytest.raises(TrainerFailed) as caught:
        trainer.train({**program(), "sources": sources}, NEW)
    assert caught.value.error["kind"] == "request"
