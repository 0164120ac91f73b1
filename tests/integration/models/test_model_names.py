"""The name of a model: a default never mixes two tables, and calls at the same time share one
split.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import psycopg2
import pytest
from followed_hints import read_hint
from roles import another_role, refused
from workbench import Workbench

QUICK = "models => '{linear}', configs => 1, epochs => 3, ensemble => 1, refit => 'none'"
ROWS = (
    "SELECT n AS id, n * 7919 % 1009 AS a, n * 31 % 17 AS b, {} AS big FROM generate_series(1, 300)"
    " n"
)
TRAIN = f"SELECT FROM cerebro.train(%s, 'big', {QUICK}, seed => 1)"


@pytest.fixture(scope="module")
def parcels(bench: Workbench) -> str:
    """A model of the default name; a table of the same name is in another schema."""
    bench.rows(f"CREATE TABLE parcels AS {ROWS.format('n * 7919 % 1009 > 500')}")
    bench.rows('ALTER TABLE parcels ADD PRIMARY KEY (id); CREATE SCHEMA "o\'clock"')
    bench.rows(f'CREATE TABLE "o\'clock".parcels AS {ROWS.format("n * 31 % 17 < 8")}')
    bench.rows(TRAIN, "parcels")
    return "parcels_big"


def versions(bench: Workbench, model: str) -> list[tuple[object, ...]]:
    return bench.rows(
        "SELECT version, deployed, source FROM cerebro.model_version WHERE model = %s ORDER BY 1",
        model,
    )


@pytest.mark.parametrize("call", ["train", "plan"])
def test_a_default_name_is_of_one_table(bench: Workbench, parcels: str, call: str) -> None:
    """The other table is refused before anything is trained, and each hint names a call."""
    before = bench.last_run_id(), versions(bench, parcels)
    statement = f"SELECT FROM cerebro.{call}(%s, 'big', {QUICK}, seed => 1)"
    error = refused(bench, statement, '"o\'clock".parcels', code="42710", words=parcels)
    assert '"o\'clock"."parcels"' in str(error)
    assert (bench.last_run_id(), versions(bench, parcels)) == before
    template = "For a new model write model => {}. For another version of {} write model => {}."
    arguments = re.findall(r"(model => '(?:[^']|'')*')", read_hint(error, template))
    assert len(arguments) == 2
    for argument in arguments:
        bench.rows(
            f"SELECT FROM cerebro.plan(%s, 'big', {QUICK}, {argument})", '"o\'clock".parcels'
        )


def test_the_same_table_gets_another_version(
    bench: Workbench, shared_superuser: Workbench, parcels: str
) -> None:
    """Another role cannot reserve the name, though any role can take any advisory lock."""
    before = versions(bench, parcels)
    name = f"{bench.value('SELECT current_user')}.{parcels}"
    with another_role(bench, shared_superuser, "namesake") as namesake:
        namesake.rows("SELECT pg_advisory_lock(1667590774, hashtext(%s))", name)
        namesake.rows("SELECT pg_advisory_lock_shared(hashtext(%s), 7)", name)
        bench.rows(TRAIN, "parcels")
    assert len(versions(bench, parcels)) == len(before) + 1


def test_first_versions_at_the_same_time_hold_back_the_same_rows(
    bench: Workbench, parcels: str
) -> None:
    """None of them is compared with another over rows that it was trained on.

    They have the default name of one table, so none is refused.
    """
    bench.rows(
        "CREATE TABLE together AS SELECT * FROM parcels; ALTER TABLE together ADD PRIMARY KEY (id)"
    )
    sessions = [bench.another() for _ in range(3)]
    try:
        with ThreadPoolExecutor(len(sessions)) as pool:
            train = f"SELECT FROM cerebro.train('together', 'big', {QUICK})"
            list(pool.map(lambda session: session.rows(train), sessions))
    finally:
        for session in sessions:
            session.close()
    rows = bench.rows(
        "SELECT v.version, v.deployed, v.training_rows, v.validation_rows, v.fingerprint,"
        " r.spec -> 'train' -> 'split_seed', m.split_seed, r.status"
        " FROM cerebro.model_version v JOIN cerebro.run r USING (run_id)"
        " JOIN cerebro.model_log m ON m.model = v.model WHERE v.model = 'together_big' ORDER BY 1"
    )
    assert [row[0] for row in rows] == [1, 2, 3]
    assert sum(row[1] for row in rows) == 1
    assert len({row[2:] for row in rows}) == 1
    assert rows[0][5] == rows[0][6] and rows[0][7] == "completed"


def test_of_two_tables_at_the_same_time_one_is_refused(bench: Workbench) -> None:
    """Whichever comes first has the default name; the other one trains nothing."""
    schemas = ("north", "south")
    for schema in schemas:
        bench.rows(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.farms AS {ROWS.format('n % 2')}")
    before = bench.last_run_id()
    sessions = [bench.another() for _ in schemas]
    start = Barrier(len(sessions))

    def train(session: Workbench, schema: str) -> psycopg2.Error | None:
        start.wait()
        try:
            session.rows(TRAIN, f"{schema}.farms")
        except psycopg2.Error as error:
            return error
        return None

    try:
        with ThreadPoolExecutor(len(sessions)) as pool:
            errors = list(pool.map(train, sessions, schemas))
    finally:
        for session in sessions:
            session.close()
    (error,) = filter(None, errors)
    first, second = (schemas[errors.index(None)], schemas[errors.index(error)])
    assert error.pgcode == "42710" and f'"{second}"."farms"' in str(error)
    assert f"write model => '{second}_farms_big'" in (error.diag.message_hint or "")
    assert versions(bench, "farms_big") == [(1, True, f'"{first}"."farms"')]
    started = "SELECT count(*) FROM cerebro.run WHERE run_id > %s"
    assert bench.value(started, before) == 1


def test_versions_that_divide_rows_otherwise_are_not_compared(
    bench: Workbench, shared_superuser: Workbench, parcels: str
) -> None:
    """As if another call with another seed had made the first version meanwhile."""
    name = "two seeds"
    bench.rows(f"SELECT FROM cerebro.train('parcels', 'big', %s, {QUICK}, seed => 1)", name)
    reserved = bench.value("SELECT max(run_id) FROM cerebro.run")
    spec = "jsonb_set(spec, '{train,split_seed}', '77')"
    shared_superuser.rows(f"UPDATE cerebro.run_log SET spec = {spec} WHERE run_id = %s", reserved)
    bench.messages()
    bench.rows("SELECT FROM cerebro.refresh(%s, epochs => 1)", name)
    assert "its rows were split differently" in "".join(bench.messages())
    assert [deployed for _, deployed, _ in versions(bench, name)] == [True, False]
