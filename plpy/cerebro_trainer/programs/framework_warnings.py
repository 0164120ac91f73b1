"""Warnings of Keras and the frameworks, by learner: users do not see the output of a trainer.

Many warnings appear once, while a learner is built or compiled, and apply to all its later calls.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from cerebro_trainer.errors import text_summary
from cerebro_trainer.programs.learner import Learner

USER_CATEGORIES = (UserWarning, SyntaxWarning)
"""Keras uses SyntaxWarning for losses that make no sense."""
MAX_TEXTS = 10
"""Warnings retained for one learner; custom functions may raise any number of them."""


class FrameworkWarnings:
    """Recorder of warnings for users; warnings for developers are printed as usual."""

    def __init__(self) -> None:
        self._unassigned: list[str] = []
        self._texts: WeakKeyDictionary[Learner, dict[str, None]] = WeakKeyDictionary()

    @contextmanager
    def record(self) -> Iterator[None]:
        """Record the warnings that are raised within the block."""
        with warnings.catch_warnings(record=True) as records:
            for category in USER_CATEGORIES:
                warnings.simplefilter("always", category)
            yield
        for warning in records:
            if issubclass(warning.category, USER_CATEGORIES):
                text = text_summary(str(warning.message))
                self._unassigned.append(text or warning.category.__name__)
            else:
                warnings.showwarning(
                    warning.message, warning.category, warning.filename, warning.lineno
                )

    def discard(self) -> None:
        """Discard the warnings of a job that did not finish."""
        self._unassigned.clear()

    def collect(self, learner: Learner) -> list[str]:
        """Assign the newly recorded warnings to a learner; return all warnings of the learner."""
        texts = self._texts.setdefault(learner, {})
        for text in self._unassigned:
            if len(texts) < MAX_TEXTS:
                texts[text] = None
        self.discard()
        return list(texts)
