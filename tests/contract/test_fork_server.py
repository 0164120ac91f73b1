"""What is true of trainers that a nursery forks, beside what is true of all: see
test_trainer_confinement.py.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from processes import alive, command_line, cores_of, eventually, parent
from trainer_peer import PLPY

from cerebro_plpy.errors import ObjectNotReady, QueryCanceled, TrainerFailure
from cerebro_plpy.records import replace
from cerebro_plpy.trainer_client.connection import TrainerConnection
from cerebro_plpy.trainer_client.process import fork_server_client, standstill
from cerebro_plpy.trainer_client.process.launch import TrainerSpec
from cerebro_plpy.trainer_client.process.trainer_process import ExecutedTrainer, ForkedTrainer

Opened = Callable[..., TrainerConnection]
SPEC = TrainerSpec(python=sys.executable, framework="none", nursery_seconds=60)


pytestmark = pytest.mark.usefixtures("own_nurseries")


@pytest.fixture
def opened() -> Iterator[Opened]:
    """Opens links, and closes them, and ends the nurseries."""
    links: list[TrainerConnection] = []

    def link(spec: TrainerSpec = SPEC, **settings: Any) -> TrainerConnection:
        links.append(TrainerConnection(spec, lambda: None, **settings))
        return links[-1]

    yield link
    found = {
        nursery_of(each)
        for each in links
        if isinstance(each._process, ForkedTrainer) and alive({each.pid})
    }
    for each in links:
        each.close()
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def nursery_of(link: TrainerConnection) -> int:
    return parent(link.pid)


def test_all_of_a_framework_come_from_one_nursery(opened: Opened) -> None:
    first, second = opened(), opened(replace(SPEC, threads=2))
    assert isinstance(first._process, ForkedTrainer)
    assert nursery_of(first) == nursery_of(second) != os.getpid()
    assert command_line(nursery_of(first))[0] == "cerebro_nursery: none"
    keeper = parent(nursery_of(first))
    assert (
        command_line(keeper)[0]
        == f"cerebro_keeper: nursery {nursery_of(first)} for server {os.getppid()}"
    )
    assert (first.hello["threads"], second.hello["threads"]) == (1, 2)
    assert first.hello["pid"] == first.pid != second.pid


def test_of_two_that_are_started_at_once_one_serves(opened: Opened) -> None:
    """The other finds its address taken, and ends as one that has done what it should."""
    first = opened()
    second = fork_server_client._start(SPEC, fork_server_client.server_address(SPEC))
    assert second.wait(60) == 0
    assert nursery_of(opened()) == nursery_of(first)
    assert first.is_alive()


def test_all_threads_of_a_trainer_keep_to_its_cores(opened: Opened) -> None:
    """Also where it is executed; who is to have others comes from another nursery."""
    usual, last = opened(), (max(os.sched_getaffinity(0)),)
    forked, executed = (
        opened(replace(SPEC, cores=last, nursery_seconds=seconds)) for seconds in (60, 0)
    )
    assert [type(each._process) for each in (forked, executed)] == [ForkedTrainer, ExecutedTrainer]
    assert cores_of(nursery_of(forked)) == cores_of(forked.pid) == cores_of(executed.pid) == {*last}
    assert cores_of(usual.pid) == os.sched_getaffinity(0)
    assert nursery_of(usual) != nursery_of(forked)


def test_cores_that_are_there_no_more_keep_nobody_from_work(opened: Opened) -> None:
    gone = max(os.sched_getaffinity(0)) + 1
    assert cores_of(opened(replace(SPEC, cores=(gone,))).pid) == os.sched_getaffinity(0)


def test_ps_names_the_backend(opened: Opened) -> None:
    ways = [opened(), opened(replace(SPEC, nursery_seconds=0))]
    assert [type(each._process) for each in ways] == [ForkedTrainer, ExecutedTrainer]
    for each in ways:
        assert command_line(each.pid)[0] == f"cerebro_trainer: none for backend {os.getpid()}"


def test_no_two_draw_the_same_numbers(opened: Opened) -> None:
    """The generators of numpy and of Python are those of the nursery, until they are seeded
    anew.
    """
    code = (
        "import os, random, socket, sys, tempfile; import numpy as np\n"
        "from cerebro_trainer import service\n"
        "from cerebro_trainer.fork_server import server\n"
        "from cerebro_trainer.fork_server.lease import Lease\n"
        "show = lambda *_: print(random.random(), np.random.rand(), os.getcwd(), "
        "tempfile.gettempdir(), flush=True)\n"
        "service.serve = show; server.process_isolation.keep_private = lambda: None\n"
        "for home in sys.argv[1:]:\n"
        "  pulse = os.pipe()\n"
        "  fds = [socket.socketpair()[0].detach(), *pulse, os.dup(1)]\n"
        "  fork_server = server.ForkServer(socket.socket(socket.AF_UNIX), 'none')\n"
        "  lease = Lease(dict(parent=1, home=home, threads=1, cache=None, memory=0, key=None), "
        "fds)\n"
        "  os.waitpid(fork_server._fork_trainer(lease).pid, 0)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, "/tmp", "/"], check=True, capture_output=True, text=True
    ).stdout
    (first, second) = (line.split() for line in told.splitlines())
    assert first[0] != second[0] and first[1] != second[1]
    assert (first[2:], second[2:]) == (["/tmp", "/tmp"], ["/", "/"])


def test_the_end_of_one_is_not_hidden_by_another(opened: Opened) -> None:
    """The later one has no copy of what the earlier one had."""
    first, second = opened(), opened()
    home = Path(first._work_dir.path)
    first.close()
    assert not home.exists()
    assert not alive({first.pid})
    assert second.is_alive()


def test_a_nursery_that_is_killed_costs_its_trainers_and_the_next_one_has_another(
    opened: Opened,
) -> None:
    link = opened()
    killed = nursery_of(link)
    keeper = parent(killed)
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: not alive({link.pid, keeper}))
    with pytest.raises(TrainerFailure, match=r"is gone|ended before it answered"):
        link.call({"do": "close", "dataset": "d"})
    assert isinstance(opened()._process, ForkedTrainer)


def test_a_trainer_that_is_stopped_ends_with_its_nursery(opened: Opened) -> None:
    """The signal of its parent's end waits until the process goes on, which nobody may ever let it
    do.
    """
    link = opened()
    keeper = parent(nursery_of(link))
    os.kill(link.pid, signal.SIGSTOP)
    os.kill(nursery_of(link), signal.SIGKILL)
    eventually(lambda: not alive({link.pid, keeper}))


def test_a_nursery_that_is_stopped_delays_nobody_for_good(opened: Opened) -> None:
    link = opened()
    stopped = nursery_of(link)
    os.kill(stopped, signal.SIGSTOP)
    link.close()
    eventually(lambda: not alive({stopped, link.pid}))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A nursery that does nothing is given up at once."""
    monkeypatch.setattr(standstill, "PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(standstill, "STOPPED_SECONDS", 0.1)
    monkeypatch.setattr(standstill, "ASLEEP_SECONDS", 0.5)


@pytest.mark.usefixtures("impatient")
def test_who_finds_a_nursery_stopped_has_a_trainer_of_its_own(opened: Opened) -> None:
    """Those that the nursery has forked go on."""
    link = opened()
    os.kill(nursery_of(link), signal.SIGSTOP)
    other = opened()
    assert isinstance(other._process, ExecutedTrainer) and other.hello["framework"] == "none"
    with pytest.raises(ObjectNotReady, match="'d' was not opened"):
        link.call({"do": "close", "dataset": "d"})
    assert link.is_alive()
    os.kill(nursery_of(link), signal.SIGCONT)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("stopped", [True, False], ids=["stopped", "asleep"])
def test_a_nursery_that_comes_to_no_end_of_its_import_is_given_up(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    """It has not accepted the connection yet, which tells all the same who listens."""
    code = PATCHED.format(plpy=str(PLPY), fail="__import__('time').sleep(300)")
    monkeypatch.setattr(subprocess, "Popen", nurseries_by(code))
    link = opened(wait=False)
    assert isinstance(link._process, ForkedTrainer)
    child = link._process
    name = "cerebro_nursery"
    eventually(
        lambda: (
            child.has_started(10)
            or (command_line(child._acting_process()) or [""])[0].startswith(name)
        )
    )
    found = child._acting_process()
    if stopped:
        os.kill(found, signal.SIGSTOP)
    link.greet()
    assert isinstance(link._process, ExecutedTrainer) and link.hello["framework"] == "none"
    os.kill(found, signal.SIGKILL)


def test_who_goes_without_a_word_costs_nobody(opened: Opened) -> None:
    """Words that nobody has read, a request that is none, and one whose descriptors are missing."""
    link = opened()
    for words in (
        b"",
        b"{",
        b"[]",
        b'{"parent": 1, "home": "/", "threads": 1, "cache": null, "memory": 0, "key": null}',
    ):
        for reads in (False, True):
            connection = fork_server_client._connect(fork_server_client.server_address(SPEC))
            assert connection is not None
            connection.setblocking(True)
            assert not reads or json.loads(connection.recv(100)) == {"nursery": nursery_of(link)}
            if words:
                connection.send(words)
                assert not reads or connection.recv(100) == b"", "it is told to look elsewhere"
            connection.close()
    assert nursery_of(opened()) == nursery_of(link)
    assert link.is_alive()


def test_nobody_wants_it_for_a_while_so_it_goes(opened: Opened) -> None:
    link = opened(replace(SPEC, nursery_seconds=1))
    here = {nursery_of(link), parent(nursery_of(link))}
    assert alive(here) == here
    link.close()
    eventually(lambda: not alive(here))


def test_a_cancel_takes_effect_while_a_framework_is_imported(opened: Opened) -> None:
    def cancelled() -> None:
        raise QueryCanceled("canceling statement due to user request")

    link = opened(replace(SPEC, framework="tensorflow", nursery_seconds=1), wait=False)
    home = Path(link._work_dir.path)
    link._check = cancelled
    with pytest.raises(QueryCanceled):
        link.greet()
    assert not home.exists()


def test_a_framework_that_cannot_be_imported_is_told_by_who_was_executed(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its nursery ends without a word; and is not asked again."""
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    program.chmod(0o700)
    spec = replace(SPEC, python=str(program))
    with pytest.raises(ObjectNotReady, match="ended with exit status 1") as caught:
        opened(spec)
    assert "cerebro_trainer" in str(caught.value.detail)
    assert fork_server_client.fork(spec, "/", ()) is None


PATCHED = """
import sys
sys.path.insert(0, {plpy!r})
from cerebro_trainer.fork_server import __main__ as begin, server
def fail(*_):
    {fail}
server._import_framework = fail
begin.main()
"""


def nurseries_by(code: str) -> Callable[..., object]:
    """What starts processes, but nurseries by another program."""
    popen = subprocess.Popen

    def start(command: list[str], **settings: object) -> object:
        if "cerebro_trainer.fork_server" in command:
            command = [command[0], "-c", code, *command[4:]]
        return popen(command, **settings)  # type: ignore[call-overload]

    return start


def test_where_a_nursery_fails_the_trainer_is_executed(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = PATCHED.format(plpy=str(PLPY), fail="raise SystemExit('no import')")
    monkeypatch.setattr(subprocess, "Popen", nurseries_by(code))
    for _ in range(2):
        link = opened()
        assert isinstance(link._process, ExecutedTrainer)
        assert link.hello["framework"] == "none"


SERVER = """
import os, subprocess, sys, time
if sys.argv[1:]:
    print(subprocess.run([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE,
        text=True).stdout, flush=True)
    time.sleep(300)
"""
LEAVING = """
import sys
sys.path.insert(0, {plpy!r})
from cerebro_plpy.trainer_client.process.launch import TrainerSpec
from cerebro_plpy.trainer_client.connection import TrainerConnection
spec = TrainerSpec(python=sys.executable, framework="none", nursery_seconds=300)
link = TrainerConnection(spec, lambda: None)
words = open(f"/proc/{{link.pid}}/stat").read().rpartition(")")[2].split()
print(link.pid, words[1])
"""


def test_it_ends_with_its_server_and_outlives_a_backend() -> None:
    command = [sys.executable, "-c", SERVER, LEAVING.format(plpy=str(PLPY))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        trainer, found = map(int, server.stdout.readline().split())
        keeper = parent(found)
        eventually(lambda: not alive({trainer}))
        assert alive({found, keeper}) == {found, keeper}
        server.kill()
    eventually(lambda: not alive({found, keeper}))
