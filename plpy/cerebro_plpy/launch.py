"""How a trainer is started: which program, with what arguments, and an environment with nothing else in it."""

from __future__ import annotations

import os
from dataclasses import dataclass

from cerebro_plpy import resources


@dataclass(frozen=True)
class TrainerSpec:
    """How a trainer is started; two equal specs can share one."""

    python: str
    framework: str = "tensorflow"
    threads: int = 1
    gpu: str = resources.NO_GPU
    idle_seconds: int = 60
    memory_bytes: int = 0
    compilation_cache: str | None = None

    def command(self, socket: int) -> list[str]:
        """The command line of a trainer that has its end of the socket pair as this descriptor."""
        command = [self.python, "-I", "-m", "cerebro_trainer", "--fd", str(socket), "--parent", str(os.getpid())]
        command += ["--framework", self.framework, "--threads", str(self.threads)]
        command += ["--idle-seconds", str(self.idle_seconds)]
        if self.compilation_cache:
            command += ["--compilation-cache", self.compilation_cache]
        return command

    def environment(self, home: str) -> dict[str, str]:
        """The environment of a trainer that works in this folder."""
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": home, "TMPDIR": home, "KERAS_HOME": home,
            "KERAS_BACKEND": self.framework, "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": self.gpu,
        }  # fmt: skip
