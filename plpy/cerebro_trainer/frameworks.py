"""Which module serves a framework, and what of its surroundings it has to do without."""

from __future__ import annotations

import importlib
import os
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from cerebro_trainer.programs.program import Framework

NONE = "none"
MODULES = {
    "tensorflow": "cerebro_trainer.programs.tensorflow.framework",
    "jax": "cerebro_trainer.programs.jax.program",
    "torch": "cerebro_trainer.programs.torch.program",
}
DOWNLOADS = ("kagglehub", "huggingface_hub", "sentencepiece", "tensorflow_text")
"""What keras_hub finds presets with, and reads texts with. It is built of numbers here, and goes to
no network.
"""
NOT_NEEDED = {
    "tensorflow": ("jax", "sklearn", "scipy", "pandas", "matplotlib", *DOWNLOADS),
    "jax": ("tensorflow", "sklearn", "pandas", "matplotlib", *DOWNLOADS),
    "torch": ("tensorflow", "jax", "sklearn", "scipy", "pandas", "matplotlib", *DOWNLOADS),
}
"""Keras and its frameworks import these where they find them, for wrappers, plots and conversions:
a second and 95 MB of no use here."""
SETTINGS = {"torch": {"OMP_WAIT_POLICY": "PASSIVE"}}
"""What a framework reads of the environment while it is imported. Threads of PyTorch that wait for
each other would otherwise do so at full speed: where others want the cores too, that takes three
times as long."""
HOMES = ("HOME", "TMPDIR", "KERAS_HOME", "TORCHINDUCTOR_CACHE_DIR")
"""What says where libraries keep files of theirs. PyTorch makes the folder of the last one when
Keras imports it, among temporary files where none is named, and remembers that for good."""
NAMES = (NONE, *MODULES)


def load(name: str) -> ModuleType | None:
    """Import a framework, which takes a second and much memory, and touches no device; None where
    it is to be none.
    """
    if name == NONE:
        return None
    os.environ.update(
        {"KERAS_BACKEND": name, "TORCHINDUCTOR_CACHE_DIR": os.getcwd(), **SETTINGS.get(name, {})}
    )
    if not any(isinstance(finder, _NotNeeded) for finder in sys.meta_path):
        sys.meta_path.insert(0, _NotNeeded(NOT_NEEDED[name]))
    try:
        return importlib.import_module(MODULES[name])
    except ModuleNotFoundError as error:
        sys.exit(
            f"cerebro_trainer: {error}; in a clone of cerebro_db: {sys.executable} -m pip install "
            f"'.[{name}]'"
        )


def start(name: str, threads: int, cache: Path | None) -> Framework | None:
    """Set a framework up in this process, with so many threads for an operation and a folder for
    compiled code.
    """
    module = load(name)
    if module is None:
        return None
    started: Framework = module.start(threads, cache)
    return started


class _NotNeeded(MetaPathFinder, Loader):
    """Lets modules look as if they were not installed, to whoever imports them.

    An entry None in sys.modules would look imported to Keras; and PyTorch asks where some of them
    lie, and takes no error for an answer.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in self._names else None

    def exec_module(self, module: ModuleType) -> None:
        raise ModuleNotFoundError(f"{module.__name__} is not needed here", name=module.__name__)
