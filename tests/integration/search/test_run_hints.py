"""Hints about a run that goes on, or that was cancelled, can be followed to the letter."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from followed_hints import Call, error_of, follow, read_hint, read_statements
from processes import eventually
from workbench import Workbench, compile_text, several

EPOCHS = 100_000
"""More epochs than there will be: the tests cancel their runs."""
PROGRESS = "SELECT status FROM cerebro.progress WHERE run_id = %s"
TRAINED = "SELECT count(*) > 0 FROM cerebro.visit WHERE run_id = %s AND status = 'completed'"


@pytest.fixture(scope="module")
def person(bench: Workbench) -> Iterator[Workbench]:
    """Another session, beside tables to train on."""
    bench.pack("packed", 2)
    bench.configure("one", several(1))
    bench.configure("more", [compile_text("Adam(learning_rate=0.01)")])
    session = bench.another()
    yield session
    session.close()


def begin(person: Workbench, output: str, **named: str) -> int:
    """Begin an endless run in the background; return its id once it has trained."""
    arguments = "".join(f", {name} => {value}" for name, value in named.items())
    run_id = int(
        person.value(f"SELECT cerebro.submit('packed', '{output}', 'one', {EPOCHS}{arguments})")
    )
    eventually(lambda: person.value(TRAINED, run_id))
    return run_id


@pytest.fixture(scope="module")
def run_id(person: Workbench) -> Iterator[int]:
    """A run that goes on until the last test cancels it."""
    run_id = begin(person, "endless", workers="1")
    yield run_id
    person.rows("SELECT cerebro.cancel(%s), cerebro.wait(%s)", run_id, run_id)


def test_configurations_to_add_are_written(person: Workbench, run_id: int) -> None:
    call = Call("cerebro.add_configs", {"run_id": str(run_id)})
    read_hint(error_of(person, call), "For example space => {}, configs => 2.")
    assert all(follow(person, call))


def test_one_source_of_configurations_is_left_out(person: Workbench, run_id: int) -> None:
    space = '{"compile_params": {"optimizer": ["SGD"], "loss": ["mse"]}}'
    arguments = {"run_id": str(run_id), "space": f"'{space}'", "selection_table": "'more'"}
    call = Call("cerebro.add_configs", arguments)
    read_hint(
        error_of(person, call),
        "Leave selection_table out to draw from the space; or leave space out.",
    )
    assert len(follow(person, call)) == 2
    table = {"run_id": str(run_id), "selection_table": "'more'"}
    assert all(follow(person, Call("cerebro.add_configs", {**table, "configs": "2"})))


def test_a_configuration_that_a_hint_lists_is_stopped(person: Workbench, run_id: int) -> None:
    call = Call("cerebro.prioritize", {"run_id": str(run_id), "mst_key": "999"})
    template = "SELECT mst_key, status FROM cerebro.config WHERE run_id = {};"
    (statement,) = read_statements(error_of(person, call), template)
    keys = [key for key, _ in person.rows(statement)]
    assert person.rows(str(call._replace(arguments={**call.arguments, "mst_key": str(keys[0])})))


def test_a_run_under_way_is_seen(person: Workbench, run_id: int) -> None:
    call = Call("cerebro.resume", {"run_id": str(run_id)})
    template = "SELECT * FROM cerebro.progress WHERE run_id = {};"
    (statement,) = read_statements(error_of(person, call), template)
    assert len(person.rows(statement)) == 1


def test_a_run_is_cancelled_and_resumed_as_its_hints_write_it(
    person: Workbench, bench: Workbench
) -> None:
    """A run that averages cannot be steered, and neither can one that has ended."""
    run_id = begin(person, "averaged", strategy="'average'", workers="2")
    call = Call("cerebro.stop_config", {"run_id": str(run_id), "mst_key": "1"})
    (statement,) = read_statements(error_of(person, call), "Cancel it: SELECT cerebro.cancel({});")
    assert person.value(statement)
    assert person.value("SELECT cerebro.wait(%s)", run_id) == "cancelled"
    (statement,) = read_statements(error_of(person, call), "SELECT cerebro.resume({});")
    with bench.calling(lambda: bench.rows(statement)) as resumed:
        eventually(lambda: person.value(PROGRESS, run_id) == "running")
        assert person.value("SELECT cerebro.cancel(%s)", run_id)
        assert resumed.exception() is not None
