"""A trainer that dies during a prediction is replaced once, and each block is answered once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trials import trials

from cerebro_plpy.errors import OutOfMemory, TrainerFailure
from cerebro_plpy.trainer_client import ownership, segment_functions
from cerebro_plpy.trainer_client.predictor import Predictor, PredictorSpec
from cerebro_plpy.trainer_client.process.launch import TrainerSpec

DEATHS = ("at the request", "before its answer")


class FakeLink:
    """A trainer that answers a block with the block, unless it dies at that block."""

    def __init__(self, deaths: dict[int, list[str]]) -> None:
        self.deaths = deaths
        self.block: bytes = b""
        self.is_dead = False

    def is_alive(self) -> bool:
        return not self.is_dead

    def park(self, seconds: int) -> None: ...

    def post(self, header: Any, block: bytes) -> None:
        self.block = block
        self._die("at the request")

    def receive_reply(self) -> tuple[dict[str, list[int]], bytes]:
        self._die("before its answer")
        return {"lengths": [len(self.block)]}, self.block

    def _die(self, moment: str) -> None:
        waiting = self.deaths.get(self.block[0], [])
        if waiting and waiting[0] == moment:
            waiting.pop(0)
            self.is_dead = True
            raise TrainerFailure("the trainer ended")


def predict(
    monkeypatch: pytest.MonkeyPatch, blocks: int, deaths: dict[int, list[str]], calls: int = 1
) -> tuple[list[bytes], int]:
    """Predict so many blocks in each call; what came back, and how many trainers were filled."""
    session: dict[str, Any] = {}
    filled: list[FakeLink] = []

    def start_trainer(*_: object) -> FakeLink:
        link = session.get(segment_functions.KEY)
        if link is None or not link.is_alive():
            link = session[segment_functions.KEY] = FakeLink(deaths)
        return link

    monkeypatch.setattr(segment_functions, "start_trainer", start_trainer)
    monkeypatch.setattr(ownership, "is_owner", lambda _: True)
    told = PredictorSpec(
        TrainerSpec("python"),
        5,
        {"do": "tell"},
        lambda: filled.append(session[segment_functions.KEY]),
    )
    asker = Predictor(session, told, lambda: None)
    answers = []
    for call in range(calls):
        for number in range(call * blocks, (call + 1) * blocks):
            asker.send_block(1, [bytes([number])])
            answers += asker.receive_block()
        asker.end()
    return answers, len(filled)


@given(blocks=st.integers(1, 5), at=st.integers(0, 4), moment=st.sampled_from(DEATHS))
def test_a_trainer_that_dies_once_costs_no_row_and_none_comes_twice(
    blocks: int, at: int, moment: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        answers, filled = predict(patch, blocks, {at: [moment]})
    assert answers == [bytes([number]) for number in range(blocks)]
    assert filled == 1 + (at < blocks)


@trials(50)
@given(
    first=st.integers(0, 2),
    second=st.integers(0, 2),
    moments=st.tuples(*[st.sampled_from(DEATHS)] * 2),
)
def test_the_second_death_in_a_call_is_an_error(
    first: int, second: int, moments: tuple[str, str]
) -> None:
    deaths: dict[int, list[str]] = {}
    for at, moment in zip((first, second), moments, strict=True):
        deaths.setdefault(at, []).append(moment)
    with (
        pytest.MonkeyPatch.context() as patch,
        pytest.raises(TrainerFailure, match="the trainer ended"),
    ):
        predict(patch, 3, deaths)


def test_each_call_may_have_its_trainer_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    deaths = {number: ["before its answer"] for number in (1, 2)}
    answers, filled = predict(monkeypatch, 2, deaths, calls=2)
    assert answers == [bytes([number]) for number in range(4)] and filled == 3


def test_what_was_no_death_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def hungry(self: FakeLink) -> None:
        raise OutOfMemory("it took too much")

    monkeypatch.setattr(FakeLink, "receive_reply", hungry)
    with pytest.raises(OutOfMemory):
        predict(monkeypatch, 1, {})
