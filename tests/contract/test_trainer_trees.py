"""Boosted trees in a trainer: visits collect rows, the last one of an epoch grows trees."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from test_trainer_attributions import asked, attributed
from trainer_peer import PLPY, Peer, TrainerFailed, environment, fit
from trainer_programs import Json, content, metadata, program
from tree_tables import make_architecture

pytest.importorskip("lightgbm", reason="without LightGBM, which is not installed")

INPUTS = {"numbers": 4, "indicators": 0, "missing": [], "cardinalities": [], "vectors": []}
SIZES = {"a": (40, 25), "b": (50,), "c": (30,)}
"""Rows of the buffers of each segment."""
SEGMENTS = tuple(SIZES)
EPOCHS = 3
NEW = {"source": "new", "seed": 1}
KEPT = {"source": "kept", "key": "result"}


def make_trees(units: int = 1, **values: Any) -> Json:
    """A program of boosted trees for the rows of these tests."""
    config = {"inputs": INPUTS, "units": units, "trees": 12, "epochs": EPOCHS, **values}
    loss = "categorical_crossentropy" if units > 1 else "mean_squared_error"
    target = {"kind": "onehot", "classes": units} if units > 1 else {"kind": "float"}
    metrics = ["accuracy"] if units > 1 else ["mean_absolute_error"]
    return {
        **program(loss=loss, metrics=metrics, targets=[target]),
        "architecture": make_architecture(**config),
    }


def make_rows(rows: int, seed: int, units: int) -> list[tuple[str, np.ndarray]]:
    """A buffer whose target depends on its inputs."""
    x = np.random.default_rng(seed).normal(size=(rows, 4)).astype(np.float32)
    if units > 1:
        return [("x", x), ("y", np.eye(units, dtype=np.int16)[x[:, :units].argmax(axis=1)])]
    return [("x", x), ("y", (x[:, 0] + 2 * (x[:, 1] > 0)).astype(np.float32))]


def load(peer: Peer, units: int = 1) -> None:
    """Hand over the rows of all segments."""
    for number, (segment, sizes) in enumerate(SIZES.items()):
        parts = [make_rows(rows, 10 * number + part, units) for part, rows in enumerate(sizes)]
        assert peer.load(segment, parts)["cached"]


def visit(
    peer: Peer, trees: Json, state: Json | bytes, epoch: int, segment: str, **more: Any
) -> Any:
    """The reply of one visit."""
    how = {"seed": 42, "mst_key": 1, "epoch": epoch, "segment_id": SEGMENTS.index(segment)}
    fields = {"fit": fit(), "order": how, **more}
    peer.begin("train", trees, state, [segment], **fields)
    return peer.ask({"do": "finish"})


def run_epoch(peer: Peer, trees: Json, state: Json | bytes, epoch: int, **more: Any) -> list[Any]:
    """The replies of the visits of an epoch, the last of which grows."""
    replies = []
    for segment in SEGMENTS:
        grows = {"grows": list(SEGMENTS)} if segment == SEGMENTS[-1] else {}
        replies.append(visit(peer, trees, state, epoch, segment, **grows, **more))
        state = KEPT
    return replies


def evaluate(peer: Peer, trees: Json, state: Json | bytes) -> Any:
    return peer.evaluate(trees, state, SEGMENTS)


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    """A trainer for trees: they are the same under every framework."""
    with Peer() as started:
        yield started


@pytest.fixture(params=[1, 2, 3])
def units(request: pytest.FixtureRequest) -> int:
    """A number, two classes, several classes."""
    return int(request.param)


def test_visits_collect_and_the_last_one_grows(peer: Peer, units: int) -> None:
    trees = make_trees(units)
    load(peer, units)
    initial = peer.initial(trees)
    first, second, last = run_epoch(peer, trees, initial, 1)
    assert [reply["rows"] for reply in (first, second, last)] == [65, 50, 30]
    assert first["loss"] is second["loss"] is None and last["loss"] > 0
    for reply in (first, second, last):
        assert (reply["form"], reply["timings"], reply["batches"]) == ("trees", {}, 0)
        assert reply["seconds"] >= 0 and reply["state_bytes"] > 0 and reply["shards"] == []
    state = peer.state()
    assert (metadata(state)["epochs"], metadata(state)["step"]) == ("1", "4")
    (later,) = run_epoch(peer, trees, state, 2)[-1:]
    assert later["loss"] < last["loss"] and metadata(peer.state())["step"] == "8"


def test_rounds_that_time_has_ended_are_grown_again(peer: Peer) -> None:
    """However late a growth begins, it has a second."""
    trees = make_trees(3, trees=20_000, epochs=1, leaves=4)
    load(peer, 3)
    *_, last = run_epoch(peer, trees, NEW, 1, grow_until=0.0)
    name, rounds = last["form"].split()
    assert name == "trees" and 0 < int(rounds) < 20_000
    state = peer.state()
    forms = {"use": last["form"], "remaining_rows": 0, "known": {}}
    *_, again = run_epoch(peer, trees, NEW, 1, forms=forms)
    assert again["form"] == "trees" and again["loss"] == last["loss"]
    assert content(peer.state()) == content(state)


def test_a_collecting_visit_changes_nothing(peer: Peer) -> None:
    trees = make_trees()
    load(peer)
    run_epoch(peer, trees, NEW, 1)
    before = peer.state()
    visit(peer, trees, before, 2, "a")
    after = peer.state()
    assert content(after)[1] == content(before)[1]


def test_another_process_continues_with_the_same_bits(peer: Peer) -> None:
    """Scores and bins are lost with a trainer, and bits do not depend on them."""
    with Peer(threads=1) as other:
        for units in (1, 2, 3):
            trees = make_trees(units)
            load(peer, units)
            run_epoch(peer, trees, NEW, 1)
            stored = peer.state()
            run_epoch(peer, trees, KEPT, 2)
            expected = peer.state()
            sums = evaluate(peer, trees, KEPT)
            load(other, units)
            visit(other, trees, stored, 2, "b")  # an interrupted epoch
            run_epoch(other, trees, stored, 2)
            assert other.state() == expected
            assert evaluate(other, trees, KEPT) == sums
            other.tell({"do": "reset"})
            load(other, units)
            assert evaluate(other, trees, expected) == sums


def test_seeds_are_those_of_the_visit(peer: Peer) -> None:
    trees = make_trees(row_share=0.5)
    load(peer)
    states = []
    for epoch in (1, 1, 2):
        run_epoch(peer, trees, NEW, epoch)
        states.append(content(peer.state())[1])
    assert states[0] == states[1] != states[2]


def test_class_weights_change_trees(peer: Peer) -> None:
    trees = make_trees(2)
    load(peer, 2)
    states = []
    for class_weight in (None, [1.0, 5.0]):
        run_epoch(peer, trees, NEW, 1, fit=fit(class_weight=class_weight))
        states.append(peer.state())
    assert states[0] != states[1]


def test_chosen_buffers_alone_are_learned_from(peer: Peer) -> None:
    trees = make_trees()
    load(peer)
    first = {"order": {"seed": 42, "mst_key": 1, "epoch": 1, "segment_id": 0}, "grows": ["a"]}
    chosen = visit(peer, trees, NEW, 1, "a", buffers={"a": [0]}, **first)
    assert chosen["rows"] == SIZES["a"][0]
    expected = content(peer.state())[1]
    peer.load("a", [make_rows(SIZES["a"][0], 0, 1)])
    visit(peer, trees, NEW, 1, "a", **first)
    assert content(peer.state())[1] == expected


def test_jobs_that_do_not_train(peer: Peer) -> None:
    trees = make_trees(3)
    load(peer, 3)
    run_epoch(peer, trees, NEW, 1)
    state = peer.state()
    peer.begin("time", trees, state, ["a"], fit=fit(), order={**place_of("a"), "epoch": 2})
    timing = peer.ask({"do": "finish"})
    assert timing["seconds_per_row"] > 0 and timing["form"] == "trees"
    peer.begin("restore", trees, state, ())
    assert peer.ask({"do": "finish"})["whole"] is True
    assert peer.state() == state
    peer.begin("outputs", trees, state, SEGMENTS)
    peer.ask({"do": "finish"})
    peer.tell({"do": "outputs", "units": 3, "chunk_bytes": 1 << 20})
    answer, data = peer.reply()
    outputs = np.frombuffer(data, "<f4").reshape(-1, 4)
    assert answer["rows"] == len(outputs) == 145
    np.testing.assert_allclose(outputs[:, 1:].sum(axis=1), 1, rtol=1e-6)
    sums = evaluate(peer, trees, state)
    hits = (outputs[:, 1:].argmax(axis=1) == outputs[:, 0]).sum()
    assert sum(sums[segment]["sums"][1][0] for segment in SEGMENTS) == hits
    header = {"do": "results", "program": trees, "sums": {"d": sums["a"]["sums"]}}
    assert 0 < peer.ask(header)["d"]["metrics"][0] <= 1


def place_of(segment: str) -> dict[str, int]:
    return {"seed": 42, "mst_key": 1, "epoch": 1, "segment_id": SEGMENTS.index(segment)}


def test_trees_and_networks_predict_together(peer: Peer) -> None:
    trees = make_trees(3)
    load(peer, 3)
    run_epoch(peer, trees, NEW, 1)
    grown = peer.state()
    network = program()
    x = make_rows(20, 99, 3)[0][1]
    arrays = [("float32", x)]
    columns = [[[number]] for number in range(4)]
    members = [(trees, grown), (network, peer.initial(network, 2))]

    def answer(*shares: float) -> tuple[np.ndarray, np.ndarray]:
        chosen = [(*member, share) for member, share in zip(members, shares, strict=True) if share]
        for number, (described, state, share) in enumerate(chosen):
            beside = {"beside": True} if number else {}
            weights = {"source": "weights_of_chunks", "seed": 0}
            peer.begin("predict", described, weights, (), share=share, **beside)
            peer.send_state(state)
        (text,) = asked(peer, "tell", arrays, labels=["0", "1", "2"])[-1]
        rows = json.loads(
            "[" + text[1:-1].replace('\\"', "'").replace('"', "").replace("'", '"') + "]"
        )
        outputs = np.array([[row[label] for label in "012"] for row in rows])
        return outputs, np.array(attributed(peer, arrays, columns)[0]).reshape(20, 4)

    (of_trees, _), (of_network, _) = answer(1, 0), answer(0, 1)
    together, attributions = answer(0.75, 0.25)
    expected = (0.75 * of_trees + 0.25 * of_network).astype(np.float32)
    np.testing.assert_array_equal(together.astype(np.float32), expected)
    assert np.isfinite(attributions).all() and np.abs(attributions).max() > 0


WORK = {"fit": fit(), "order": place_of("a")}
REFUSED: Sequence[tuple[str, Json, Json]] = (
    ("fusion", NEW, {"visits": [{"dataset": "a", "order": place_of("a")}], "fit": fit()}),
    ("cuts", NEW, {"datasets": []}),
    ("fronts", NEW, {"datasets": [], "layers": ["hidden"]}),
    ("average", {"source": "averaged", "shares": [1]}, {"datasets": []}),
    ("restore", {"source": "averaged", "shares": [1]}, {"datasets": []}),
    ("restore", {"source": "weights", "seed": 1}, {"datasets": []}),
    ("train", NEW, {**WORK, "fit": {**fit(), "steps_per_epoch": 2}}),
    (
        "train",
        NEW,
        {
            **WORK,
            "callbacks": {
                "folder": "/f", "epoch": 1, "histograms": False, "graph": False, "metrics": [],
                "datasets": {},
            },
        },
    ),
)  # fmt: skip


@pytest.mark.parametrize(("job", "state", "more"), REFUSED, ids=range(len(REFUSED)))
def test_work_of_networks_is_refused(peer: Peer, job: str, state: Json, more: Json) -> None:
    load(peer)
    with pytest.raises(TrainerFailed) as failed:
        peer.begin(job, make_trees(), state, **{"datasets": ["a"], **more})
    assert (failed.value.error["kind"], failed.value.error["sqlstate"]) == ("config", "0A000")


def test_features_of_layers_are_refused(peer: Peer) -> None:
    peer.begin("predict", make_trees(), NEW, ())
    request = {"do": "features", "layer": "hidden", "buffer_id": 0}
    described = [{"role": "x", "dtype": "float32", "shape": [1, 4]}]
    with pytest.raises(TrainerFailed, match="needs a network") as failed:
        peer.ask({**request, "arrays": described}, bytes(16))
    assert failed.value.error["sqlstate"] == "0A000"


def test_warm_starts_need_an_equal_architecture(peer: Peer) -> None:
    load(peer)
    trees = make_trees()
    run_epoch(peer, trees, NEW, 1)
    state = peer.state()
    warm = {"source": "warm", "seed": 1}
    peer.begin("restore", trees, warm, ())
    peer.send_state(state)
    assert peer.ask({"do": "finish"})["whole"] is True
    for other in (make_trees(learning_rate=0.5), make_trees(leaves=7)):
        peer.begin("restore", other, warm, ())
        peer.send_state(state)
        with pytest.raises(TrainerFailed, match="does not fit") as failed:
            peer.ask({"do": "finish"})
        assert failed.value.error["sqlstate"] == "0A000"


def test_rows_that_are_not_collected_or_kept_are_missed(peer: Peer) -> None:
    trees = make_trees()
    load(peer)
    visit(peer, trees, NEW, 1, "a")
    for grows, words in (
        (["b", "c"], "'b' are not collected"),
        (["c", "a"], "the last of them 'c'"),
        (["c", "c"], "must be different"),
    ):
        with pytest.raises(TrainerFailed, match=words) as failed:
            visit(peer, trees, NEW, 1, "c", grows=grows)
        assert failed.value.error["kind"] == "request"
    visit(peer, trees, NEW, 1, "a")
    peer.tell({"do": "reset"})
    load(peer)
    with pytest.raises(TrainerFailed, match="'a' are not collected"):
        visit(peer, trees, NEW, 1, "b", grows=["a", "b"])
    peer.load("large", [make_rows(30, 1, 1)], cache_bytes=10)
    with pytest.raises(TrainerFailed, match="are not cached") as failed:
        peer.begin("train", trees, NEW, ["large"], **WORK)
    assert failed.value.error["sqlstate"] == "53200" and "cache_mb" in failed.value.error["hint"]


def test_a_state_that_is_no_forest_is_refused_at_once(peer: Peer) -> None:
    load(peer)
    trees = make_trees()
    run_epoch(peer, trees, NEW, 1)
    header, data = content(peer.state())
    begin, _ = header["00009"]["data_offsets"]  # the values of leaves
    damaged = data[:begin] + np.array([np.nan]).tobytes() + data[begin + 8 :]
    whole = peer.state()[: -len(data)] + damaged
    peer.begin("restore", trees, whole, ())
    with pytest.raises(TrainerFailed, match="leaf is not finite"):
        peer.ask({"do": "finish"})


def test_trees_that_memory_does_not_hold_are_refused() -> None:
    """The trainer itself takes most of this limit."""
    with Peer(memory=700 << 20) as small:
        load(small)
        with pytest.raises(TrainerFailed, match="boosted trees need") as failed:
            small.begin("train", make_trees(trees=20_000, leaves=1000), NEW, ["a"], **WORK)
        assert failed.value.error["sqlstate"] == "53200"
        assert "trainer_memory_mb" in failed.value.error["hint"]


IMPORTS = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from cerebro_trainer import frameworks
frameworks.load(sys.argv[2])
before = len(os.listdir("/proc/self/task"))
frameworks.load_boosting()
names = ("lightgbm", "scipy.sparse", "pandas", "sklearn")
print(json.dumps([{name: name in sys.modules for name in names}, before,
                  len(os.listdir("/proc/self/task"))]))
"""


@pytest.mark.long_for(framework=("jax", "torch"))
def test_a_fork_server_has_lightgbm_without_what_it_does_not_need(
    framework: str, tmp_path: Any
) -> None:
    """Its process stays one that can be forked: it gets no more threads."""
    values = {**environment(tmp_path, framework), "OPENBLAS_NUM_THREADS": "1"}
    arguments = [sys.executable, "-I", "-c", IMPORTS, str(PLPY), framework]
    done = subprocess.run(arguments, env=values, cwd=tmp_path, capture_output=True, check=True)
    modules, before, after = json.loads(done.stdout.splitlines()[-1])
    assert modules == {"lightgbm": True, "scipy.sparse": True, "pandas": False, "sklearn": False}
    assert after == before
