"""Requests with one part that is wrong, to a trainer with a framework: it answers each with an
error and lives on.

So do states that were changed on their way, and those that hold code.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import hostile
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trainer_peer import Peer, TrainerFailed, fit, place
from trainer_programs import buffers, program
from tree_tables import make_architecture
from trials import trials

UNHURT = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
MANY, FEW = (settings(trials(number), suppress_health_check=UNHURT) for number in (60, 40))
BEGIN = {
    "do": "begin", "job": "train", "program": program(), "program_key": "p",
    "state": {"source": "new", "seed": 1},
    "result_key": "r", "datasets": ["d"], "fit": {**fit(), "steps_per_epoch": 2,
    "class_weight": [1.0, 2.0, 1.0]},
    "order": place(), "forms": {"remaining_rows": 10, "known": {}},
}  # fmt: skip
MEMBER = {
    "do": "begin", "job": "predict", "program": program(), "state": {"source": "new", "seed": 1},
    "result_key": "r", "beside": True, "share": 0.5,
}  # fmt: skip
PLAIN = {"numbers": 4, "indicators": 0, "missing": [], "cardinalities": [], "vectors": []}
TREES = {
    **program(),
    "architecture": make_architecture(inputs=PLAIN, units=3, trees=6, epochs=2, leaves=4),
}
GROW = {
    **{name: value for name, value in BEGIN.items() if name not in ("forms", "program_key")},
    "program": TREES, "fit": fit(), "grows": ["d"],
}  # fmt: skip
ROW = np.array([(1, 0, 700, 4, 1, 0, 0, 0, 0)], "i4").tobytes()
ROWS = {
    "do": "rows",
    "rows": 1,
    "arrays": [{"kind": "float32", "divide": 1.0}],
    "classes": [3],
    "want": {"kind": "top", "n": 2},
}
RESULTS = {
    "do": "results",
    "program": program(),
    "sums": {"d": [[1.0, 2.0], [1.0, 2.0]]},
    "rows": {"d": 2},
}
OUTPUTS = {"do": "outputs", "units": 3, "chunk_bytes": 100}
PERMUTE = {
    "do": "permute", "dataset": "d", "columns": [[[0]], [[1, 2]]], "metric": "log_loss",
    "classes": 3, "repeats": 2,
    "seed": 1, "seconds": 1.0,
}  # fmt: skip
LONGEST = 50


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    """A trainer of these tests' own, for they may end it."""
    with Peer() as started:
        started.load("d", buffers(20, 10))
        yield started


@pytest.fixture
def answering(peer: Peer) -> Iterator[Peer]:
    """The trainer, which after the test does what it should."""
    yield peer
    peer.tell({"do": "reset"})
    peer.load("d", buffers(20, 10))
    result, state = peer.train(program(), {"source": "new", "seed": 1})
    assert (result["rows"], len(state) > 0) == (30, True)


def asked(peer: Peer, header: dict[str, Any], payload: bytes = b"") -> Any:
    """What a request is answered with; None where that is an error, which says something."""
    try:
        return peer.ask(header, payload)
    except TrainerFailed as failed:
        assert failed.error["message"] and "Traceback" not in str(failed.error)
        assert len(failed.error["sqlstate"]) == 5
        return None


def takes_long(begin: dict[str, Any]) -> bool:
    """Whether a job that is asked for, wrongly or not, would go over the data so often that it
    takes hours.
    """
    how = begin.get("fit")
    passes = how.get("epochs") if isinstance(how, dict) else 0
    return isinstance(passes, int) and passes > LONGEST


@MANY
@given(hostile.changed(BEGIN))
def test_jobs(answering: Peer, header: Any) -> None:
    if not isinstance(header, dict) or header.get("do") != "begin" or takes_long(header):
        return
    if asked(answering, header) is not None:
        asked(answering, {"do": "finish"})
        asked(answering, {"do": "state_get", "key": "result", "chunk_bytes": 100})


@FEW
@given(hostile.changed(MEMBER))
def test_members(answering: Peer, header: Any) -> None:
    if isinstance(header, dict) and header.get("do") == "begin":
        answering.begin("predict", program(), {"source": "new", "seed": 1}, ())
        asked(answering, header)
        asked(answering, ROWS, ROW)


@FEW
@given(hostile.changed(GROW))
def test_trees(answering: Peer, header: Any) -> None:
    pytest.importorskip("lightgbm", reason="without LightGBM, which is not installed")
    if not isinstance(header, dict) or header.get("do") != "begin" or takes_long(header):
        return
    if asked(answering, header) is not None:
        asked(answering, {"do": "finish"})
        asked(answering, {"do": "state_get", "key": "r", "chunk_bytes": 1 << 20})


@FEW
@given(hostile.changed(ROWS), st.just(ROW) | hostile.damaged(ROW))
def test_rows(answering: Peer, header: Any, payload: bytes) -> None:
    if isinstance(header, dict) and header.get("do") == "rows":
        answering.begin("predict", program(), {"source": "new", "seed": 1}, ())
        asked(answering, header, payload)


@pytest.mark.parametrize("count", [-1, 2.5, True, "3"])
def test_what_is_no_number_of_classes_is_told(peer: Peer, count: object) -> None:
    peer.begin("predict", program(), {"source": "new", "seed": 1}, ())
    with pytest.raises(TrainerFailed, match='"classes" must be numbers of classes') as failed:
        peer.ask({**ROWS, "classes": [count]}, ROW)
    assert failed.value.error["kind"] == "request"


@FEW
@given(hostile.changed(OUTPUTS))
def test_outputs(answering: Peer, header: Any) -> None:
    if isinstance(header, dict) and header.get("do") == "outputs":
        answering.begin("outputs", program(), {"source": "new", "seed": 1})
        answering.ask({"do": "finish"})
        asked(answering, header)


@FEW
@given(hostile.changed(PERMUTE))
def test_permutations_of_a_dataset(answering: Peer, header: Any) -> None:
    repeats = header.get("repeats") if isinstance(header, dict) else None
    few = not isinstance(repeats, int) or repeats <= LONGEST
    if isinstance(header, dict) and header.get("do") == "permute" and few:
        answering.begin("predict", program(), {"source": "new", "seed": 1}, ())
        asked(answering, header)


ODD_BUFFERS = {
    "no rows": [[("x", np.zeros((0, 4), "f4")), ("y", np.zeros((0, 3), "i2"))]],
    "no classes": [[("x", np.zeros((2, 4), "f4")), ("y", np.zeros((2, 0), "i2"))]],
    "two targets": [
        [
            ("x", np.zeros((2, 4), "f4")),
            ("y", np.zeros((2, 3), "i2")),
            ("y", np.zeros((2, 3), "i2")),
        ]
    ],
    "several numbers": [[("x", np.zeros((2, 4), "f4")), ("y", np.zeros((2, 3), "f4"))]],
    "other shapes": [
        [("x", np.zeros((2, n), "f4")), ("y", np.zeros((2, 3), "i2"))] for n in (4, 5)
    ],
    "no input": [[("y", np.zeros((2, 3), "i2"))]],
}


@pytest.mark.parametrize("name", ODD_BUFFERS)
def test_datasets_that_no_packer_makes(answering: Peer, name: str) -> None:
    answering.load("odd", ODD_BUFFERS[name])
    answering.begin("outputs", program(), {"source": "new", "seed": 1}, ["odd"])
    if asked(answering, {"do": "finish"}) is not None:
        assert name == "no rows" and asked(answering, OUTPUTS) == {"rows": 0}
    answering.begin("predict", program(), {"source": "new", "seed": 1}, ())
    assert asked(answering, {**PERMUTE, "dataset": "odd"}) is None


@FEW
@given(hostile.changed(RESULTS))
def test_results(answering: Peer, header: Any) -> None:
    if isinstance(header, dict) and header.get("do") == "results":
        asked(answering, header)


@FEW
@given(st.data())
def test_states(answering: Peer, data: st.DataObject) -> None:
    whole = answering.initial(program())
    for source in ("chunks", "weights_of_chunks", "weights"):
        sent = data.draw(hostile.damaged(whole))
        asked(answering, {**BEGIN, "state": {"source": source, "seed": 1}})
        answering.send_state(sent)
        asked(answering, {"do": "finish"})


class Planted:
    """Unpickled, it ends the process."""

    def __reduce__(self) -> tuple[Any, ...]:
        import os

        return os._exit, (7,)


@pytest.mark.parametrize("source", ["chunks", "weights_of_chunks", "weights"])
def test_pickles_are_bytes_like_any_others(answering: Peer, source: str) -> None:
    asked(answering, {**BEGIN, "state": {"source": source, "seed": 1}})
    answering.send_state(pickle.dumps(Planted()))
    assert asked(answering, {"do": "finish"}) is None


def test_a_state_with_a_nan_fails_its_config(answering: Peer) -> None:
    whole = answering.initial(program())
    poisoned = whole[:-24] + np.full(6, np.nan, "f4").tobytes()
    asked(answering, {**BEGIN, "state": {"source": "chunks"}})
    answering.send_state(poisoned)
    assert asked(answering, {"do": "finish"}) is None
