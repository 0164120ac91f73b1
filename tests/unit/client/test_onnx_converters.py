"""Which library converts a model to ONNX, and what a user reads if none can."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from cerebro_db.errors import MissingLibrary
from cerebro_db.export import onnx_converters
from cerebro_db.export.onnx_converters import CONVERTERS, choose_converter
from cerebro_db.export.onnx_process import find_reason

EXTRAS = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]
ALL = {name for converter in CONVERTERS for name in converter.libraries}
Install = Callable[[set[str]], None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """A function that lets only these libraries be found, without a preferred backend."""
    monkeypatch.delenv("KERAS_BACKEND", raising=False)

    def choose(names: set[str]) -> None:
        monkeypatch.setattr(
            onnx_converters, "find_spec", lambda name: name if name in names else None
        )

    return choose


@pytest.mark.parametrize(
    ("backend", "missing", "chosen"),
    [
        (None, set(), "torch"),
        ("jax", set(), "torch"),
        ("tensorflow", set(), "tensorflow"),
        ("torch", {"onnxscript"}, "tensorflow"),
        (None, {"torch"}, "tensorflow"),
        ("tensorflow", {"tf2onnx"}, "torch"),
    ],
)
def test_the_backend_of_the_caller_is_preferred_and_then_pytorch(
    install: Install,
    monkeypatch: pytest.MonkeyPatch,
    backend: str | None,
    missing: set[str],
    chosen: str,
) -> None:
    install(ALL - missing)
    if backend is not None:
        monkeypatch.setenv("KERAS_BACKEND", backend)
    assert choose_converter().backend == chosen


def test_all_missing_libraries_are_named_at_once_with_the_commands_that_install_them(
    install: Install,
) -> None:
    install(ALL - {"onnxscript", "torch", "tf2onnx"})
    with pytest.raises(MissingLibrary) as caught:
        choose_converter()
    assert "with torch: onnxscript, torch; with tensorflow: tf2onnx" in caught.value.message
    assert caught.value.hint == (
        "In a clone of cerebro_db: pip install '.[export,torch]' or "
        "pip install '.[export,tensorflow,tf2onnx]'"
    )


@pytest.mark.parametrize("converter", CONVERTERS, ids=lambda converter: converter.backend)
def test_the_extras_of_a_converter_have_its_libraries(
    converter: onnx_converters.Converter,
) -> None:
    extras = converter.extras.split(",")
    names = {Requirement(text).name for extra in extras for text in EXTRAS[extra]}
    assert set(converter.libraries) <= names


def test_an_operation_without_onnx_is_named() -> None:
    cause = ValueError(
        "No ONNX function found for <OpOverload(op='aten._fft_r2c', overload='default')>. More"
    )
    error = RuntimeError("Failed to convert the exported program\nmany lines")
    error.__cause__ = cause
    assert find_reason(error) == "the operation aten._fft_r2c has no ONNX"
    assert find_reason(ValueError("first line\nsecond line")) == "first line"
    assert find_reason(KeyError()) == "KeyError"
