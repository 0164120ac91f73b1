"""The error of a config or of arrays that are not those of boosted trees."""

from __future__ import annotations


class TreesError(Exception):
    """A config or a state that must not be used."""

    def __init__(self, message: str, *, sqlstate: str = "22023", hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.sqlstate = sqlstate
        self.hint = hint
