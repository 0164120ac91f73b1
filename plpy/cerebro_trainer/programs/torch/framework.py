"""PyTorch as the framework of a trainer: set up once per process."""

from __future__ import annotations

import os
from pathlib import Path

import keras
import torch

from cerebro_trainer.programs.program import Framework
from cerebro_trainer.programs.torch import keras_patches
from cerebro_trainer.programs.torch.program import TorchProgram


def start(threads: int, cache: Path | None) -> Framework:
    """Set up PyTorch for this process, so that the same work gives the same bits.

    Args:
        cache: unused, since PyTorch has no compiled code to cache.
    """
    # Without this, deterministic algorithms are refused on GPUs.
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    torch.set_num_threads(threads)
    torch.set_num_interop_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    keras_patches.install()
    gpus = tuple(f"GPU:{number}" for number in range(torch.cuda.device_count()))
    return Framework(
        name="torch",
        version=torch.__version__,
        keras_version=keras.__version__,
        devices=("CPU:0", *gpus),
        threads=threads,
        make_program=lambda spec, budget: TorchProgram(spec),
        errors=(),
        memory_errors=(MemoryError, torch.OutOfMemoryError),
        fatal_errors=(torch.AcceleratorError,) if hasattr(torch, "AcceleratorError") else (),
        describe_gpus=_describe_gpus,
    )


def _describe_gpus() -> tuple[str, ...]:
    descriptions = []
    for number in range(torch.cuda.device_count()):
        gpu = torch.cuda.get_device_properties(number)
        descriptions.append(
            f"device: {number}, name: {gpu.name}, compute capability: {gpu.major}.{gpu.minor}"
        )
    return tuple(descriptions)
