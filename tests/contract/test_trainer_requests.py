"""Errors travel with the next reply, and leave the trainer as good as new."""

from __future__ import annotations

import resource
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trainer_peer import Peer, TrainerFailed, fit, place
from trainer_programs import buffers, program


def test_error_of_a_request_without_reply_comes_with_the_next_reply(packer: Peer) -> None:
    packer.tell(
        {
            "do": "buffer",
            "dataset": "never opened",
            "buffer_id": 0,
            "arrays": [{"role": "x", "dtype": "float32", "shape": [1]}],
        },
        b"abcd",
    )
    packer.tell({"do": "open", "dataset": "passed over", "cache_bytes": 0})
    with pytest.raises(TrainerFailed, match="never opened") as failed:
        packer.ask({"do": "close", "dataset": "passed over"})
    assert failed.value.error["kind"] == "request"
    assert packer.silent()
    with pytest.raises(TrainerFailed, match="passed over"):
        packer.ask({"do": "close", "dataset": "passed over"})


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"do": "unheard of"}, "unheard of"),
        ({"do": "close"}, "dataset"),
        ({"do": "pack"}, "no rows"),
    ],
)
def test_wrong_requests_say_what_is_wrong(packer: Peer, header: dict[str, Any], words: str) -> None:
    with pytest.raises(TrainerFailed, match=words) as failed:
        packer.ask(header)
    assert failed.value.error["kind"] == "request"


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"arrays": [], "rows": "three"}, "rows"),
        ({"arrays": [{"kind": "text"}], "rows": 1, "lengths": [8, 0]}, "image, int16, onehot"),
        ({"arrays": [{"kind": "float32", "divide": 0}], "rows": 1, "lengths": [8, 0]}, "divide"),
        ({"arrays": [{"kind": "int16"}, {"kind": "int16"}], "rows": 1}, "lengths"),
    ],
)
def test_wrong_blocks_are_told_of_when_they_are_to_be_packed(
    packer: Peer, header: dict[str, Any], words: str
) -> None:
    packer.tell({"do": "block", **header}, bytes(sum(header.get("lengths", ()))))
    with pytest.raises(TrainerFailed, match=words) as failed:
        packer.ask({"do": "pack"})
    assert failed.value.error["kind"] == "request"
    with pytest.raises(TrainerFailed, match="no rows"):
        packer.ask({"do": "pack"})


@pytest.mark.parametrize(
    "entry",
    [
        {"role": "x", "dtype": "float32", "shape": [3]},
        {"role": "x", "dtype": "float32", "shape": [1]},
        {"role": "x", "dtype": "object", "shape": [2]},
        {"role": "x", "dtype": "float32", "shape": [-1]},
        {"role": "z", "dtype": "float32", "shape": [2]},
    ],
)
def test_buffers_that_do_not_fit_their_payload_are_refused(
    packer: Peer, entry: dict[str, object]
) -> None:
    packer.tell({"do": "open", "dataset": "d", "cache_bytes": 100})
    packer.tell({"do": "buffer", "dataset": "d", "buffer_id": 0, "arrays": [entry]}, bytes(8))
    with pytest.raises(TrainerFailed):
        packer.ask({"do": "close", "dataset": "d"})
    assert packer.ask({"do": "close", "dataset": "d"})["buffers"] == 0


def test_dataset_is_kept_whole_or_not_at_all(packer: Peer) -> None:
    size = sum(array.nbytes for arrays in buffers(5, 5) for _, array in arrays)
    loaded = {"buffers": 2, "rows": 10, "bytes": size}
    assert packer.load("d", buffers(5, 5), size) == {**loaded, "cached": True, "limit": size}
    assert packer.load("d", buffers(5, 5), size - 1) == {
        **loaded,
        "cached": False,
        "limit": size - 1,
    }


def test_datasets_share_a_cache(packer: Peer) -> None:
    size = sum(array.nbytes for arrays in buffers(5, 5) for _, array in arrays)
    assert packer.load("a", buffers(5, 5), 2 * size)["cached"]
    assert packer.load("b", buffers(5, 5), 2 * size)["cached"]
    assert not packer.load("c", buffers(5, 5), 2 * size)["cached"]
    assert packer.load("b", buffers(5, 5), 2 * size)["cached"], (
        "what it was itself before does not count"
    )


def test_pack_gives_what_a_packed_table_stores(packer: Peer) -> None:
    numbers = struct.pack(">qq", 1, 2)
    floats = b"".join(struct.pack("=iiIiif", 1, 0, 700, 1, 1, value) for value in (255.0, 51.0))
    indices = struct.pack(">ii", 2, 0)
    packer.tell(
        {
            "do": "block",
            "rows": 2,
            "lengths": [16, 48, 8],
            "arrays": [{"kind": "float32", "divide": 255.0}, {"kind": "onehot", "classes": 3}],
        },
        numbers + floats + indices,
    )
    packer.tell({"do": "pack"})
    reply, payload = packer.reply()
    assert reply == {"shapes": [[2, 1], [2, 3]], "lengths": [8, 12]}
    assert np.frombuffer(payload[:8], "<f4").tolist() == [1.0, np.float32(51) / np.float32(255)]
    assert np.frombuffer(payload[8:], "<i2").tolist() == [0, 0, 1, 1, 0, 0]


def test_payload_that_no_memory_holds_is_an_error_and_not_an_end(packer: Peer) -> None:
    used = (
        int(Path(f"/proc/{packer.process.pid}/statm").read_text().split()[0])
        * resource.getpagesize()
    )
    resource.prlimit(
        packer.process.pid, resource.RLIMIT_AS, (used + (20 << 20), resource.RLIM_INFINITY)
    )
    packer.tell({"do": "open", "dataset": "d", "cache_bytes": 1 << 30})
    packer.send_buffer("d", 0, [("x", np.zeros(200 << 18, np.float32))])
    with pytest.raises(TrainerFailed, match="does not fit into memory") as failed:
        packer.ask({"do": "close", "dataset": "d"})
    assert failed.value.error["kind"] == "memory"
    assert failed.value.error["sqlstate"] == "53200"
    assert packer.load("d", buffers(5))["cached"]


@pytest.mark.long_for(framework=("jax", "torch"))
def test_jobs_need_what_they_work_on(trainer: Peer) -> None:
    with pytest.raises(TrainerFailed):
        trainer.ask({"do": "any error ends a job"})
    for request in ({"do": "finish"}, {"do": "rows", "arrays": [], "rows": 1, "classes": [2]}):
        with pytest.raises(TrainerFailed, match="no job") as failed:
            trainer.ask(request)
        assert failed.value.error["sqlstate"] == "55000"
    with pytest.raises(TrainerFailed, match="not opened"):
        trainer.begin(
            "train", program(), {"source": "new", "seed": 1}, ["missing"], fit=fit(), order=place()
        )


@pytest.mark.long_for(framework=("jax", "torch"))
def test_a_state_has_its_name_from_finish_on(trainer: Peer) -> None:
    trainer.load("d", buffers(10))
    trainer.begin("train", program(), {"source": "new", "seed": 1}, fit=fit(), order=place())
    with pytest.raises(TrainerFailed) as failed:
        trainer.state()
    assert failed.value.error["sqlstate"] == "55000"
    with pytest.raises(TrainerFailed, match="not held"):
        trainer.begin("evaluate", program(), {"source": "kept", "key": "result"})
