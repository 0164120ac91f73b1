"""A query in the place of the table that a model is trained on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

import pytest
from followed_hints import Call, error_of, read_statements
from roles import refused
from typer.testing import CliRunner
from workbench import Row, Workbench

from cerebro_db import connect
from cerebro_db.cli import app
from cerebro_db.errors import InvalidParameter

QUERY = "TABLE guests"
GUESTS = """
    CREATE TABLE guests AS
    SELECT n % 7 AS lot, (n * 37 % 100)::real AS width, 'no. ' || n % 3 AS note, n % 2 = 0 AS sold
    FROM generate_series(1, 300) n;
    CREATE SCHEMA elsewhere; CREATE TABLE elsewhere.guests AS TABLE guests"""
SMALL = (
    "target => 'sold', models => '{linear}', configs => 1, epochs => 3, ensemble => 1, "
    "refit => 'none', seed => 1, "
    "workers => 1"
)
OF_ROWS = "SELECT count(*) FROM pg_class"
"""Everything that exists, in any schema."""


class Models(NamedTuple):
    """Two models of the same rows, by their names."""

    of_table: str
    of_query: str


@pytest.fixture
def session(bench: Workbench, models: Models) -> Iterator[Workbench]:
    yield bench
    bench.rows("ROLLBACK; RESET search_path")


@pytest.fixture(scope="module")
def guests(bench: Workbench) -> None:
    bench.rows(GUESTS)


@pytest.fixture(scope="module")
def models(bench: Workbench, guests: None) -> Models:
    """A table without a key, and in the background a query of it."""
    bench.rows(f"SELECT * FROM cerebro.train('guests', model => 'of_table', {SMALL})")
    call = f"cerebro.train(query => %s, model => 'of_query', {SMALL}, background => true)"
    run_id = bench.value(f"SELECT run_id FROM {call}", QUERY)
    assert bench.value("SELECT cerebro.wait(%s)", run_id) == "completed"
    return Models("of_table", "of_query")


def stored(bench: Workbench, model: str) -> Row:
    """Return what is stored of the first version of a model, with its bits."""
    run_id, mst_key, *values = bench.row(
        "SELECT run_id, mst_key, fingerprint, recipe, profile, classes, value, margin, importance,"
        " training_rows, validation_rows, reading - 'kind' FROM cerebro.version_log"
        " WHERE model = %s AND version = 1",
        model,
    )
    state = (
        f"SELECT md5(string_agg(chunk, '' ORDER BY part)) FROM cerebro_state.r{run_id}_m{mst_key}"
    )
    return (*values, bench.value(state))


def test_a_query_trains_to_the_bit_as_the_table_that_it_reads(
    bench: Workbench, models: Models
) -> None:
    assert stored(bench, models.of_query) == stored(bench, models.of_table)
    source, kind = bench.row(
        "SELECT source, reading ->> 'kind' FROM cerebro.version_log WHERE model = 'of_query'"
    )
    assert (source, kind) == (f"({QUERY})", "query")


def test_a_plan_of_a_query_is_that_of_its_table(bench: Workbench, models: Models) -> None:
    sections = "'target', 'rows', 'metric', 'column', 'template', 'configuration'"
    arguments = f"source => %s, query => %s, model => 'm', {SMALL}"
    call = f"SELECT section, name, what FROM cerebro.plan({arguments})"
    planned = bench.rows(f"{call} WHERE section IN ({sections})", None, QUERY)
    assert planned == bench.rows(f"{call} WHERE section IN ({sections})", "guests", None)
    trained = bench.row(
        "SELECT training_rows, validation_rows FROM cerebro.model WHERE model = 'of_query'"
    )
    rows = [f"{count} rows" for count in trained]
    assert [what for section, _, what in planned if section == "rows"] == rows


def test_a_version_of_a_query_is_verified(session: Workbench) -> None:
    findings = session.rows("SELECT what, ok, detail FROM cerebro.verify('of_query')")
    assert all(ok for _, ok, _ in findings), findings
    assert "source" in [what for what, _, _ in findings]


def test_a_refresh_reads_the_query_again(session: Workbench, models: Models) -> None:
    assert session.rows("SELECT * FROM cerebro.refresh('of_query')") == []
    told = "the query has the rows that a version of model 'of_query' was trained on"
    assert any(told in message for message in session.messages())


def test_another_table_of_the_name_is_not_taken(session: Workbench) -> None:
    """The hint has the path under which the query means what it meant."""
    session.rows("SET search_path = elsewhere, public")
    call = Call("cerebro.refresh", {"model": "'of_query'"})
    error = error_of(session, call)
    assert error is not None and error.pgcode == "42809", str(error)
    assert "table elsewhere.guests" in str(error) and "table public.guests" in str(error)
    template = "SET search_path = {}; or train a version on what it names now."
    (statement,) = read_statements(error, template)
    session.rows(statement)
    assert session.rows(str(call)) == []


def test_a_query_of_a_table_that_went_is_not_read(session: Workbench) -> None:
    session.rows("BEGIN; ALTER TABLE guests RENAME TO visitors")
    error = refused(
        session, "SELECT * FROM cerebro.refresh('of_query')", code="42P01", words="of_query"
    )
    assert "Predictions do not need it" in str(error)
    session.rows("ROLLBACK")


def test_a_longer_training_of_a_query_is_one_of_its_rows(session: Workbench) -> None:
    """The call that a run of it suggests names the query."""
    (run_id,) = session.row("SELECT run_id FROM cerebro.refresh('of_query', epochs => 1)")
    call = Call("cerebro.add_configs", {"run_id": str(run_id), "configs": "1"})
    error = error_of(session, call)
    template = "SELECT * FROM cerebro.train(NULL, {}, {}, start_from => ARRAY[{}], query => {});"
    (statement,) = read_statements(error, f"To try others: {template}")
    assert QUERY in statement
    assert session.rows(statement.replace("cerebro.train", "cerebro.plan"))


READERS = (
    "importance('of_query', {})",
    "attribution('of_query', {}, id_col => 'lot, width, note')",
    "drift('of_query', {})",
)


@pytest.mark.parametrize("call", READERS)
def test_a_query_is_explained_and_compared_as_its_table(session: Workbench, call: str) -> None:
    rows = "SELECT r::text FROM cerebro." + call + " r ORDER BY 1"
    expected = session.rows(rows.format("'guests'"))
    assert session.rows(rows.format("query => %s"), QUERY) == expected and expected
    lock = "SELECT * FROM guests FOR UPDATE"
    refused(session, rows.format("query => %s"), lock, code="22023", words="query")
    refused(session, rows.format("'guests', query => %s"), QUERY, code="22023", words="of the two")
    assert "query" in str(refused(session, rows.format("NULL"), code="22004").diag.message_hint)


def test_the_client_passes_a_query_on(bench: Workbench, guests: None) -> None:
    arguments: Any = {"target": "sold", "model": "m", "models": ["linear"], "configs": 1}
    with connect(bench.url) as client:
        planned = client.plan(query=QUERY, **arguments)
        assert [row["name"] for row in planned if row["section"] == "model"] == ["m"]
        with pytest.raises(InvalidParameter, match="expected one query"):
            client.train(query="SELECT 1; SELECT 2", **arguments)


COMMANDS: dict[str, tuple[str, ...]] = {
    "expected one query": ("sold", "--query", "SELECT 1; SELECT 2", "--model", "m"),
    "the column alone": ("guests", "sold", "--query", QUERY, "--model", "m"),
    "a table and a column": ("sold",),
}


@pytest.mark.parametrize("words", COMMANDS)
def test_the_command_passes_a_query_on(bench: Workbench, guests: None, words: str) -> None:
    result = CliRunner().invoke(app, ["train", *COMMANDS[words], "--url", bench.url])
    assert result.exit_code and words in " ".join(f"{result.output} {result.exception}".split())


REFUSED = {
    "two": ("SELECT 1; SELECT 2", "22023"),
    "nothing": ("-- nothing", "22023"),
    "a change": ("DELETE FROM guests", "22023"),
    "a change that returns rows": ("DELETE FROM guests RETURNING *", "22023"),
    "a change by name": ("WITH g AS (DELETE FROM guests RETURNING *) TABLE g", "22023"),
    "a new table": ("SELECT * INTO other FROM guests", "22023"),
    "a lock": ("SELECT * FROM guests FOR UPDATE", "22023"),
    "a plan": ("EXPLAIN SELECT * FROM guests", "22023"),
    "no statement": ("SELEC 1", "42601"),
    "an end of its own": ("SELECT 1) t, (SELECT 2", "42601"),
    "a parameter": ("SELECT $1::integer AS lot, true AS sold", "42P02"),
    "equal names": ("SELECT lot, width AS lot, sold FROM guests", "42701"),
    "columns without names": ("SELECT lot + 1, width + 1, sold FROM guests", "42701"),
    "a row without a type": ("SELECT ROW(lot, width) AS both, sold FROM guests", "42804"),
    "no table": ("SELECT * FROM nothing", "42P01"),
    "no target": ("SELECT lot, width FROM guests", "42703"),
    "no rows": ("SELECT * FROM guests WHERE false", "22023"),
    "a wrong value": ("SELECT lot / 0 AS lot, sold FROM guests", "22012"),
    "blanks": (" ", "22004"),
}


@pytest.mark.parametrize("wrong", REFUSED)
def test_what_is_not_one_query_of_rows_is_refused(
    bench: Workbench, guests: None, wrong: str
) -> None:
    """Before anything is written."""
    query, code = REFUSED[wrong]
    before = (bench.value(OF_ROWS), bench.value("SELECT count(*) FROM cerebro.run"))
    for function in ("plan", "train"):
        refused(
            bench, f"SELECT * FROM cerebro.{function}(query => %s, model => 'm', {SMALL})", query,
            code=code,
        )  # fmt: skip
    assert (bench.value(OF_ROWS), bench.value("SELECT count(*) FROM cerebro.run")) == before
    assert bench.value("SELECT count(*) FROM guests") == 300


CALLS = ("plan(", "train(", "train(background => true, ")


@pytest.mark.parametrize("call", CALLS)
def test_one_of_a_table_and_a_query_is_named(bench: Workbench, guests: None, call: str) -> None:
    both = f"SELECT * FROM cerebro.{call}query => %s, source => 'guests', model => 'm', {SMALL})"
    refused(bench, both, QUERY, code="22023", words="expected one of the two")
    neither = f"SELECT * FROM cerebro.{call}model => 'm', {SMALL})"
    assert "query" in str(refused(bench, neither, code="22004").diag.message_hint)
    nameless = f"SELECT * FROM cerebro.{call}query => %s, {SMALL})"
    refused(bench, nameless, QUERY, code="22004", words="model is NULL")


APART = {
    "temporary": ("CREATE TEMP TABLE guests AS TABLE public.guests", QUERY, "25001", "temporary"),
    "changed": ("INSERT INTO guests SELECT * FROM guests LIMIT 1", QUERY, "25001", "guests"),
    "of this process": (
        "SELECT 1", "SELECT * FROM guests WHERE lot <> pg_backend_pid()", "0A000", "the query"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", APART)
def test_rows_that_another_session_does_not_see_are_not_trained_on(
    bench: Workbench, guests: None, case: str
) -> None:
    """A plan, which this session reads, is possible."""
    statement, query, code, words = APART[case]
    bench.rows("BEGIN")
    bench.rows(statement)
    assert bench.rows(f"SELECT * FROM cerebro.plan(query => %s, model => 'm', {SMALL})", query)
    bench.rows("SAVEPOINT before")
    for more in ("", ", background => true"):
        call = f"SELECT * FROM cerebro.train(query => %s, model => 'm', {SMALL}{more})"
        refused(bench, call, query, code=code, words=words)
        bench.rows("ROLLBACK TO SAVEPOINT before")
    bench.rows("ROLLBACK")


def test_a_locked_table_is_waited_for_as_long_as_the_caller_says(
    bench: Workbench, guests: None
) -> None:
    with closing(bench.another()) as other:
        other.rows("BEGIN; LOCK TABLE guests IN ACCESS EXCLUSIVE MODE")
        bench.rows("SET lock_timeout = '100ms'")
        for function in ("plan", "train"):
            call = f"SELECT * FROM cerebro.{function}(query => %s, model => 'm', {SMALL})"
            refused(bench, call, QUERY, code="55P03", words="a table of the query")
        bench.rows("RESET lock_timeout")


def test_a_plan_of_a_query_needs_no_right_to_write(bench: Workbench, guests: None) -> None:
    """Nor does it change what the rows are."""
    call = f"SELECT section, name, what FROM cerebro.plan(query => %s, model => 'm', {SMALL})"
    query = "SELECT *, '100%' AS \"of %s\" FROM guests -- {all} of them"
    counted = call + " WHERE section IN ('rows', 'column')"
    expected = bench.rows(counted, query)
    bench.rows("BEGIN READ ONLY")
    assert bench.rows(counted, query) == expected
    bench.rows("ROLLBACK")
