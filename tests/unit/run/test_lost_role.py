"""Whether a run is still its role's is asked of the log: where nobody answers, the role has not
lost it.
"""

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
    """A session that answers so, whatever is asked."""

    def __init__(self, answer: CerebroError | list[tuple[object, ...]]) -> None:
        self._answer = answer

    def run(self, statement: str, values: object = ()) -> list[tuple[object, ...]]:
        if isinstance(self._answer, CerebroError):
            raise self._answer
        return self._answer


@pytest.mark.parametrize(
    ("answer", "owned"),
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
def test_a_server_that_is_gone_has_renamed_nobody(answer: Any, owned: bool) -> None:
    assert RunLog(cast(Any, Control(answer)), 1).is_owned() == owned


@pytest.mark.parametrize(("answer", "seen"), [([(1,)], True), ([], False)])
def test_who_cannot_see_a_run_does_not_resume_it(answer: Any, seen: bool) -> None:
    """Nothing of what says that it goes on would be written."""
    assert RunLog(cast(Any, Control(answer)), 1).resume(2) == seen
