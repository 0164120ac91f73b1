"""Every function that a role may call, with arguments that nobody means: an error that says what is
wrong, or success.

The functions come from the catalog. Calls begin as right ones, of which one argument or several are
replaced; what is known of a parameter is known by its name, so a new function is called too.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any

import hostile
import psycopg2
import psycopg2.extras
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from models import CLASSES
from processes import eventually, trainers
from sources import read_reference
from trials import trials
from workbench import Workbench, compile_text

from cerebro_plpy import limits
from cerebro_plpy.database.sql.identifiers import quote_identifier

LIMIT = "60s"
"""No call here takes so long: one that does hangs."""
FIT_WORKERS = 1
CALLS, INTERNAL = (
    settings(trials(number), suppress_health_check=list(HealthCheck)) for number in (130, 200)
)
RIGHT: dict[str, Any] = {
    "source_table": "points", "output_table": "made", "dependent_varname": "label",
    "independent_varname": "x",
    "buffer_size": 16, "n_segments": 2, "seed": 1, "training_preprocessor_table": "packed",
    "keras_model_arch_table": "models", "model_arch": CLASSES, "model_id": 1,
    "model_arch_table": "models",
    "model_selection_table": "mst", "model_id_list": [1], "compile_params_list": [compile_text()],
    "fit_params_list": ["batch_size=8"],
    "compile_params_grid": "{'loss': ['mse'], 'optimizer': ['SGD']}",
    "fit_params_grid": "{'batch_size': [8]}", "model_output_table": "made", "num_iterations": 1,
    "model_table": "model", "test_table": "packed", "mst_key": 1, "id_col": "id",
    "framework": "none",
    "source": "nvidia",
}  # fmt: skip
DIFFERENT = {
    ("load_model_selection_table", "model_selection_table"): "made",
    ("generate_model_configs", "model_selection_table"): "made",
    ("madlib_fit_multiple_model", "source_table"): "packed",
    ("madlib_keras_fit_multiple_model", "source_table"): "packed",
    ("madlib_predict", "test_table"): "points", ("madlib_keras_predict", "test_table"): "points",
}  # fmt: skip
SPEC = {"framework": "none", "trainers": 1}
SHAPES = {"inputs": 1, "shapes": [[1, 2], [1, 1]], "sizes": [8, 2]}
PACK = {"buffer_id": 0, "seed": 1, "rows": 1, "arrays": [{"kind": "float32", "divide": 1.0}]}
REQUEST = {
    "block": 1,
    "request": {"arrays": [{"kind": "float32"}], "classes": [2], "want": {"kind": "prob"}},
}
OBJECTS = st.sampled_from(
    (SPEC, SHAPES, PACK, REQUEST, {"do": "reset"}, {"do": "open", "dataset": "d", "cache_bytes": 1})
)
NAMES = st.sampled_from(
    (
        "points",
        "packed",
        "packed_summary",
        "model",
        "model_info",
        "models",
        "mst",
        "made",
        "id",
        "x",
        "label",
    )
)
INTEGERS = st.sampled_from((0, 1, -1, 2, 3, 100, 2**31 - 1, -(2**31)))
LARGE = INTEGERS | st.sampled_from((2**31, 2**63 - 1, -(2**63)))
FLOATS = st.sampled_from((0.0, 0.5, -1.0, float("nan"), float("inf"), -float("inf"), 1e-300, 1e300))
REALS = FLOATS.filter(lambda number: number not in (1e-300, 1e300))
TEXTS = (
    NAMES
    | hostile.TEXTS.filter(lambda text: "\0" not in text and text.isprintable())
    | st.sampled_from(
        (
            "x" * 100_000,
            "a.b.c",
            '"',
            "x,",
            "'; DROP TABLE points; --",
            "[" * 5_000,
            "{'loss': [" + "[" * 5_000,
            "9" * 5_000,
            "tensorflow",
            "{'loss': ['mse'], 'lr': [1e999, 1], 'optimizer': ['SGD']}",
            "batch_size=" + "9" * 400,
        )
    )
)
JSON = (hostile.changed(json.loads(CLASSES)) | OBJECTS | OBJECTS.flatmap(hostile.changed)).map(
    lambda value: json.dumps(value).replace("NaN", "1e999").replace("Infinity", "1e999")
) | st.sampled_from(
    (
        "[" * 3_000 + "]" * 3_000,
        '{"a":' * 3_000 + "1" + "}" * 3_000,
        "9" * 5_000,
        '"\\ud800"',
        '{"do": "\\u0000"}',
        '{"framework": "\\u0000\\ud800"}',
        '{"class_name": "\\ud800", "config": {}}',
        "1e999",
    )
)
BYTES = st.binary(max_size=40) | st.sampled_from((b"", bytes(10_000), bytes(8)))
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "character varying": TEXTS, "text": TEXTS, "name": TEXTS.map(lambda text: text[:20]),
    "integer": INTEGERS,
    "bigint": LARGE, "numeric": LARGE,
    "smallint": st.sampled_from((0, -1, 32767)), "boolean": st.booleans(),
    "real": REALS,
    "double precision": FLOATS, "json": JSON, "jsonb": st.just("{}"), "bytea": BYTES,
    "regrole": st.just("cerebro"),
    "oid": st.sampled_from((0, 1, 1259, 4294967295)), "regclass": st.sampled_from(("0", "packed",
    "pg_class")),
    "regprocedure": st.sampled_from(("0", "now()")),
    "interval": st.sampled_from(("0", "-1 s", "1 us", "3 days", "100000000 years",
    "-100000000 years")),
    "timestamp with time zone": st.sampled_from(("now", "epoch", "4713-01-01 BC", "294276-12-31")),
}  # fmt: skip


@dataclass(frozen=True)
class Function:
    """A function as the catalog tells it."""

    schema: str
    name: str
    parameters: tuple[str, ...]
    types: tuple[str, ...]
    internal: bool
    returns_set: bool

    def right(self) -> tuple[Any, ...]:
        """Arguments of a call that is right, as far as it is known; NULL where it is not."""
        return tuple(DIFFERENT.get((self.name, name), RIGHT.get(name)) for name in self.parameters)

    def call(self) -> str:
        holes = ", ".join(f"%s::{kind}" for kind in self.types)
        return f'SELECT * FROM "{self.schema}"."{self.name}"({holes})'


@st.composite
def array(draw: st.DrawFn, kind: str) -> str:
    """A text that PostgreSQL takes for an array of this type, of any dimensions, and with NULLs."""
    elements = draw(st.lists(st.none() | SCALARS[kind], max_size=3))
    quoted = [
        "NULL" if value is None else json.dumps(str(value)) for value in map(sqltext, elements)
    ]
    one = "{" + ",".join(quoted) + "}"
    return draw(st.sampled_from((one, "{" + one + "," + one + "}" if quoted else "{}")))


def quoted(value: Any) -> Any:
    """Return a scalar as a text that PostgreSQL casts, for a minus sign binds weaker than a
    cast.
    """
    return value if value is None or isinstance(value, (bytes, list)) else str(value)


def sqltext(value: Any) -> Any:
    return "\\x" + value.hex() if isinstance(value, bytes) else value


def values(kind: str) -> st.SearchStrategy[Any]:
    """What a parameter of a type may be given."""
    if kind.endswith("[]"):
        return st.none() | array(kind[:-2])
    return st.none() | SCALARS[kind]


QUERY = """
SELECT n.nspname, p.proname, coalesce(p.proargnames[1:p.pronargs], '{}'),
       ARRAY(SELECT CASE t WHEN 'anyelement'::regtype THEN 'text' ELSE format_type(t, NULL) END
             FROM unnest(p.proargtypes) WITH ORDINALITY a (t, i) ORDER BY i),
       starts_with(obj_description(p.oid, 'pg_proc'), 'Internal:'), p.proretset
FROM pg_depend d JOIN pg_proc p ON p.oid = d.objid JOIN pg_namespace n ON n.oid = p.pronamespace
JOIN pg_extension e ON e.oid = d.refobjid
WHERE d.classid = 'pg_proc'::regclass AND d.deptype = 'e' AND e.extname = 'cerebro_db'
    AND p.prokind = 'f'
  AND has_function_privilege(p.oid, 'EXECUTE') AND p.prolang <> (SELECT oid FROM pg_language
      WHERE lanname = 'internal')
ORDER BY p.oid::regprocedure::text"""


@pytest.fixture(scope="module")
def bench(bench: Workbench) -> Iterator[Workbench]:
    """A session with tables to name, in which nothing may take long."""
    bench.pack("packed", 2, buffer=48)
    bench.configure("mst", [compile_text()])
    bench.fit("packed", "model", "mst", 1)
    bench.rows(f"SET statement_timeout = '{LIMIT}'")
    yield bench
    backends = {bench.pid(), *bench.workers()}
    bench.close()
    eventually(lambda: not trainers(backends))


@pytest.fixture(scope="module")
def functions(bench: Workbench) -> list[Function]:
    return [
        Function(s, name, tuple(given), tuple(types), *rest)
        for s, name, given, types, *rest in bench.rows(QUERY)
    ]


def test_each_type_of_a_parameter_has_values(functions: list[Function]) -> None:
    kinds = {kind.removesuffix("[]") for function in functions for kind in function.types}
    assert kinds <= SCALARS.keys()


@pytest.fixture(scope="module")
def documented() -> set[str]:
    """The SQLSTATEs that users are told of."""
    table = read_reference().split("| SQLSTATE | kind |")[1].split("\n\n")[0]
    found = {
        code
        for row in table.splitlines()
        for code in re.findall(r"\b[0-9A-Z]{5}\b", row.split("|")[1] if row else "")
    }
    assert "22023" in found and "57014" in found
    return found - {"57014"}


def tables(bench: Workbench) -> set[str]:
    query = (
        "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND "
        "relkind IN ('r', 'v', 'S')"
    )
    return {name for (name,) in bench.rows(query)}


def check_call(
    bench: Workbench, documented: set[str], function: Function, arguments: tuple[Any, ...]
) -> None:
    """The call succeeds, or fails as the documentation says; the backend lives on, and a failed
    call leaves nothing.
    """
    before, backend = tables(bench), bench.pid()
    try:
        returned = bench.rows(function.call(), *map(quoted, arguments))
        if function.name == "submit":
            bench.rows("SELECT cerebro.wait(%s)", *returned[0])
    except psycopg2.Error as error:
        assert error.pgcode in documented, f"{error.pgcode}: {error}"
        assert error.diag.message_primary
        assert tables(bench) == before
    assert bench.value("SELECT pg_backend_pid()") == backend
    for name in tables(bench) - before:
        if not name.endswith("_seq"):
            bench.rows(f"DROP TABLE IF EXISTS {quote_identifier(name)} CASCADE")
    bench.messages()


@st.composite
def calls(draw: st.DrawFn, functions: list[Function]) -> tuple[Function, tuple[Any, ...]]:
    """A right call with a few arguments replaced; a number of iterations that is right and large
    takes its time.
    """
    function = draw(st.sampled_from(functions))
    arguments = list(function.right())
    for place in (
        draw(st.lists(st.integers(0, max(0, len(arguments) - 1)), min_size=1, max_size=3))
        if arguments
        else []
    ):
        name, kind = function.parameters[place], function.types[place]
        wanted = values(kind)
        arguments[place] = draw(
            wanted.filter(lambda n: n is None or n <= 3) if name == "num_iterations" else wanted
        )
    return function, tuple(arguments)


@CALLS
@given(data=st.data())
def test_functions_that_users_call(
    bench: Workbench, functions: list[Function], documented: set[str], data: st.DataObject
) -> None:
    function, arguments = data.draw(calls([f for f in functions if not f.internal]))
    check_call(bench, documented, function, arguments)


@pytest.fixture(scope="module")
def segment(bench: Workbench, functions: list[Function]) -> Iterator[Workbench]:
    """A session in which a person calls what only cerebro should."""
    session = bench.another()
    session.rows(f"SET statement_timeout = '{LIMIT}'")
    yield session
    backend = session.pid()
    session.close()
    eventually(lambda: not trainers({backend}))


RIGHT_INTERNAL: dict[tuple[str, str], Any] = {
    ("trainer_start", "spec"): json.dumps(SPEC), ("pack_block", "spec"): json.dumps(PACK),
    ("predict_begin", "spec"): json.dumps(REQUEST),
    ("dataset_add", "shapes"): json.dumps(SHAPES), ("dataset_add", "dataset"): "d", ("dataset_open",
    "dataset"): "d",
    ("dataset_close", "dataset"): "d", ("dataset_open", "cache_bytes"): 1000, ("dataset_add",
    "pass_no"): 0,
    ("dataset_add", "buffer_id"): 0, ("dataset_add", "part"): bytes(10), ("state_add", "part"): 1,
    ("state_add", "chunk"): bytes(10), ("sealed_add", "part"): 1, ("sealed_add",
    "chunk"): bytes(10),
    ("sealed_job", "model"): 1259, ("sealed_job", "mst_key"): 1,
    ("state_chunks", "chunk_bytes"): 1000, ("pack_block", "data"): "{}",
    ("row_outputs", "units"): 2, ("row_outputs", "chunk_bytes"): 1000,
    ("packed_array", "place"): 1, ("rows_seen", "rows"): 1, ("enter_queue", "run_id"): 1,
    ("predicted", "row_type"): 26, ("predicted", "level"): 0.9,
}  # fmt: skip


@st.composite
def internal_calls(
    draw: st.DrawFn, functions: list[Function]
) -> list[tuple[Function, tuple[Any, ...]]]:
    """Calls one after another, right but for one argument at most."""
    made: list[tuple[Function, tuple[Any, ...]]] = []
    for function in draw(st.lists(st.sampled_from(functions), min_size=1, max_size=4)):
        arguments: list[Any] = [
            RIGHT_INTERNAL.get((function.name, name)) for name in function.parameters
        ]
        if draw(st.booleans()) and arguments:
            place = draw(st.integers(0, len(arguments) - 1))
            arguments[place] = draw(values(function.types[place]))
        made.append((function, tuple(arguments)))
    return made


@INTERNAL
@given(data=st.data())
def test_functions_that_only_cerebro_calls(
    segment: Workbench, functions: list[Function], documented: set[str], data: st.DataObject
) -> None:
    """In any order, in a session with a trainer that packs."""
    made = data.draw(internal_calls([function for function in functions if function.internal]))
    segment.rows("SELECT cerebro_internal.trainer_start(%s)", json.dumps(SPEC))
    for function, arguments in made:
        check_call(segment, documented, function, arguments)


def nested(depth: int) -> Iterator[str]:
    """JSON so deep that a reader that calls itself for each level comes to its end, if PostgreSQL's
    has not.
    """
    lists, records = "[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth
    for inner in (lists, records):
        yield inner
        for name in ("program", "sums", "request", "arrays", "shapes", "state", "fit", "datasets"):
            yield f'{{"{name}": {inner}}}'


NONSENSE = (
    "{}",
    "[]",
    "1",
    "null",
    '"x"',
    *(text for depth in (99, 300, 450, 900, 2000) for text in nested(depth)),
)


@pytest.mark.long
def test_json_that_nobody_means(
    segment: Workbench, functions: list[Function], documented: set[str]
) -> None:
    """Whatever takes it, and however deep it is."""
    segment.rows("SELECT cerebro_internal.trainer_start(%s)", json.dumps(SPEC))
    for function in functions:
        for place, kind in enumerate(function.types):
            for text in NONSENSE if function.internal and kind == "json" else ():
                arguments: list[Any] = [
                    RIGHT_INTERNAL.get((function.name, name)) for name in function.parameters
                ]
                arguments[place] = text
                check_call(segment, documented, function, tuple(arguments))


@pytest.mark.postgresql("calls of procedures are the same there")
@pytest.mark.parametrize(
    "text",
    [*NONSENSE[:5], '{"path": 1, "schema": 2}', '{"path": "", "schema": "", "fit": {"x": 1}}'],
)
def test_work_that_nobody_has_asked_for(bench: Workbench, documented: set[str], text: str) -> None:
    session = bench.another()
    session.rows("SET application_name = 'cerebro_db background'")
    with pytest.raises(psycopg2.Error) as caught:
        session.rows("CALL cerebro_internal.work(%s)", text)
    assert caught.value.pgcode in documented, caught.value
    session.close()


HOLES = {
    "model": ("", "_info", "_summary"),
    "packed": ("", "_summary"),
}
SCORES = (
    "madlib_predict('{model}', 'points', 'id', 'x', 'made', mst_key => 1)",
    "madlib_evaluate('{model}', '{packed}', 'made', mst_key => 1)",
)


@pytest.mark.long_for(table="model", suffix=("", "_info"))
@pytest.mark.parametrize(
    ("table", "suffix"), [(t, s) for t, suffixes in HOLES.items() for s in suffixes]
)
def test_tables_with_holes(bench: Workbench, documented: set[str], table: str, suffix: str) -> None:
    """A NULL in any column of a model's or a packed table is told of, or makes no difference."""
    for each in HOLES[table]:
        bench.rows(
            f"DROP TABLE IF EXISTS hollow{each}; CREATE TABLE hollow{each} AS SELECT * FROM "
            f"{table}{each}"
        )
    for column in [text.split(" ")[0] for text in bench.columns(f"{table}{suffix}").split(", ")]:
        bench.rows(
            f"TRUNCATE hollow{suffix}; INSERT INTO hollow{suffix} SELECT * FROM {table}{suffix}"
        )
        bench.rows(f"UPDATE hollow{suffix} SET {column} = NULL")
        for call in SCORES if table == "model" else SCORES[1:]:
            try:
                bench.rows(
                    "SELECT "
                    + call.format(**{"model": "model", "packed": "packed", table: "hollow"})
                )
                bench.rows("DROP TABLE made")
            except psycopg2.Error as error:
                assert error.pgcode in documented - {"58000"}, f"{column}: {error.pgcode} {error}"
    bench.messages()


NEED_NO_TRAINER = (
    "job_cost",
    "trainer_start",
    "trainer_rest",
    "trainer_stop",
    "gpu_count",
    "gpu_report",
    "pack_mixed",
    "pack_beside",
    "text_under",
    "rows_of_texts",
    "canonical_text",
    "canonical_json",
    "state_add",
    "sealed_add",
    "is_state",
    "remove_dropped",
    "remove_dropped_model",
    "remove_grants",
    "describe_query",
    "sealed_version",
    "template_fields",
    "settings_of",
    "setting_rules",
    "predict_blocks",
    "predict_ahead",
    "evaluation_blocks",
    "attribution_blocks",
    "version_importance",
    "owns_run",
    "enter_queue",
    "take_places",
    "add_to_queue",
    "leave_queue",
    "used_places",
    "may_act",
    "count_time",
    "keep_private",
)


def test_they_say_so_where_no_trainer_was_started(
    bench: Workbench, functions: list[Function]
) -> None:
    session = bench.another()
    need_none = {
        *NEED_NO_TRAINER,
        *(["pack_block"] if bench.greenplum else []),
    }  # it starts one itself on a segment
    for function in functions:
        arguments = [
            RIGHT_INTERNAL.get((function.name, name), "{}") for name in function.parameters
        ]
        if not function.internal or function.name in need_none:
            continue
        with pytest.raises(psycopg2.errors.ObjectNotInPrerequisiteState) as caught:
            session.rows(function.call(), *map(quoted, arguments))
        assert caught.value.diag.message_hint
    session.close()


LARGEST = {"smallint": (1 << 15) - 1, "integer": limits.INTEGER, "bigint": limits.BIGINT}
MOST_MB, RUNAWAY_MB, RUNAWAY_SECONDS = 300, 1000, 30
"""What the memory of a backend may come to; at what memory, and after how long, a statement has run
away.
"""
COUNTING: dict[tuple[str, str], Any] = {
    ("plan", "source"): "points", ("plan", "target"): "label", ("plan", "budget"): "2 s",
    ("plan", "models"): "{linear}", ("plan_fit", "source_table"): "packed", ("plan_fit",
    "format"): "text",
    **{(name, "test_table"): "points" for name in ("madlib_predict_byom",
    "madlib_keras_predict_byom")},
    ("explore_layers", "layers"): "{a}", ("explore_layers", "outputs"): 2, ("set_epochs", "n"): 2,
    ("window_series", "source"): "points", ("window_series", "output"): "made", ("window_series",
    "id"): "label",
    ("window_series", "ts"): "id", ("window_series", "columns"): "amount", ("window_series",
    "width"): 2,
    ("hyperband_schedule", "schedule_table"): "made", ("hyperband_schedule", "r"): 9,
    **{(fit, "source_table"): "packed" for fit in ("madlib_fit", "madlib_keras_fit", "submit")},
    **{(fit, "compile_params"): compile_text() for fit in ("madlib_fit", "madlib_keras_fit")},
}  # fmt: skip
"""More of what is right, where counts matter."""
REFUSED_LATER = {"model_output_table": "model", "model": "model"}
"""Output tables that are there already: a fit whose counts may be as they are ends before it
trains.
"""
SPACE = """('{"lr": [' || (
    SELECT string_agg((n * 1e-7)::text, ',') FROM generate_series(1, 300000) n
) || ']}')::jsonb"""
NETWORK = (
    """'{"class_name": "Sequential", "config": {"layers": [{"class_name": "ReLU", "config": {}}' """
)
NETWORK += """|| repeat(', {"class_name": "ReLU", "config": {}}', 400000) || ']}}'"""
PLAN = "SELECT cerebro.plan('points', 'label', models => '{linear}', budget => '2 s'"
TOO_MANY = {
    "configurations": f"{PLAN}, configs => 2000000000)",
    "values of a space": f"{PLAN}, configs => 1000, space => {SPACE})",
    "epochs": f"{PLAN}, epochs => 2000000000)",
    "iterations of a plan": "SELECT cerebro.plan_fit('packed', 'mst', 2147483647)",
    "evaluations": "SELECT madlib_fit_multiple_model('packed', 'made', 'mst', 2147483647, FALSE, "
    "NULL, 1)",
    "layers": f"SELECT load_keras_model('models', {NETWORK})",
    "layers of json": f"SELECT load_keras_model('models', ({NETWORK})::json)",
    "rounds": "SELECT madlib_automl('packed', 'made', 'models', 'made', ARRAY[1], $${'loss': "
    "['mse']}$$, $${'batch_size': [8]}$$, 'hyperband', 'R=2147483647')",
    "epochs of a visit": "SELECT load_model_selection_table('models', 'made', ARRAY[1], "
    "ARRAY[$${c}$$], ARRAY['epochs=2147483648'])".replace("{c}", compile_text()),
    "epochs before a decision": "SELECT madlib_fit_multiple_model('packed', 'made', 'mst', 5, "
    "search => 'asha',"
    """ search_params => '{"first_epochs": 2147483647}')""",
}
"""Counts beyond their maxima in statements that were seen to take a backend's time or memory
without end.
"""
MANY = {
    "configurations": f"{PLAN}, configs => {limits.TRIED_CONFIGS.maximum})",
    "epochs": f"{PLAN}, epochs => {limits.EPOCHS.maximum})",
    "iterations": f"SELECT cerebro.plan_fit('packed', 'mst', {limits.EPOCHS.maximum}, "
    "metrics_compute_frequency => 1)",
    "rows of a table": "SELECT generate_model_configs('models', 'made', ARRAY[1], $${'lr': "
    "[0.001, 0.1, 'log'], 'optimizer': ['SGD'], 'loss': ['mse']}$$, $${'batch_size': [8]}$$, "
    "'random', " + f"{limits.CONFIGS.maximum})",
}
"""The largest counts that are allowed: what takes long of these ends by a cancel."""


def integers(functions: list[Function]) -> Iterator[tuple[Function, int, str, int]]:
    """Each integer argument of each function: its place, its name, and the largest number of its
    type.
    """
    for function in functions:
        for place, (name, kind) in enumerate(zip(function.parameters, function.types, strict=True)):
            if kind.removesuffix("[]") in LARGEST:
                yield function, place, name, LARGEST[kind.removesuffix("[]")]


def test_each_integer_argument_is_in_the_table_of_limits(functions: list[Function]) -> None:
    named = {(function.name, name) for function, _, name, _ in integers(functions)}
    unlisted = {
        each for each in named if limits.limit_of(*each) is None and each[1] not in limits.KEYS
    }
    assert not unlisted, (
        "say in cerebro_plpy/limits.py how large they may be, or that they count nothing"
    )
    assert (
        not {*limits.ARGUMENTS} - {name for _, name in named} - {".".join(each) for each in named}
    )


@contextmanager
def watched(session: Workbench) -> Iterator[None]:
    """A session whose backend is killed if its memory grows without bound, or if a cancel does not
    end a statement.
    """
    backend, over = session.pid(), Event()

    def watch() -> None:
        begun = monotonic()
        while not over.wait(0.05):
            if memory_mb(backend, "VmRSS") > RUNAWAY_MB or monotonic() > begun + RUNAWAY_SECONDS:
                return os.kill(backend, signal.SIGKILL)

    watcher = Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def memory_mb(pid: int, kind: str) -> int:
    """The memory of a process now (VmRSS), or the most that it had (VmHWM)."""
    line = next(
        line
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith(kind)
    )
    return int(line.split()[1]) >> 10


@pytest.fixture
def counting(bench: Workbench) -> Iterator[Workbench]:
    """A session in which no statement may take longer than five seconds, nor much memory."""
    session = bench.another()
    session.rows("SET statement_timeout = '5s'")
    backend = session.pid()
    yield session
    assert memory_mb(backend, "VmHWM") <= MOST_MB
    session.close()
    eventually(lambda: not trainers({backend}))


@pytest.mark.parametrize("internal", [False, True], ids=["of users", "internal"])
def test_the_largest_integers_end_soon(
    counting: Workbench, functions: list[Function], internal: bool
) -> None:
    """In each integer argument, the largest number of its type is refused by name, or takes neither
    time nor memory.

    The smallest and 0 are among those that `test_functions_that_users_call` draws.
    """
    counting.rows("SELECT cerebro_internal.trainer_start(%s)", json.dumps(SPEC))
    for function, place, name, largest in integers(
        [each for each in functions if each.internal == internal]
    ):
        limit, names = (
            limits.limit_of(function.name, name),
            zip(function.parameters, function.right(), strict=True),
        )
        right = [usual(function.name, parameter, value) for parameter, value in names]
        right[place] = f"{{{largest}}}" if function.types[place].endswith("[]") else str(largest)
        found = refusal(counting, function.call(), *right)
        if limit is not None and largest > limit.maximum:
            assert found and found.sqlstate == "22023", (function.name, name, found)
            assert f"expected at most {limit.maximum}" in (found.message_primary or ""), (
                function.name,
                name,
            )


def usual(function: str, parameter: str, value: Any) -> Any:
    """A value that is right for a parameter, as far as one is known, and with which no model is
    trained.
    """
    known = {**RIGHT_INTERNAL, **COUNTING}.get((function, parameter), value)
    return REFUSED_LATER.get(parameter, known) if function != "plan" else known


@pytest.mark.parametrize("statement", TOO_MANY.values(), ids=TOO_MANY)
def test_counts_beyond_their_maxima_are_refused(counting: Workbench, statement: str) -> None:
    found = refusal(counting, statement)
    assert found and found.sqlstate == "22023", found and found.message_primary


@pytest.mark.long_for(statement=(MANY["epochs"], MANY["iterations"]))
@pytest.mark.parametrize("statement", MANY.values(), ids=MANY)
def test_the_largest_counts_that_are_allowed_end_by_a_cancel(
    counting: Workbench, statement: str
) -> None:
    counting.rows("SET statement_timeout = '1s'")
    found = refusal(counting, statement)
    counting.rows("SET statement_timeout = '5s'")
    assert found is None or found.sqlstate == "57014", found.message_primary


def refusal(
    session: Workbench, statement: str, *values: object
) -> psycopg2.extensions.Diagnostics | None:
    """What a statement is refused with; None if it succeeds. Nothing stays of it."""
    session.rows("BEGIN")
    try:
        with watched(session):
            session.rows(statement, *values)
    except psycopg2.Error as error:
        return error.diag
    finally:
        if not session.connection.closed:
            session.rows("ROLLBACK")
            session.messages()
    return None
