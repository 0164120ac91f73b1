"""Trainers that a session has left, and another session of the same caller has after it."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import traces
from processes import alive, command_line, eventually, parent
from trainer_programs import FORMS, NOISY, buffers, program

from cerebro_plpy.errors import CerebroError
from cerebro_plpy.records import replace
from cerebro_plpy.trainer_client import request_schema
from cerebro_plpy.trainer_client.connection import TrainerConnection
from cerebro_plpy.trainer_client.process.cpu_clock import read_seconds
from cerebro_plpy.trainer_client.process.launch import TrainerSpec
from cerebro_plpy.trainer_client.process.trainer_process import ForkedTrainer

Opened = Callable[..., TrainerConnection]
SPEC = TrainerSpec(python=sys.executable, framework="none", nursery_seconds=60)
ROOM = len(os.sched_getaffinity(0)) + 1
PRIVATES: list[dict[str, Any]] = [
    {"sealed": True, "program": program()},
    {
        "program": {
            **program(loss="own"),
            "sources": {"own": "def own(y_true, y_pred):\n    return y_pred\n"},
        }
    },
]
"""What only one session may have."""


pytestmark = pytest.mark.usefixtures("own_nurseries")


@pytest.fixture
def opened() -> Iterator[Opened]:
    """Opens links of the caller 'ann', and ends all that is left of them and of their nurseries."""
    links: list[TrainerConnection] = []

    def link(spec: TrainerSpec = SPEC, who: str | None = "ann") -> TrainerConnection:
        links.append(TrainerConnection(spec, lambda: None, roles=who))
        assert isinstance(links[-1]._process, ForkedTrainer)
        return links[-1]

    yield link
    found = {parent(each.pid) for each in links if alive({each.pid})}
    for each in links:
        with suppress(OSError):  # closed by the test
            each.close()
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def title(pid: int) -> str:
    return (command_line(pid) or [""])[0]


def gone(link: TrainerConnection) -> None:
    """What the kernel does when a backend ends."""
    assert isinstance(link._process, ForkedTrainer) and link._process._connection
    link._socket.close()
    link._process._connection.close()
    link._process._connection = None
    for each in (link._work_dir._backend_pipe, link._work_dir.descriptor):
        os.close(each)
    link._work_dir._cleaner.returncode = 0
    link._is_broken = True


def left(link: TrainerConnection, seconds: int = 60) -> int:
    """A session's call is over, and then the session; the trainer's process."""
    link.send(request_schema.build_request("reset", idle_seconds=seconds))
    link.park(seconds)
    gone(link)
    return link.pid


def kept(pid: int) -> bool:
    return title(pid).endswith(" kept")


def test_the_next_session_of_the_same_caller_has_it(opened: Opened) -> None:
    first = opened()
    hello, home = first.hello, Path(first._work_dir.path)
    pid = left(first)
    eventually(lambda: kept(pid))
    assert title(pid) == "cerebro_trainer: none kept"
    eventually(lambda: not home.exists())
    second = opened()
    assert second.pid == pid and second.hello == hello
    assert title(pid) == f"cerebro_trainer: none for backend {os.getpid()}"
    assert os.readlink(f"/proc/{pid}/cwd") == second._work_dir.path
    assert second.call({"do": "gpus"}) == {"gpus": []}
    second.close()
    eventually(lambda: not alive({pid}))


def test_its_clock_tells_what_it_did_for_this_session(opened: Opened) -> None:
    """Each second once, and none of the sessions before."""
    first = opened()
    pid, told = first.pid, list[float]()
    for _ in range(3):
        began = read_seconds(pid) or 0.0
        while (read_seconds(pid) or 0.0) < began + 0.05:
            first.call({"do": "gpus"})
        told.append(first.watch.clock.take_seconds())
    assert sum(told) <= (before := read_seconds(pid) or 0.0) and min(told) >= 0.05 - 0.01
    assert left(first) == pid
    eventually(lambda: kept(pid))
    second = opened()
    assert second.pid == pid and second.call({"do": "gpus"})
    second.close()
    assert 0 < second.watch.clock.take_seconds() < before, "also when it is gone"
    assert second.watch.clock.take_seconds() == 0


@pytest.mark.parametrize(
    ("spec", "who"),
    [
        (SPEC, "bob"),
        (SPEC, None),
        (replace(SPEC, threads=2), "ann"),
        (replace(SPEC, memory_bytes=1 << 40), "ann"),
    ],
)
def test_nobody_else_has_it(opened: Opened, spec: TrainerSpec, who: str | None) -> None:
    pid = left(opened())
    eventually(lambda: kept(pid))
    other = opened(spec, who)
    assert other.pid != pid and kept(pid)
    assert opened().pid == pid


def test_without_a_caller_it_is_left_to_nobody(opened: Opened) -> None:
    pid = left(opened(who=None))
    eventually(lambda: not alive({pid}))


@pytest.mark.parametrize("again", [False, True])
def test_whose_session_ends_within_a_call_it_ends_with_it(opened: Opened, again: bool) -> None:
    """Be that the first one, or one after which it was to be kept."""
    link = opened()
    if again:
        link.park(60)
        link.send(request_schema.build_request("reset"))
    gone(link)
    eventually(lambda: not alive({link.pid}))


def test_a_request_that_is_not_answered_ends_it(opened: Opened) -> None:
    """It says itself whether it is done, whatever the backend says."""
    link = opened()
    link.send(request_schema.build_request("block", rows=1))
    link.park(60)
    gone(link)
    eventually(lambda: not alive({link.pid}))
    assert opened().pid != link.pid


def test_after_an_error_it_is_not_kept(opened: Opened) -> None:
    link = opened()
    with pytest.raises(CerebroError):
        link.call({"do": "close", "dataset": "d"})
    pid = left(link)
    other = opened()
    assert other.pid != pid, "that was asked for while the one that ends seemed to be kept"
    eventually(lambda: not alive({pid}))


def test_a_session_that_wants_it_no_more_ends_it(opened: Opened) -> None:
    link = opened()
    link.send(request_schema.build_request("reset", idle_seconds=60))
    link.park(60)
    link.close()
    assert not alive({link.pid})


def test_it_is_kept_for_some_time(opened: Opened) -> None:
    """And no longer; on a slow machine nobody may see it meanwhile."""
    pid = left(opened(), seconds=1)
    eventually(lambda: kept(pid) or not alive({pid}))
    eventually(lambda: not alive({pid}))


def test_the_oldest_makes_room(opened: Opened) -> None:
    pids = []
    for link in [opened(who=str(number)) for number in range(ROOM + 1)]:
        pids.append(left(link))
        eventually(lambda: kept(pids[-1]) or len(pids) > ROOM)
    eventually(lambda: alive(set(pids)) == set(pids[1:]))


def test_a_kept_one_that_dies_costs_nobody(opened: Opened) -> None:
    pid = left(opened())
    eventually(lambda: kept(pid))
    os.kill(pid, signal.SIGKILL)
    assert opened().pid != pid


@pytest.mark.long
def test_a_kept_one_that_is_stopped_costs_ten_seconds(opened: Opened) -> None:
    pid = left(opened())
    eventually(lambda: kept(pid))
    os.kill(pid, signal.SIGSTOP)
    assert opened().pid != pid
    assert not alive({pid})


def test_it_ends_with_its_nursery(opened: Opened) -> None:
    pid = left(opened())
    eventually(lambda: kept(pid))
    found = parent(pid)
    os.kill(found, signal.SIGKILL)
    eventually(lambda: not alive({pid, parent(found)}))


def descriptors(pid: int) -> list[str]:
    """What a process has open, by kind."""
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # closed just now
            found.append(re.split("[:#]", os.readlink(entry))[0])
    return sorted(found)


def test_nothing_stays_open(opened: Opened) -> None:
    """Neither in the nursery, nor in a trainer that has served others, nor in one that is forked
    beside kept ones.
    """
    first = opened()
    before = descriptors(first.pid)
    pid = left(first)
    eventually(lambda: kept(pid))
    found = parent(pid)
    alone = Counter(
        descriptors(found)
    )  # the connection of whom it has served may be among them for a moment
    for _ in range(3):
        link = opened()
        assert link.pid == pid
        assert descriptors(pid) == before
        beside = opened(who="bob")
        assert descriptors(beside.pid) == before
        beside.close()
        left(link)
        eventually(lambda: kept(pid))
        eventually(lambda: Counter(descriptors(found)) <= alone)


def test_who_comes_while_it_is_wiped_waits_for_it(opened: Opened) -> None:
    link = opened()
    for _ in range(20):
        pid = left(link)
        link = opened()
        assert link.pid == pid


def load(link: TrainerConnection) -> None:
    link.send(request_schema.build_request("open", dataset="d", cache_bytes=1 << 30))
    for number, arrays in enumerate(buffers(40, 24)):
        entries = [
            {"role": role, "dtype": array.dtype.name, "shape": list(array.shape)}
            for role, array in arrays
        ]
        link.send(
            request_schema.build_request(
                "buffer", dataset="d", buffer_id=number, arrays=entries, **{"pass": 0}
            ),
            *(array.tobytes() for _, array in arrays),
        )
    link.call(request_schema.build_request("close", dataset="d"))


def trained(link: TrainerConnection, architecture: Any, form: str, rate: float) -> bytes:
    """The state after a visit."""
    load(link)
    link.call(
        request_schema.build_request(
            "begin",
            job="train",
            program=program(architecture, learning_rate=rate),
            state={"source": "new", "key": "", "seed": 7},
            result_key="result",
            datasets=["d"],
            fit={"batch_size": 8, "epochs": 2, "shuffle": True},
            order={"seed": 1, "mst_key": 1, "epoch": 0, "segment_id": 0},
            forms={"use": form, "remaining_rows": 0, "known": {}},
        )
    )
    link.call(request_schema.build_request("finish"))
    return b"".join(
        map(
            bytes,
            link.stream_chunks(
                request_schema.build_request("state_get", key="result", chunk_bytes=1 << 20)
            ),
        )
    )


@pytest.mark.long_for(framework="jax")
@pytest.mark.one_framework(framework="torch")
def test_a_kept_trainer_gives_the_bits_of_a_new_one(framework: str, opened: Opened) -> None:
    """Whatever it has trained before, with dropout and other rates; and what it has had is not
    there any more, nor is a folder that it had. A trainer with a sealed model, or with functions of
    its user's own, is not kept."""
    spec, form = replace(SPEC, framework=framework), FORMS[framework][0]
    first = opened(spec)
    expected = trained(first, NOISY, form, 0.01)
    assert trained(first, NOISY, form, 0.02) != expected
    pid = left(first)
    second = opened(spec)
    assert second.pid == pid
    with pytest.raises(CerebroError, match="is not held, but no state"):
        second.call(request_schema.build_request("state_get", key="result", chunk_bytes=1000))
    assert trained(second, NOISY, form, 0.01) == expected
    second.close()
    for link in (first, second):
        eventually(lambda home=Path(link._work_dir.path): not home.exists())  # type: ignore[misc]
    for private in PRIVATES:
        link = opened(spec)
        state = {"source": "new", "key": "", "seed": 1}
        link.call(
            request_schema.build_request(
                "begin", job="predict", state=state, result_key="r", datasets=[], **private
            )
        )
        pid = left(link)
        eventually(lambda ended={pid}: not alive(ended))  # type: ignore[misc]


@pytest.mark.long_for(framework=("jax", "torch"))
def test_nothing_of_a_session_stays_in_a_program(
    plain: ProcessPoolExecutor, framework: str
) -> None:
    """Variables cannot be seen from outside, so the program is made where Keras runs."""
    assert plain.submit(traces.wiped, framework).result() == []


@pytest.mark.long_for(framework=("jax", "torch"))
def test_initial_weights_are_those_of_keras(plain: ProcessPoolExecutor, framework: str) -> None:
    assert plain.submit(traces.seeded, framework).result()


@pytest.mark.parametrize("framework", ["tensorflow"], indirect=True, scope="session")
def test_a_new_state_costs_no_prepared_graph(plain: ProcessPoolExecutor) -> None:
    assert plain.submit(traces.prepared_anew).result() == 0


@pytest.mark.long_for(framework=("jax", "torch"))
def test_what_is_beside_weights_is_as_in_a_new_state(
    plain: ProcessPoolExecutor, framework: str
) -> None:
    assert plain.submit(traces.renewed, framework).result()
