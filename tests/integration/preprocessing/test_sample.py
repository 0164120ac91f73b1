"""Rows that are drawn: where one epoch over all training rows takes too long, and where few of them
tell enough.

They are always the same; and of those that are trained on, some are of every class.
"""

from __future__ import annotations

import pytest
from recipes import Session
from workbench import Workbench

from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.source_rows import SourceRows
from cerebro_plpy.preprocessing.learning.raw_table import RawTable, read_table
from cerebro_plpy.preprocessing.learning.recorded_table import take_share
from cerebro_plpy.preprocessing.rows import source as row_source
from cerebro_plpy.preprocessing.rows.opened_source import TableOptions
from cerebro_plpy.preprocessing.scoring import drift_profile

VISITS = """
    CREATE TABLE visits AS
    SELECT n AS id, n * 7919 % 101 AS age,
           CASE WHEN n % 1000 = 1 THEN 'rare' WHEN n % 3 = 0 THEN 'a' ELSE 'b' END AS kind
    FROM generate_series(1, 6000) AS n; ALTER TABLE visits ADD PRIMARY KEY (id)"""

COPIED = """SELECT attname::text FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
            WHERE relnamespace = 'cerebro_state'::regnamespace AND relname LIKE 'sample%'
                AND attnum > 0"""


@pytest.fixture(scope="module")
def session(bench: Workbench) -> Session:
    bench.rows(VISITS)
    return Session(bench)


@pytest.fixture(scope="module")
def table(bench: Workbench, session: Session) -> RawTable:
    return read(bench, session, "visits")


def read(bench: Workbench, session: Session, name: str, kept: bool = False) -> RawTable:
    oid = bench.value(f"SELECT '{name}'::regclass::oid::bigint")
    relation = Relation(name, "public", name, oid, f"public.{name}")
    wishes = TableOptions("kind", None, None, {}, None, None, 1, False)
    return read_table(SourceRows(session, session.run), "train", relation, wishes, kept)


def rows_of(session: Session, table: RawTable) -> dict[int, str]:
    part = table.parts[0]
    return dict(
        session.run(
            f"SELECT t.id, t.kind FROM {part.table} t WHERE {part.side.text}", part.side.values
        )
    )


def test_a_share_of_the_training_rows_is_drawn_and_rare_classes_stay(
    session: Session, table: RawTable
) -> None:
    everyone = rows_of(session, table)
    few, more = (take_share(session, table, share) for share in (0.01, 0.4))
    found = rows_of(session, more)
    assert found.items() <= everyone.items() and more.rows == len(found) and more.share == 0.4
    assert 0.35 < len(found) / len(everyone) < 0.45
    assert rows_of(session, take_share(session, table, 0.4)) == found
    assert set(rows_of(session, few).values()) == {"a", "b", "rare"} and few.rows < 100
    rare = {number for number, kind in everyone.items() if kind == "rare"}
    assert rare <= rows_of(session, few).keys() or rare & rows_of(session, few).keys()
    assert more.parts[1] == table.parts[1] and more.validation_rows == table.validation_rows


def test_a_sample_that_is_kept_tells_what_the_table_tells(
    bench: Workbench, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which a change of one row in a hundred alters: so all rows of the sample count, and no
    others.
    """
    monkeypatch.setattr(row_source, "CATEGORIES_SAMPLE", 2000)
    monkeypatch.setattr(row_source, "QUANTILES_SAMPLE", 1500)
    monkeypatch.setattr(drift_profile, "SAMPLED_ROWS", 1000)
    bench.rows(
        "CREATE TABLE hashed AS SELECT v.*, v.kind || v.id % 7 AS hash FROM visits v;"
        " ALTER TABLE hashed ADD PRIMARY KEY (id)"
    )
    found = []
    for kept in (False, True):
        bench.rows("BEGIN")
        table = read(bench, session, "hashed", kept)
        assert (table.source.sample is not None) == kept and table.source.rows is not None
        if kept:  # nothing but the sample is read of these columns any more
            bench.rows("UPDATE hashed SET age = -5, kind = 'b', hash = '' WHERE id % 2 = 0")
        measured = drift_profile.measure(
            SourceRows(session, session.run), table.source, table.source.rows, table.recipe
        )
        found.append((table.recipe, table.leaks, measured))
        bench.rows("ROLLBACK")
    assert found[0] == found[1]
    assert [each.column for each in found[0][1]] == ["hash"]


def test_files_are_not_copied_into_a_sample_that_is_kept(
    bench: Workbench, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But told of as without one; those that are no images cost nothing."""
    monkeypatch.setattr(row_source, "CATEGORIES_SAMPLE", 2000)
    monkeypatch.setattr(row_source, "QUANTILES_SAMPLE", 1500)
    # The beginning of a PNG of 20 x 30 pixels, in colours.
    head = "decode('89504e470d0a1a0a0000000d49484452000000140000001e0802', 'hex')"
    for name, file, is_image in (("pictured", head, True), ("dumped", "'\\x00'::bytea", False)):
        bench.rows(
            f"CREATE TABLE {name} AS SELECT v.*, CASE WHEN id % 9 > 0 THEN {file} END AS file FROM "
            "visits v"
        )
        found = []
        for kept in (False, True):
            bench.rows("BEGIN")
            table = read(bench, session, name, kept)
            copied = {column for (column,) in bench.rows(COPIED)}
            assert "age" in copied if kept else not copied
            assert "file" not in copied and (table.source.sample is not None) == (
                kept and not is_image
            )
            assert table.source.rows is not None
            measured = drift_profile.measure(
                SourceRows(session, session.run), table.source, table.source.rows, table.recipe
            )
            found.append((table.recipe, table.leaks, measured))
            bench.rows("ROLLBACK")
        assert (
            found[0] == found[1]
            and ("file" in {each.column for each in found[0][0].inputs}) == is_image
        )


def test_as_many_columns_as_a_table_may_have(
    bench: Workbench, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sample would have one more, of hashes: then every question is asked of the table."""
    monkeypatch.setattr(row_source, "CATEGORIES_SAMPLE", 30)
    monkeypatch.setattr(row_source, "QUANTILES_SAMPLE", 20)
    names = ", ".join(f"(n * {i * 7 + 1} % {i % 13 + 2})::smallint AS c{i}" for i in range(1599))
    bench.rows(
        f"CREATE TABLE widest AS SELECT {names}, n % 2 AS kind FROM generate_series(1, 60) n"
    )
    bench.rows("BEGIN")
    table = read(bench, session, "widest", kept=True)
    bench.rows("ROLLBACK")
    assert table.source.sample is None and len(table.recipe.features) == 1599


def test_a_plan_says_that_rows_are_drawn(bench: Workbench, table: RawTable) -> None:
    """In two seconds nothing fits, wherever it is; then a thousand rows are trained on."""
    plan = (
        "SELECT name, data FROM cerebro.plan('visits', 'kind', seed => 1, budget => {}) WHERE "
        "section = 'rows'"
    )
    found: dict[str, dict[str, float]] = dict(bench.rows(plan.format("'2 seconds'")))
    assert 900 < found["training"]["rows"] < 1100
    assert found["sample"]["share"] == pytest.approx(1000 / table.rows, rel=0.01)
    assert "sample" not in dict(bench.rows(plan.format("'5 minutes'")))
