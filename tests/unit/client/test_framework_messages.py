"""A command shows its own messages, and none that a library writes past Python."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import os, sys, warnings
from cerebro_db.commands.framework_messages import hide_framework_messages
with hide_framework_messages():
    os.write(2, b"remark of a library\\n")
    print("own message", file=sys.stderr)
    warnings.warn("own warning")
os.write(2, b"later\\n")
raise SystemExit("own error")
"""


def test_what_a_library_writes_past_python_is_hidden_and_nothing_else() -> None:
    process = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert process.returncode == 1
    assert "remark" not in process.stderr
    for words in ("own message", "own warning", "later", "own error"):
        assert words in process.stderr
