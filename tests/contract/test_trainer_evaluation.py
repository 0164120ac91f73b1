"""Evaluation adds up over segments and gives what Keras gives."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pytest
from trainer_peer import Peer, TrainerFailed
from trainer_programs import MLP, NOISY, buffers, content, dense, examples, program, sequential

NEW = {"source": "new", "seed": 3}
METRICS = [
    "accuracy",
    "AUC",
    "Precision",
    "categorical_crossentropy",
    "sparse_categorical_accuracy",
    "mse",
    "top_k_categorical_accuracy",
    "R2Score",
    "F1Score",
]


def results(
    trainer: Peer, chosen: dict[str, object], evaluated: dict[str, dict[str, object]]
) -> dict[str, Any]:
    answer: dict[str, Any] = trainer.ask(
        {
            "do": "results",
            "program": chosen,
            "sums": {key: found["sums"] for key, found in evaluated.items()},
            "rows": {key: found["rows"] for key, found in evaluated.items()},
        }
    )
    return answer


@pytest.mark.long_for(framework=("jax", "torch"))
def test_sums_of_parts_add_up_to_the_whole(trainer: Peer) -> None:
    chosen = program(NOISY, metrics=METRICS)
    parts = buffers(40, 30, 20)
    state = trainer.initial(chosen)
    whole = [
        ("x", np.concatenate([part[0][1] for part in parts])),
        ("y", np.concatenate([part[1][1] for part in parts])),
    ]
    for key, data in (("whole", [whole]), ("a", parts[:1]), ("b", parts[1:2]), ("c", parts[2:])):
        trainer.load(key, data)
    evaluated = {
        key: trainer.evaluate(chosen, state, [key])[key] for key in ("whole", "a", "b", "c")
    }
    added = [
        np.sum([evaluated[key]["sums"][i] for key in "abc"], axis=0).tolist()
        for i in range(1 + len(METRICS))
    ]
    expected = results(trainer, chosen, {"d": evaluated["whole"]})["d"]
    found = results(trainer, chosen, {"d": {"sums": added, "rows": 90}})["d"]
    assert found["loss"] == pytest.approx(expected["loss"], rel=1e-5)
    # R2Score is a difference of two numbers near one.
    assert found["metrics"] == pytest.approx(expected["metrics"], rel=1e-5, abs=1e-6)


@pytest.mark.one_framework
def test_streamed_and_cached_give_the_same_sums(trainer: Peer) -> None:
    parts, chosen = buffers(40, 30), program(metrics=METRICS)
    state = trainer.initial(chosen)
    trainer.load("d", parts)
    cached = trainer.evaluate(chosen, state)
    trainer.load("d", parts, cache_bytes=0)
    trainer.begin("evaluate", chosen, state)
    for position, arrays in enumerate(parts):
        trainer.send_buffer("d", position, arrays)
    assert trainer.ask({"do": "finish"})["datasets"] == cached


@pytest.mark.one_framework
def test_two_datasets_at_once(trainer: Peer) -> None:
    trainer.load("training", buffers(40))
    trainer.load("validation", buffers(20, 10))
    state = trainer.initial(program())
    both = trainer.evaluate(program(), state, ["training", "validation"])
    assert {key: found["rows"] for key, found in both.items()} == {"training": 40, "validation": 30}
    for key in both:
        assert both[key] == trainer.evaluate(program(), state, [key])[key]


@pytest.mark.long_for(framework=("jax", "torch"))
def test_evaluation_and_prediction_leave_the_state_alone(trainer: Peer) -> None:
    trainer.load("d", buffers(30))
    _, state = trainer.train(program(NOISY), NEW)
    trainer.evaluate(program(NOISY), {"source": "kept", "key": "result"})
    assert content(trainer.state()) == content(state)
    trainer.begin("predict", program(NOISY), {"source": "kept", "key": "result"}, ())
    predict(trainer, examples(5)[0], {"kind": "prob"})
    assert content(trainer.state()) == content(state)


@pytest.mark.one_framework
def test_empty_dataset_gives_sums_that_add_nothing(trainer: Peer) -> None:
    trainer.load("d", [])
    chosen = program(metrics=["accuracy", "AUC"])
    empty = trainer.evaluate(chosen, NEW)["d"]
    trainer.load("d", buffers(10))
    full = trainer.evaluate(chosen, NEW)["d"]
    assert [len(values) for values in empty["sums"]] == [len(values) for values in full["sums"]]
    assert not any(any(values) for values in empty["sums"])
    assert results(trainer, chosen, {"d": empty}) == {"d": {"loss": None, "metrics": [None, None]}}


@pytest.mark.one_framework
@pytest.mark.parametrize("metrics", [["Mean"], ["MeanIoU"], ["no such metric"], ["IoU"]])
def test_metrics_that_give_no_one_number_are_refused_by_name(
    trainer: Peer, metrics: list[str]
) -> None:
    with pytest.raises(TrainerFailed, match=metrics[0]) as failed:
        trainer.begin("predict", program(metrics=metrics), NEW, ())
    assert failed.value.error["kind"] == "config"


@pytest.mark.one_framework
def test_sums_of_another_program_are_refused(trainer: Peer) -> None:
    for sums in ([[1.0, 1.0]], [[1.0, 1.0], [1.0]]):
        with pytest.raises(TrainerFailed, match="sums"):
            trainer.ask(
                {"do": "results", "program": program(), "sums": {"d": sums}, "rows": {"d": 1}}
            )


def predict(
    trainer: Peer, x: np.ndarray, want: dict[str, object], classes: int = 3, divide: float = 1.0
) -> dict[str, list[float]]:
    """Predictions of rows as PostgreSQL holds real[]: dimensions, no NULLs, type, size, lower
    bound, values.
    """
    payload = b"".join(
        struct.pack("=iiIii", 1, 0, 700, len(row), 1) + row.astype("=f4").tobytes() for row in x
    )
    reply = trainer.ask(
        {
            "do": "rows",
            "arrays": [{"kind": "float32", "divide": divide, "shape": None}],
            "rows": len(x),
            "want": want,
            "classes": [classes],
        },
        payload,
    )
    return {key: json.loads(f"[{literal[1:-1]}]") for key, literal in reply.items()}


@pytest.mark.long_for(framework=("jax", "torch"))
def test_predictions_by_class(trainer: Peer) -> None:
    x, _ = examples(700)
    trainer.begin("predict", program(), NEW, ())
    every = predict(trainer, x, {"kind": "prob"})
    probabilities = np.zeros((700, 3))
    probabilities[np.array(every["row"]) - 1, np.array(every["class"], dtype=int)] = every["value"]
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-6)
    assert every["rank"] == [1, 2, 3] * 700
    best = predict(trainer, x, {"kind": "response"})
    assert best["class"] == probabilities.argmax(axis=1).tolist()
    assert best["row"] == list(range(1, 701))
    assert predict(trainer, x, {"kind": "top", "n": 2})["rank"] == [1, 2] * 700
    likely = predict(trainer, x, {"kind": "threshold", "threshold": 0.4})
    assert len(likely["row"]) == (probabilities > 0.4).sum()
    scaled = predict(trainer, x * 2, {"kind": "prob"}, divide=2.0)
    assert scaled == every


@pytest.mark.one_framework
def test_one_unit_gives_both_classes(trainer: Peer) -> None:
    chosen = program(
        sequential([4], dense(1, "out", "sigmoid")),
        loss="binary_crossentropy",
        targets=[{"kind": "onehot", "classes": 2}],
    )
    trainer.begin("predict", chosen, NEW, ())
    found = predict(trainer, examples(3)[0], {"kind": "prob"}, classes=2)
    assert np.reshape(found["value"], (3, 2)).sum(axis=1) == pytest.approx([1, 1, 1])


@pytest.mark.one_framework
def test_floats_are_predicted_as_they_are(trainer: Peer) -> None:
    chosen = program(
        sequential([4], dense(2, "out", "linear")), loss="mse", targets=[{"kind": "float"}]
    )
    trainer.begin("predict", chosen, NEW, ())
    found = predict(trainer, examples(2)[0], {"kind": "response"}, classes=0)
    assert (found["row"], found["class"], found["rank"]) == (
        [1, 1, 2, 2],
        [0, 1, 0, 1],
        [1, 2, 1, 2],
    )


@pytest.mark.one_framework
def test_rows_that_do_not_fit_the_model_are_refused(trainer: Peer) -> None:
    trainer.begin("predict", program(MLP), NEW, ())
    with pytest.raises(TrainerFailed, match=r"\[4\].*\[2\]"):
        predict(trainer, examples(2)[0][:, :2], {"kind": "prob"})
    trainer.begin("predict", program(MLP), NEW, ())
    with pytest.raises(TrainerFailed, match=r"3 units.*5 class"):
        predict(trainer, examples(2)[0], {"kind": "prob"}, classes=5)
