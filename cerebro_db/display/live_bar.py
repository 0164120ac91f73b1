"""What a fit shows of its own run while it waits for it: a bar on a terminal and in a notebook,
lines elsewhere.
"""

from __future__ import annotations

import html
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group
from rich.live import Live

from cerebro_db.display.boards import landmark, plain, progress_bar, progress_line, standard_output
from cerebro_db.errors import CerebroError
from cerebro_db.records import Progress

LOOK_SECONDS = 0.5
Find = Callable[[], Progress | None]


@contextmanager
def shown(find: Find, wanted: bool | None) -> Iterator[Callable[[], None]]:
    """Something to call again and again, which shows what `find` finds: None while there is no run
    yet.

    `wanted` None means: where the standard output is a terminal or a notebook.
    """
    display = notebook_display()
    if not (display is not None or sys.stdout.isatty() if wanted is None else wanted):
        yield lambda: None
        return
    bar = Bar(find, standard_output()) if display is None else NotebookBar(find, display)
    try:
        yield bar.look
    finally:
        bar.close()


def notebook_display() -> Any:
    """IPython's function that shows something, where a notebook's kernel runs this; else None."""
    ipython = sys.modules.get("IPython")  # a kernel has imported it
    shell = ipython.get_ipython() if ipython else None
    return None if getattr(shell, "kernel", None) is None else ipython.display.display  # type: ignore[union-attr]


class View(ABC):
    """Looks at one run again and again. A question that fails ends the showing, never the run."""

    def __init__(self, find: Find) -> None:
        self._find: Find | None = find
        self._next = 0.0

    def look(self) -> None:
        """Asks and shows; oftener than every LOOK_SECONDS it does nothing."""
        if time.monotonic() >= self._next:
            self._ask()
            self._next = time.monotonic() + LOOK_SECONDS

    def close(self) -> None:
        """Shows how the run ended, and leaves it there."""
        self._ask()

    def _ask(self) -> None:
        if self._find is None:
            return
        try:
            progress = self._find()
        except CerebroError as error:
            self._find = None
            self._say(f"Progress cannot be shown any more: {error.message}")
            return
        if progress is not None:
            self._draw(progress)

    @abstractmethod
    def _say(self, message: str) -> None:
        """Shows a message."""

    @abstractmethod
    def _draw(self, progress: Progress) -> None:
        """Shows how far the run is."""


class Bar(View):
    """Shows a run on a console."""

    def __init__(self, find: Find, console: Console) -> None:
        super().__init__(find)
        self._console = console
        self._live = Live(console=console, auto_refresh=False)
        self._shown: tuple[object, ...] = ()

    def close(self) -> None:
        """Shows how the run ended, and leaves it on the console."""
        super().close()
        self._live.stop()

    def _say(self, message: str) -> None:
        self._console.print(plain(message))

    def _draw(self, progress: Progress) -> None:
        line = plain(progress_line(progress))
        if self._console.is_terminal:
            self._live.start()
            self._live.update(Group(line, progress_bar(progress)), refresh=True)
        elif (now := (progress.status, *landmark(progress))) != self._shown:
            self._console.print(line, soft_wrap=True)
            self._shown = now


class NotebookBar(View):
    """Shows a run in the output of a notebook's cell, in one place."""

    def __init__(self, find: Find, display: Any) -> None:
        super().__init__(find)
        self._display = display
        self._handle: Any = None

    def _say(self, message: str) -> None:
        self._display({"text/plain": message}, raw=True)

    def _draw(self, progress: Progress) -> None:
        line = progress_line(progress)
        bar = (
            f'<progress max="{max(progress.visits_total, 1)}" '
            f'value="{progress.visits_done}"></progress>'
        )
        content = {"text/plain": line, "text/html": f"<div>{html.escape(line)}</div>{bar}"}
        if self._handle is None:
            self._handle = self._display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)
