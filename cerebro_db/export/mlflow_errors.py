"""Report an error of MLflow in one line, with what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from cerebro_db.errors import MissingLibrary, ObjectNotReady
from cerebro_db.optional_imports import import_library

FOLDER_SETTING = "MLFLOW_ALLOW_FILE_STORE"
"""Variable that newer releases of MLflow name if they refuse a folder."""
ADDRESSES = "a server, such as http://localhost:5000, or a database, such as sqlite:///mlflow.db"


@contextmanager
def translate_mlflow_errors(uri: str | None) -> Iterator[None]:
    """Raise errors of MLflow as errors of cerebro_db.errors; MLflow's one is the cause.

    Args:
        uri: address that the user gave, or None.
    """
    exceptions = import_library("mlflow.exceptions", "export")
    try:
        yield
    except exceptions.MlflowException as error:
        text = str(error)
        store = "MLflow"
        if uri:
            store = f"MLflow at {uri}"
        hint = f"Give {ADDRESSES}."
        if FOLDER_SETTING in text:
            hint = f"{hint} With {FOLDER_SETTING}=true in the environment a folder is allowed."
        raise ObjectNotReady(f"{store} refuses: {find_first_sentence(text)}", hint=hint) from error
    except ModuleNotFoundError as error:
        if isinstance(error, MissingLibrary):
            raise
        raise MissingLibrary(
            f"MLflow needs a library that is not installed: {error.name}",
            hint="A store in a database needs all of MLflow: pip install mlflow",
            name=str(error.name),
        ) from error


def find_first_sentence(text: str) -> str:
    """Return the first sentence of a text, as one line.

    >>> find_first_sentence("The backend (e.g., './mlruns') is closed. Please\\nmigrate.")
    "The backend (e.g., './mlruns') is closed."
    """
    line = " ".join(text.split())
    return re.split(r"(?<=[.!?]) (?=[A-Z])", line, maxsplit=1)[0]
