"""The outputs of a network for the rows of packed datasets: those that it gives for the same rows
by hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from trainer_peer import Peer, TrainerFailed
from trainer_programs import Json, buffers, dense, program, sequential

NEW = {"source": "new", "seed": 3}
NUMBER = sequential([4], dense(5, "hidden", "tanh"), dense(1, "out"))
SIZES = (21, 13, 8)
HEAD = np.array([1, 0, 700, 4, 1], "i4").tobytes()


def lines(trainer: Peer, units: int, chunk_bytes: int = 1000) -> np.ndarray:
    """What the job that ended last has left: a line for each row, its target first."""
    trainer.tell({"do": "outputs", "units": units, "chunk_bytes": chunk_bytes})
    told, data = trainer.reply()
    found = np.frombuffer(data, np.float32).reshape(-1, units + 1)
    assert told == {"rows": len(found)}
    return found


def outputs(
    trainer: Peer, of: Json, units: int, chunk_bytes: int = 1000, **more: Any
) -> np.ndarray:
    trainer.begin("outputs", of, NEW, **more)
    assert "error" not in trainer.ask({"do": "finish"})
    return lines(trainer, units, chunk_bytes)


def by_hand(trainer: Peer, of: Json, x: np.ndarray, units: int) -> np.ndarray:
    """The outputs for rows that come raw."""
    trainer.begin("predict", of, NEW, ())
    payload = b"".join(HEAD + row.tobytes() for row in x)
    asked = {
        "arrays": [{"kind": "float32"}],
        "classes": [units if units > 1 else 0],
        "want": {"kind": "prob"},
    }
    trainer.tell({"do": "rows", "rows": len(x), **asked}, payload)
    told, _ = trainer.reply()
    rows, classes, values = (
        np.array(told[name].strip("{}").split(","), float) for name in ("row", "class", "value")
    )
    return values[np.lexsort((classes, rows))].reshape(len(x), units)


def numbers(parts: list[Any]) -> list[Any]:
    """The buffers with a number as their target."""
    return [[x, ("y", x[1][:, :1] * 2)] for x, _ in parts]


@pytest.mark.long_for(framework=("jax", "torch"))
@pytest.mark.parametrize("kind", ["classes", "number"])
def test_each_row_comes_with_its_target(trainer: Peer, kind: str) -> None:
    parts, of, units = buffers(*SIZES), program(), 3
    if kind == "number":
        targets = [{"kind": "float"}]
        parts, of, units = (
            numbers(parts),
            {**program(NUMBER, loss="mean_squared_error", metrics=None), "targets": targets},
            1,
        )
    trainer.load("d", parts)
    found = outputs(trainer, of, units)
    x, y = (np.concatenate([part[place][1] for part in parts]) for place in (0, 1))
    assert found[:, 0].tolist() == (y.argmax(axis=1) if units > 1 else y[:, 0]).tolist()
    np.testing.assert_allclose(found[:, 1:], by_hand(trainer, of, x, units), rtol=1e-5, atol=1e-7)


@pytest.mark.one_framework
def test_it_does_not_matter_how_rows_come_and_go(trainer: Peer) -> None:
    """Whether the trainer keeps them, and how large the chunks are."""
    parts = buffers(*SIZES)
    trainer.load("d", parts)
    kept = outputs(trainer, program(), 3)
    assert outputs(trainer, program(), 3, chunk_bytes=1).tobytes() == kept.tobytes()
    assert outputs(trainer, program(), 3, chunk_bytes=1 << 20).tobytes() == kept.tobytes()
    chosen = outputs(trainer, program(), 3, buffers={"d": [1]})
    assert chosen.tobytes() == kept[SIZES[0] : sum(SIZES[:2])].tobytes()
    trainer.load("d", parts, cache_bytes=0)
    trainer.begin("outputs", program(), NEW)
    for number, arrays in enumerate(parts):
        trainer.send_buffer("d", number, arrays)
    trainer.ask({"do": "finish"})
    assert lines(trainer, 3).tobytes() == kept.tobytes()


@pytest.mark.one_framework
def test_they_are_fetched_once_and_as_what_they_are(trainer: Peer) -> None:
    trainer.load("d", buffers(5))
    outputs(trainer, program(), 3)
    with pytest.raises(TrainerFailed, match="left no outputs") as failed:
        lines(trainer, 3)
    assert failed.value.error["sqlstate"] == "55000"
    with pytest.raises(TrainerFailed, match="3 units; expected 2") as failed:
        outputs(trainer, program(), 2)
    assert (failed.value.error["kind"], failed.value.error["sqlstate"]) == ("config", "42804")
    trainer.begin("outputs", program(), NEW)
    trainer.ask({"do": "finish"})
    trainer.begin("predict", program(), NEW, ())
    with pytest.raises(TrainerFailed, match="left no outputs"):
        lines(trainer, 3)


@pytest.mark.one_framework
def test_columns_of_a_dataset_are_shuffled_as_those_of_the_same_raw_rows(trainer: Peer) -> None:
    parts = buffers(*SIZES)
    x, y = (np.concatenate([part[place][1] for part in parts]) for place in (0, 1))
    asked = {
        "do": "permute",
        "columns": [[[0]], [[1, 2]]],
        "metric": "log_loss",
        "classes": 3,
        "repeats": 3,
        "seed": 5,
    }
    trainer.load("d", parts)
    trainer.begin("predict", program(), NEW, ())
    trainer.tell({**asked, "dataset": "d"})
    packed = trainer.reply()
    columns = (
        [HEAD + row.tobytes() for row in x],
        [
            np.array([1, 0, 700, 1, 1], "i4").tobytes() + np.float32(place).tobytes()
            for place in y.argmax(axis=1)
        ],
    )
    data = [b"".join(each) for each in columns]
    raw = {
        "rows": len(x),
        "arrays": [{"kind": "float32"}],
        "target": {"kind": "float32"},
        "lengths": [*map(len, data)],
    }
    trainer.tell({**asked, **raw}, b"".join(data))
    assert trainer.reply() == packed and packed[1].count(b"{") == 2
