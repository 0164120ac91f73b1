"""All SQL of the product is valid on PostgreSQL 12, and in forms that Greenplum 7 takes.

No Greenplum is needed: statements are parsed and compared with the catalog of one. Refusals for
other reasons show only in `make greenplum`.
"""

from __future__ import annotations

import re

import pglast
import pytest
from greenplum_forms import refused_forms
from postgresql_12 import Product, catalog, faults
from product_sql import MODULES, ROOT, Statement, part_statements, product_statements, statements_of

# Statements that are never sent to a Greenplum: the place, the fault, the reason.
ELSEWHERE = {
    ("queries/grant.sql found", "there is no column p.prosqlbody"): "grant_predict refuses first",
    (
        "queries/grant.sql function",
        "a body that is no text is of PostgreSQL 14",
    ): "grant_predict refuses first",
    ("queries/grant.sql reads", "there is no column s.stxexprs"): "grant_predict refuses first",
    (
        "queries/session.sql busy",
        "there is no setting idle_session_timeout",
    ): "greenplum.busy does it there",
    (
        "queries/session.sql idle",
        "there is no setting idle_session_timeout",
    ): "greenplum.rest does it there",
    (
        "sql/80-views.sql",
        "a policy that calls may_act, which reads visible_run",
    ): "sql/85-greenplum.sql changes it there",
    (
        "queries/visit.sql visit_end",
        "a statement that writes in WITH writes something else, too",
    ): "greenplum.visit_end does it there",
}
CALLED = re.compile(r"\bpg_catalog\.(\w+)\(")


@pytest.fixture(scope="module")
def product() -> Product:
    return Product.of(product_statements())


def test_every_statement_is_valid_on_greenplum(product: Product) -> None:
    results = {
        (statement.place, fault)
        for statement in product_statements()
        for fault in (*faults(statement, product), *refused_forms(statement, product))
    }
    refused = sorted(results - set(ELSEWHERE))
    assert not refused, "\n".join(f"{place}: {fault}" for place, fault in refused)
    assert set(ELSEWHERE) <= results, "an exception that nothing needs any more"


def test_functions_in_texts_of_python_are_those_of_postgresql_12() -> None:
    """Statements that are put together of parts in Python name functions with their schema."""
    names = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in MODULES
        for name in CALLED.findall(path.read_text(encoding="utf-8"))
    }
    assert len(names) > 20
    assert {name for name in names if name[1] not in catalog()["function"]} == set()


def test_all_sources_are_read() -> None:
    places = {statement.place.partition(" ")[0] for statement in product_statements()}
    assert {
        "sql/01-tables.sql",
        "sql/85-greenplum.sql",
        "queries/spread.sql",
        "cerebro_db/check/steps.py",
    } <= places
    assert {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "migrations").glob("*.sql")
    } <= places
    assert sum(place.startswith("queries/") for place in places) == len(
        list((ROOT / "plpy" / "cerebro_plpy" / "database" / "queries").glob("*.sql"))
    )


SCHEMA = """
CREATE TABLE cerebro.all_over (a integer, b text GENERATED ALWAYS AS ('x') STORED);
DO $$ BEGIN EXECUTE 'ALTER TABLE cerebro.all_over SET DISTRIBUTED REPLICATED'; END $$;
CREATE VIEW cerebro.seen AS SELECT 1 AS a;
CREATE FUNCTION cerebro.wanders() RETURNS integer LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION cerebro.stays() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 1';
CREATE FUNCTION cerebro.looks() RETURNS boolean LANGUAGE sql AS
    'SELECT EXISTS (SELECT FROM cerebro.seen)';
CREATE FUNCTION cerebro.knows() RETURNS boolean LANGUAGE sql AS
    'SELECT EXISTS (SELECT FROM cerebro.all_over)';
"""
CONFLICT = "INSERT INTO cerebro.all_over VALUES (1) ON CONFLICT (a) DO UPDATE SET a = "
REFUSED = [
    ("SELECT pg_catalog.pg_current_snapshot()", "there is no function pg_current_snapshot"),
    ("SELECT gcd(1, 2)", "there is no function gcd"),
    ("SELECT pg_catalog.trim_array(x, 1)", "there is no function trim_array"),
    ("SELECT to_char(1)", "function to_char takes 2 arguments, not 1"),
    ("SELECT normalize('x', NFC)", "there is no function normalize"),
    ("SELECT NULL::xid8", "there is no type xid8"),
    ("SELECT NULL::int4multirange", "there is no type int4multirange"),
    ("SELECT a.leader_pid FROM pg_stat_activity a", "there is no column a.leader_pid"),
    ("SELECT FROM pg_catalog.pg_stat_io", "there is no relation pg_stat_io"),
    ("SET idle_session_timeout = 0", "there is no setting idle_session_timeout"),
    (
        "SELECT set_config('idle_session_timeout', '0', false)",
        "there is no setting idle_session_timeout",
    ),
    ("MERGE INTO t USING u ON a = b WHEN MATCHED THEN DELETE", "MERGE is of PostgreSQL 15"),
    ("SELECT a FROM (SELECT 1 AS a)", "a subselect without an alias is of PostgreSQL 16"),
    ("SELECT 1 ORDER BY 1 FETCH FIRST 1 ROW WITH TIES", "WITH TIES is of PostgreSQL 13"),
    (
        "SELECT JSON_OBJECT('a': 1)",
        "constructors and queries of SQL/JSON are newer than PostgreSQL 12",
    ),
    ("CREATE FUNCTION f() RETURNS integer RETURN 1", "a body that is no text is of PostgreSQL 14"),
    (
        "CREATE VIEW v WITH (security_invoker) AS SELECT 1",
        "this option of a view is of PostgreSQL 15",
    ),
    (
        "CREATE TABLE t (a text PRIMARY KEY GENERATED ALWAYS AS ('x') STORED)",
        "the generated column t.a in a key",
    ),
    (
        "CREATE TABLE t (a text GENERATED ALWAYS AS ('x') STORED, UNIQUE (a))",
        "the generated column t.a in a key",
    ),
    (
        "ALTER TABLE cerebro.all_over ADD PRIMARY KEY (b)",
        "the generated column all_over.b in a key",
    ),
    ("CREATE UNIQUE INDEX ON cerebro.all_over (b)", "the generated column all_over.b in a key"),
    (
        "CREATE TABLE t (a bigint GENERATED ALWAYS AS IDENTITY)",
        "the identity column a without CACHE 1",
    ),
    (
        "ALTER TABLE t ADD a int GENERATED BY DEFAULT AS IDENTITY (CACHE 9)",
        "the identity column a without CACHE 1",
    ),
    (
        CONFLICT + "random()::integer",
        "the replicated table all_over changed by the volatile function random",
    ),
    (
        CONFLICT + "cerebro.wanders()",
        "the replicated table all_over changed by the volatile function wanders",
    ),
    (
        "UPDATE cerebro.all_over SET a = random()::int",
        "the replicated table all_over changed by the volatile function random",
    ),
    (
        "DELETE FROM cerebro.all_over WHERE a < random()",
        "the replicated table all_over changed by the volatile function random",
    ),
    (
        "UPDATE t SET a = 1 FROM u CROSS JOIN LATERAL (SELECT FROM cerebro.seen s WHERE s.a = "
        "u.a) x",
        "LATERAL over the view seen for rows that are changed",
    ),
    (
        "WITH i AS (INSERT INTO t VALUES (1) RETURNING a) UPDATE t SET a = 1 FROM i",
        "a statement that writes in WITH writes something else, too",
    ),
    ("CREATE POLICY p ON t USING (cerebro.looks())", "a policy that calls looks, which reads seen"),
    (
        "SELECT c.relname FROM pg_catalog.pg_class c JOIN cerebro.all_over a ON a.b = c.relname "
        "WHERE cerebro.knows()",
        "the function knows, which queries, beside the catalog and a table",
    ),
    (
        "CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN gcd(1, 2); END'",
        "there is no function gcd",
    ),
    (
        "DO $$ BEGIN EXECUTE format('CREATE TABLE %I AS SELECT gcd(1, 2)', 't'); END $$",
        "there is no function gcd",
    ),
]


@pytest.mark.parametrize(("text", "fault"), REFUSED)
def test_refused_statements_are_found(text: str, fault: str) -> None:
    statements = tuple(statements_of(SCHEMA + text, "here"))
    product = Product.of(statements)
    assert [f for s in statements for f in (*faults(s, product), *refused_forms(s, product))] == [
        fault
    ]


TAKEN = [
    "CREATE TABLE t (a bigint GENERATED ALWAYS AS IDENTITY (CACHE 1))",
    "SELECT extract(epoch FROM now()), trim(' x'), position('a' IN 'b'), substring('a' FROM 1 FOR "
    "2), count(*)",
    "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY x), pg_catalog.concat_ws(',', 1, 2, 3), "
    "txid_snapshot_xmax(s)",
    "CREATE TABLE t (a integer) DISTRIBUTED BY (a); CREATE TEMPORARY TABLE u AS SELECT 1 AS a "
    "DISTRIBUTED RANDOMLY",
    "SELECT a.query FROM pg_stat_activity a; SELECT current_setting('idle_session_timeout', "
    "true), NULL::cerebro.seen",
    CONFLICT + "cerebro.stays()",
    "CREATE POLICY p ON t USING (cerebro.knows())",
    "INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET a = random()::integer",
    "CREATE UNIQUE INDEX ON cerebro.all_over (coalesce(b, '')); ALTER TABLE t ADD PRIMARY KEY (b)",
    "UPDATE t SET a = 1 FROM u CROSS JOIN LATERAL (SELECT FROM t s WHERE s.a = u.a) x",
    "WITH i AS (INSERT INTO t VALUES (1) RETURNING a) SELECT a FROM i",
]


@pytest.mark.parametrize("text", TAKEN)
def test_accepted_statements_are_left_alone(text: str) -> None:
    statements = tuple(statements_of(SCHEMA + text, "here"))
    product = Product.of(statements)
    assert [f for s in statements for f in (*faults(s, product), *refused_forms(s, product))] == []


def test_a_part_of_a_statement_is_parsed_in_one() -> None:
    (whole,) = part_statements(" FROM t WHERE gcd(1, 2) = 1", "here")
    assert isinstance(whole, Statement) and isinstance(whole.node, pglast.ast.SelectStmt)
