"""Sources of custom functions, checked as far as possible without running them.

Only Python's source text is registered: unlike a pickle, an administrator can read it before it
runs on every host.
"""

from __future__ import annotations

import ast
import textwrap
import warnings
from collections.abc import Iterator

from cerebro_plpy.configs.params.keras_names import find_loss, find_metric
from cerebro_plpy.configs.params.literals import MAX_LENGTH
from cerebro_plpy.errors import FeatureNotSupported, InvalidParameter, InvalidText, NullNotAllowed
from cerebro_plpy.nouns import count_nouns

TITLE = "Keras Custom Function"
CONVERT = (
    "Load its source as text: load_custom_function('table', $$import keras ... def f(y_true, "
    "y_pred): ...$$, 'f'). In Python, inspect.getsource(f) gives that of a function; add the "
    "imports that it needs. The functions of keras.backend are gone in Keras 3: write "
    "keras.ops.mean for K.mean."
)


def check_source(source: bytes | str | None, name: str | None) -> tuple[bytes, str]:
    """Return a source as it is stored, and the name of its function.

    Raises:
        NullNotAllowed: an argument is NULL.
        InvalidParameter: the name is invalid, or the source does not define it at the top level.
        InvalidText: the source is not Python.
        FeatureNotSupported: the source is a pickle.
    """
    if name is None:
        raise NullNotAllowed(f"{TITLE}: function name cannot be NULL!")
    if source is None:
        raise NullNotAllowed(f"{TITLE}: function object cannot be NULL!", hint=CONVERT)
    _check_name(name)
    text = textwrap.dedent(_decode(source))  # it may be copied from an indented example
    names = sorted(set(_list_names(_parse(text, source))))
    if name not in names:
        raise InvalidParameter(
            f"{TITLE}: Invalid function object: its source does not define {name!r} at the top "
            "level.",
            hint=f"It defines {', '.join(names) or 'nothing'}. Names keep their case.",
        )
    return text.encode(), name


def make_top_k_accuracy(k: int | None) -> tuple[str, str]:
    """Return the source and the name of a metric: the class is among the k most probable ones."""
    if k is None:
        raise NullNotAllowed(
            f"{TITLE}: k cannot be NULL!", hint="Expected a positive whole number."
        )
    if k < 1:
        raise InvalidParameter(f"{TITLE}: k is {k}; expected a positive whole number.")
    name = f"top_{k}_accuracy"
    body = f"return keras.metrics.top_k_categorical_accuracy(y_true, y_pred, k={k})"
    return f"import keras\n\n\ndef {name}(y_true, y_pred):\n    {body}\n", name


def _check_name(name: str) -> None:
    if not name.isidentifier():
        raise InvalidParameter(f"{TITLE}: function name {name[:80]!r} is not a name of Python.")
    keras_name = find_loss(name) or find_metric(name)
    if keras_name:
        raise InvalidParameter(
            f"{TITLE}: function name {name!r} is one of Keras' own, {keras_name}, which would be "
            "used in its place.",
            hint="Choose another name.",
        )


def _decode(source: bytes | str) -> str:
    """Return the source as text; the error for a pickle has a hint for its owner."""
    if isinstance(source, str):
        return source
    if source[:1] == b"\x80":
        raise _pickle()
    try:
        return source.decode()
    except UnicodeDecodeError as error:
        if _is_pickle(source):
            raise _pickle() from error
        raise InvalidText(
            f"{TITLE}: Invalid function object: it is no text in UTF-8.",
            detail=str(error),
            hint=CONVERT,
        ) from error


def _parse(text: str, source: bytes | str) -> ast.Module:
    if len(text) > MAX_LENGTH:
        raise InvalidText(
            f"{TITLE}: Invalid function object: its source has "
            f"{count_nouns(len(text), 'character')}; expected at most {MAX_LENGTH}.",
            hint="Install the code as a module where trainers run, and load an import of it.",
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the source; they would not reach the user
            return ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        if _is_pickle(text.encode() if isinstance(source, str) else source):
            raise _pickle() from error
        location = ""
        message = str(error)
        if isinstance(error, SyntaxError):
            message = error.msg
            if error.lineno:
                location = f" in line {error.lineno}"
        raise InvalidText(
            f"{TITLE}: Invalid function object: invalid syntax{location}.",
            detail=message or None,
            hint=CONVERT,
        ) from error


def _is_pickle(data: bytes) -> bool:
    """Return True if bytes are a pickle of any protocol; it is parsed, but never run."""
    import pickletools  # rarely needed

    try:
        return sum(1 for _ in pickletools.genops(data)) > 0
    except (ValueError, IndexError, KeyError, OverflowError):
        return False


def _pickle() -> FeatureNotSupported:
    return FeatureNotSupported(
        f"{TITLE}: Invalid function object: it is a pickle, which nobody can read before it runs.",
        hint=CONVERT,
    )


def _list_names(module: ast.Module) -> Iterator[str]:
    """Yield the names that a module defines at its top level, as far as its text shows them."""
    for node in module.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = (part for target in targets for part in ast.walk(target))
            yield from (
                part.id
                for part in parts
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
            )
