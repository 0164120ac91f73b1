"""What a step of `cerebro-db check` found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a step found: `state` is OK, WARN or FAIL; `remedy` says what to do where it is not
    OK.
    """

    told: str
    state: str = "OK"
    remedy: str = ""
    step: str = ""
