"""JAX as the framework of a trainer: set up once per process."""

from __future__ import annotations

import os
from pathlib import Path

import jax
import keras
from jax._src import compilation_cache

from cerebro_trainer.programs import code_cache
from cerebro_trainer.programs.jax.compiled_code import Entries, FunctionCache
from cerebro_trainer.programs.jax.program import JaxProgram
from cerebro_trainer.programs.program import Framework


def start(threads: int, cache: Path | None) -> Framework:
    """Set up JAX for this process, so that the same work gives the same bits.

    Args:
        cache: folder for compiled code; None for no cache.
    """
    # JAX reads these when the first device is requested. XLA_FLAGS of earlier releases no longer
    # limit the CPU's threads.
    os.environ["PJRT_NPROC"] = str(threads)
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    os.environ["XLA_FLAGS"] = "--xla_gpu_deterministic_ops=true"
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "-1":
        _configure(jax_platforms="cpu")
    entries = None if cache is None else _open_cache(cache, threads)
    # Code for a GPU is cached by JAX alone: caching it as a whole is untested.
    functions = FunctionCache(entries if jax.default_backend() == "cpu" else None)
    return Framework(
        name="jax",
        version=jax.__version__,
        keras_version=keras.__version__,
        devices=tuple(f"{device.platform.upper()}:{device.id}" for device in jax.devices()),
        threads=threads,
        make_program=lambda spec, budget: JaxProgram(spec, functions),
        errors=(jax.errors.JaxRuntimeError,),
        memory_errors=(MemoryError,),
        describe_gpus=_describe_gpus,
    )


def _open_cache(cache: Path, threads: int) -> Entries | None:
    """Open the cache of compiled functions, which JAX uses for its own compilations, too."""
    folder = code_cache.open_folder(cache, "jax", jax.__version__, threads)
    if folder is None:
        return None
    entries = Entries(folder)
    # JAX's own cache leaves half a file if it is interrupted, and warns users of it ever after.
    compilation_cache.get_file_cache = lambda path: (entries, path)
    _configure(
        jax_compilation_cache_dir=str(folder),
        # building a model compiles many small functions
        jax_persistent_cache_min_compile_time_secs=0.0,
        jax_persistent_cache_enable_xla_caches="none",  # of GPUs, in files of unlimited size
    )
    return entries


def _configure(**options: object) -> None:
    for name, value in options.items():
        jax.config.update(name, value)  # type: ignore[no-untyped-call]


def _describe_gpus() -> tuple[str, ...]:
    return tuple(
        f"device: {device.id}, name: {device.device_kind}"
        for device in jax.devices()
        if device.platform == "gpu"
    )
