"""A cache of a program's functions as XLA compiled them: a hit needs no trace and no compilation.

JAX's own cache starts after a function is traced and lowered. For a small network that takes
several times as long as loading the compiled code. JAX's cache still serves the many small
functions that build a model. A trainer executes the entries of both: see `code_cache`.
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

import cerebro_trainer
from cerebro_trainer.models import keras_hub_support
from cerebro_trainer.programs import code_cache

Function: TypeAlias = Callable[..., Any]
PACKAGE = Path(cerebro_trainer.__file__).parent
LIBRARIES = ("jax", "jaxlib", "keras", "numpy")
CACHE_ERRORS = (jax.errors.JaxRuntimeError, NotImplementedError, ValueError)
"""Exceptions of JAX for a function that it cannot serialize or load."""
USER_CATEGORIES = (UserWarning, SyntaxWarning)


class Entries(code_cache.Entries, CacheInterface):
    """Entries for JAX's own compilations as well."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._is_bypassed = False

    @contextmanager
    def bypass(self) -> Iterator[None]:
        """Hide all entries within the block, so that XLA compiles.

        A function that was loaded in parts cannot be serialized as a whole.
        """
        self._is_bypassed = True
        try:
            yield
        finally:
            self._is_bypassed = False

    def get(self, key: str) -> bytes | None:
        return None if self._is_bypassed else super().get(key)

    def put(self, key: str, value: bytes) -> None:
        if not self._is_bypassed:
            super().put(key, value)


class FunctionCache:
    """The compiled functions of one program.

    Args:
        entries: storage; None for no cache.
        program_key: part of each function's key.
    """

    def __init__(self, entries: Entries | None, program_key: str = "") -> None:
        self._entries = entries
        self._saved_seconds = 0.0
        self.program_key = program_key

    def select_program(self, program_key: str) -> FunctionCache:
        """Return a cache of another program with the same storage."""
        return FunctionCache(self._entries, program_key)

    def take_saved_compile_seconds(self) -> float:
        """Return the compile seconds saved by cache hits since the last call."""
        seconds = self._saved_seconds
        self._saved_seconds = 0.0
        return seconds

    def load(self, key: str) -> Function | None:
        """Load a function, and repeat the warnings of its compilation; None if it is missing."""
        content = self._entries.get(key) if self._entries else None
        if content is None:
            return None
        try:
            stored = StoredFunction.from_bytes(content)
            trees = (
                PyTreeDef.deserialize_using_proto(default_registry, tree)
                for tree in (stored.inputs, stored.outputs)
            )
            function: Function = serialize_executable.deserialize_and_load(
                stored.executable, *trees
            )
        except CACHE_ERRORS:
            return None
        self._saved_seconds += stored.seconds
        for text in stored.warnings:
            warnings.warn(text, stacklevel=2)
        return function

    def compile(self, key: str, lower: Callable[[], jax.stages.Lowered]) -> Function:
        """Lower and compile a function, and store it."""
        if self._entries is None:
            return lower().compile()
        start = time.perf_counter()
        with _collect_warnings() as texts:
            lowered = lower()
            with self._entries.bypass():
                function = lowered.compile()
        seconds = time.perf_counter() - start
        with suppress(*CACHE_ERRORS):
            executable, *trees = serialize_executable.serialize(function)
            inputs, outputs = (tree.serialize_using_proto() for tree in trees)
            stored = StoredFunction(seconds, texts, executable, inputs, outputs)
            self._entries.put(key, stored.to_bytes())
        return function


class StoredFunction(NamedTuple):
    """A compiled function in a file."""

    seconds: float  # duration of its compilation
    warnings: list[str]  # warnings for users during its compilation
    executable: bytes  # this and the trees as JAX serializes them
    inputs: bytes
    outputs: bytes

    def to_bytes(self) -> bytes:
        """Return a line of JSON, followed by the last three fields; compressed."""
        parts = [self.executable, self.inputs, self.outputs]
        head = {
            "seconds": self.seconds,
            "warnings": self.warnings,
            "sizes": [len(part) for part in parts],
        }
        return zlib.compress(b"".join((json.dumps(head).encode(), b"\n", *parts)), 1)

    @classmethod
    def from_bytes(cls, content: bytes) -> StoredFunction:
        """Read the content that `to_bytes` wrote."""
        line, _, body = zlib.decompress(content).partition(b"\n")
        head = json.loads(line)
        ends = [*accumulate(head["sizes"], initial=0)]
        executable, inputs, outputs = (body[begin:end] for begin, end in pairwise(ends))
        return cls(head["seconds"], head["warnings"], executable, inputs, outputs)


class CachedFunction:
    """A jitted function of a program, compiled or loaded for each shape of its last arguments.

    Arguments by keyword are constants.

    Args:
        name: unique among the functions of the program.
        fixed: number of first arguments, whose shapes are those of the program's variables.
        options: options of `jax.jit`.
    """

    def __init__(
        self, functions: FunctionCache, name: str, function: Function, fixed: int, **options: Any
    ) -> None:
        self._functions = functions
        self._name = name
        self._fixed = fixed
        self._jitted = jax.jit(function, **options)
        self._compiled: dict[object, Function] = {}

    def __call__(self, *arguments: Any, **constants: Any) -> Any:
        shapes = [(array.shape, array.dtype) for array in jax.tree.leaves(arguments[self._fixed :])]
        signature = (*shapes, *constants.items())
        function = self._compiled.get(signature)
        if function is None:
            function = self._load_or_compile(arguments, constants)
            self._compiled[signature] = function
        return function(*arguments)

    def _load_or_compile(self, arguments: tuple[Any, ...], constants: dict[str, Any]) -> Function:
        leaves, tree = jax.tree.flatten(arguments)
        shapes = [(list(leaf.shape), str(leaf.dtype)) for leaf in leaves]
        identity = [
            describe_environment(),
            self._functions.program_key,
            self._name,
            constants,
            shapes,
            str(tree),
        ]
        key = f"{self._name}-{hashlib.sha256(json.dumps(identity).encode()).hexdigest()}"
        return self._functions.load(key) or self._functions.compile(
            key, lambda: self._jitted.lower(*arguments, **constants)
        )


@cache
def describe_environment() -> str:
    """Return the libraries, the device and this code, on which compiled functions depend."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(path.read_bytes())
    versions = [*(f"{name} {version(name)}" for name in LIBRARIES), keras_hub_support.get_release()]
    device = jax.devices()[0]
    return "; ".join([platform.python_version(), *versions, device.device_kind, digest.hexdigest()])


@contextmanager
def _collect_warnings() -> Iterator[list[str]]:
    """Collect the texts of warnings for users within the block; all warnings are raised again."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as records:
        yield texts
    for warning in records:
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        if issubclass(warning.category, USER_CATEGORIES):
            texts.append(str(warning.message))
