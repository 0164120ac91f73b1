"""What a trainer reports back, as data: the backend turns it into a PostgreSQL error or a failed
config.

The kind says who is to blame, because that decides what the run does next: after `config` it goes
on without that configuration, after `request` or `memory` the call itself fails.
"""

from __future__ import annotations

import re
from typing import ClassVar


class TrainerError(Exception):
    """Base of all errors that travel to the backend in an error frame."""

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

    def as_header(self) -> dict[str, object]:
        """The frame header that carries this error."""
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
    """The call is wrong whatever the configuration: a missing field, a value out of place."""


class RowError(RequestError):
    """A value of a row is wrong; it says itself in which column of the user's that is."""


class ConfigError(TrainerError):
    """This configuration cannot be built or trained; others can."""

    kind = "config"


class OutOfMemory(TrainerError):
    """Memory ran out outside a job, so no single configuration is to blame."""

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
"""What Keras raises, anywhere, for configurations that make no sense."""


PREAMBLE = (
    "Graph execution error",
    "Detected at node",
    "File ",
    "[[",
    "Exception encountered when",
)
"""How lines of Keras' and TensorFlow's messages begin that only say where it happened."""
COLOURS = re.compile(r"\x1b\[\d*m")


def summary(error: BaseException) -> str:
    """One line of an exception's text.

    >>> summary(ValueError("Unknown thing.\\n\\nFull config: {...}"))
    'Unknown thing.'
    """
    return text_summary(str(error)) or type(error).__name__


def text_summary(text: str) -> str:
    """One line of what Keras says, which may go on for pages; empty where nothing is said.

    >>> text_summary("Graph execution error:\\n\\nToo large.")
    'Too large.'
    """
    lines = [line.strip() for line in COLOURS.sub("", text).replace("\0", "").splitlines()]
    lines = [line for line in lines if line and not line.startswith(PREAMBLE)]
    inner = [line for line in lines if line.startswith("Exception encountered: ")]
    line = (inner or lines or [""])[-1 if inner else 0]
    return line.removeprefix("Exception encountered: ")[:500]
