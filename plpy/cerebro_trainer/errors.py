"""Errors of a trainer, which the backend turns into PostgreSQL errors or failed configs.

The kind of an error decides how the run continues. After `config` it continues without that
configuration; after `request` or `memory` the call fails.
"""

from __future__ import annotations

import re
from typing import ClassVar, TypeAlias

ExceptionTypes: TypeAlias = tuple[type[Exception], ...]


class TrainerError(Exception):
    """Base class of all errors that are sent to the backend in an error frame."""

    kind: ClassVar[str] = "request"

    def __init__(
        self,
        message: str,
        *,
        sqlstate: str = "22023",
        hint: str | None = None,
        detail: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.sqlstate = sqlstate
        self.hint = hint
        self.detail = detail

    def to_header(self) -> dict[str, object]:
        """Return the header of the frame that carries this error."""
        return {
            "error": {
                "kind": self.kind,
                "sqlstate": self.sqlstate,
                "message": self.message,
                "hint": self.hint,
                "detail": self.detail,
            }
        }


class RequestError(TrainerError):
    """An error of the call, whatever the configuration: a missing field, an invalid value."""


class RowError(RequestError):
    """An invalid value in a row; the message already names the user's column."""


class DamagedState(RequestError):
    """Bytes that are not a valid state."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the state is damaged: {reason}", sqlstate="XX001")


class ConfigError(TrainerError):
    """An error of one configuration, which cannot be built or trained; others can."""

    kind = "config"


class OutOfMemory(TrainerError):
    """A lack of memory outside a job, so that no single configuration is to blame."""

    kind = "memory"

    def __init__(self, message: str) -> None:
        super().__init__(
            message,
            sqlstate="53200",
            hint="Lower cache_mb or the buffer size, or raise the memory limit of the trainer.",
        )


CONFIG_EXCEPTIONS = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    ArithmeticError,
    RuntimeError,
    NotImplementedError,
    RecursionError,
    ImportError,
)
"""Exceptions that Keras raises, in any place, for configurations that make no sense."""

LOCATION_PREFIXES = (
    "Graph execution error",
    "Detected at node",
    "File ",
    "[[",
    "Exception encountered when",
)
"""First words of message lines of Keras and TensorFlow that contain only the place of an error."""
CAUSE_PREFIX = "Exception encountered: "
ANSI_COLOR = re.compile(r"\x1b\[\d*m")
MAX_SUMMARY = 500


def summary(error: BaseException) -> str:
    """Return one line of an exception's text, or its type if the text is empty.

    >>> summary(ValueError("Unknown thing.\\n\\nFull config: {...}"))
    'Unknown thing.'
    """
    return text_summary(str(error)) or type(error).__name__


def text_summary(text: str) -> str:
    """Return the most informative line of a message of Keras, which may have several pages.

    >>> text_summary("Graph execution error:\\n\\nToo large.")
    'Too large.'
    """
    plain_text = ANSI_COLOR.sub("", text).replace("\0", "")
    lines = [line.strip() for line in plain_text.splitlines()]
    lines = [line for line in lines if line and not line.startswith(LOCATION_PREFIXES)]
    causes = [line for line in lines if line.startswith(CAUSE_PREFIX)]
    if causes:
        return causes[-1].removeprefix(CAUSE_PREFIX)[:MAX_SUMMARY]
    return lines[0][:MAX_SUMMARY] if lines else ""
