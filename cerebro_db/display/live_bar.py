"""Show the progress of a fit while it runs: a bar on a terminal or in a notebook, else lines."""

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

from cerebro_db.display.boards import (
    escape_text,
    format_progress,
    make_console,
    make_progress_bar,
    make_progress_key,
)
from cerebro_db.errors import CerebroError
from cerebro_db.records import Progress

UPDATE_SECONDS = 0.5
ReadProgress = Callable[[], Progress | None]
"""A function that returns the progress of a run, None before it has started."""


@contextmanager
def show_progress(
    read_progress: ReadProgress, enabled: bool | None
) -> Iterator[Callable[[], None]]:
    """Yield a function that shows the progress; the caller calls it again and again.

    Args:
        enabled: None for "on a terminal or in a notebook".
    """
    if enabled is None:
        enabled = is_shown_by_default()
    if not enabled:
        yield lambda: None
        return
    display = find_notebook_display()
    view: ProgressView
    if display is None:
        view = ConsoleBar(read_progress, make_console())
    else:
        view = NotebookBar(read_progress, display)
    try:
        yield view.update
    finally:
        view.close()


def is_shown_by_default() -> bool:
    """Return whether the output is a terminal or a notebook."""
    return find_notebook_display() is not None or sys.stdout.isatty()


def find_notebook_display() -> Any:
    """Return IPython's function `display` in the kernel of a notebook, else None."""
    ipython = sys.modules.get("IPython")  # a kernel has imported it
    if ipython is None or getattr(ipython.get_ipython(), "kernel", None) is None:
        return None
    return ipython.display.display


class ProgressView(ABC):
    """A view of a run's progress; an error while reading it ends the view, never the run."""

    def __init__(self, read_progress: ReadProgress) -> None:
        self._read_progress: ReadProgress | None = read_progress
        self._next_update = 0.0

    def update(self) -> None:
        """Show the progress, at most every UPDATE_SECONDS."""
        if time.monotonic() >= self._next_update:
            self._show()
            self._next_update = time.monotonic() + UPDATE_SECONDS

    def close(self) -> None:
        """Show the end of the run, and leave it visible."""
        self._show()

    def _show(self) -> None:
        if self._read_progress is None:
            return
        try:
            progress = self._read_progress()
        except CerebroError as error:
            self._read_progress = None
            self._show_message(f"Progress cannot be shown any more: {error.message}")
            return
        if progress is not None:
            self._draw(progress)

    @abstractmethod
    def _show_message(self, message: str) -> None:
        """Show a message."""

    @abstractmethod
    def _draw(self, progress: Progress) -> None:
        """Show the progress."""


class ConsoleBar(ProgressView):
    """A view on a console."""

    def __init__(self, read_progress: ReadProgress, console: Console) -> None:
        super().__init__(read_progress)
        self._console = console
        self._live = Live(console=console, auto_refresh=False)
        self._last_key: tuple[object, ...] = ()

    def close(self) -> None:
        """Show the end of the run, and leave it on the console."""
        super().close()
        self._live.stop()

    def _show_message(self, message: str) -> None:
        self._console.print(escape_text(message))

    def _draw(self, progress: Progress) -> None:
        line = escape_text(format_progress(progress))
        if self._console.is_terminal:
            self._live.start()
            self._live.update(Group(line, make_progress_bar(progress)), refresh=True)
            return
        key = (progress.status, *make_progress_key(progress))
        if key != self._last_key:
            self._console.print(line, soft_wrap=True)
            self._last_key = key


class NotebookBar(ProgressView):
    """A view in the output of a notebook's cell, which it replaces at each update."""

    def __init__(self, read_progress: ReadProgress, display: Any) -> None:
        super().__init__(read_progress)
        self._display = display
        self._handle: Any = None

    def _show_message(self, message: str) -> None:
        self._display({"text/plain": message}, raw=True)

    def _draw(self, progress: Progress) -> None:
        line = format_progress(progress)
        bar = f'<progress max="1" value="{progress.share or 0.0:.4f}"></progress>'
        content = {"text/plain": line, "text/html": f"<div>{html.escape(line)}</div>{bar}"}
        if self._handle is None:
            self._handle = self._display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)
