"""The program, arguments and minimal environment of a trainer."""

from __future__ import annotations

import os

from cerebro_plpy.errors import ObjectNotReady
from cerebro_plpy.records import dataclass
from cerebro_plpy.trainer_client.process import host_resources


@dataclass(frozen=True)
class TrainerSpec:
    """All that determines how a trainer is started; equal specs can share a trainer."""

    python: str
    framework: str = "tensorflow"
    threads: int = 1
    gpu: str = host_resources.NO_GPU
    memory_bytes: int = 0
    compilation_cache: str | None = None
    nursery_seconds: int = 0  # idle time of the fork server; 0: execute each trainer
    is_reusable: bool = True  # it may serve other sessions of the same roles
    cores: tuple[int, ...] = ()  # cores that it uses; those of the starting session if empty

    @property
    def uses_gpu(self) -> bool:
        """True if it uses a GPU."""
        return self.gpu != host_resources.NO_GPU

    def command(self, socket: int, heartbeat: int) -> list[str]:
        """Return the command line of a trainer.

        Args:
            socket: descriptor of its end of the socket pair.
            heartbeat: descriptor of its heartbeat.
        """
        command = [self.python, "-I", "-m", "cerebro_trainer"]
        command += ["--fd", str(socket), "--parent", str(os.getpid()), "--pulse", str(heartbeat)]
        command += ["--framework", self.framework, "--threads", str(self.threads)]
        command += ["--memory", str(self.memory_bytes), "--cores", *map(str, self.cores)]
        if self.compilation_cache:
            command += ["--compilation-cache", self.compilation_cache]
        return command

    def environment(self, home: str) -> dict[str, str]:
        """Return the environment variables of a trainer that works in a folder."""
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "HOME": home,
            "TMPDIR": home,
            "KERAS_HOME": home,
            "KERAS_BACKEND": self.framework,
            "TF_CPP_MIN_LOG_LEVEL": "2",
            # A process with threads cannot be forked; executed trainers must compute the same bits.
            "OPENBLAS_NUM_THREADS": "1",
            # Threads of LightGBM wait for each other for some microseconds after each split. To
            # sleep so briefly takes ten times as long; to spin longer takes a core from others.
            "GOMP_SPINCOUNT": "1000",
            "CUDA_VISIBLE_DEVICES": self.gpu,
        }


def describe_environment(framework: str) -> str:
    """Return a description of the environment that trainers of a framework need, for messages."""
    extra = "tensorflow" if framework == "none" else framework
    return f"an environment that has cerebro_db, by pip install '.[{extra}]' in its clone"


def start_error(spec: TrainerSpec, error: OSError) -> ObjectNotReady:
    """Return the error for an interpreter that the system cannot execute."""
    return ObjectNotReady(
        f"the trainer's interpreter {spec.python!r} cannot be started: {error.strerror}",
        hint="An administrator sets trainer_python with cerebro.set: the path of the Python of "
        f"{describe_environment(spec.framework)}.",
    )


def early_exit_error(spec: TrainerSpec, status: int, messages: str) -> ObjectNotReady:
    """Return the error for a trainer that exited before it had started."""
    return ObjectNotReady(
        f"the trainer could not start: {spec.python} ended with exit status {status}",
        detail=messages or None,
        hint="trainer_python in cerebro.setting names the interpreter; expected that of"
        f" {describe_environment(spec.framework)}. cerebro-db check shows more.",
    )
