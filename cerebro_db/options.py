"""Options of a method that are written down as a TypedDict: listed by help(), and told from what is
misspelt.

Python itself would show `**options`, take any name, and leave it to the server to say that there is
no such function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from typing import Any, TypeVar, get_type_hints

from cerebro_db.errors import UnknownOption

F = TypeVar("F", bound=Callable[..., Any])


def accept_options(kind: type[Any]) -> Callable[[F], F]:
    """Decorates a method whose `**options` are those of `kind`; one that is left out has the
    default of the SQL function."""

    def decorated(method: F) -> F:
        @wraps(method)
        def checked(*positional: object, **named: object) -> object:
            for name in named:
                if name not in signature.parameters:
                    raise _unknown(method.__name__, name, list(get_type_hints(kind)))
            return method(*positional, **named)

        signature = _listed(method, kind)
        checked.__signature__ = signature  # type: ignore[attr-defined]
        return checked  # type: ignore[return-value]

    return decorated


def _listed(method: Callable[..., Any], kind: type[Any]) -> inspect.Signature:
    """The signature with a parameter for each option."""
    found = inspect.signature(method)
    own = [
        one for one in found.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    further = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)
        for name, hint in get_type_hints(kind).items()
    ]
    return found.replace(parameters=[*own, *further])


def _unknown(method: str, name: str, known: list[str]) -> UnknownOption:
    near = get_close_matches(name, known, 1)
    return UnknownOption(
        f"{method}() has no option {name!r}",
        detail=f"Its options are {', '.join(sorted(known))}.",
        hint=f"Did you mean {near[0]!r}?" if near else None,
    )
