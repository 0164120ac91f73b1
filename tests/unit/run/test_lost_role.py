"""A run belongs to its role unless the log shows that it does not; a lost server shows nothing."""

from __future__ import annotations

from typing import Any, cast

import pytest

from cerebro_plpy.errors import (
    CerebroError,
    ConnectionFailure,
    InsufficientPrivilege,
    QueryCanceled,
    SegmentLost,
    ServerGone,
    UndefinedObject,
)
from cerebro_plpy.run.log.run_log import RunLog


class Control:
    """A session with the same answer to every statement."""

    def __init__(self, answer: CerebroError | list[tuple[object, ...]]) -> None:
        self._answer = answer

    def run(self, statement: str, values: object = ()) -> list[tuple[object, ...]]:
        if isinstance(self._answer, CerebroError):
            raise self._answer
        return self._answer


@pytest.mark.parametrize(
    ("answer", "is_owned"),
    [
        ([(1,)], True),
        ([], False),
        (ServerGone("the server was ended"), True),
        (ConnectionFailure("a session was lost"), True),
        (SegmentLost("a segment was lost"), True),
        (QueryCanceled("it was cancelled"), True),
        (InsufficientPrivilege("permission denied"), False),
        (UndefinedObject("there is no such role"), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_only_an_answer_of_the_server_shows_that_a_run_has_lost_its_role(
    answer: Any, is_owned: bool
) -> None:
    assert RunLog(cast(Any, Control(answer)), 1).is_owned() == is_owned


@pytest.mark.parametrize(("answer", "is_visible"), [([(1,)], True), ([], False)])
def test_a_run_that_is_hidden_is_not_resumed(answer: Any, is_visible: bool) -> None:
    """Its log could not be written."""
    assert RunLog(cast(Any, Control(answer)), 1).resume(2) == is_visible
