"""What a trainer's answer says: its result, or an error as the class of its SQLSTATE; see
`link`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any

from cerebro_plpy import errors
from cerebro_plpy.errors import CerebroError, ConfigFailure
from cerebro_plpy.trainer_client.request_schema import Header


def header(text: bytes) -> Header | None:
    """The header of a frame; None where the text is no JSON object."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def result(answer: Header) -> Header | None:
    """What an answer holds under `ok`; None where it does not."""
    found = answer.get("ok")
    return found if isinstance(found, dict) else None


def error(answer: Header) -> CerebroError | None:
    """The error that an answer holds; None where it holds none."""
    told = answer.get("error")
    if not isinstance(told, dict) or not isinstance(told.get("message"), str):
        return None
    hint, detail = (
        None if told.get(name) is None else str(told[name]) for name in ("hint", "detail")
    )
    kind = (
        ConfigFailure
        if told.get("kind") == "config"
        else errors.find_error_class(str(told.get("sqlstate")))
    )
    return kind(told["message"], hint=hint, detail=detail)


def lost_by(metrics: Mapping[str, Any]) -> str | None:
    """The data set, of those evaluated, whose loss is no number any more, so that nothing comes of
    the configuration.

    Rows that it was trained on decide where they were evaluated.

    >>> from math import inf
    >>> (lost_by({"training": {"loss": 1.0}, "validation": {"loss": inf}}),
    ...  lost_by({"validation": {"loss": inf}}))
    (None, 'validation')
    """
    decides = next((name for name in ("training", "validation") if name in metrics), None)
    loss = metrics[decides]["loss"] if decides else None
    return decides if loss is not None and not isfinite(loss) else None
