"""`cerebro.plan_of` reports why a run has no plan, and how to list the caller's runs."""

from __future__ import annotations

from typing import Any, cast

import pytest

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import (
    CerebroError,
    InvalidParameter,
    NullNotAllowed,
    ObjectNotReady,
    UndefinedObject,
)
from cerebro_plpy.operations.live.explain_run import explain_run


class Log:
    """A log that has run 3, which ended before it had a plan or a configuration."""

    def peek(self, statement: str, *values: object) -> list[dict[str, Any]]:
        if statement == sql("plan.planned") and values == (3,):
            return [
                {
                    "run_id": 3,
                    "plan": None,
                    "epochs": 2,
                    "segments": [0, 1],
                    "status": "failed",
                    "seconds": 1.0,
                }
            ]
        return [{"workers": 0, "span": 0.0, "work": 0.0}] if statement == sql("plan.course") else []


@pytest.mark.parametrize(
    ("run_id", "form", "error", "words"),
    [
        (None, "text", NullNotAllowed, "run_id is NULL"),
        (4, "text", UndefinedObject, "there is no run 4 of yours"),
        (3, "text", ObjectNotReady, "run 3 has no configurations"),
        (3, "yaml", InvalidParameter, "'yaml'"),
    ],
)
def test_a_run_without_a_plan_is_refused(
    run_id: int | None, form: str, error: type[CerebroError], words: str
) -> None:
    with pytest.raises(error, match=words) as refused:
        explain_run(cast(Database, Log()), run_id, form)
    assert refused.value.hint or error is InvalidParameter
