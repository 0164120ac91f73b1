"""Losses and metrics that an administrator registered: the only place that executes a source.

Sources come from the segment's function alone, which reads them from a table that only superusers
can write. They replace any sources in a user's request. Each program has modules of its own, so
that no function remembers the data of another config.
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


def execute_sources(sources: Mapping[str, str]) -> dict[str, Any]:
    """Return the objects that the sources define under their names, each in its own module."""
    return {name: _execute(name, source) for name, source in sources.items()}


def make_loss(name: str, definition: Any) -> Any:
    """Return a loss for `Model.compile`: a keras.losses.Loss or a function of y_true and y_pred."""
    loss = _instantiate(name, definition, keras.losses.Loss)
    if isinstance(loss, keras.losses.Loss):
        loss.call = _report_errors(name, loss.call)
        return loss
    if isinstance(loss, keras.metrics.Metric) or not callable(loss):
        raise ConfigError(f"custom function {name!r} is no loss but {type(loss).__name__}")
    return _rename(_report_errors(name, loss), name)


def make_metric(name: str, definition: Any) -> Any:
    """Return a metric for `Model.compile`: a keras.metrics.Metric, or a function like a loss."""
    metric = _instantiate(name, definition, keras.metrics.Metric)
    if isinstance(metric, keras.metrics.Metric):
        for method in ("update_state", "result", "reset_state"):
            setattr(metric, method, _report_errors(name, getattr(metric, method)))
        return metric
    if not callable(metric):
        raise ConfigError(f"custom function {name!r} is no metric but {type(metric).__name__}")
    return _rename(_report_errors(name, metric), name)


def _execute(name: str, source: str) -> Any:
    module = ModuleType(name)
    file = _file_name(name)
    module.__file__ = file
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)

    def run() -> None:
        exec(compile(source, file, "exec"), module.__dict__)

    _report_errors(name, run)()
    try:
        return module.__dict__[name]
    except KeyError:
        raise ConfigError(f"the source of custom function {name!r} does not define it") from None


def _instantiate(name: str, definition: Any, base: type) -> Any:
    """Return an instance of a defined class, made without arguments; anything else as it is."""
    if not inspect.isclass(definition):
        return definition
    if not issubclass(definition, (keras.losses.Loss, keras.metrics.Metric)):
        raise ConfigError(
            f"custom function {name!r} is a class, but no keras.losses.Loss or "
            "keras.metrics.Metric",
            hint="A function takes y_true and y_pred.",
        )
    if not issubclass(definition, base):
        raise ConfigError(
            f"custom function {name!r} is no {base.__name__.lower()} but "
            f"{definition.__bases__[0].__name__}"
        )
    return _report_errors(name, definition)()


def _rename(function: Any, name: str) -> Any:
    """Give a function the name that the configuration uses, and return it."""
    function.__name__ = name
    return function


def _report_errors(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with its errors as ConfigErrors, which name the line of its source."""

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (MemoryError, TrainerError):
            raise
        except (Exception, SystemExit) as error:
            raise ConfigError(
                f"custom function {name!r}: {type(error).__name__}: "
                f"{summary(error)}{_describe_line(name, error)}"
            ) from error

    return call


def _describe_line(name: str, error: BaseException) -> str:
    """Return the innermost line of the source that an error passed through, as text."""
    file = _file_name(name)
    if isinstance(error, SyntaxError) and error.filename == file:
        return f" (line {error.lineno} of its source)"
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == file
    ]
    return f" (line {lines[-1]} of its source)" if lines else ""


def _file_name(name: str) -> str:
    return f"<custom function {name}>"
