"""LightGBM, which is optional: it grows trees, explains them, and scores many rows."""

from __future__ import annotations

import importlib
import logging
import sys
from functools import cache
from typing import Any

from cerebro_trainer.errors import ConfigError

NAME = "lightgbm"


def load() -> None:
    """Import LightGBM if it is installed, so that a forked process has it."""
    _import()


def is_installed() -> bool:
    """Return whether LightGBM can be imported."""
    return _import() is not None


def get() -> Any:
    """Return the module.

    Raises:
        ConfigError: it is not installed.
    """
    module = _import()
    if module is None:
        raise ConfigError(
            "boosted trees are grown by LightGBM, which the Python of the trainers lacks",
            sqlstate="0A000",
            hint="Ask the administrator to install it, in a clone of cerebro_db: "
            f"{sys.executable} -m pip install '.[boosting]'",
        )
    return module


@cache
def _import() -> Any:
    try:
        module = importlib.import_module("lightgbm")
    except (ImportError, OSError):  # an OSError if a library such as libgomp is missing
        return None
    logger = logging.getLogger("cerebro_trainer.boosting")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    module.register_logger(logger)
    return module
