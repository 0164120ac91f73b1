"""Keras gets a backend that is installed, unless the user has named one."""

from __future__ import annotations

import os
import sys

import pytest

from cerebro_db import optional_imports
from cerebro_db.optional_imports import BACKEND_VARIABLE, BACKENDS, import_keras


@pytest.mark.parametrize(
    ("installed", "named", "chosen"),
    [
        (BACKENDS, None, None),
        (("torch", "jax"), None, "torch"),
        (("jax",), None, "jax"),
        (("torch",), "jax", "jax"),
        ((), None, None),
    ],
)
def test_a_missing_tensorflow_is_not_asked_for_if_another_backend_is_there(
    monkeypatch: pytest.MonkeyPatch,
    installed: tuple[str, ...],
    named: str | None,
    chosen: str | None,
) -> None:
    monkeypatch.setenv(BACKEND_VARIABLE, named or "")
    if named is None:
        monkeypatch.delenv(BACKEND_VARIABLE)
    monkeypatch.delitem(sys.modules, "keras", raising=False)
    monkeypatch.setattr(
        optional_imports, "find_spec", lambda name: name if name in installed else None
    )
    seen = []

    def load(name: str, extra: str) -> None:
        seen.append((name, os.environ.get(BACKEND_VARIABLE)))

    monkeypatch.setattr(optional_imports, "import_library", load)
    import_keras()
    assert seen == [("keras", chosen)]


def test_a_loaded_keras_keeps_its_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(BACKEND_VARIABLE, raising=False)
    monkeypatch.setitem(sys.modules, "keras", sys)
    monkeypatch.setattr(optional_imports, "find_spec", lambda name: None)
    assert import_keras() is sys and BACKEND_VARIABLE not in os.environ
