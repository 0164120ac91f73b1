"""Import of the optional libraries that the package's extras install."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from cerebro_db.errors import MissingLibrary

MODEL_EXTRAS = "export,tensorflow"
"""Extras that install all libraries of an exported model, so that one hint is enough."""

BACKEND_VARIABLE = "KERAS_BACKEND"
BACKENDS = ("tensorflow", "torch", "jax")
"""Backends of Keras; it takes the first one unless it is told otherwise."""


def import_keras() -> Any:
    """Return Keras, with a backend that is installed.

    Keras asks for TensorFlow unless KERAS_BACKEND or the file keras.json names another backend.

    Raises:
        MissingLibrary: Keras or its backend is not installed.
    """
    default, *alternatives = BACKENDS
    is_undecided = "keras" not in sys.modules and BACKEND_VARIABLE not in os.environ
    if is_undecided and find_spec(default) is None:
        for backend in alternatives:
            if find_spec(backend) is not None:
                os.environ[BACKEND_VARIABLE] = backend
                break
    return import_library("keras", MODEL_EXTRAS)


def import_library(name: str, extra: str) -> Any:
    """Return the module of that name.

    Args:
        extra: extras of the package that install the module, separated by commas.

    Raises:
        MissingLibrary: the module, or one that it imports, is not installed.

    >>> import_library("json", "export").loads("[1]")
    [1]
    """
    try:
        return import_module(name)
    except ImportError as error:
        missing = str(error.name or name).partition(".")[0]
        raise MissingLibrary(
            f"a library that this needs is not installed: {missing}",
            hint=f"In a clone of cerebro_db: pip install '.[{extra}]'",
            name=missing,
        ) from error
