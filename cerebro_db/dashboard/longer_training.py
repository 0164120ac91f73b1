"""Link a run whose budget was over to a form that trains the same with more time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from cerebro_db.dashboard.train_arguments import (
    BUDGETS,
    KIND_PREFIX,
    LEFT_OUT,
    TEMPLATE_PREFIX,
)

BUDGET_OVER = "the budget was over"
"""The beginning of the error of a run that failed because its time or its cost was over."""
NAMED_FIELDS = ("target", "task", "metric", "model", "split", "weight", "group_by")
"""Fields of the form that the log has by the same names."""
OTHER_ARGUMENTS = ("query", "space", "start", "max_cost", "max_cpu", "costs")
"""Arguments that the form does not have."""
CALL_FIELDS = ("relation", "budget", "columns", "types", "tried", *NAMED_FIELDS, *OTHER_ARGUMENTS)
"""Keys of the log that have the arguments of a call."""
IDENTIFIER = r'"(?:[^"]|"")+"'
EXCEPT = re.compile(rf"\* except ({IDENTIFIER}(?:, {IDENTIFIER})*)")
"""The argument `columns` as the form writes it."""


def is_budget_over(error: str | None) -> bool:
    """Return True if a run failed because its budget was over."""
    return error is not None and error.startswith(BUDGET_OVER)


def suggest_minutes(seconds: float) -> int | None:
    """Return the shortest time of the form that is longer than a budget; None if there is none.

    >>> suggest_minutes(40), suggest_minutes(300), suggest_minutes(1e6)
    (1, 15, None)
    """
    return next((minutes for minutes, _ in BUDGETS if 60 * minutes > seconds), None)


def make_longer_address(train: Mapping[str, Any]) -> str | None:
    """Return the address of a form with the arguments of a run and more time.

    Args:
        train: the arguments of the call in the log.

    Returns:
        None if the form cannot make that call.
    """
    minutes = suggest_minutes(train["budget"])
    left_out = _list_left_out(train["columns"])
    if minutes is None or left_out is None or any(train.get(name) for name in OTHER_ARGUMENTS):
        return None
    fields: dict[str, object] = {"source": train["relation"], "budget": minutes}
    for name in NAMED_FIELDS:
        if train.get(name):
            fields[name] = train[name]
    for column, kind in (train.get("types") or {}).items():
        fields[KIND_PREFIX + column] = kind
    for column in left_out:
        fields[KIND_PREFIX + column] = LEFT_OUT
    for template in train.get("tried") or ():
        fields[TEMPLATE_PREFIX + template] = 1
    return f"/train?{urlencode(fields)}"


def _list_left_out(columns: str | None) -> list[str] | None:
    """Return the columns that are left out; None if the argument is not one of the form.

    >>> _list_left_out('* except "a", "b""c"'), _list_left_out("*"), _list_left_out("a, b")
    (['a', 'b"c'], [], None)
    """
    if columns is None or columns == "*":
        return []
    match = EXCEPT.fullmatch(columns)
    if match is None:
        return None
    names = re.findall(IDENTIFIER, match[1])
    return [name[1:-1].replace('""', '"') for name in names]
