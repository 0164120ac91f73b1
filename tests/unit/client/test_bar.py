"""What a fit shows while it goes on, on a terminal and elsewhere, and that showing it can do no
harm.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from types import SimpleNamespace

import pytest
from rich.console import Console
from run_progress import RUNNING

from cerebro_db import errors
from cerebro_db.display import live_bar
from cerebro_db.records import Progress

HALFWAY = replace(RUNNING, epoch=2, visits_done=20, share=0.5)
COMPLETED = replace(HALFWAY, status="completed", visits_done=40, share=1.0, phase=None)
Answer = Progress | None | errors.CerebroError


def shown(answers: Sequence[Answer], monkeypatch: pytest.MonkeyPatch, terminal: bool) -> str:
    """What is on the console after a fit that was asked so often; the last answer is that of the
    end.
    """
    monkeypatch.setattr(live_bar, "UPDATE_SECONDS", 0)
    coming = iter(answers)

    def find() -> Progress | None:
        answer = next(coming)
        if isinstance(answer, errors.CerebroError):
            raise answer
        return answer

    console = Console(
        file=StringIO(), force_terminal=terminal, width=120, _environ={"TERM": "xterm"}
    )
    monkeypatch.setattr(live_bar, "make_console", lambda: console)
    with live_bar.show_progress(find, True) as update:
        for _ in answers[1:]:
            update()
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_elsewhere_there_is_a_line_for_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    told = shown(
        [None, RUNNING, RUNNING, HALFWAY, COMPLETED], monkeypatch, terminal=False
    ).splitlines()
    assert [line[: line.index(", elapsed")] for line in told] == [
        "run 3 running, training, epoch 1 of 2, visit 0 of 40",
        "run 3 running, training, epoch 2 of 2, visit 20 of 40",
        "run 3 completed, epoch 2 of 2, visit 40 of 40",
    ]


def test_a_terminal_keeps_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    told = shown([RUNNING, HALFWAY, COMPLETED], monkeypatch, terminal=True)
    assert "epoch 1 of 2" in told and "visit 20 of 40" in told
    assert told.rindex("run 3 completed") > told.rindex("run 3 running")
    assert "━" in told[told.rindex("run 3 completed") :]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_wrong_call_shows_nothing(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    assert shown([None, None], monkeypatch, terminal) == ""


@pytest.mark.parametrize("terminal", [True, False])
def test_a_question_that_fails_ends_the_showing_only(
    monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    told = shown(
        [RUNNING, errors.ConnectionFailure("no more connections"), COMPLETED], monkeypatch, terminal
    )
    assert "cannot be shown any more: no more connections" in told
    assert "completed" not in told


def test_the_server_is_not_asked_all_the_time() -> None:
    asked: list[None] = []
    view = live_bar.ConsoleBar(lambda: asked.append(None), Console(file=StringIO()))
    for _ in range(100):
        view.update()
    assert len(asked) == 1


class Notebook:
    """What IPython is in a kernel: a place for each thing that is displayed, which can be filled
    anew.
    """

    def __init__(self) -> None:
        self.kernel = object()
        self.display = SimpleNamespace(display=self)
        self.places: list[dict[str, str]] = []

    def get_ipython(self) -> Notebook:
        return self

    def __call__(self, content: dict[str, str], *, raw: bool, display_id: bool = False) -> Place:
        self.places.append(content)
        return Place(self, len(self.places) - 1)


class Place:
    def __init__(self, notebook: Notebook, number: int) -> None:
        self.notebook, self.number = notebook, number

    def update(self, content: dict[str, str], *, raw: bool) -> None:
        self.notebook.places[self.number] = content


def test_a_notebook_has_one_bar_that_replaces_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = Notebook()
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setattr(live_bar, "UPDATE_SECONDS", 0)
    coming = iter([None, RUNNING, HALFWAY, COMPLETED])
    with live_bar.show_progress(lambda: next(coming), None) as update:
        for _ in range(3):
            update()
        assert [place["text/html"].count('value="0.5000"') for place in notebook.places] == [1]
    (bar,) = notebook.places
    assert "run 3 completed" in bar["text/html"] and 'max="1" value="1.0000"' in bar["text/html"]
    assert "run 3 completed" in bar["text/plain"]


def test_by_default_only_a_terminal_shows_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with live_bar.show_progress(lambda: COMPLETED, None) as update:
        update()
    assert capsys.readouterr().out == ""
    with live_bar.show_progress(lambda: COMPLETED, True) as update:
        update()
    assert "run 3 completed" in capsys.readouterr().out
