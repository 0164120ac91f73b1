"""A run is watched while it goes on: by keys on a real terminal, as lines, and as JSON."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import pytest
from models import NOISY
from processes import eventually
from workbench import Workbench, compile_text

ACT = "SELECT action, mst_key, status FROM cerebro.act WHERE run_id = %s ORDER BY act_id"
STATUS = "SELECT status FROM cerebro.run WHERE run_id = %s"


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", 2)
    rates = [compile_text(f"SGD(learning_rate={rate})") for rate in (0.01, 0.02, 0.03)]
    bench.configure("slow", rates, ["batch_size=96"], bench.model(NOISY))


def stands_still(bench: Workbench, output: str) -> int:
    """A run that would go on for a while, paused after its first visits so as to leave processors
    free.

    It is too short for a trainer to look for a faster form of its program.
    """
    query = (
        "SELECT cerebro.submit('packed', %s, 'slow', 300, metrics_compute_frequency => 1, workers "
        "=> 1)"
    )
    run = int(bench.value(query, output))
    eventually(
        lambda: bench.value("SELECT count(*) > 0 FROM cerebro.metric WHERE run_id = %s", run)
    )
    bench.rows("SELECT cerebro.pause_run(%s)", run)
    eventually(lambda: bench.value(STATUS, run) == "paused")
    return run


@pytest.fixture(scope="module")
def steered(bench: Workbench) -> Iterator[int]:
    run = stands_still(bench, "steered")
    yield run
    bench.rows("SELECT cerebro.cancel(%s)", run)
    bench.rows("SELECT cerebro.wait(%s)", run)


def command(run: int, url: str, *more: str) -> list[str]:
    return [sys.executable, "-I", "-m", "cerebro_db", "watch", str(run), *more, "--url", url]


class Screen:
    """A process on a terminal of its own, and all that it has written there."""

    def __init__(self, arguments: list[str]) -> None:
        self._controller, self._terminal = pty.openpty()
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 140, 0, 0))
        self._before = termios.tcgetattr(self._terminal)
        self._written = b""
        self.process = subprocess.Popen(
            arguments,
            stdin=self._terminal,
            stdout=self._terminal,
            stderr=self._terminal,
            cwd="/",
            env={**os.environ, "TERM": "xterm", "LANG": "C.UTF-8"},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(
                0, termios.TIOCSCTTY, 0
            ),  # so that Ctrl-C there is a signal
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with suppress(OSError):
            while told := os.read(self._controller, 65536):
                self._written += told

    def shows(self, text: str, after: int = 0) -> int:
        """Waits for a text; how much has been written by then."""

        def found() -> bool:
            assert self.process.poll() is None or text.encode() in self._written[after:], (
                self._written[-2000:]
            )
            return text.encode() in self._written[after:]

        eventually(found)
        return len(self._written)

    def press(self, keys: str) -> None:
        os.write(self._controller, keys.encode())

    def ends(self) -> int:
        """The exit status; the terminal is as before, and shows what it showed before, with a
        cursor.
        """
        status = self.process.wait(timeout=120)
        assert termios.tcgetattr(self._terminal) == self._before
        eventually(lambda: b"\x1b[?1049l" in self._written)
        assert self._written.rindex(b"\x1b[?1049l") > self._written.rindex(b"\x1b[?1049h")
        assert self._written.rindex(b"\x1b[?25h") > self._written.rindex(b"\x1b[?25l")
        assert b"Traceback" not in self._written
        return status

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._terminal)
        os.close(self._controller)


@contextmanager
def watched(run: int, url: str) -> Iterator[Screen]:
    """A watched run whose frame is on the screen."""
    screen = Screen(command(run, url))
    try:
        screen.shows("arrows choose")
        yield screen
    finally:
        screen.close()


def test_who_stops_watching_leaves_the_run_and_the_terminal_as_they_are(
    person: Workbench, steered: int
) -> None:
    before = person.rows(ACT, steered)
    for key, status in (("q", 0), ("\x03", 0), (None, 128 + signal.SIGTERM)):
        with watched(steered, person.url) as screen:
            if key is None:
                screen.process.terminate()
            else:
                screen.press(key)
            assert screen.ends() == status
            assert person.value(STATUS, steered) == "paused" and person.rows(ACT, steered) == before


def test_keys_steer_the_run(person: Workbench, steered: int) -> None:
    """The last test of this run, which it cancels."""
    run = steered
    with watched(run, person.url) as screen:
        before = len(person.rows(ACT, run))
        screen.press("js")
        eventually(lambda: len(person.rows(ACT, run)) == before + 1)
        *_, (action, key, _) = person.rows(ACT, run)
        assert action == "stop_config" and key in (1, 2, 3)
        at = screen.shows(f"stop_config of config {key}: done")
        screen.press("p")
        eventually(lambda: person.value(STATUS, run) == "running")
        at = screen.shows(f"run {run} running", at)
        screen.press("p")
        eventually(lambda: person.value(STATUS, run) == "paused")
        at = screen.shows(f"run {run} paused", at)
        screen.press('+{"nonsense": 1}\r')
        at = screen.shows("refused", at)
        screen.press('+{"batch_size": 2}\r')
        at = screen.shows("clone_config of config", at)
        eventually(
            lambda: person.value("SELECT count(*) FROM cerebro.config WHERE run_id = %s", run) == 4
        )
        screen.press("x")
        screen.shows("x again cancels the run", at)
        screen.press("x")
        assert screen.ends() == 4
        assert person.value(STATUS, run) == "cancelled"


@pytest.mark.long
def test_elsewhere_it_is_lines(bench: Workbench, tmp_path: Path) -> None:
    """Two look at one run: a person whose output goes into a file, and a program."""
    run = stands_still(bench, "lines")
    with (
        printing(tmp_path / "lines", command(run, bench.url)) as told,
        printing(tmp_path / "json", command(run, bench.url, "--json")) as documents,
    ):
        eventually(lambda: told.read_text() and documents.read_text())
        bench.rows("SELECT cerebro.set_epochs(%s, 1), cerebro.continue_run(%s)", run, run)
    assert "\x1b" not in told.read_text() + documents.read_text()
    assert f"run {run} completed" in told.read_text()
    found = [json.loads(line) for line in documents.read_text().splitlines()]
    visits = [one["visits_done"] for one in found]
    assert visits == sorted(visits) and len(found) > 1
    statuses = [one["status"] for one in found]
    goes_on = ["running"] * statuses.count("running")
    assert statuses == ["paused"] * statuses.count("paused") + goes_on + ["completed"]
    changes = [
        {name: value for name, value in one.items() if name not in ("elapsed", "eta")}
        for one in found
    ]
    assert all(one != other for one, other in pairwise(changes))


@contextmanager
def printing(path: Path, arguments: list[str]) -> Iterator[Path]:
    """What a process prints meanwhile; it ends by itself, and complains of nothing."""
    with (
        path.open("w") as file,
        subprocess.Popen(
            arguments,
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        try:
            yield path
            _, complaint = process.communicate("xx", timeout=120)
        finally:
            process.kill()
    assert (process.returncode, complaint) == (0, "")


def test_ctrl_c_cancels_what_is_trained(bench: Workbench, person: Workbench) -> None:
    bench.rows("CREATE TABLE IF NOT EXISTS flips AS SELECT n AS id, sin(n) AS x, sin(n) > 0 AS up"
               " FROM generate_series(1, 300) n")  # fmt: skip
    before = person.last_run_id()
    few = ("--configs", "1", "--epochs", "100000", "--models", "linear", "--budget", "1 hour")
    arguments = [
        sys.executable,
        "-I",
        "-m",
        "cerebro_db",
        "train",
        "flips",
        "up",
        *few,
        "--url",
        bench.url,
    ]
    with subprocess.Popen(
        arguments, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        eventually(lambda: process.poll() is not None or person.newest_run() > before)
        run = person.newest_run()
        eventually(
            lambda: person.value("SELECT count(*) > 0 FROM cerebro.visit WHERE run_id = %s", run)
        )
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=120)
    assert process.returncode == 130 and "Traceback" not in told
    eventually(lambda: person.value(STATUS, run) == "cancelled")
