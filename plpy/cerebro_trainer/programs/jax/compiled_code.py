"""Functions of a program as XLA has compiled them, kept whole: who finds one neither traces nor
lowers nor compiles it.

JAX's own cache begins where a function is traced and lowered, which for a small network takes
several times as long as to load what was compiled. It still serves the many small functions by
which a model is built. What either keeps is executed by whoever finds it: see `code_cache`.
"""

from __future__ import annotations

import hashlib
import json
import platform
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import version
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import jax
from jax._src.compilation_cache_interface import CacheInterface
from jax.experimental import serialize_executable
from jax.tree_util import PyTreeDef, default_registry

from cerebro_trainer.models import keras_hub_support
from cerebro_trainer.programs import code_cache

Function: TypeAlias = Callable[..., Any]
ROOT = Path(__file__).parents[1]
LIBRARIES = ("jax", "jaxlib", "keras", "numpy")
REFUSALS = (jax.errors.JaxRuntimeError, NotImplementedError, ValueError)
"""What JAX raises where it cannot keep a function, or not load it."""


class Entries(code_cache.Entries, CacheInterface):
    """Entries as JAX wants them for what it compiles by itself."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._whole = False

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Within the block XLA compiles: what was loaded in parts could not be kept as a whole
        again.
        """
        self._whole = True
        try:
            yield
        finally:
            self._whole = False

    def get(self, key: str) -> bytes | None:
        return None if self._whole else super().get(key)

    def put(self, key: str, value: bytes) -> None:
        if not self._whole:
            super().put(key, value)


class Code:
    """Where the functions of a program are kept, and what tells them from those of other
    programs.
    """

    def __init__(self, entries: Entries | None, program: str = "") -> None:
        self._entries, self._spared = entries, 0.0
        self.program = program

    def of(self, program: str) -> Code:
        """The same for one program."""
        return Code(self._entries, program)

    def take_saved_compile_seconds(self) -> float:
        """The seconds since this was asked last that it took to compile what was found."""
        seconds, self._spared = self._spared, 0.0
        return seconds

    def load(self, key: str) -> Function | None:
        """The function that was kept under this key; users are warned as when it was compiled."""
        content = self._entries.get(key) if self._entries else None
        if content is None:
            return None
        try:
            kept = Kept.from_bytes(content)
            trees = (
                PyTreeDef.deserialize_using_proto(default_registry, tree)
                for tree in (kept.inputs, kept.outputs)
            )
            found: Function = serialize_executable.deserialize_and_load(kept.executable, *trees)
        except REFUSALS:
            return None
        self._spared += kept.seconds
        for text in kept.warnings:
            warnings.warn(text, stacklevel=2)
        return found

    def compiled(self, key: str, lower: Callable[[], jax.stages.Lowered]) -> Function:
        """The function that is lowered now, compiled and kept."""
        if self._entries is None:
            return lower().compile()
        began = time.perf_counter()
        with _passed_on() as texts:
            lowered = lower()
            with self._entries.whole():
                found = lowered.compile()
        seconds = time.perf_counter() - began
        with suppress(*REFUSALS):
            executable, *trees = serialize_executable.serialize(found)
            inputs, outputs = (tree.serialize_using_proto() for tree in trees)
            self._entries.put(key, Kept(seconds, texts, executable, inputs, outputs).as_bytes())
        return found


class Kept(NamedTuple):
    """A compiled function in a file: how long it took, what users were warned of, and what JAX
    makes of it.
    """

    seconds: float
    warnings: list[str]
    executable: bytes
    inputs: bytes
    outputs: bytes

    def as_bytes(self) -> bytes:
        """A line of JSON, and the last three one after another; compressed."""
        parts = self[2:]
        head = {
            "seconds": self.seconds,
            "warnings": self.warnings,
            "sizes": [len(part) for part in parts],
        }
        return zlib.compress(b"".join((json.dumps(head).encode(), b"\n", *parts)), 1)

    @classmethod
    def from_bytes(cls, content: bytes) -> Kept:
        """What `as_bytes` gave."""
        line, _, rest = zlib.decompress(content).partition(b"\n")
        head = json.loads(line)
        ends = [*accumulate(head["sizes"], initial=0)]
        executable, inputs, outputs = (rest[begin:end] for begin, end in pairwise(ends))
        return cls(head["seconds"], head["warnings"], executable, inputs, outputs)


class KeptFunction:
    """A jitted function of a program that is compiled for each shape of its last arguments, or
    found as it was.

    The first `fixed` arguments have the shapes of the program's variables; arguments by keyword are
    constants. No other function of the program has its name.
    """

    def __init__(
        self, code: Code, name: str, function: Function, fixed: int, **options: Any
    ) -> None:
        self._code, self._name, self._fixed = code, name, fixed
        self._jitted = jax.jit(function, **options)
        self._compiled: dict[object, Function] = {}

    def __call__(self, *arguments: Any, **constants: Any) -> Any:
        shapes = [(array.shape, array.dtype) for array in jax.tree.leaves(arguments[self._fixed :])]
        place = (*shapes, *constants.items())
        found = self._compiled.get(place)
        if found is None:
            found = self._compiled[place] = self._found(arguments, constants)
        return found(*arguments)

    def _found(self, arguments: tuple[Any, ...], constants: dict[str, Any]) -> Function:
        leaves, tree = jax.tree.flatten(arguments)
        shapes = [(list(leaf.shape), str(leaf.dtype)) for leaf in leaves]
        facts = [environment(), self._code.program, self._name, constants, shapes, str(tree)]
        key = f"{self._name}-{hashlib.sha256(json.dumps(facts).encode()).hexdigest()}"
        return self._code.load(key) or self._code.compiled(
            key, lambda: self._jitted.lower(*arguments, **constants)
        )


@cache
def environment() -> str:
    """What beside a program and its shapes makes a function what it is: the libraries, and the code
    that is here.
    """
    digest = hashlib.sha256()
    for path in sorted(ROOT.rglob("*.py")):
        digest.update(path.read_bytes())
    versions = [*(f"{name} {version(name)}" for name in LIBRARIES), keras_hub_support.release()]
    device = jax.devices()[0]
    return "; ".join([platform.python_version(), *versions, device.device_kind, digest.hexdigest()])


@contextmanager
def _passed_on() -> Iterator[list[str]]:
    """The texts of the warnings for users within the block, which are warned all the same."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        yield texts
    for each in caught:
        warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
        texts += (
            [str(each.message)] if issubclass(each.category, (UserWarning, SyntaxWarning)) else []
        )
