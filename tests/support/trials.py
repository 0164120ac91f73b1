"""How many examples of a property are tried: few in `make test`, all of them in `make
test-long`.
"""

from __future__ import annotations

from hypothesis import settings

MOST = 100
"""What Hypothesis tries where nothing else is said."""


def trials(number: int) -> settings:
    """That many, or as large a part of them as the profile takes of the usual number."""
    usual = settings.default
    assert usual is not None
    return settings(max_examples=max(1, number * usual.max_examples // MOST))
