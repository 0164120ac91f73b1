"""Parameter texts as literals, parsed by Python's parser; this module alone does so.

MADlib's parameter strings and grids have Python's syntax. Every value must be a literal; names are
never looked up, called or evaluated.
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Collection

from cerebro_plpy.errors import InvalidParameter, InvalidText

# Far above any real parameter text, and short enough that the parser stays within a backend's
# stack.
MAX_LENGTH = 100_000
Arguments = dict[str, object]
"""Values by their keys."""

CALLS = ("callbacks",)
"""Keys whose value is a list of calls, not a literal: it stays a text, for `parse_calls`."""


def parse_keywords(text: str, unquoted: Collection[str] = ()) -> Arguments:
    """Return the literals of `key=value, …`, in order.

    Args:
        unquoted: keys whose value may also be a name or a call, which is returned as text.

    Raises:
        InvalidText: the text has another form.
        InvalidParameter: a value is not a literal.

    >>> parse_keywords("batch_size = 8,epochs=1")
    {'batch_size': 8, 'epochs': 1}
    >>> parse_keywords("optimizer=SGD(lr=0.1)", ["optimizer"])
    {'optimizer': 'SGD(lr=0.1)'}
    """
    source = f"_({text}\n)"
    node = _expression(source, text)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise InvalidText(f"{quote_shortened(text)} is not of the form key=value, key=value, ...")
    return _arguments(node, source, text, unquoted)


def parse_call(text: str) -> tuple[str, Arguments]:
    """Return the name and the arguments of `Name`, `Name()` or `Name(key=value, …)`.

    Raises errors as `parse_keywords`.

    >>> parse_call("Adam(lr=0.1)")
    ('Adam', {'lr': 0.1})
    """
    source = text.strip()
    node = _expression(source, text)
    if isinstance(node, ast.Name):
        return node.id, {}
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise InvalidText(f"{quote_shortened(text)} is not of the form Name(key=value, ...)")
    return node.func.id, _arguments(node, source, text, ())


def parse_calls(text: str) -> list[tuple[str, Arguments]]:
    """Return the names and arguments of `[Name(key=value, …), …]`.

    >>> parse_calls("[A(b='c'), D()]")
    [('A', {'b': 'c'}), ('D', {})]
    """
    source = text.strip()
    node = _expression(source, text)
    if not isinstance(node, ast.List):
        raise InvalidText(f"{quote_shortened(text)} is not of the form [Name(key=value, ...)]")
    return [parse_call(ast.get_source_segment(source, item) or "") for item in node.elts]


def parse_dict(text: str) -> Arguments:
    """Return the dict of a dict literal with text keys.

    Raises:
        InvalidText: the text is something else.

    >>> parse_dict("{'lr': [0.1, 0.01]}")
    {'lr': [0.1, 0.01]}
    """
    node = _expression(text.strip(), text)
    if not isinstance(node, ast.Dict):
        raise InvalidText(
            f"{quote_shortened(text)} is not a dict", hint="Write {'key': [value, ...], ...}."
        )
    pairs: Arguments = {}
    for key_node, value_node in zip(node.keys, node.values):
        key = key_node and _literal(key_node)
        if not isinstance(key, str):
            raise InvalidText(
                f"{quote_shortened(text)} has a key that is not text",
                hint="Put each key in quotes.",
            )
        if key in pairs:
            raise InvalidText(f"key {key!r} is given twice")
        pairs[key] = _literal(value_node)
    return pairs


def quote_shortened(text: str) -> str:
    """Return a text in quotes, shortened, for a message."""
    return repr(_short(text))


def _short(text: str) -> str:
    if len(text) <= 200:
        return text
    return text[:197] + "..."


def to_finite_number(value: object) -> int | float | None:
    """Return the value if it is a number in the range of a float, else None.

    True and False are not numbers here.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if abs(value) > sys.float_info.max:
        return None
    return value


def _expression(source: str, text: str) -> ast.expr:
    if len(source) > MAX_LENGTH:
        raise InvalidText(f"parameter text is longer than {MAX_LENGTH} characters")
    try:
        with warnings.catch_warnings():
            # Warnings about the text, such as an odd escape, would not reach the user.
            warnings.simplefilter("ignore")
            return ast.parse(source, mode="eval").body
    except SyntaxError as error:
        raise InvalidText(f"invalid syntax in {quote_shortened(text)}", detail=error.msg) from error
    except (ValueError, MemoryError, RecursionError) as error:
        # The text has a NUL character, or nesting beyond the parser's stack.
        raise InvalidText(
            f"{quote_shortened(text)} cannot be read", detail=str(error) or None
        ) from error


def _arguments(node: ast.Call, source: str, text: str, unquoted: Collection[str]) -> Arguments:
    if node.args or any(item.arg is None for item in node.keywords):
        raise InvalidText(
            f"{quote_shortened(text)} holds a value without a key",
            hint="Give every value as key=value, for example 'SGD(lr=0.01, nesterov=True)'.",
        )
    values: Arguments = {}
    for item in node.keywords:
        key = str(item.arg)
        if key in values:
            raise InvalidText(f"{key} is given twice in {quote_shortened(text)}")
        source_text = str(ast.get_source_segment(source, item.value))
        if key in unquoted and isinstance(item.value, (ast.Name, ast.Call)):
            values[key] = source_text
            continue
        try:
            values[key] = _literal(item.value)
        except InvalidText as error:
            if key in CALLS:
                values[key] = source_text
                continue
            raise _invalid_text(key, source_text, "a literal, with text in quotes") from error
    return values


def invalid_value(key: str, value: object, expected: str) -> InvalidParameter:
    """Return MADlib's error for the value of a key, with the expected values as the hint."""
    return _invalid_text(key, repr(value), expected)


def _invalid_text(key: str, source_text: str, expected: str) -> InvalidParameter:
    return InvalidParameter(
        f"invalid input value for parameter {key}={_short(source_text)}, please refer to the "
        "documentation",
        hint=f"Expected {expected}.",
    )


def read_boolean(key: str, value: object) -> bool:
    """Return the value of a key that takes True or False."""
    if not isinstance(value, bool):
        raise invalid_value(key, value, "True or False")
    return value


def read_number(key: str, value: object) -> int | float:
    """Return the value of a key that takes a number."""
    number = to_finite_number(value)
    if number is None:
        raise invalid_value(key, value, "a number")
    return number


def read_whole_number(key: str, value: object) -> int:
    """Return the value of a key that takes a whole number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise invalid_value(key, value, "a whole number that is not negative")
    return value


def _literal(node: ast.expr) -> object:
    try:
        value: object = ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError) as error:
        raise InvalidText("a value is not a literal", detail=str(error) or None) from error
    return value
