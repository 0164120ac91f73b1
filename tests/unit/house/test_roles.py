"""Roles belong to a server, which all test files of a run share, so no two files may make one of
the same name.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

TESTS = Path(__file__).parents[2]
MADE = re.compile(r'another_role\([^")]*"(\w+)"')


def test_no_two_files_make_a_role_of_one_name() -> None:
    files: dict[str, set[str]] = defaultdict(set)
    for path in TESTS.rglob("test_*.py"):
        for name in MADE.findall(path.read_text(encoding="utf-8")):
            files[name].add(path.name)
    assert len(files) > 10
    assert {name: found for name, found in files.items() if len(found) > 1} == {}
