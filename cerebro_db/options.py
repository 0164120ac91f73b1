"""Check of `**options` against a TypedDict, so that help() lists them and misspelt ones fail early.

Without the check, Python would accept any name, and the server would report only that the function
does not exist.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import wraps
from typing import Any, TypeVar, get_type_hints

from cerebro_db.errors import UnknownOption

F = TypeVar("F", bound=Callable[..., Any])


def accept_options(option_type: type[Any]) -> Callable[[F], F]:
    """Return a decorator for a method whose `**options` are the keys of a TypedDict.

    An option that the caller omits has the default of the SQL function.

    Raises:
        UnknownOption: raised by the method for an option that the TypedDict does not have.
    """

    def decorate(method: F) -> F:
        @wraps(method)
        def call_checked(*args: object, **kwargs: object) -> object:
            for name in kwargs:
                if name not in signature.parameters:
                    raise _unknown_option(method.__name__, name, list(get_type_hints(option_type)))
            return method(*args, **kwargs)

        signature = list_options(inspect.signature(method), option_type)
        call_checked.__signature__ = signature  # type: ignore[attr-defined]
        return call_checked  # type: ignore[return-value]

    return decorate


def list_options(
    signature: inspect.Signature,
    option_type: type[Any],
    annotate: Callable[[str, Any], Any] = lambda _, hint: hint,
) -> inspect.Signature:
    """Return the signature with a parameter for each option instead of `**options`, its last one.

    Args:
        annotate: returns the annotation of a parameter for the name and the type of an option.
    """
    *parameters, _ = signature.parameters.values()
    for name, hint in get_type_hints(option_type).items():
        option = inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotate(name, hint)
        )
        parameters.append(option)
    return signature.replace(parameters=parameters)


def refuse_former_call(successor: str, names: Sequence[str]) -> Callable[[F], F]:
    """Return a decorator for a method whose name belonged to another one, now `successor`.

    Args:
        names: the required arguments of the other one. The last is the name of an output table.

    Raises:
        UnknownOption: raised by the method for a call of the other one; the hint is the call that
            works.
    """

    def decorate(method: F) -> F:
        @wraps(method)
        def call_checked(self: object, *args: object, **kwargs: object) -> object:
            arguments = dict(zip(names, args, strict=False))
            arguments.update(kwargs)
            for name in names:
                if name not in arguments:
                    return method(self, *args, **kwargs)
            output = arguments[names[-1]]
            if not isinstance(output, str):
                return method(self, *args, **kwargs)
            call = _format_call(successor, args, kwargs)
            name = method.__name__
            raise UnknownOption(
                f"{name}() writes no table any more: {successor}() does", hint=f"Call {call}."
            )

        return call_checked  # type: ignore[return-value]

    return decorate


def _format_call(method: str, args: Iterable[object], kwargs: Mapping[str, object]) -> str:
    texts = []
    for value in args:
        text = repr(value)
        texts.append(text)
    for name, value in kwargs.items():
        text = f"{name}={value!r}"
        texts.append(text)
    arguments = ", ".join(texts)
    return f"session.{method}({arguments})"


def _unknown_option(method: str, name: str, options: list[str]) -> UnknownOption:
    hint = None
    for match in get_close_matches(name, options, 1):
        hint = f"Did you mean {match!r}?"
    return UnknownOption(
        f"{method}() has no option {name!r}",
        detail=f"Its options are {', '.join(sorted(options))}.",
        hint=hint,
    )
