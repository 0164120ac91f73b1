"""Parsing of a trainer's answer: its result, or an error as the class of its SQLSTATE."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any

from cerebro_plpy import errors
from cerebro_plpy.errors import CerebroError, ConfigFailure
from cerebro_plpy.trainer_client.argument_checks import optional_text
from cerebro_plpy.trainer_client.request_schema import Header


def parse_header(text: bytes) -> Header | None:
    """Return the header of a frame; None if the text is not a JSON object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _as_object(value)


def _as_object(value: object) -> Header | None:
    if not isinstance(value, dict):
        return None
    return value


def find_result(answer: Header) -> Header | None:
    """Return the object in the field `ok` of an answer, or None."""
    return _as_object(answer.get("ok"))


def find_error(answer: Header) -> CerebroError | None:
    """Return the error in an answer, or None."""
    fields = answer.get("error")
    if not isinstance(fields, dict) or not isinstance(fields.get("message"), str):
        return None
    error_class: type[CerebroError] = ConfigFailure
    if fields.get("kind") != "config":
        error_class = errors.find_error_class(str(fields.get("sqlstate")))
    return error_class(
        fields["message"],
        hint=optional_text(fields.get("hint")),
        detail=optional_text(fields.get("detail")),
    )


def find_diverged(metrics: Mapping[str, Any]) -> str | None:
    """Return the data set whose loss is not a finite number, or None.

    If training rows were evaluated, only their loss counts.

    >>> from math import inf
    >>> (find_diverged({"training": {"loss": 1.0}, "validation": {"loss": inf}}),
    ...  find_diverged({"validation": {"loss": inf}}))
    (None, 'validation')
    """
    for dataset in ("training", "validation"):
        if dataset in metrics:
            loss = metrics[dataset]["loss"]
            if loss is None or isfinite(loss):
                return None
            return dataset
    return None
