"""What is asked of a source means the same on any path, whatever operators, functions and types it
leads to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import psycopg2
import pytest
from readers import SpiSession
from recipes import Session
from traps import PATH, PINNED, names_of, set_traps
from workbench import Workbench

from cerebro_plpy.configs.train_spec import DataSplit, Grouping, SourceRecord
from cerebro_plpy.database.reading import Reading
from cerebro_plpy.database.source_rows import SourceRows
from cerebro_plpy.operations.explain import attribution, evaluate_model, importance
from cerebro_plpy.operations.fit import window_series
from cerebro_plpy.operations.predict import predict_table
from cerebro_plpy.operations.predict.prediction_source import RawSource
from cerebro_plpy.preprocessing.kinds.plain_array import PlainArray
from cerebro_plpy.preprocessing.learning import target_leakage, text_statistics
from cerebro_plpy.preprocessing.learning.labels import (
    count_unknown_targets,
    find_target,
    learn_labels,
)
from cerebro_plpy.preprocessing.learning.number_targets import settle_format
from cerebro_plpy.preprocessing.learning.raw_table import RawTable, read_table
from cerebro_plpy.preprocessing.learning.recorded_table import Newer, read_with_recipe, take_share
from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION
from cerebro_plpy.preprocessing.recipe.encoding import network_inputs
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.recipe.split_encoding import raw_inputs
from cerebro_plpy.preprocessing.rows import source as row_source
from cerebro_plpy.preprocessing.rows.groups import GroupRequest, read_groups
from cerebro_plpy.preprocessing.rows.opened_source import TableOptions
from cerebro_plpy.preprocessing.rows.source import keep_sample
from cerebro_plpy.preprocessing.scoring import drift_profile
from cerebro_plpy.preprocessing.values.expression import Expression

ROWS = 700
MADE = """
    CREATE EXTENSION citext;
    CREATE TYPE mood AS ENUM ('sad', 'glad');
    CREATE DOMAIN label AS text; CREATE DOMAIN size AS integer; CREATE DOMAIN stamp AS timestamptz;
    CREATE DOMAIN span AS interval;
    CREATE TABLE kinds AS
    SELECT n AS id, n::smallint AS small, n::bigint * 31 % 100 AS large, (n % 17)::real AS single,
           sin(n) AS double, (n * 31 % 97) / 4.0 AS exact, (n % 13)::size AS sized,
               (n % 11)::numeric::money AS paid,
           (ARRAY['a', 'b', 'c'])[n % 3 + 1] AS word, ('v' || n % 4)::varchar(9) AS short,
           ('b' || n % 5)::char(4) AS padded, ('n' || n % 3)::name AS called,
               ('L' || n % 3)::label AS labelled,
           ('C' || n % 3)::citext AS any_case, (n % 2 > 0) AS flag, (ARRAY['sad',
               'glad'])[n % 2 + 1]::mood AS felt,
           ('00000000-0000-0000-0000-00000000000' || n % 3)::uuid AS uid,
               ('10.0.0.' || n % 3)::inet AS net,
           date '2020-01-01' + n % 400 AS day, timestamp '2020-01-01 10:00' + n * interval '7 hours'
               AS at,
           timestamptz '2020-01-01 10:00+02' + n * interval '7 hours' AS zoned,
           (timestamptz '2020-01-01 10:00+02' + n * interval '7 hours')::stamp AS stamped,
           time '00:00' + n * interval '1 minute' AS clock, n * interval '3 hours' AS took,
           (n * interval '5 hours')::span AS spanned,
           to_json(n % 19) AS told, to_jsonb(n % 23) AS known, to_jsonb('x'::text || n % 3) AS said,
           ARRAY[n % 7, n % 5, n % 3]::integer[] AS whole, ARRAY[n % 7, n % 5,
               n % 3]::smallint[] AS shorts,
           ARRAY[n % 7, n % 5, n % 3]::numeric[] AS exacts,
           ARRAY(SELECT sin(n + s / 3.0) FROM generate_series(1, 10 + n % 2) s)::real[] AS line,
           ARRAY(SELECT ARRAY[n * s % 13, s] FROM generate_series(1, 9) s)::float8[] AS steps,
           ARRAY(SELECT ARRAY[n * y % 7, y, n % 5] FROM generate_series(1, 4) y)::bigint[] AS grey,
           ARRAY(SELECT sin(n * s * 7919 % 104729) FROM generate_series(1,
               70) s)::numeric[] AS long,
           decode('89504e470d0a1a0a0000000d4948445200000008000000080800000000', 'hex') AS photo,
           (SELECT string_agg('word' || (n * w) % 17, ' ') FROM generate_series(1, 9) w) AS note,
           (n % 3 + 1)::float8 AS weight, (ARRAY['train', 'val'])[(n % 5 = 0)::integer + 1]::varchar
               AS side,
           n * 31 % 7 > 2 AS y, n * 31 % 7 + n / 8.0 AS amount,
           ' ' || (n * 31 % 97) / 4.0 || '%' AS share, (ARRAY['k', 'l',
               'm'])[n * 31 % 3 + 1]::varchar AS kind
    FROM generate_series(1, {rows}) n"""
TYPES = (
    "public.mood",
    "public.label",
    "public.size",
    "public.stamp",
    "public.span",
    "public.citext",
    "public.stamp[]",
)
KINDS = {
    "exacts": "vector", "note": "text", "day": "category", "clock": "category", "took": "category",
    "zoned": "category",
    "paid": "number", "grey": "image", "steps": "series", "line": "series",
}  # fmt: skip
"""What is to be made of columns of which it is not certain, or of which something else usually is.
"""
SPLITS = (
    "random 0.2",
    "group short",
    "column side",
    "last 0.2 by stamped",
    "last 0.2 by labelled",
    "random of copies",
)
GROUPS = ("short", "zoned", "took", "paid", "stamped", "day", "grey")
FEW = (
    (row_source, "CATEGORIES_SAMPLE", 400),
    (row_source, "QUANTILES_SAMPLE", 200),
    (text_statistics, "SAMPLED_TEXTS", 300),
    (target_leakage, "MOST_ROWS", 300),
    (drift_profile, "SAMPLED_ROWS", 300),
    (drift_profile, "FEWEST_ROWS", 300),
)
"""Sizes of samples, so that these are samples."""
OF_THE_SOURCE = '"public"."kinds"'
COPIED = re.compile(r"CREATE (UNLOGGED )?TABLE \S+ AS ")
BASES = {
    "sized": "int4", "single": "float4", "exact": "numeric", "day": "date", "at": "timestamp",
    "zoned": "timestamptz",
    "spanned": "span",
}  # fmt: skip
CATEGORIES = {"sized": "N", "single": "N", "exact": "N", "spanned": "T"}
"""Of columns of times."""


class Named(NamedTuple):
    """A table: see `cerebro_plpy.database.platform_protocol.Table`."""

    spelling: str
    oid: int
    quoted: str
    query: None = None


class Asking(NamedTuple):
    """A statement with its values and its rows."""

    statement: str
    values: Sequence[object]
    rows: list[tuple[Any, ...]]


class Recorder:
    """A session that keeps what it was asked, as a worker session and as the caller's own
    database.
    """

    def __init__(self, session: Session) -> None:
        self.platform = SimpleNamespace(clauses={"distributed_by_window_id": ""})
        self.asked: list[Asking] = []
        self._session = session

    def run(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        rows = self._session.run(statement, values)
        self.asked.append(Asking(statement, tuple(values), rows))
        return rows

    def rows(self, statement: str, *values: object) -> list[dict[str, Any]]:
        return [
            {**{str(n): value for n, value in enumerate(row)}, "cerebro_unknown": None}
            for row in self.run(statement, values)
        ]

    def peek(self, statement: str, *values: object) -> list[dict[str, Any]]:
        """Answer nothing: no version of this test is recorded."""
        return []

    def stream_blocks(
        self, statement: str, _: int, *values: object
    ) -> Iterator[list[dict[str, Any]]]:
        return iter([self.rows(statement, *values)])

    @contextmanager
    def configured(self, **_: str) -> Iterator[None]:
        yield

    def value(self, statement: str, *values: object) -> Any:
        return self.run(statement, values)[0][0]

    def info(self, _: str) -> None:
        pass

    def check_interrupts(self) -> None:
        pass


@pytest.fixture(scope="module")
def kinds(bench: Workbench, shared_superuser: Workbench) -> Named:
    shared_superuser.rows(MADE.format(rows=ROWS).split(";")[0])
    bench.rows(";".join(MADE.format(rows=ROWS).split(";")[1:]))
    bench.rows("ANALYZE kinds")  # else the plans of statements change when that is done beside
    return Named("kinds", bench.value("SELECT 'kinds'::regclass::oid::bigint"), '"public"."kinds"')


def learn(recorder: Any, table: Named, target: str, split: str | None, **more: object) -> RawTable:
    plain: dict[str, Any] = {"task": None, "columns": None, "types": {}, "weight": None, **more}
    wishes = TableOptions(target=target, split=split, split_seed=7, settled=False, **plain)
    return read_table(SourceRows(recorder, recorder.run), "train", table, wishes)


def look(recorder: Any, table: Named) -> RawTable:
    """Do what plan, train and refresh ask of a table."""
    for split in SPLITS:
        learn(recorder, table, "y", split, columns="word, short, large, stamped")
    learn(recorder, table, "amount", None, columns="single, day, short")
    read = learn(recorder, table, "share", None, columns="single")
    assert read.recipe.target_format == "text as 12.5%"
    columns = "* except id, y, amount, side, share"
    whole = learn(
        recorder, table, "kind", "random 0.2", weight="weight", columns=columns, types=KINDS
    )
    keep_sample(SourceRows(recorder, recorder.run), whole.source, whole.columns[:9])
    take_share(recorder, whole, 0.3)
    for column in ("short", "sized", "day"):
        read_groups(recorder, "train", whole.parts, GroupRequest(column, 1, whole.target.values))
    return whole


def again(recorder: Any, table: Named, whole: RawTable) -> None:
    """Do what is asked of a table whose recipe is known."""
    spec: Any = SimpleNamespace(
        target="kind",
        task=CLASSIFICATION,
        columns=None,
        types={},
        split=DataSplit("last 0.2 by short", 7, "v3", training_rows=1, validation_rows=1),
        weight="weight",
        classes=whole.target.values,
        recipe=whole.recipe.to_json(),
        source=SourceRecord(),
        grouping=Grouping(),
    )
    for newer in (
        None,
        Newer("id", "300"),
        Newer("labelled", "L1"),
        Newer("zoned", "2020-03-01 00:00:00+00"),
    ):
        read_with_recipe(SourceRows(recorder, recorder.run), "refresh", table, spec, None, newer)


def predict(recorder: Any, table: Named, whole: RawTable) -> None:
    """Do what predict, evaluate, importance, attribution and drift ask of a source."""
    version: Any = SimpleNamespace(
        classes=whole.target.values, recipe=whole.recipe, group_by="short", target="kind",
        task=CLASSIFICATION, seed=3,
        model="kinds",
    )  # fmt: skip
    ids = [Expression('t."id"::text')]
    ids.append(attribution._make_texts(ids[0], [each.column for each in whole.recipe.inputs]))
    families = {each.name: each.family for each in whole.columns if each.name in GROUPS}
    for target, text_format in (("kind", None), ("amount", None), ("share", "text as 12.5%")):
        column = settle_format(find_target("evaluate", whole.columns, target), text_format)
        labels = learn_labels(column, CLASSIFICATION if target == "kind" else "regression")
        label = labels.usable_expression(column)
        ids.append(evaluate_model._make_pair(label, families))
        count_unknown_targets(recorder, table.quoted, Expression("true"), labels, column)
    for id_text in ids:
        raw = predict_table.SourceQuery(table.quoted, whole.recipe, id_text, {})
        for names in (None, ["v1", "v2"], []):
            each = predict_table.GroupedModel(version, lambda _: None, names)
            assert next(predict_table.read_blocks(recorder, each, raw))
    reading = Reading({}, "", "on")
    for columns in (whole.columns, [each._replace(key=False) for each in whole.columns]):
        source = RawSource(
            cast(Any, table), tuple(columns), whole.recipe, reading, recorder, evaluated=True
        )
        assert importance._read_rows(recorder, version, source)
    measured = drift_profile.measure(
        SourceRows(recorder, recorder.run), whole.source, whole.rows, whole.recipe
    )
    edges = {key: part.edges for key, part in measured.parts.items()}
    drift_profile.measure_bins(recorder, table.quoted, whole.recipe, edges)
    plain = Recipe(
        (PlainArray("whole", (3,), 2.0, single=False), PlainArray("single", (1,), 1.0, single=True))
    )
    for inputs in (raw_inputs(whole.recipe), network_inputs(whole.recipe), network_inputs(plain)):
        text = ", ".join(f"{each.sent.text} AS {each.name}" for each in inputs)
        values = [value for each in inputs for value in each.sent.values]
        recorder.run(f"SELECT {text} FROM {table.quoted} t", values)


def cut(recorder: Any, table: Named) -> None:
    """Do what cutting a table of long series into windows asks of it, by each type of time."""
    for ts in ("sized", "single", "exact", "day", "at", "zoned", "spanned"):
        for rule in (None, "all", "last", "majority"):
            row = {"name": ts, "type": ts, "base": BASES[ts], "category": CATEGORIES.get(ts, "D")}
            expressions = window_series.make_time_expressions(
                cast(Any, table), {"name": "short"}, row
            )
            series = window_series.Series(
                cast(Any, table), cast(Any, Named("", 0, "pg_temp.cut")), "short", ts, ("small",
                "exact"), 3, 2,
                rule and "labelled", rule, expressions,
            )  # fmt: skip
            window_series.compute_usual_gap(recorder, series)
            recorder.run(window_series.build_query(recorder, series), ("1",))
            recorder.run("DROP TABLE pg_temp.cut")


@pytest.fixture(scope="module")
def asked(bench: Workbench, kinds: Named) -> Iterator[list[Asking]]:
    """What was asked on a path of PostgreSQL's own objects alone."""
    recorder = Recorder(Session(bench))
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in FEW:
            patch.setattr(module, name, value)
        bench.rows(f"BEGIN; SET LOCAL search_path = {PINNED}")
        whole = look(recorder, kinds)
        again(recorder, kinds, whole)
        predict(recorder, kinds, whole)
        cut(recorder, kinds)
        bench.rows("ROLLBACK")
    yield [
        each._replace(statement=COPIED.sub("", each.statement))
        for each in recorder.asked
        if OF_THE_SOURCE in each.statement
    ]


def readable(rows: list[tuple[Any, ...]]) -> str:
    """Return a text by which rows can be compared: NaN is not equal to itself."""
    return repr(
        sorted(
            repr([bytes(each) if isinstance(each, memoryview) else each for each in row])
            for row in rows
        )
    )


def captured(bench: Workbench, asking: Asking) -> str | None:
    """Return what becomes of a statement on a path with traps, if it is not what it was without
    them.
    """
    bench.rows(f"BEGIN; SET LOCAL search_path = {PATH}")
    try:
        rows = Session(bench).run(asking.statement, asking.values)
        # Those of a statement that made a table were not kept.
        return (
            f"other rows: {asking.statement}"
            if asking.rows and readable(rows) != readable(asking.rows)
            else None
        )
    except psycopg2.Error as error:
        return f"{error}: {asking.statement}"
    finally:
        bench.rows("ROLLBACK")


def test_the_path_decides_nothing(
    bench: Workbench, shared_superuser: Workbench, asked: list[Asking]
) -> None:
    """A statement that is new here brings the names of its own operators."""
    names = names_of(each.statement for each in asked)
    assert len(asked) > 200 and len(names.operators) > 10
    assert names.functions == frozenset(), "each function has the name of its schema"
    set_traps(shared_superuser, names.operators, TYPES)
    assert [words for each in asked if (words := captured(bench, each))] == []


def test_a_statement_means_the_same_in_the_caller_s_session(
    bench: Workbench, asked: list[Asking]
) -> None:
    """There parameters have types, as a worker session's driver knows none."""
    session = SpiSession(bench)
    for each in asked:
        bench.rows(f"BEGIN; SET LOCAL search_path = {PINNED}")
        found = session.run(each.statement, each.values)
        assert not each.rows or readable(found) == readable(each.rows), each.statement
        bench.rows("ROLLBACK")


CAUGHT = (
    "t.short = t.short", "t.large % 2 = 0", "t.day < %s::text", "t.word || 2 IS NOT NULL",
    "t.labelled IN ('a')",
    "NULLIF(t.sized, t.small) > 0",
)  # fmt: skip


@pytest.mark.parametrize("condition", CAUGHT)
def test_a_trap_catches(bench: Workbench, asked: list[Asking], condition: str) -> None:
    values = ["2024"] * condition.count("%s")
    found = captured(bench, Asking(f"SELECT FROM kinds t WHERE {condition}", values, []))
    assert found is not None and "captured" in found
