"""A source whose rows come slowly: others see how many have come, the caller is told, and a cancel
ends it at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager

import psycopg2
import pytest
from packed import buffers, fresh
from processes import LONGEST_WAIT, eventually, trainers
from workbench import Row, Workbench, setting

pytestmark = pytest.mark.postgresql(
    "elsewhere rows come from many processes, and no one of them counts them all"
)

SHOWN = re.compile(
    r"packing: (copied|counted|looked for classes in|read|packed) (\d+)(?: of (\d+))? rows "
    r"\((\w+)\)"
)


@pytest.fixture
def caller(bench: Workbench) -> Iterator[Workbench]:
    """A session with a name of its own."""
    session = bench.another()
    session.rows("SET application_name = 'a notebook'")
    yield session
    session.close()


@pytest.fixture(scope="module", autouse=True)
def views(bench: Workbench) -> None:
    """Views of rows that take their time, each time that all are read: ten seconds, seven, and
    one.
    """
    for name, seconds in {"slow": 0.1, "lasting": 0.07, "less_slow": 0.01}.items():
        bench.rows(
            f"CREATE VIEW {name} AS SELECT id, x, label, pg_sleep({seconds}) IS NULL AS nothing "
            "FROM points"
        )


def call(source: str, output: str) -> str:
    """Packs a source; the column that takes time is read with the others."""
    return (
        f"SELECT training_preprocessor_dl('{source}', '{output}', 'label', 'x', n_segments => 1, "
        "seed => 1)"
    )


@contextmanager
def packing(session: Workbench, statement: str) -> Iterator[Future[list[Row]]]:
    """Pack meanwhile."""
    with session.calling(lambda: session.rows(statement)) as packed:
        yield packed


def shown(bench: Workbench, session: Workbench) -> tuple[str, int]:
    """What others see of a session that packs: what was done, and with how many rows; nothing where
    it does not.
    """
    name = bench.value(
        "SELECT application_name FROM pg_stat_activity WHERE pid = %s", session.pid()
    )
    found = SHOWN.fullmatch(name)
    return (found[1], int(found[2])) if found else ("", 0)


@pytest.mark.long
def test_others_see_how_many_rows_have_come_and_a_cancel_ends_it(
    bench: Workbench, caller: Workbench
) -> None:
    output = fresh("slowly")
    # Forked, a trainer begins with the first block of rows; executed, it is there before.
    with (
        setting(bench, "trainer_nursery_seconds", "0"),
        packing(caller, call("slow", output)) as packed,
    ):
        first = eventually(lambda: shown(bench, caller)[1])
        assert eventually(lambda: shown(bench, caller)[1] > first)
        assert trainers({caller.pid()})
        assert bench.value("SELECT pg_cancel_backend(%s)", caller.pid())
        with pytest.raises(psycopg2.errors.QueryCanceled):
            packed.result(LONGEST_WAIT)
    assert not bench.exists(output, f"{output}_summary")
    eventually(lambda: not trainers({caller.pid()}))
    assert caller.value("SHOW application_name") == "a notebook"
    assert (
        caller.rows(
            "SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND relation = 'slow'::regclass"
        )
        == []
    )


@pytest.mark.long
def test_a_limit_of_time_ends_it_too(bench: Workbench, caller: Workbench) -> None:
    output = fresh("slowly")
    caller.rows("SET statement_timeout = '1s'")
    with (
        packing(caller, call("slow", output)) as packed,
        pytest.raises(psycopg2.errors.QueryCanceled),
    ):
        packed.result(LONGEST_WAIT)
    assert not bench.exists(output, f"{output}_summary")
    eventually(lambda: not trainers({caller.pid()}))


def test_every_part_is_seen_and_the_name_of_the_session_comes_back(
    bench: Workbench, caller: Workbench
) -> None:
    output = fresh("slowly")
    seen = set[str]()

    def look() -> bool:
        seen.add(shown(bench, caller)[0])
        return packed.done()

    with packing(caller, call("less_slow", output)) as packed:
        eventually(look)
        packed.result()
    assert {"copied", "read"} <= seen
    assert caller.value("SHOW application_name") == "a notebook"
    assert sum(found.rows for found in buffers(bench, output, x="<f4")) == bench.value(
        "SELECT count(*) FROM points"
    )


@pytest.mark.long
def test_who_waits_is_told(caller: Workbench) -> None:
    """The first notice comes while rows are counted; when others follow is the concern of
    `Progress`.
    """
    caller.rows(call("lasting", fresh("slowly")))
    told = [
        re.match(r"NOTICE:  packing lasting: ([a-z ]+) (\d+)", text) for text in caller.messages()
    ]
    numbers = [int(found[2]) for found in told if found]
    assert numbers and max(numbers) > 0


def test_what_counts_rows_is_of_no_use_by_itself(caller: Workbench) -> None:
    with pytest.raises(psycopg2.errors.ObjectNotInPrerequisiteState):
        caller.rows("SELECT cerebro_internal.rows_seen(1)")
