"""How a trainer is started: which program, with what arguments, and an environment with nothing
else in it.
"""

from __future__ import annotations

import os

from cerebro_plpy.errors import ObjectNotReady
from cerebro_plpy.records import dataclass
from cerebro_plpy.trainer_client.process import host_resources


@dataclass(frozen=True)
class TrainerSpec:
    """How a trainer is started; two equal specs can share one."""

    python: str
    framework: str = "tensorflow"
    threads: int = 1
    gpu: str = host_resources.NO_GPU
    memory_bytes: int = 0
    compilation_cache: str | None = None
    nursery_seconds: int = 0
    """How long a process stays that forks trainers like this one; 0 where each is executed."""
    kept: bool = True
    """Whether it may serve other sessions of the same roles before and after this one."""
    cores: tuple[int, ...] = ()
    """The processors that it keeps to, by their numbers; none: those of the session that starts it.
    """

    @property
    def on_gpu(self) -> bool:
        """Whether it has a GPU."""
        return self.gpu != host_resources.NO_GPU

    def command(self, socket: int, pulse: int) -> list[str]:
        """The command line of a trainer that has its end of the socket pair, and its pulse, as
        these descriptors.
        """
        command = [
            self.python,
            "-I",
            "-m",
            "cerebro_trainer",
            "--fd",
            str(socket),
            "--parent",
            str(os.getpid()),
        ]
        command += [
            "--pulse",
            str(pulse),
            "--framework",
            self.framework,
            "--threads",
            str(self.threads),
        ]
        command += ["--memory", str(self.memory_bytes), "--cores", *map(str, self.cores)]
        if self.compilation_cache:
            command += ["--compilation-cache", self.compilation_cache]
        return command

    def environment(self, home: str) -> dict[str, str]:
        """The environment of a trainer that works in this folder."""
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "HOME": home,
            "TMPDIR": home,
            "KERAS_HOME": home,
            "KERAS_BACKEND": self.framework,
            "TF_CPP_MIN_LOG_LEVEL": "2",
            # a process with threads cannot be forked, and both are to give the same bits
            "OPENBLAS_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": self.gpu,
        }


def environment(framework: str) -> str:
    """Where trainers of a framework can run, as messages say it."""
    extra = "tensorflow" if framework == "none" else framework
    return f"an environment that has cerebro_db, by pip install '.[{extra}]' in its clone"


def not_executable(spec: TrainerSpec, error: OSError) -> ObjectNotReady:
    """The error for an interpreter that the system cannot execute."""
    return ObjectNotReady(
        f"the trainer's interpreter {spec.python!r} cannot be started: {error.strerror}",
        hint="Set trainer_python in cerebro.setting to the Python of "
        f"{environment(spec.framework)}.",
    )


def gave_up(spec: TrainerSpec, status: int, said: str) -> ObjectNotReady:
    """The error for a trainer that ended by itself before it had started."""
    return ObjectNotReady(
        f"the trainer could not start: {spec.python} ended with exit status {status}",
        detail=said or None,
        hint="trainer_python in cerebro.setting names the interpreter; expected that of"
        f" {environment(spec.framework)}. cerebro-db check tells more.",
    )
