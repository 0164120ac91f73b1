"""Whatever befalls a run, it comes to the end that it would have come to, and leaves nothing
behind.

Each round is a small fit that is disturbed at moments drawn from a seed, and resumed as a user
would. It must end completed after at most one call more than there were faults; its replay must
have the same bits; and of neither may anything be left but its tables: `Course.play` asserts all of
that. Rounds end when each fault was drawn once; `make chaos` goes on for so many minutes, with
another seed.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

import pytest
from course import Course
from faults import FAULTS
from premises import Premises
from rounds import rounds

MINUTES = float(os.environ.get("CHAOS_MINUTES") or 0)
SEED = os.environ.get("CHAOS_SEED") or "4671"
PATIENCE = 3600
"""Seconds after which rounds that draw each fault once, or the last one of so many minutes, hang.
"""


@pytest.fixture
def premises(folder: Path) -> Premises:
    """A server of the test's own, for all rounds."""
    return Premises(folder / "data")


@pytest.mark.long
@pytest.mark.timeout(60 * MINUTES + PATIENCE)
def test_a_run_comes_to_its_end_whatever_befalls_it(premises: Premises) -> None:
    began, count, undrawn = time.monotonic(), Counter[str](), set(FAULTS)
    for plan in rounds(SEED):
        print(plan, flush=True)
        course = Course(premises, plan)
        try:
            course.play()
        except BaseException:
            print(
                f"To repeat it alone: make chaos SEED={plan.name}; so far {course.calls} calls, "
                f"{course.errors}"
            )
            raise
        count.update(rounds=1, resumed=course.calls - 1, faults=len(course.struck))
        count.update(each.fault for each in course.struck)
        seconds = time.monotonic() - began
        print(
            f"    {seconds:.0f} s: {course.calls} calls {course.errors}, {len(course.struck)} "
            "faults",
            flush=True,
        )
        undrawn -= {each.fault for each in plan.misfortunes}
        if not undrawn and time.monotonic() - began > 60 * MINUTES:
            break
    print(", ".join(f"{count[name]} {name}" for name in ("rounds", "faults", "resumed")))
    print("not struck:", ", ".join(sorted(FAULTS.keys() - count.keys())) or "none")
