"""Hide what the libraries of a framework write to the standard error by themselves."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

STDERR = 2


@contextmanager
def hide_framework_messages() -> Iterator[None]:
    """Drop what is written to the standard error past Python; Python's own messages appear.

    TensorFlow writes remarks on the processor when it is loaded, at any TF_CPP_MIN_LOG_LEVEL.
    """
    sys.stderr.flush()
    terminal = os.dup(STDERR)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, STDERR)
    os.close(nowhere)
    is_redirected = sys.stderr is not sys.__stderr__  # such as by a test
    try:
        with (
            os.fdopen(os.dup(terminal), "w", buffering=1) as python_messages,
            redirect_stderr(sys.stderr if is_redirected else python_messages),
        ):
            yield
    finally:
        os.dup2(terminal, STDERR)
        os.close(terminal)
