"""A trainer's life: it starts, says hello, and never outlives the one who started it."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from processes import eventually
from trainer_peer import PLPY, PREFIX, SECONDS, Peer, TrainerFailed, command, environment, frame

PR_SET_CHILD_SUBREAPER = 36


@pytest.mark.long_for(framework=("jax", "torch"))
def test_hello_says_what_it_is(trainer: Peer, framework: str) -> None:
    assert trainer.hello["protocol"] == 1
    assert trainer.hello["pid"] == trainer.process.pid
    assert trainer.hello["framework"] == framework
    assert trainer.hello["keras_version"].startswith("3.")
    assert trainer.hello["devices"] == ["CPU:0"]
    assert trainer.hello["threads"] == 2
    assert trainer.ask({"do": "gpus"}) == {"gpus": []}


WRITING = """
import os, sys

def tell(event, arguments):
    if event == "os.mkdir" or (event == "open" and isinstance(arguments[1],
        str) and set(arguments[1]) & set("wax+")):
        print(os.path.abspath(arguments[0]))

sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
sys.addaudithook(tell)
from cerebro_trainer import frameworks
frameworks.load(sys.argv[2])
"""


@pytest.mark.long_for(framework=("tensorflow", "torch"))
def test_a_framework_is_imported_without_a_trace_elsewhere(framework: str, tmp_path: Path) -> None:
    """As in a nursery, which has no folder for temporary files; what it is told of at that moment
    it remembers.
    """
    settings = {**environment(tmp_path, framework), "TMPDIR": str(tmp_path / "none")}
    order = [sys.executable, "-c", WRITING, str(PLPY), framework]
    said = subprocess.run(
        order, cwd=tmp_path, env=settings, check=True, capture_output=True, text=True
    ).stdout
    assert [path for path in said.splitlines() if not Path(path).is_relative_to(tmp_path)] == []


def test_without_a_framework_it_loads_none(packer: Peer) -> None:
    assert packer.hello["framework"] == "none"
    assert held(packer.process.pid) < 150 << 20, "a framework takes several times as much"
    with pytest.raises(TrainerFailed) as failed:
        packer.ask({"do": "begin"})
    assert failed.value.error["sqlstate"] == "0A000"


def held(pid: int) -> int:
    """Resident memory of a process in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(
        next(line for line in status.splitlines() if line.startswith("VmRSS:")).split()[1]
    )


def test_memory_killer_takes_it_first(packer: Peer) -> None:
    assert Path(f"/proc/{packer.process.pid}/oom_score_adj").read_text() == "1000\n"


def test_ends_when_the_peer_closes() -> None:
    with Peer("none") as peer:
        peer.socket.close()
        assert peer.wait() == 0


def test_ends_in_the_middle_of_a_frame() -> None:
    with Peer("none") as peer:
        peer.socket.sendall(PREFIX.pack(b"CDB1", 100, 1 << 20) + b'{"do"')
        peer.socket.close()
        assert peer.wait() == 0


def test_ends_when_no_call_comes() -> None:
    with Peer("none") as peer:
        peer.tell({"do": "reset", "idle_seconds": 0.2})
        assert peer.wait() == 0


def test_within_a_call_it_waits_however_long_nothing_comes() -> None:
    """The next request ends the time between two calls, whatever it asks for."""
    with Peer("none") as peer:
        # Sent together: on a slow machine the trainer might end between the two.
        peer.socket.sendall(frame({"do": "reset", "idle_seconds": 0.3}) + frame({"do": "gpus"}))
        assert peer.reply()[0] is not None
        with pytest.raises(subprocess.TimeoutExpired):
            peer.process.wait(0.6)
        with pytest.raises(TrainerFailed):
            peer.ask({"do": "nothing"})


def test_wrong_parent_ends_it() -> None:
    status, stderr = Peer("none", parent=os.getppid()).close()
    assert status != 0
    assert f"the parent is process {os.getpid()}, expected {os.getppid()}" in stderr


@pytest.mark.usefixtures("like_process_1")
def test_dies_with_its_parent(tmp_path: Path) -> None:
    """A middle man starts a trainer whose socket we keep open, and is killed: only the signal can
    end it.
    """
    ours, theirs = socket.socketpair()
    pulse = os.memfd_create("pulse")
    os.ftruncate(pulse, mmap.PAGESIZE)
    arguments = command(theirs.fileno(), pulse, "none", 0)
    start = (
        "import os, subprocess, sys, time; a = sys.argv[1:]; a[a.index('--parent') + 1] = "
        f"str(os.getpid());print(subprocess.Popen(a, pass_fds=[{theirs.fileno()}, {pulse}]).pid, "
        f"flush=True); time.sleep({SECONDS})"
    )
    with (
        ours,
        subprocess.Popen(
            [sys.executable, "-c", start, *arguments],
            pass_fds=[theirs.fileno(), pulse],
            cwd=tmp_path,
            env=environment(tmp_path, "none"),
            stdout=subprocess.PIPE,
        ) as middle,
    ):
        assert middle.stdout is not None
        pid = int(middle.stdout.readline())
        ours.settimeout(SECONDS)
        assert ours.recv(1)  # it has said hello, so it has compared its parent
        os.kill(middle.pid, signal.SIGKILL)
        assert ended(pid) == 1, (
            "a server that is process 1 would take a signal for a crash of its own"
        )
    theirs.close()
    os.close(pulse)


@pytest.fixture
def like_process_1() -> Iterator[None]:
    """Orphans come to this process, as in a container they come to the server."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    yield
    libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def ended(orphan: int) -> int:
    """The exit status of a process that comes to this one."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        with suppress(ChildProcessError):
            if (found := os.waitpid(orphan, os.WNOHANG))[0]:
                return os.waitstatus_to_exitcode(found[1])
        time.sleep(0.01)
    raise AssertionError(f"process {orphan} is still there")


def test_interrupts_are_ignored(packer: Peer) -> None:
    packer.process.send_signal(signal.SIGINT)
    with pytest.raises(TrainerFailed):
        packer.ask({"do": "nothing"})


def test_what_is_no_frame_ends_it() -> None:
    with Peer("none") as peer:
        peer.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert peer.wait() != 0


def test_computing_does_not_delay_its_pulse_and_a_peer_that_vanishes_ends_it() -> None:
    from trainer_peer import fit, place
    from trainer_programs import buffers, program

    with Peer() as peer:
        peer.load("d", buffers(*[200] * 50))
        peer.begin(
            "train", program(), {"source": "new", "seed": 1}, fit=fit(1, 10_000), order=place()
        )
        peer.tell({"do": "finish"})
        for _ in range(2):
            before = peer.pulse[0]
            eventually(lambda before=before: peer.pulse[0] != before)  # type: ignore[misc]
        assert peer.silent(), "it still computes"
        peer.socket.close()
        assert peer.wait() == 0
