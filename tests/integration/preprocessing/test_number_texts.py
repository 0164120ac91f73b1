"""A target of texts is read as the numbers that they are, to the bit, whatever the format is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recipes import Session
from trials import trials
from workbench import Workbench

from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.source_rows import SourceRows
from cerebro_plpy.preprocessing.learning.raw_table import RawTable, read_table
from cerebro_plpy.preprocessing.rows.opened_source import TableOptions
from cerebro_plpy.records import replace

ENGLISH = "to_char(n, 'FM999,999,990.00')"
WRITTEN = {
    "text as 1,234.50": f"repeat(' ', mod(id, 3)::integer) || {ENGLISH} || E'\\t'",
    "text as 1.234,50": f"translate({ENGLISH}, '.,', ',.')",
    "text as $1,234.50": f"CASE WHEN n < 0 THEN '-$' || ltrim({ENGLISH}, '-') ELSE '$ ' || "
    f"{ENGLISH} END",
    "text as 1.234,50 €": f"translate({ENGLISH}, '.,', ',.') || ' €'",
    "text as 12.5%": "n || ' ' || chr(37)",
    "text as USD 1,234.50": f"'USD' || {ENGLISH}",
}
"""Expressions that write a number `n` in a format."""
CENTS = st.lists(st.integers(-(10**9), 10**9), min_size=30, max_size=60, unique=True)


@pytest.fixture(scope="module")
def session(bench: Workbench) -> Session:
    columns = ", ".join(f'"{name}" text' for name in WRITTEN)
    bench.rows(
        f"CREATE TABLE written (id integer PRIMARY KEY, x integer, y numeric(11, 2), {columns})"
    )
    return Session(bench)


def read(bench: Workbench, session: Session, target: str, split: str) -> RawTable:
    oid = bench.value("SELECT 'written'::regclass::oid::bigint")
    relation = Relation("written", "public", "written", oid, "public.written")
    options = TableOptions(target, None, "x", {}, split, None, 7, False)
    return read_table(SourceRows(session, session.run), "train", relation, options)


def describe(session: Session, table: RawTable) -> tuple[object, ...]:
    """Return what is learned of a target, and the labels of all rows."""
    labels = []
    for part in table.parts:
        statement = f"SELECT t.id, {part.label.text} FROM {part.table} t WHERE {part.side.text}"
        values = (*part.label.values, *part.side.values)
        labels.append(sorted(session.run(statement, values)))
    recipe = replace(table.recipe, target_format=None)
    rows = (table.rows, table.validation_rows, table.missing, table.unused)
    return recipe, table.target.head, table.split_seed, table.bound, table.newest, rows, labels


@trials(25)
@given(CENTS, st.sampled_from(["random 0.3", "last 0.3 by id"]), st.integers(2, 9))
def test_texts_are_learned_from_as_their_numbers(
    bench: Workbench, session: Session, cents: list[int], split: str, blank: int
) -> None:
    bench.rows("TRUNCATE written")
    is_blank = f"mod(id, {blank}) = 0"
    texts = [f"CASE WHEN {is_blank} THEN ' ' ELSE {text} END" for text in WRITTEN.values()]
    bench.rows(
        f"""INSERT INTO written
        SELECT id, mod(id * 37, 11), CASE WHEN NOT {is_blank} THEN n END, {", ".join(texts)}
        FROM unnest(%s::bigint[]) WITH ORDINALITY u (cents, id),
            LATERAL (SELECT (cents / 100.0)::numeric(11, 2)) v (n)""",
        [*cents, 150],
    )
    expected = describe(session, read(bench, session, "y", split))
    for name in WRITTEN:
        table = read(bench, session, name, split)
        assert (table.target.task, table.recipe.target_format) == ("regression", name)
        assert describe(session, table) == expected, name


def test_a_text_beyond_the_sample_makes_classes(bench: Workbench, session: Session) -> None:
    """All texts of the table decide, not those of a sample."""
    bench.rows("TRUNCATE written")
    name = "text as 1,234.50"
    bench.rows(
        f'INSERT INTO written (id, x, "{name}") SELECT n, n %% 7, n %% 50 + 0.5 FROM '
        "generate_series(1, 30000) n".replace("%%", "%")
    )
    assert read(bench, session, name, "random 0.2").recipe.target_format == name
    bench.rows(f"""UPDATE written SET "{name}" = 'n/a' WHERE id = 29999""")
    assert read(bench, session, name, "random 0.2").target.task == "classification"
