"""A statement means the same whether a worker session runs it, through the driver, or the caller's
own, through SPI.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest
from readers import SpiSession
from recipes import Session
from workbench import Workbench

from cerebro_plpy.database.source_rows import SourceRows
from cerebro_plpy.preprocessing.learning.raw_table import RawTable, read_table
from cerebro_plpy.preprocessing.rows.groups import GroupRequest, read_groups
from cerebro_plpy.preprocessing.rows.opened_source import TableOptions
from cerebro_plpy.preprocessing.rows.split import side_conditions
from cerebro_plpy.preprocessing.rows.value_comparison import compare
from cerebro_plpy.preprocessing.values.columns import read_columns

ROWS = 400
ORDERED = {
    "date": "date '2024-01-01' + n",
    "timestamp": "timestamp '2024-01-01' + n * interval '7 hours 0.5 s'",
    "timestamptz": "timestamptz '2024-01-01 00:00:00+02' + n * interval '7 hours'",
    "time": "time '01:00' + n * interval '2 minutes'",
    "interval": "n * interval '1 day 2 hours' - interval '1 month'",
    "smallint": "n",
    "bigint": "n * 10000000000",
    "numeric": "CASE WHEN n % 7 = 0 THEN 'NaN' ELSE n / 8.0 END",
    "numeric(12,3)": "n / 8.0",
    "real": "CASE WHEN n % 7 = 0 THEN 'NaN' ELSE n / 10.0 END",
    "double precision": "CASE n % 7 WHEN 0 THEN 'NaN' WHEN 1 THEN '-Infinity'::float8 ELSE n / "
    "10.0 END",
    "money": "(n / 8.0)::numeric",
    "text": "'it''s 100%s \\' || n % 50",
    "varchar(9)": "'é' || n",
    "char(9)": "'B ' || n",
    "name": "'n' || n",
    "boolean": "n % 3 = 0",
    "uuid": "('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid",
    "inet": "'10.0.0.0'::inet + n",
    "bit(9)": "n::bit(9)",
    '"sizes of, things"."%s of it"': "(ARRAY['small', 'Large', '%s'])[n % 3 + 1]::\"sizes of, "
    'things"."%s of it"',
    "day": "date '2024-01-01' + n",
}
"""Types of columns that rows are ordered by, with an expression for each."""
MADE = """
    CREATE SCHEMA "sizes of, things"; CREATE TYPE "sizes of, things"."%s of it" AS ENUM ('small',
        'Large', '%s');
    CREATE DOMAIN day AS date CHECK (VALUE > '2024-01-01')"""


class Named(NamedTuple):
    """A table: see `cerebro_plpy.database.platform_protocol.Table`."""

    spelling: str
    oid: int
    quoted: str
    query: None = None


@pytest.fixture(scope="module")
def types(bench: Workbench) -> Workbench:
    bench.rows(MADE)
    return bench


def named(bench: Workbench, table: str) -> Named:
    return Named(table, bench.value("SELECT %s::regclass::oid::bigint", table), table)


def looked_at(
    reader: Session | SpiSession, bench: Workbench, table: str, target: str, **wishes: object
) -> RawTable:
    plain: dict[str, object] = {
        "task": None,
        "columns": None,
        "types": {},
        "split": None,
        "weight": None,
    }
    asked = TableOptions(target=target, split_seed=7, settled=False, **{**plain, **wishes})  # type: ignore[arg-type]
    return read_table(SourceRows(reader, reader.run), "train", named(bench, table), asked)


@pytest.mark.parametrize("type_name", ORDERED)
def test_the_last_rows_of_a_column_of_any_type(types: Workbench, type_name: str) -> None:
    """They are those that PostgreSQL finds by a literal of the column's own type, without NaN."""
    types.rows("DROP TABLE IF EXISTS dated")
    types.rows(
        f"CREATE TABLE dated AS SELECT n AS id, (CASE WHEN n % 11 > 0 THEN {ORDERED[type_name]} "
        f"END)::{type_name}"
        f' AS "a ""%s""", n % 5 * 1.5 AS x, n % 2 AS y FROM generate_series(1, {ROWS}) n'
    )
    split = 'last 0.3 by "a ""%s"""'
    found = [
        looked_at(reader(types), types, "dated", "y", split=split)
        for reader in (Session, SpiSession)
    ]
    assert found[0] == found[1]
    assert found[0].bound is not None and 0 < found[0].rows < ROWS
    columns = read_columns(Session(types), named(types, "dated").oid)
    training, _ = side_conditions(found[0].split, columns, 7, found[0].bound)
    trained = Session(types).run(
        f"SELECT t.id FROM dated t WHERE {training.text} ORDER BY 1", training.values
    )
    literal = "'" + found[0].bound.replace("'", "''") + "'"
    is_nan = """(t."a ""%s\"""::text = 'NaN')"""
    expected = types.rows(
        f'SELECT t.id FROM dated t WHERE {is_nan} IS TRUE OR (t."a ""%s""" < {literal}) IS NOT '
        "FALSE ORDER BY 1"
    )
    assert trained == expected and len(expected) == found[0].rows
    beyond = compare(columns[1], ">", found[0].bound)
    newer = [
        reader(types).run(f"SELECT count(*) FROM dated t WHERE {beyond.text}", beyond.values)
        for reader in (Session, SpiSession)
    ]
    assert (
        newer[0]
        == newer[1]
        == types.rows(
            f'SELECT count(*) FROM dated t WHERE t."a ""%s""" > {literal} AND NOT {is_nan}'
        )
    )


def test_texts_that_a_collation_takes_for_equal_are_told_apart(types: Workbench) -> None:
    """And functions that refuse such a collation are not given it."""
    types.rows("""
        CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2',
            deterministic = false);
        CREATE TABLE plainly AS
        SELECT (ARRAY['Yes', 'yes', 'no'])[n % 3 + 1] AS y, (ARRAY['A', 'a', 'B',
            'b'])[n % 4 + 1] AS letter,
               'of Words ' || n % 7 || ' and MORE ' || n % 11 AS note,
               (ARRAY['train', 'Val'])[(n % 5 = 0)::integer + 1] AS side
        FROM generate_series(1, 300) n;
        CREATE TABLE alike (y text COLLATE any_case, letter varchar COLLATE any_case,
            note text COLLATE any_case,
                            side text COLLATE any_case);
        INSERT INTO alike SELECT * FROM plainly""")
    for split in ("column side", "group letter", "random 0.2", "random 0.2 of copies"):
        first, second = (
            looked_at(Session(types), types, table, "y", split=split, types={"note": "text"})
            for table in ("plainly", "alike")
        )
        column = first.target.column._replace(is_folded=second.target.column.is_folded)
        assert first.target._replace(column=column) == second.target
        assert first.recipe == second.recipe
        assert (
            first.target.values == ("Yes", "no", "yes")
            and first.validation_rows == second.validation_rows
        )
    parts = [
        looked_at(Session(types), types, table, "y", split="column side").parts
        for table in ("plainly", "alike")
    ]
    groups = [
        read_groups(Session(types), "train", each, GroupRequest("letter", 1)) for each in parts
    ]
    assert groups[0] == groups[1] and len(groups[0].rows_by_group) == 4
