"""A trainer that answers nonsense: the backend says so, once, and keeps neither the process nor its
folder.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hostile
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from processes import eventually
from trainer_peer import PREFIX
from trials import trials

from cerebro_plpy.errors import CerebroError, ConfigFailure, TrainerFailure
from cerebro_plpy.trainer_client.connection import TrainerConnection
from cerebro_plpy.trainer_client.process.launch import TrainerSpec

HELLO: dict[str, Any] = {"ok": {"protocol": 1, "devices": ["CPU:0"]}}
FEW = settings(trials(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
Speak = Callable[[bytes], TrainerSpec]


def frame(header: object, payload: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return PREFIX.pack(b"CDB1", len(text), len(payload)) + text + payload


@pytest.fixture
def speaking(tmp_path: Path) -> Speak:
    """A program that says these bytes to whoever starts it as a trainer, and ends."""
    program, said = tmp_path / "trainer", tmp_path / "said"
    program.write_text(f'#!/bin/bash\nexec cat {said} >&"$5"\n')
    program.chmod(0o700)

    def speak(data: bytes) -> TrainerSpec:
        said.write_bytes(data)
        return TrainerSpec(python=str(program), framework="none")

    return speak


ERROR = {
    "error": {"kind": "config", "sqlstate": "22023", "message": "m", "hint": "h", "detail": None}
}
FRAMES = (
    st.binary(max_size=40)
    | hostile.damaged(frame({"ok": {"a": 1}}, b"payload"))
    | hostile.JSON.map(frame)
    | hostile.changed(ERROR).map(frame)
)
SPECIAL = (
    PREFIX.pack(b"CDB1", 2, 2**63) + b"{}", PREFIX.pack(b"CDB1", 2**32 - 1, 0), PREFIX.pack(b"CDB1",
    2, 2**64 - 1),
    PREFIX.pack(b"CDB1", 100_000, 0) + b"[" * 100_000, PREFIX.pack(b"CDB1", 2, 0) + b"\xff\xfe",
    frame([]), frame(None),
    frame({"error": None}), frame({"error": {"message": 3}}),
    frame({"error": {"message": "\ud800\0", "hint": 7}}), b"",
)  # fmt: skip


def check_end(link: TrainerConnection, home: Path) -> None:
    eventually(lambda: not link.is_alive())  # the program ends by itself
    eventually(lambda: link._process.wait(0) is not None)
    link.close()
    assert not home.exists()


@FEW
@given(FRAMES)
def test_nonsense_instead_of_a_greeting(speaking: Speak, data: bytes) -> None:
    with pytest.raises(CerebroError):
        TrainerConnection(speaking(data), lambda: None)


@pytest.mark.parametrize("data", SPECIAL, ids=range(len(SPECIAL)))
def test_a_greeting_that_is_none(speaking: Speak, data: bytes) -> None:
    with pytest.raises(CerebroError):
        TrainerConnection(speaking(data), lambda: None)


@FEW
@given(FRAMES)
def test_nonsense_instead_of_an_answer(speaking: Speak, data: bytes) -> None:
    link = TrainerConnection(speaking(frame(HELLO) + data), lambda: None)
    home = Path(link._work_dir.path)
    try:
        assert isinstance(link.receive_result(), dict)
    except CerebroError as error:
        assert error.message
    link.close()
    check_end(link, home)


@pytest.mark.parametrize("data", SPECIAL, ids=range(len(SPECIAL)))
def test_an_answer_that_is_none(speaking: Speak, data: bytes) -> None:
    link = TrainerConnection(speaking(frame(HELLO) + data), lambda: None)
    home = Path(link._work_dir.path)
    with pytest.raises(CerebroError) as caught:
        link.receive_result()
    assert isinstance(caught.value, TrainerFailure) or caught.value.hint == "7"
    check_end(link, home)


@pytest.mark.parametrize("kind", ["config", "request"])
def test_an_error_is_raised_as_what_it_is(speaking: Speak, kind: str) -> None:
    """What the others only damage."""
    error = {"kind": kind, "sqlstate": "42804", "message": "m", "hint": "h", "detail": None}
    link = TrainerConnection(speaking(frame(HELLO) + frame({"error": error})), lambda: None)
    with pytest.raises(CerebroError) as caught:
        link.receive_result()
    assert (isinstance(caught.value, ConfigFailure), caught.value.hint) == (kind == "config", "h")
    link.close()
