"""A run that is watched without a terminal: each change is printed once, and the end comes last."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext, redirect_stdout
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from itertools import groupby

import pytest
import sqlalchemy as sa
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console
from run_progress import RUNNING

from cerebro_db.console import watching
from cerebro_db.display import watch
from cerebro_db.display.boards import format_progress, make_progress_key
from cerebro_db.records import Progress
from cerebro_db.run_reader import RunReader

SECONDS = st.integers(0, 99).map(lambda number: timedelta(seconds=number))


@st.composite
def draw_progress(draw: st.DrawFn, *statuses: str) -> Progress:
    """Draw the progress of a run that has one of these statuses."""
    visits = draw(st.sampled_from([0, 1, 20]))  # of 40: for one more, a file has no line of its own
    status = draw(st.sampled_from(statuses))
    return replace(
        RUNNING,
        status=status,
        visits_done=visits,
        elapsed=draw(SECONDS),
        eta=draw(st.none() | SECONDS),
    )


LOOKS = st.tuples(
    st.lists(draw_progress(*watch.LIVE_STATUSES), max_size=6),
    draw_progress("completed", "failed", "cancelled"),
).map(lambda drawn: [*drawn[0], drawn[1]])
"""What a run is at each look, until it has ended."""


class Looks(RunReader):
    """A reader of a run that goes on from look to look."""

    def __init__(self, looks: list[Progress]) -> None:
        super().__init__(sa.create_engine("sqlite://"))
        self._looks = list(looks)

    def progress(self, run_id: int) -> Progress:
        return self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]


@pytest.fixture(autouse=True, scope="module")
def no_pause() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (watch, watching):
            patch.setattr(module, "POLL_SECONDS", 0)
        yield


@given(LOOKS)
@example([RUNNING, RUNNING, replace(RUNNING, status="completed")])
def test_a_program_reads_each_change_once_and_the_end(looks: list[Progress]) -> None:
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as printed:
        patch.setattr(watching, "connect", lambda url: nullcontext(Looks(looks)))
        assert watching.watch("postgresql:///none", 3, json=True) == looks[-1].status
    read = [json.loads(line) for line in printed.getvalue().splitlines()]
    states = [(look.status, look.visits_done) for look in looks]
    assert [(one["status"], one["visits_done"]) for one in read] == [
        state for state, _ in groupby(states)
    ]


@given(LOOKS)
def test_a_file_has_a_line_for_each_make_progress_key_and_the_end(looks: list[Progress]) -> None:
    console = Console(file=StringIO(), force_terminal=False, color_system=None, width=20)
    assert watch.follow(Looks(looks), 3, console) == looks[-1].status
    *before, end = looks
    firsts = [next(group) for _, group in groupby(before, make_progress_key)]
    assert isinstance(console.file, StringIO)
    assert console.file.getvalue().splitlines() == [
        *map(format_progress, firsts),
        format_progress(end),
    ]
