"""A run is in the log, can be seen and can be cancelled, before its trainers are up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest
from interpreters import interpreter
from processes import command_line, eventually, parent, processes
from roles import refused
from workbench import Workbench, compile_text

CLOSED = """#!/bin/sh
until [ -e "{folder}/open" ]; do [ -d "{folder}" ] || exit 1; sleep 0.1; done
exec {{python}} "$@"
"""
LOOK = "SELECT status, visits_done, visits_total, eta FROM cerebro.progress WHERE run_id = %s"
STATES = (
    "SELECT count(*) FROM pg_class WHERE relnamespace = 'cerebro_state'::regnamespace AND relname "
    "LIKE %s"
)


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", 2)
    bench.configure("two", [compile_text(), compile_text("SGD(learning_rate=0.1)")])


@pytest.fixture
def gate(shared_superuser: Workbench, folder: Path) -> Iterator[Path]:
    """No trainer goes on before this file exists."""
    with interpreter(shared_superuser, folder, CLOSED.format(folder=folder)):
        yield folder / "open"


def begun(bench: Workbench, after: int) -> int:
    return eventually(lambda: bench.newest_run() if bench.newest_run() > after else 0)


@pytest.mark.long
def test_submit_does_not_wait_for_trainers(bench: Workbench, gate: Path) -> None:
    run = bench.value("SELECT cerebro.submit('packed', 'waited', 'two', 1, backend => 'auto')")
    assert bench.row(LOOK, run) == ("running", 0, 4, None)
    configs = "SELECT status, backend FROM cerebro.config WHERE run_id = %s"
    assert bench.rows(configs, run) == [("waiting", None)] * 2
    gate.touch()
    assert bench.value("SELECT cerebro.wait(%s)", run) == "completed"
    chosen = bench.rows(
        "SELECT mst_key, backend FROM cerebro.config WHERE run_id = %s ORDER BY mst_key", run
    )
    assert {backend for _, backend in chosen} <= {"tensorflow", "jax", "torch"}
    assert bench.rows("SELECT mst_key, backend FROM waited_info ORDER BY mst_key") == chosen


@pytest.mark.long
@pytest.mark.parametrize("how", ["fit", "submit"])
def test_it_is_cancelled_before_and_goes_on_later(bench: Workbench, gate: Path, how: str) -> None:
    call, before, caller = f"{how}_late", bench.last_run_id(), bench.another()
    if how == "submit":
        run = caller.value("SELECT cerebro.submit('packed', %s, 'two', 1)", call)
        assert eventually(lambda: bench.value("SELECT cerebro.cancel(%s)", run))
    else:
        with caller.fitting("packed", call, "two", 1, backend="auto") as fitted:
            run = begun(bench, before)
            assert bench.value("SELECT cerebro.cancel(%s)", run)
            with pytest.raises(psycopg2.errors.QueryCanceled):
                fitted.result()
    assert bench.value("SELECT cerebro.wait(%s)", run) == "cancelled"
    # One whose session was gone before it heard may go on to begin: it is a nursery, and ends when
    # nobody asks it.
    program = str(gate.parent / "python")
    eventually(
        lambda: not any(program in command_line(pid) and parent(pid) != 1 for pid in processes())
    )
    gate.touch()
    bench.rows("SELECT cerebro.resume(%s)", run)
    assert bench.row(
        f"SELECT run_id, count(model_weights) FROM {call}, {call}_summary GROUP BY 1"
    ) == (run, 2)
    caller.close()


@pytest.mark.long
def test_a_call_whose_trainers_cannot_start_leaves_a_run_that_says_so(
    bench: Workbench, shared_superuser: Workbench, folder: Path
) -> None:
    before = bench.last_run_id()
    with interpreter(shared_superuser, folder, "#!/bin/sh\nexit 3\n"):
        call = "SELECT madlib_fit_multiple_model('packed', 'o', 'two', 1)"
        refused(bench, call, code="55000", words="could not start")
        failed = bench.newest_run()
        assert failed > before
        run = bench.value("SELECT cerebro.submit('packed', 'o', 'two', 1)")
        assert bench.value("SELECT cerebro.wait(%s)", run) == "failed"
    for each in (failed, run):
        status, error = bench.row("SELECT status, error FROM cerebro.run WHERE run_id = %s", each)
        assert status == "failed" and re.search("could not start", error)
    assert bench.value(STATES, f"r{failed}\\_%") == 0
    bench.rows("SELECT cerebro.resume(%s)", run)
    assert bench.value("SELECT count(model_weights) FROM o") == 2
