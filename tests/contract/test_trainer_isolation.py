"""What a trainer gets from its backend, and what it keeps from others: see
docs/reference/operations.md, Privileges.

What it gets is looked at by a program that is started in a trainer's place; what it does itself, on
a trainer.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from processes import CHOSEN_SLICES, alive, eventually, slice_of
from trainer_peer import PLPY

from cerebro_plpy.errors import ObjectNotReady, OutOfMemory, QueryCanceled, TrainerFailure
from cerebro_plpy.trainer_client.connection import TrainerConnection
from cerebro_plpy.trainer_client.process import heartbeat, host_resources, work_dirs
from cerebro_plpy.trainer_client.process.launch import TrainerSpec
from cerebro_plpy.trainer_client.process.trainer_process import ExecutedTrainer, ForkedTrainer
from cerebro_trainer.process_isolation import SLICE_NS

NAMES = {
    "PATH", "LANG", "HOME", "TMPDIR", "KERAS_HOME", "KERAS_BACKEND", "TF_CPP_MIN_LOG_LEVEL",
    "CUDA_VISIBLE_DEVICES",
    "GOMP_SPINCOUNT",
    "OPENBLAS_NUM_THREADS",
}  # fmt: skip
WAYS = {"executed": 0, "forked": 60}
"""In which a trainer comes to be, by the seconds that a nursery is to stay."""
SECRETS = {
    "PGPASSWORD": "secret", "PGPASSFILE": "/secret", "PGSERVICEFILE": "/secret",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "LD_LIBRARY_PATH": "/nowhere", "LD_AUDIT": "", "PYTHONPATH": "/nowhere",
    "PYTHONSTARTUP": "/nowhere",
    "PYTHONINSPECT": "", "PYTHONUSERBASE": "/nowhere", "KERAS_HOME": "/nowhere",
    "KERAS_BACKEND": "torch",
    "XLA_FLAGS": "--xla_dump_to=/tmp/dump", "TF_XLA_FLAGS": "x",
    "http_proxy": "http://user:secret@proxy",
    "LC_ALL": "C",
}  # fmt: skip
PROBE = """#!{python} -I
import json, os, sys
here = "/proc/self/fd"
fds = {{fd: os.readlink(f"{{here}}/{{fd}}") for fd in os.listdir(here) if
    os.path.lexists(f"{{here}}/{{fd}}")}}
environ = open("/proc/self/environ").read().split("\\0")
print("PROBE" + json.dumps(dict(
    environ=dict(entry.split("=", 1) for entry in environ if entry), fds=fds, words=sys.argv[1:],
        cwd=os.getcwd(),
    mode=os.stat(".").st_mode & 0o7777, files=os.listdir("."), session=os.getsid(0),
        pid=os.getpid())))
"""
PRCTL = (
    "import ctypes, json, os, resource; from cerebro_trainer.process_isolation import "
    "keep_private; "
    "keep_private();"
)
PRCTL += "get = ctypes.CDLL(None).prctl;"
PRCTL += (
    "print(json.dumps([get(3, 0, 0, 0, 0), get(39, 0, 0, 0, 0), resource.getrlimit(4), "
    "os.umask(0)]))"
)


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a program sees that is started as a trainer, by a backend with secrets and open
    files.
    """
    program = tmp_path / "trainer"
    program.write_text(PROBE.format(python=sys.executable))
    program.chmod(0o700)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    with (tmp_path / "data file").open("w") as data:
        os.set_inheritable(data.fileno(), True)
        with pytest.raises(ObjectNotReady) as caught:
            TrainerConnection(TrainerSpec(python=str(program), framework="none"), lambda: None)
    return dict(json.loads(str(caught.value.detail).partition("PROBE")[2]))


def test_its_environment_is_bare(seen: dict[str, Any]) -> None:
    found = seen["environ"]
    assert set(found) == NAMES
    assert found["HOME"] == found["TMPDIR"] == found["KERAS_HOME"] == seen["cwd"]
    assert found["KERAS_BACKEND"] == "none"
    assert not set(found.values()) & set(SECRETS.values())


def test_it_inherits_no_files_but_its_own(seen: dict[str, Any]) -> None:
    """Nothing to read, a file without a name for what it says, its socket, its pulse, what keeps
    its folder, and the folder that it lists just now."""
    socket = seen["words"][seen["words"].index("--fd") + 1]
    found = {number: path for number, path in seen["fds"].items() if "/proc/" not in path}
    pulse = seen["words"][seen["words"].index("--pulse") + 1]
    assert found.pop(pulse) == "/memfd:cerebro_pulse (deleted)"
    (held,) = found.keys() - {"0", "1", "2", socket}
    assert found[held].startswith("pipe:"), "whoever has its end keeps the folder"
    assert found["0"] == "/dev/null"
    assert found["1"] == found["2"]
    assert found["1"].endswith("(deleted)")
    assert found[socket].startswith("socket:")


def test_it_works_in_a_session_and_a_folder_of_its_own(seen: dict[str, Any]) -> None:
    assert seen["session"] == seen["pid"] != os.getsid(0)
    assert (seen["mode"], seen["files"]) == (0o700, [])
    assert not Path(seen["cwd"]).exists()


def test_nothing_of_its_surroundings_is_imported(seen: dict[str, Any]) -> None:
    """Isolated mode passes over the working directory, the user's site folder and all PYTHON
    variables.
    """
    assert seen["words"][:3] == ["-I", "-m", "cerebro_trainer"]


def test_a_backend_with_a_poisoned_path_has_a_sound_trainer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("numpy", "json", "sitecustomize", "usercustomize", "cerebro_trainer"):
        (tmp_path / f"{name}.py").write_text(
            "raise SystemExit('code of the surroundings was executed')"
        )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONUSERBASE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    link = TrainerConnection(TrainerSpec(python=sys.executable, framework="none"), lambda: None)
    assert link.hello["framework"] == "none"
    link.close()


def test_its_data_stay_in_it() -> None:
    """No debugger, no privileges, no core file, and files for nobody else."""
    command = [
        sys.executable,
        "-I",
        "-c",
        f"import sys; sys.path.insert(0, {str(PLPY)!r}); {PRCTL}",
    ]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert json.loads(told) == [0, 1, [0, 0], 0o077]


@pytest.fixture(params=WAYS)
def link(request: pytest.FixtureRequest) -> Iterator[TrainerConnection]:
    spec = TrainerSpec(python=sys.executable, framework="none", nursery_seconds=WAYS[request.param])
    opened = TrainerConnection(spec, lambda: None)
    assert isinstance(opened._process, ForkedTrainer if WAYS[request.param] else ExecutedTrainer)
    yield opened
    opened.close()


def test_a_trainer_does_so_before_it_says_hello(link: TrainerConnection) -> None:
    limits = Path(f"/proc/{link.pid}/limits").read_text()
    assert next(line for line in limits.splitlines() if "core file" in line).split()[4:6] == [
        "0",
        "0",
    ]
    status = Path(f"/proc/{link.pid}/status").read_text()
    assert "NoNewPrivs:\t1\n" in status
    assert "Umask:\t0077\n" in status
    assert Path(f"/proc/{link.pid}/oom_score_adj").read_text() == "1000\n"
    assert os.getsid(link.pid) == link.pid


def test_a_trainer_gives_way_to_all_others(link: TrainerConnection) -> None:
    """Each of its threads does, and the group that the kernel makes of its session."""
    nice = max(10, os.getpriority(os.PRIO_PROCESS, 0))
    for thread in map(int, os.listdir(f"/proc/{link.pid}/task")):
        assert os.getpriority(os.PRIO_PROCESS, thread) == nice
        assert not CHOSEN_SLICES or slice_of(thread) == SLICE_NS
    group = Path(f"/proc/{link.pid}/autogroup")
    eventually(lambda: not group.exists() or group.read_text().endswith("nice 10\n"))


def cancelled() -> None:
    raise QueryCanceled("canceling statement due to user request")


@pytest.mark.parametrize("end", ["close", "kill", "cancel"])
def test_its_folder_is_gone_whatever_ends_it(link: TrainerConnection, end: str) -> None:
    home = Path(link._work_dir.path)
    (home / "left behind").write_text("data")
    assert home.exists()
    if end == "close":
        link.close()
    elif end == "kill":
        os.kill(link.pid, signal.SIGKILL)
        with pytest.raises(TrainerFailure):
            link.call({"do": "close", "dataset": "d"})
    else:
        link._check = cancelled
        with pytest.raises(QueryCanceled):
            link.receive_result()
    assert not home.exists()


BACKEND = """
import os, sys, time
sys.path.insert(0, {plpy!r})
from cerebro_plpy.trainer_client.process.launch import TrainerSpec
from cerebro_plpy.trainer_client.connection import TrainerConnection
spec = TrainerSpec(python=sys.executable, framework="none", nursery_seconds={seconds})
link = TrainerConnection(spec, lambda: None)
print(link.pid, link._work_dir.path, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("end", ["exit", "kill", "both", "stopped"])
def test_it_and_its_folder_are_gone_after_its_backend(end: str, way: str) -> None:
    """The kernel ends the trainer then, which can do nothing more; also one that somebody had
    stopped.
    """
    command = [sys.executable, "-c", BACKEND.format(plpy=str(PLPY), seconds=WAYS[way])]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as backend:
        assert backend.stdin is not None and backend.stdout is not None
        pid, home = backend.stdout.readline().split()
        (Path(home) / "left behind").write_text("data")
        if end == "stopped":
            os.kill(int(pid), signal.SIGSTOP)
        if end == "exit":
            backend.stdin.close()
        else:
            backend.kill()
        if end == "both":
            with suppress(ProcessLookupError):  # its nursery may have been faster
                os.kill(int(pid), signal.SIGKILL)
    eventually(lambda: not Path(home).exists())
    eventually(lambda: not alive({int(pid)}))


def test_what_a_machine_left_when_it_stopped_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gone, here = (tmp_path / f"{work_dirs.PREFIX}{pid}-abc" for pid in (1 << 30, os.getpid()))
    gone.mkdir()
    here.mkdir()
    work_dirs.remove_stale()
    assert not gone.exists() and here.exists(), "while its backend lives"


def test_the_folder_of_a_backend_that_cannot_be_seen_is_not_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one in another container, with the same temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(os, "getpid", lambda: 1 << 30)
        home = work_dirs.WorkDir()
    work_dirs.remove_stale()
    assert Path(home.path).exists()
    home.assign(1 << 30)
    home.close()
    assert not Path(home.path).exists()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second without a sign of life is enough."""
    monkeypatch.setattr(heartbeat, "SILENT_SECONDS", 2.0)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("link", "size"),
    [("forked", 8), ("executed", 50_000_000)],
    ids=["waiting", "sending"],
    indirect=["link"],
)
def test_a_trainer_that_was_stopped_is_noticed_and_ended(
    link: TrainerConnection, size: int
) -> None:
    """Whether the backend waits for an answer, or for room for what it sends."""
    os.kill(link.pid, signal.SIGSTOP)
    arrays = [{"role": "x", "dtype": "float32", "shape": [size // 4]}]
    with pytest.raises(TrainerFailure, match="no sign of life"):
        link.call({"do": "buffer", "dataset": "d", "buffer_id": 0, "arrays": arrays}, bytes(size))
    assert not Path(f"/proc/{link.pid}").exists()


HOLD = "import time; data = bytearray(b'x') * ({size} << 20); print(flush=True); time.sleep(300)"
WITH_CHILD = "import subprocess, sys; subprocess.run([sys.executable, '-c', {hold!r}])"


@pytest.fixture
def with_child() -> Iterator[subprocess.Popen[str]]:
    """A process in a session of its own, whose child holds 200 MB."""
    code = WITH_CHILD.format(hold=HOLD.format(size=200))
    command = [sys.executable, "-c", code]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        os.killpg(process.pid, signal.SIGKILL)


def test_memory_of_what_it_started_counts(with_child: subprocess.Popen[str]) -> None:
    assert 200 << 20 < host_resources.used_bytes(with_child.pid) < 300 << 20


def test_memory_that_is_swapped_out_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        host_resources, "_read", lambda path: "VmRSS:\t 2048 kB\nVmSwap:\t  1024 kB\n"
    )
    assert host_resources.used_bytes(1 << 30) == 3 << 20


def test_a_trainer_that_takes_too_much_is_ended(tmp_path: Path) -> None:
    """Its own pid is not what the memory is in, but its child's; both end."""
    program = tmp_path / "trainer"
    hold = HOLD.format(size=200)
    program.write_text(f"#!{sys.executable}\n{WITH_CHILD.format(hold=hold)}\n")
    program.chmod(0o700)
    started: list[int] = []
    check: Callable[[], None] = lambda: started.append(1)  # noqa: E731
    spec = TrainerSpec(python=str(program), framework="none", memory_bytes=100 << 20)
    link = TrainerConnection(spec, check, wait=False)
    link.hello = {"protocol": 1}
    with pytest.raises(OutOfMemory, match="its limit is 100 MB"):
        link.receive_result()
    eventually(lambda: not [*host_resources._session_processes(link.pid)])
