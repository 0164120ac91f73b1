"""Import of the frameworks, without the optional libraries that they would load."""

from __future__ import annotations

import importlib
import os
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from cerebro_trainer.boosting import library
from cerebro_trainer.programs.program import Framework

NONE = "none"
MODULES = {
    "tensorflow": "cerebro_trainer.programs.tensorflow.framework",
    "jax": "cerebro_trainer.programs.jax.framework",
    "torch": "cerebro_trainer.programs.torch.framework",
}
DOWNLOADS = ("kagglehub", "huggingface_hub", "sentencepiece", "tensorflow_text")
"""Libraries with which keras_hub downloads presets and reads texts.

A trainer builds its networks from numbers, and does not use the network.
"""
NOT_NEEDED = {
    "tensorflow": ("jax", "sklearn", "scipy", "pandas", "matplotlib", *DOWNLOADS),
    "jax": ("tensorflow", "sklearn", "pandas", "matplotlib", *DOWNLOADS),
    "torch": ("tensorflow", "jax", "sklearn", "scipy", "pandas", "matplotlib", *DOWNLOADS),
}
"""Libraries that Keras and a framework import if they are installed: wrappers, plots, conversions.

They would take a second and 95 MB for nothing.
"""
NEEDED_LATER = ("scipy",)
"""Libraries that only LightGBM needs, which is imported after a framework."""
ENVIRONMENT = {"torch": {"OMP_WAIT_POLICY": "PASSIVE"}}
"""Environment variables that a framework reads during its import.

Waiting threads of PyTorch would otherwise spin, which takes three times as long if other processes
need the cores.
"""
HOME_VARIABLES = ("HOME", "TMPDIR", "KERAS_HOME", "TORCHINDUCTOR_CACHE_DIR")
"""Environment variables that name the folders of libraries.

PyTorch creates the folder of the last one when Keras imports it, by default among temporary files,
and never changes it afterwards.
"""
NAMES = (NONE, *MODULES)


def load(name: str) -> ModuleType | None:
    """Import a framework, which takes a second and much memory but touches no device.

    Returns:
        The module that serves the framework; None for the name NONE.
    """
    if name == NONE:
        return None
    os.environ["KERAS_BACKEND"] = name
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.getcwd()
    os.environ.update(ENVIRONMENT.get(name, {}))
    hidden_modules = _hide_modules(NOT_NEEDED[name])
    try:
        module = importlib.import_module(MODULES[name])
    except ModuleNotFoundError as error:
        sys.exit(
            f"cerebro_trainer: {error}; in a clone of cerebro_db: {sys.executable} -m pip install "
            f"'.[{name}]'"
        )
    hidden_modules.show(NEEDED_LATER)
    return module


def load_boosting() -> None:
    """Import LightGBM if it is installed, which takes half a second; call `load` before."""
    library.load()


def start(name: str, threads: int, cache: Path | None) -> Framework | None:
    """Set up a framework in this process.

    Args:
        threads: number of threads for one operation.
        cache: folder for compiled code.
    """
    module = load(name)
    if module is None:
        return None
    framework: Framework = module.start(threads, cache)
    return framework


def _hide_modules(names: tuple[str, ...]) -> _HiddenModules:
    """Return the importer that hides modules of this process, which exists once."""
    for finder in sys.meta_path:
        if isinstance(finder, _HiddenModules):
            return finder
    hidden_modules = _HiddenModules(names)
    sys.meta_path.insert(0, hidden_modules)
    return hidden_modules


class _HiddenModules(MetaPathFinder, Loader):
    """An importer that makes modules look as if they were not installed.

    An entry None in sys.modules is not enough: Keras would take it for an imported module, and
    PyTorch, which looks for the location of some of these modules, does not catch the error.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def show(self, names: tuple[str, ...]) -> None:
        """Let these modules be imported."""
        self._names = tuple(name for name in self._names if name not in names)

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in self._names else None

    def exec_module(self, module: ModuleType) -> None:
        raise ModuleNotFoundError(f"{module.__name__} is not needed here", name=module.__name__)
