"""What a fit shows of its own run while it waits for it: a live bar on a terminal, some lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from cerebro_db.errors import CerebroError
from cerebro_db.records import Progress
from cerebro_db.show.boards import landmark, progress_bar, progress_line, standard_output

LOOK_SECONDS = 0.5
Find = Callable[[], Progress | None]


@contextmanager
def shown(find: Find, wanted: bool | None) -> Iterator[Callable[[], None]]:
    """Something to call again and again, which shows what `find` finds: None while there is no run yet.

    `wanted` None means: where the standard output is a terminal.
    """
    if not (sys.stdout.isatty() if wanted is None else wanted):
        yield lambda: None
        return
    bar = Bar(find, standard_output())
    try:
        yield bar.look
    finally:
        bar.close()


class Bar:
    """Shows one run on a console. A question that fails ends the showing, never the run."""

    def __init__(self, find: Find, console: Console) -> None:
        self._find: Find | None = find
        self._console = console
        self._live = Live(console=console, auto_refresh=False)
        self._next = 0.0
        self._shown: tuple[object, ...] = ()

    def look(self) -> None:
        """Asks and shows; oftener than every LOOK_SECONDS it does nothing."""
        if time.monotonic() >= self._next:
            self._ask()
            self._next = time.monotonic() + LOOK_SECONDS

    def close(self) -> None:
        """Shows how the run ended, and leaves it on the console."""
        self._ask()
        self._live.stop()

    def _ask(self) -> None:
        if self._find is None:
            return
        try:
            progress = self._find()
        except CerebroError as error:
            self._find = None
            self._console.print(Text(f"Progress cannot be shown any more: {error.message}"))
            return
        if progress is not None:
            self._draw(progress)

    def _draw(self, progress: Progress) -> None:
        line = Text(progress_line(progress))
        if self._console.is_terminal:
            self._live.start()
            self._live.update(Group(line, progress_bar(progress)), refresh=True)
        elif (now := (progress.status, *landmark(progress))) != self._shown:
            self._console.print(line, soft_wrap=True)
            self._shown = now
