"""A trainer packs raw values exactly as the expressions of their recipe encode them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from recipes import Session
from workbench import Workbench

from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.source_rows import SourceRows
from cerebro_plpy.operations.train.pack_training_data import RawRows, pack_training, pack_validation
from cerebro_plpy.platform.greenplum.adapter import Greenplum
from cerebro_plpy.platform.postgres.adapter import Postgres
from cerebro_plpy.preprocessing.learning.raw_table import read_table
from cerebro_plpy.preprocessing.recipe import split_encoding
from cerebro_plpy.preprocessing.recipe.encoding import network_inputs
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.rows.fingerprint import Digest
from cerebro_plpy.preprocessing.rows.opened_source import TableOptions
from cerebro_plpy.preprocessing.rows.row_subset import RowSubset, raw_rows_statement

TOURS = """
    CREATE TABLE tours AS
    SELECT n AS id, (ARRAY[sin(n), 'NaN', 'Infinity', '-Infinity', 1e300, NULL])[1 + least(n % 9,
        5)] AS height,
           (n::numeric ^ 40) AS length, nullif(n % 97, 3)::smallint AS stages, (n % 2 = 0) AS round,
           (ARRAY['bus', 'Zug', E'd\\'accord %s', '', NULL])[1 + n % 5] AS vehicle,
           (ARRAY['infinity', '-infinity', NULL, '0044-03-15 12:00 BC',
               '9999-12-31 23:59:59.999999']::timestamp[])
               [1 + least(n % 7, 4)] + n * interval '11 days 5 hours' AS leaves,
           timestamptz '1960-02-28 23:30+00' + n * interval '100 minutes' AS returns,
               date '1899-12-31' + n AS printed,
           n * interval '1 minute' AS rest, ARRAY[n, nullif(n % 4, 1), n % 5] AS legs,
           ARRAY(SELECT sin(n + i / 5.0) FROM generate_series(1, 80) AS i) AS profile,
           concat_ws(' ', 'a tour', n % 31, 'of', n % 83, 'hills, and', n, 'valleys') AS words,
           n % 3 + 1 AS weight, cos(n) AS price, n % 3 AS kind
    FROM generate_series(1, 700) AS n;
    ALTER TABLE tours ADD PRIMARY KEY (id)"""


@pytest.fixture(scope="module")
def tours(bench: Workbench) -> Iterator[Relation]:
    bench.rows(TOURS)
    oid = bench.value("SELECT 'tours'::regclass::oid::bigint")
    yield Relation("tours", "public", "tours", oid, "public.tours")
    bench.rows("DROP TABLE tours")


@pytest.mark.parametrize(
    ("target", "most"), [("price", split_encoding.MOST_HASHED_VALUES), ("kind", 0)]
)
def test_rows_are_packed_as_they_are_encoded(
    bench: Workbench, tours: Relation, monkeypatch: pytest.MonkeyPatch, target: str, most: int
) -> None:
    """This includes columns with too many categories to send them to a trainer."""
    monkeypatch.setattr(split_encoding, "MOST_HASHED_VALUES", most)
    session, adapter = Session(bench), Greenplum() if bench.greenplum else Postgres()
    bench.rows("BEGIN")
    try:
        rows = SourceRows(session, session.run)
        table = read_table(
            rows, "train", tours, TableOptions(target, None, None, {}, None, "weight", 1, False)
        )
        assert {each.kind for each in table.recipe.inputs} >= {
            "number",
            "moment",
            "category",
            "vector",
            "series",
            "text",
        }
        raw = [rows.name_table("rows") for _ in table.parts]
        for output, part in zip(raw, table.parts, strict=True):
            session.run(*raw_rows_statement(adapter, part, output))
        training_rows = RawRows(raw[0], Digest({None: table.rows}, 0))
        pack_training(session, table, training_rows, "packed", table.target.values)
        pack_validation(session, table, raw[1], "packed_beside", "packed")
        for name, part in zip(("packed", "packed_beside"), table.parts, strict=True):
            assert packed(session, name, table.recipe) == encoded(session, part)
    finally:
        bench.rows("ROLLBACK")


def packed(session: Session, name: str, recipe: Recipe) -> list[bytes]:
    """Return the packed inputs of all rows in their order, one array per input."""
    columns = ", ".join(
        f"string_agg(p.{network_input.name}, '' ORDER BY p.buffer_id)"
        for network_input in network_inputs(recipe)
    )
    (arrays,) = session.run(f"SELECT {columns} FROM {name} p")
    return [bytes(array) for array in arrays]


def encoded(session: Session, part: RowSubset) -> list[bytes]:
    """Return the same arrays, computed with SQL expressions."""
    inputs = network_inputs(part.recipe)
    rows = session.run(
        f"SELECT {', '.join(each.value.text for each in inputs)} FROM {part.table} t"
        f" WHERE {part.side.text} ORDER BY {part.order.text}",
        (
            *(value for each in inputs for value in each.value.values),
            *part.side.values,
            *part.order.values,
        ),
    )
    return [
        np.array([row[place] for row in rows], np.float32).tobytes() for place in range(len(inputs))
    ]
