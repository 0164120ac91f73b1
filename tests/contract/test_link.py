"""The backend's end of a trainer's socket, against a trainer that loads no framework."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cerebro_plpy.errors import DatatypeMismatch, ObjectNotReady, TrainerFailure
from cerebro_plpy.trainer_client.connection import TrainerConnection
from cerebro_plpy.trainer_client.process.launch import TrainerSpec

SIZE = 5_000_000  # more than a socket holds


@pytest.fixture
def link() -> Iterator[TrainerConnection]:
    opened = TrainerConnection(TrainerSpec(python=sys.executable, framework="none"), lambda: None)
    yield opened
    opened.close()


def begin(link: TrainerConnection, size: int) -> None:
    """The head of a buffer of so many bytes."""
    link.send({"do": "open", "dataset": "d", "cache_bytes": 2 * SIZE})
    arrays = [{"role": "x", "dtype": "float32", "shape": [size // 4]}]
    link.send_head({"do": "buffer", "dataset": "d", "buffer_id": 0, "arrays": arrays}, size)


def test_a_payload_may_be_sent_in_parts(link: TrainerConnection) -> None:
    begin(link, SIZE)
    for _ in range(5):
        assert not link.is_alive(), "in the middle of a request no other can be sent"
        link.send_part(bytes(SIZE // 5))
    assert link.is_alive()
    assert link.call({"do": "close", "dataset": "d"})["bytes"] == SIZE


def test_after_a_payload_that_was_cut_off_the_trainer_is_given_up(link: TrainerConnection) -> None:
    begin(link, SIZE)
    link.send_part(bytes(1000))
    with pytest.raises(TrainerFailure, match=f"{SIZE - 1000} bytes"):
        link.send({"do": "close", "dataset": "d"})
    assert not link.is_alive()


def test_more_than_was_said_is_not_sent(link: TrainerConnection) -> None:
    begin(link, 8)
    with pytest.raises(DatatypeMismatch, match="9 bytes where 8 are expected"):
        link.send_part(bytes(9))


def test_a_trainer_that_gives_up_is_told_by_its_own_exit_status(tmp_path: Path) -> None:
    """It closes its socket before it ends, as an interpreter does that takes itself apart."""
    program = tmp_path / "trainer"
    lines = [
        f"#!{sys.executable}",
        "import os, sys, time",
        "os.close(int(sys.argv[sys.argv.index('--fd') + 1]))",
        "time.sleep(0.3)",
        "sys.exit('nothing is installed here')",
    ]
    program.write_text("\n".join(lines))
    program.chmod(0o700)
    with pytest.raises(ObjectNotReady, match="ended with exit status 1") as caught:
        TrainerConnection(TrainerSpec(python=str(program), framework="none"), lambda: None)
    assert caught.value.detail == "nothing is installed here"
