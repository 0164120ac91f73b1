"""What Keras and the frameworks warn of, by program: the user is to hear it, who does not see what
a trainer prints.

Much of it is said once, while a program is built or compiled, and is true of all that it does
later.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from cerebro_trainer.errors import text_summary
from cerebro_trainer.programs.program import Program

FOR_USERS = (UserWarning, SyntaxWarning)
"""Keras warns by the second of losses that make no sense."""
MOST = 10
"""Of one program; custom functions may warn of anything."""


class FrameworkWarnings:
    """Warnings for users, as Python calls them; those for developers are printed as ever."""

    def __init__(self) -> None:
        self._new: list[str] = []
        self._texts: WeakKeyDictionary[Program, dict[str, None]] = WeakKeyDictionary()

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Hear those that come within the block."""
        with warnings.catch_warnings(record=True) as caught:
            for category in FOR_USERS:
                warnings.simplefilter("always", category)
            yield
        for each in caught:
            if issubclass(each.category, FOR_USERS):
                self._new.append(text_summary(str(each.message)) or each.category.__name__)
            else:
                warnings.showwarning(each.message, each.category, each.filename, each.lineno)

    def forget(self) -> None:
        """Those of a job that was not finished are of nobody."""
        self._new.clear()

    def of(self, program: Program) -> list[str]:
        """All that were heard of a program, those since the last question included."""
        texts = self._texts.setdefault(program, {})
        for text in self._new:
            if len(texts) < MOST:
                texts[text] = None
        self.forget()
        return list(texts)
