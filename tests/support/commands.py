"""The command line, called in this process: starting an interpreter for each call takes most of its
time.
"""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from subprocess import CompletedProcess
from unittest.mock import patch

from cerebro_db import cli


def called(*arguments: object) -> CompletedProcess[str]:
    """Call `cerebro-db` with these arguments and no terminal; return its exit status and what it
    wrote.
    """
    words = ["cerebro-db", *map(str, arguments)]
    stdout, stderr = io.StringIO(), io.StringIO()
    status = 0
    with (
        patch.object(sys, "argv", words),
        patch.object(sys, "stdin", io.StringIO()),
        redirect_stdout(stdout),
        redirect_stderr(stderr),
    ):
        try:
            cli.main()
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return CompletedProcess(words, status, stdout.getvalue(), stderr.getvalue())
