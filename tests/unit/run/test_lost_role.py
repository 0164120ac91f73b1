"""An error is explained by the loss of a role where that has caused it, and by nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cerebro_plpy.errors import (
    ConnectionFailure,
    InsufficientPrivilege,
    InvalidParameter,
    ObjectNotReady,
    QueryCanceled,
)
from cerebro_plpy.run.lifecycle import check_role


class SpiError(Exception):
    """An error of a statement in the caller's own session, which PL/Python raises."""

    def __init__(self, sqlstate: str) -> None:
        super().__init__("permission denied for schema cerebro")
        self.sqlstate = sqlstate


REFUSED = SpiError("42501")


def check(error: BaseException, *, is_owned: bool) -> None:
    log: Any = SimpleNamespace(run_id=7, is_owned=lambda: is_owned)
    context: Any = SimpleNamespace(role="ann")
    check_role(context, log, error)


@pytest.mark.parametrize(
    "error", [REFUSED, InsufficientPrivilege("not yours"), InvalidParameter("no such row")]
)
def test_a_role_that_has_lost_its_run_is_told_so(error: Exception) -> None:
    check(error, is_owned=True)
    with pytest.raises(ObjectNotReady, match=r"role 'ann'.*renamed or dropped") as raised:
        check(error, is_owned=False)
    assert raised.value.detail == str(error)


@pytest.mark.parametrize(
    "error", [SpiError("22012"), QueryCanceled("stop"), ConnectionFailure("gone"), MemoryError()]
)
def test_other_errors_stay_what_they_are(error: Exception) -> None:
    check(error, is_owned=False)
