"""Reads the rows of a source with the code of training, in sessions that this code opens."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import NamedTuple

import psycopg2
from workbench import Workbench, superuser

from cerebro_plpy.database.reading import TEXTS
from cerebro_plpy.database.sql.identifiers import quote_identifier

# Functions of the tests alone.
FUNCTIONS = """
CREATE OR REPLACE FUNCTION public.training_rows(source text, columns text, query text)
    RETURNS SETOF text
    LANGUAGE plpython3u AS $$
    from cerebro_plpy.api import entry
    from cerebro_plpy.operations.train.pack_training_data import PackingRequest, open_source
    from cerebro_plpy.database.catalog import Catalog
    from cerebro_plpy.database.custom_settings import read_settings_for_reader
    from cerebro_plpy.database.lock_waits import read_wait_limit
    from cerebro_plpy.database.query_lookup import QueryLookup, look_up_query
    from cerebro_plpy.platform.call_context import open_context
    def read(db):
        if query is None:
            relation = Catalog(db, "train").resolve_input(source)
        else:
            lookup = QueryLookup("train", db.reading, read_wait_limit(db), True)
            relation = look_up_query(db, query, lookup)
        custom = read_settings_for_reader(db, [relation])
        with open_context(db, GD, [relation], 1, custom) as workplace:
            request = PackingRequest(relation, db.reading, read_wait_limit(db))
            with open_source(workplace, request) as rows:
                table = rows.open(relation, columns.split())
                select = f"SELECT to_jsonb(t)::text FROM {table} t"
                return [text for (text,) in rows.session.run(select)]
    return entry.report_errors(entry.call)(plpy, GD, read)
$$;
CREATE OR REPLACE FUNCTION public.training_sides(source text, wishes json, formats json)
    RETURNS json
LANGUAGE plpython3u AS $$
    import json
    from cerebro_plpy.api import entry
    from cerebro_plpy.operations.train import pack_training_data
    from cerebro_plpy.operations.train.pack_training_data import PackingRequest
    from cerebro_plpy.database.catalog import Catalog
    from cerebro_plpy.database.custom_settings import read_settings_for_reader
    from cerebro_plpy.database.lock_waits import read_wait_limit
    from cerebro_plpy.preprocessing.rows.opened_source import TableOptions
    from cerebro_plpy.preprocessing.learning.raw_table import read_table
    from cerebro_plpy.platform.call_context import open_context
    from cerebro_plpy.records import replace
    def ids(session, table, text="true", values=()):
        return [id for (id,) in session.run(f"SELECT t.id FROM {table} t WHERE {text}", values)]
    def read(db):
        catalog = Catalog(db, "train")
        relation, wanted = catalog.resolve_input(source), TableOptions(**json.loads(wishes))
        if wanted.holdout:
            wanted = wanted._replace(holdout=catalog.resolve_input(wanted.holdout))
        custom = read_settings_for_reader(db, [relation])
        reading = db.reading if formats is None else replace(db.reading,
            formats=json.loads(formats))
        with open_context(db, GD, [relation], 1, custom) as workplace:
            request = PackingRequest(relation, reading, read_wait_limit(db))
            with pack_training_data.open_source(workplace, request) as rows:
                table = read_table(rows, "train", relation, wanted)
                sides = pack_training_data.write_raw_tables(workplace, rows, table)
                return {
                    "copies": [ids(rows.session, copy.name, f"{wanted.target} IS NOT NULL") for copy
                        in rows.copies],
                    "sides": [ids(rows.session, part.table, *part.side) for part in table.parts],
                    "rows": [side.digest.rows for side in sides],
                    "hashes": [str(side.digest.hashes) for side in sides],
                    "unused": table.unused,
                }
    return json.dumps(entry.report_errors(entry.call)(plpy, GD, read))
$$;
GRANT EXECUTE ON FUNCTION public.training_rows, public.training_sides TO PUBLIC
"""


class Sides(NamedTuple):
    """The sides into which one reading divides a source."""

    copies: list[list[int]]  # the ids of the rows with a target, of each source that was copied
    sides: list[list[int]]  # the ids of the rows to train on, and of those that are held back
    rows: list[int]  # of each side, as they are packed
    hashes: list[str]  # the digest of each side
    unused: int  # rows with a target that are on neither side


def create_functions(bench: Workbench) -> None:
    """Create functions that read as training does, in the database of a workbench."""
    with closing(superuser(bench)) as administrator:
        administrator.rows(FUNCTIONS)


@contextmanager
def under(bench: Workbench, settings: Mapping[str, str]) -> Iterator[None]:
    """Set settings within a transaction that is undone."""
    bench.rows("BEGIN")
    try:
        bench.rows(
            "SELECT set_config(s.key, s.value, true) FROM json_each_text(%s::json) s",
            json.dumps(dict(settings)),
        )
        yield
    finally:
        bench.rows("ROLLBACK")


def training_rows(
    bench: Workbench, source: str | None, columns: Sequence[str], query: str | None = None
) -> list[str]:
    """Return the rows of a source as training reads them; the SQLSTATE if it cannot.

    Points of time and numbers are written under one pinned setting.

    Args:
        query: in place of a source.
    """
    call = "SELECT * FROM public.training_rows(%s, %s, %s)"
    return _outcome(bench, call, source, " ".join(columns), query)


def selected_rows(bench: Workbench, source: str, columns: Sequence[str]) -> list[str]:
    """Return the rows that a SELECT of the session returns, written as those of `training_rows`."""
    listed = ", ".join(map(quote_identifier, columns))
    state = _outcome(
        bench, f"CREATE TEMPORARY TABLE selected ON COMMIT DROP AS SELECT {listed} FROM {source}"
    )
    if state:
        return state
    for name, value in TEXTS.items():
        bench.rows("SELECT set_config(%s, %s, true)", name, value)
    return _outcome(bench, "SELECT pg_catalog.to_jsonb(t)::text FROM pg_temp.selected t")


def _outcome(bench: Workbench, statement: str, *values: object) -> list[str]:
    bench.rows("SAVEPOINT outcome")
    try:
        return sorted(text for (text,) in bench.rows(statement, *values))
    except psycopg2.Error as error:
        bench.rows("ROLLBACK TO SAVEPOINT outcome")
        return [str(error.pgcode)]


def training_sides(
    bench: Workbench,
    source: str,
    wishes: Mapping[str, object],
    formats: Mapping[str, str] | None = None,
) -> Sides:
    """Return the sides into which training divides a source.

    Args:
        wishes: table options that differ from the defaults.
        formats: formats of the reading; None for those of the session.
    """
    defaults: dict[str, object] = {
        "task": None,
        "columns": None,
        "types": {},
        "split": None,
        "weight": None,
    }
    text = json.dumps({**defaults, "split_seed": 1, "settled": False, **wishes})
    sides = bench.value(
        "SELECT public.training_sides(%s, %s, %s)",
        source,
        text,
        None if formats is None else json.dumps(formats),
    )
    return Sides(**sides)
