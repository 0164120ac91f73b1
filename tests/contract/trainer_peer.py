"""The backend's end of a trainer's socket, written from the protocol and not from the trainer's
code.
"""

from __future__ import annotations

import json
import mmap
import os
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pytest

PREFIX = struct.Struct("<4sIQ")
PLPY = Path(__file__).parents[2] / "plpy"
PROGRAM = (
    f"import sys; sys.path.insert(0, {str(PLPY)!r}); from cerebro_trainer.__main__ import main; "
    "main()"
)
NO_GPU = "-1"
GPU = os.environ.get("CEREBRO_TEST_GPU", NO_GPU)
"""The number of the device that trainers have."""
on_a_processor = pytest.mark.skipif(
    GPU != NO_GPU, reason="a trainer with a GPU has other forms, and another name"
)
on_a_gpu = pytest.mark.skipif(GPU == NO_GPU, reason="CEREBRO_TEST_GPU names no device")
SECONDS = 300
"""How long to wait for an answer or an end before a test fails."""


class TrainerFailed(Exception):
    """An error frame; `error` is its content."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['kind']} {error['sqlstate']}: {error['message']}")
        self.error = error


class Peer:
    """Starts a trainer and speaks to it."""

    def __init__(
        self,
        framework: str = "tensorflow",
        parent: int | None = None,
        threads: int = 2,
        cache: Path | None = None,
        memory: int = 0,
        gpu: str = GPU,
    ) -> None:
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(SECONDS)
        self.directory = Path(tempfile.mkdtemp(prefix="cerebro_trainer-"))
        pulse = os.memfd_create("pulse")
        os.ftruncate(pulse, mmap.PAGESIZE)
        self.pulse = mmap.mmap(pulse, mmap.PAGESIZE)
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the process)
        self.process = subprocess.Popen(
            [
                *command(theirs.fileno(), pulse, framework, parent or os.getpid(), threads),
                *("--memory", str(memory)),
                *(("--compilation-cache", str(cache)) if cache else ()),
            ],
            pass_fds=[theirs.fileno(), pulse],
            cwd=self.directory,
            stderr=self.stderr,
            env=environment(self.directory, framework, gpu),
        )
        theirs.close()
        os.close(pulse)

    def __enter__(self) -> Peer:
        self.hello = self.reply()[0]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> tuple[int, str]:
        """Close the socket; the exit status and what was written to stderr."""
        self.socket.close()
        status = self.process.wait(SECONDS)
        shutil.rmtree(self.directory, ignore_errors=True)
        with self.stderr:
            self.stderr.seek(0)
            return status, self.stderr.read().decode()

    def tell(self, header: dict[str, Any], payload: bytes = b"") -> None:
        """Send a request that has no reply."""
        self.socket.sendall(frame(header, payload))

    def reply(self) -> tuple[Any, bytes]:
        """The next reply: what "ok" holds, and the payload with that of "more" frames before it."""
        parts = []
        while True:
            magic, header_bytes, payload_bytes = PREFIX.unpack(self._exactly(PREFIX.size))
            assert magic == b"CDB1"
            header = json.loads(self._exactly(header_bytes))
            parts.append(self._exactly(payload_bytes))
            if "error" in header:
                raise TrainerFailed(header["error"])
            if "ok" in header:
                return header["ok"], b"".join(parts)

    def ask(self, header: dict[str, Any], payload: bytes = b"") -> Any:
        """Send a request and return what its reply says."""
        self.tell(header, payload)
        return self.reply()[0]

    def wait(self) -> int:
        """The exit status, once the process has ended."""
        return self.process.wait(SECONDS)

    def silent(self) -> bool:
        """Whether nothing has arrived."""
        return not select.select([self.socket], [], [], 0)[0]

    def send_buffer(
        self, dataset: str, buffer_id: int, arrays: Sequence[tuple[str, np.ndarray]], **more: object
    ) -> None:
        """Stream one buffer."""
        entries = [
            {"role": role, "dtype": array.dtype.name, "shape": array.shape}
            for role, array in arrays
        ]
        self.tell(
            {"do": "buffer", "dataset": dataset, "buffer_id": buffer_id, "arrays": entries, **more},
            b"".join(array.tobytes() for _, array in arrays),
        )

    def load(
        self,
        dataset: str,
        buffers: Iterable[Sequence[tuple[str, np.ndarray]]],
        cache_bytes: int = 1 << 30,
    ) -> Any:
        """Hand over a whole dataset."""
        self.tell({"do": "open", "dataset": dataset, "cache_bytes": cache_bytes})
        for position, arrays in enumerate(buffers):
            self.send_buffer(dataset, position, arrays)
        return self.ask({"do": "close", "dataset": dataset})

    def begin(
        self,
        job: str,
        program: dict[str, Any],
        state: dict[str, Any] | bytes,
        datasets: Sequence[str] = ("d",),
        **more: object,
    ) -> Any:
        """Open a job; a state in bytes is sent after it, in chunks. What is wrong with it, the next
        reply says.
        """
        chunks = state if isinstance(state, bytes) else b""
        answer = self.ask(
            {
                "do": "begin",
                "job": job,
                "program": program,
                "state": {"source": "chunks"} if isinstance(state, bytes) else state,
                "result_key": "result",
                "datasets": list(datasets),
                **more,
            }
        )
        self.send_state(chunks)
        return answer

    def send_state(self, state: bytes, chunk_bytes: int = 1000) -> None:
        """Send a state, or weights, to the open job."""
        for start in range(0, len(state), chunk_bytes):
            self.tell({"do": "state"}, state[start : start + chunk_bytes])

    def train(
        self,
        program: dict[str, Any],
        state: dict[str, Any] | bytes,
        *,
        epoch: int = 0,
        mst_key: int = 1,
        batch_size: int = 8,
        epochs: int = 1,
        shuffle: bool = True,
        class_weight: list[float] | None = None,
        steps_per_epoch: int | None = None,
        **more: Any,
    ) -> tuple[Any, bytes]:
        """A visit over the cached dataset "d": its result and the state after it."""
        how = fit(
            batch_size, epochs, shuffle, class_weight=class_weight, steps_per_epoch=steps_per_epoch
        )
        self.begin("train", program, state, fit=how, order=place(epoch, mst_key), **more)
        return self.ask({"do": "finish"}), self.state()

    def evaluate(
        self,
        program: dict[str, Any],
        state: dict[str, Any] | bytes,
        datasets: Sequence[str] = ("d",),
    ) -> Any:
        """Sums by dataset."""
        self.begin("evaluate", program, state, datasets)
        return self.ask({"do": "finish"})["datasets"]

    def initial(self, program: dict[str, Any], seed: int = 1) -> bytes:
        """A fresh state."""
        self.begin("predict", program, {"source": "new", "seed": seed}, ())
        return self.state()

    def state(self, chunk_bytes: int = 1000, key: str = "result") -> bytes:
        """The held state of that name."""
        self.tell({"do": "state_get", "key": key, "chunk_bytes": chunk_bytes})
        return self.reply()[1]

    def _exactly(self, count: int) -> bytes:
        parts = bytearray()
        while len(parts) < count:
            part = self.socket.recv(count - len(parts))
            if not part:
                raise EOFError(self.close()[1])
            parts += part
        return bytes(parts)


def frame(header: dict[str, Any], payload: bytes = b"") -> bytes:
    """A request as it is sent."""
    text = json.dumps(header).encode()
    return PREFIX.pack(b"CDB1", len(text), len(payload)) + text + payload


def command(fd: int, pulse: int, framework: str, parent: int, threads: int = 2) -> list[str]:
    """A trainer's command line."""
    return [
        sys.executable,
        "-I",
        "-c",
        PROGRAM,
        "--fd",
        str(fd),
        "--parent",
        str(parent),
        "--pulse",
        str(pulse),
        "--framework",
        framework,
        "--threads",
        str(threads),
    ]


def environment(directory: Path, framework: str, gpu: str = GPU) -> dict[str, str]:
    """The bare environment that a backend gives its trainer."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(directory),
        "TMPDIR": str(directory),
        "KERAS_HOME": str(directory),
        "LANG": "C.UTF-8",
        "KERAS_BACKEND": framework,
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "CUDA_VISIBLE_DEVICES": gpu,
    }


def fit(batch_size: int = 8, epochs: int = 1, shuffle: bool = True, **more: Any) -> dict[str, Any]:
    """Fit parameters of a visit."""
    return {"batch_size": batch_size, "epochs": epochs, "shuffle": shuffle, **more}


def place(epoch: int = 0, mst_key: int = 1) -> dict[str, Any]:
    """Where a visit stands in its run."""
    return {"seed": 42, "mst_key": mst_key, "epoch": epoch, "segment_id": 0}
