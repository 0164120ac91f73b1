"""Steps that are cancelled hear of it once, wherever they are, and may still say what became of
them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.database.sessions.async_dispatcher import (
    DONE,
    READ,
    Dispatcher,
    Outcome,
    Rows,
    Statement,
    Steps,
)
from cerebro_plpy.errors import CerebroError, QueryCanceled
from cerebro_plpy.platform.postgres.adapter import Postgres

ALWAYS_READABLE = os.open("/dev/null", os.O_RDONLY)


class Session:
    """Answers each statement after so many looks; one that hears a cancel fails at the next
    look.
    """

    pid = 0
    platform = Postgres()

    def __init__(self, looks: int, hears: bool) -> None:
        self._looks, self._hears = looks, hears
        self._left, self._cancelled = 0, False
        self.begun: list[str] = []

    def start(self, statement: str, values: Sequence[object] = ()) -> None:
        self.begun.append(statement)
        self._left, self._cancelled = self._looks, False

    def poll(self) -> int:
        if self._cancelled:
            raise QueryCanceled("canceling statement due to user request")
        self._left -= 1
        return READ if self._left > 0 else DONE

    def cancel(self) -> None:
        self._cancelled = self._hears and self._left > 0

    def fetch(self) -> Rows:
        return []

    def fileno(self) -> int:
        return ALWAYS_READABLE

    def run(self, statement: str, values: Sequence[object] = ()) -> Rows:
        return []

    def close(self) -> None:
        """Nothing is held."""


def work(statements: int, told: list[str]) -> Steps[str]:
    """Statements of a task, which says how it failed by one more."""
    try:
        for number in range(statements):
            yield Statement(str(number))
    except CerebroError as error:
        told.append(error.message)
        yield Statement("failed")
        raise
    return "done"


@given(st.integers(1, 3), st.integers(1, 4), st.integers(0, 12), st.booleans())
def test_a_cancel_is_heard_once_and_what_follows_it_is_not_cancelled(
    statements: int, looks: int, moment: int, hears: bool
) -> None:
    dispatcher: Dispatcher[str] = Dispatcher(lambda: None)
    session, other, told = Session(looks, hears), Session(1, hears), list[str]()
    dispatcher.begin(1, session, work(statements, told))
    dispatcher.begin(2, other, work(9, []))
    for _ in range(min(moment, statements * looks - 1)):
        dispatcher._process_result(1)
    under_way = len(session.begun)
    dispatcher.cancel({1, 3}, QueryCanceled("the time was over"))
    outcomes: dict[int, Outcome[str]] = {}
    while dispatcher.busy():
        outcomes |= {outcome.worker: outcome for outcome in dispatcher.wait()}
    assert outcomes[2].value == "done", "no other is cancelled"
    if not hears and under_way == statements:
        assert outcomes[1].value == "done" and not told, "it came to its end before it heard"
        return
    error = outcomes[1].error
    assert error is not None and error.message == "the time was over" and told == [error.message]
    assert session.begun == [*map(str, range(under_way)), "failed"]


def test_it_waits_no_longer_than_it_is_told() -> None:
    dispatcher: Dispatcher[str] = Dispatcher(lambda: None)
    dispatcher.begin(1, Session(3, hears=True), work(2, []))
    assert dispatcher.wait(until=0.0) == [] and dispatcher.busy()
    assert [outcome.value for outcome in dispatcher.wait()] == ["done"]


def test_a_moment_that_is_past_keeps_no_answer_waiting() -> None:
    dispatcher: Dispatcher[str] = Dispatcher(lambda: None)
    dispatcher.begin(1, Session(2, hears=True), work(2, []))
    assert [outcome.value for _ in range(9) for outcome in dispatcher.wait(until=0.0)] == ["done"]


@pytest.mark.parametrize("pieces", [0, 3])
def test_while_nobody_answers_pieces_of_other_work_are_done_one_between_two_looks(
    pieces: int,
) -> None:
    told: list[str] = []
    reading, writing = os.pipe()

    class Waiting(Session):
        def fileno(self) -> int:
            return reading

        def poll(self) -> int:
            told.append("look")
            return super().poll()

    def piece() -> bool:
        if told.count("piece") == pieces:
            os.write(writing, b"answered")
            return False
        told.append("piece")
        return True

    dispatcher: Dispatcher[str] = Dispatcher(lambda: told.append("check"), piece)
    dispatcher.begin(1, Waiting(pieces + 2, hears=True), work(1, []))
    assert [outcome.value for outcome in dispatcher.wait()] == ["done"]
    assert told == [*(["look", "piece", "check"] * pieces), "look", "look"]
    os.close(reading)
    os.close(writing)


def test_who_has_answered_does_not_wait_for_a_piece() -> None:
    dispatcher: Dispatcher[str] = Dispatcher(
        lambda: None, lambda: pytest.fail("a worker has an answer")
    )
    dispatcher.begin(1, Session(5, hears=True), work(3, []))
    assert [outcome.value for outcome in dispatcher.wait()] == ["done"]
