"""Losses and metrics that an administrator registered: the one place where a trainer executes a
source.

Sources come from the segment's function alone, which reads them from a table that only superusers
can have written; in a request of a user it replaces them. Each program has modules of its own, so
that no function remembers what another config did.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import traceback
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import keras

from cerebro_trainer.errors import ConfigError, TrainerError, summary


def defined(sources: Mapping[str, str]) -> dict[str, Any]:
    """What each source defines under its name, in a module of its own."""
    return {name: _executed(name, source) for name, source in sources.items()}


def as_loss(name: str, found: Any) -> Any:
    """A loss for `Model.compile`: a function of targets and predictions, or a keras.losses.Loss,
    made if need be.
    """
    made = _made(name, found, keras.losses.Loss)
    if isinstance(made, keras.losses.Loss):
        made.call = _reported(name, made.call)
        return made
    if isinstance(made, keras.metrics.Metric) or not callable(made):
        raise ConfigError(f"custom function {name!r} is no loss but {type(made).__name__}")
    return _named(name, _reported(name, made))


def as_metric(name: str, found: Any) -> Any:
    """A metric for `Model.compile`: a function of targets and predictions, or a
    keras.metrics.Metric.
    """
    made = _made(name, found, keras.metrics.Metric)
    if isinstance(made, keras.metrics.Metric):
        for method in ("update_state", "result", "reset_state"):
            setattr(made, method, _reported(name, getattr(made, method)))
        return made
    if not callable(made):
        raise ConfigError(f"custom function {name!r} is no metric but {type(made).__name__}")
    return _named(name, _reported(name, made))


def _executed(name: str, source: str) -> Any:
    module = ModuleType(name)
    file = _file(name)
    module.__file__ = file
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)

    def run() -> None:
        exec(compile(source, file, "exec"), module.__dict__)

    _reported(name, run)()
    try:
        return module.__dict__[name]
    except KeyError:
        raise ConfigError(f"the source of custom function {name!r} does not define it") from None


def _made(name: str, found: Any, base: type) -> Any:
    """An object of a class that was defined; a class is made without arguments."""
    if inspect.isclass(found) and issubclass(found, (keras.losses.Loss, keras.metrics.Metric)):
        if not issubclass(found, base):
            raise ConfigError(
                f"custom function {name!r} is no {base.__name__.lower()} but "
                f"{found.__bases__[0].__name__}"
            )
        return _reported(name, found)()
    if inspect.isclass(found):
        raise ConfigError(
            f"custom function {name!r} is a class, but no keras.losses.Loss or "
            "keras.metrics.Metric",
            hint="A function takes y_true and y_pred.",
        )
    return found


def _named(name: str, function: Any) -> Any:
    """A function under the name that the configuration gives it, whatever it is called itself."""
    function.__name__ = name
    return function


def _reported(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function; what goes wrong in it is the config's failure, and names the line of its
    source.
    """

    @functools.wraps(function, updated=())
    def called(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except (MemoryError, TrainerError):
            raise
        except (Exception, SystemExit) as error:
            raise ConfigError(
                f"custom function {name!r}: {type(error).__name__}: "
                f"{summary(error)}{_where(name, error)}"
            ) from error

    return called


def _where(name: str, error: BaseException) -> str:
    """The innermost line of the source that an error passed through."""
    file = _file(name)
    if isinstance(error, SyntaxError) and error.filename == file:
        return f" (line {error.lineno} of its source)"
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == file
    ]
    return f" (line {lines[-1]} of its source)" if lines else ""


def _file(name: str) -> str:
    return f"<custom function {name}>"
