"""Functions are a superuser's: nobody else registers one, brings a source another way, or has a
table of his used.
"""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from models import CLASSES
from roles import another_role, own_schema, refused
from workbench import Workbench, compile_text

SOURCE = (
    "import keras\n\n\ndef {name}(y_true, y_pred):\n    return "
    "keras.losses.mean_squared_error(y_true, y_pred)\n"
)
CODE = "open({witness!r}, 'w').close()\n\n\ndef own(y_true, y_pred):\n    return y_pred\n"
LOAD = "SELECT madlib.load_custom_function(%s, %s::text, %s)"
START = json.dumps({"framework": "tensorflow", "trainers": 2})
NEW = {"source": "new", "key": "", "seed": 1}


@pytest.fixture(scope="module")
def superuser(bench: Workbench, shared_superuser: Workbench) -> Workbench:
    """The session of a superuser who has registered one function, with tables of the ordinary role
    beside.
    """
    bench.pack("packed", 2)
    shared_superuser.rows(LOAD, "functions", SOURCE.format(name="own"), "own")
    return shared_superuser


@pytest.fixture
def malvin(bench: Workbench, superuser: Workbench) -> Iterator[Workbench]:
    """A session of a role that may use the extension, and make tables in its schema."""
    with another_role(bench, superuser, "malvin") as session:
        superuser.rows("GRANT CREATE ON SCHEMA madlib TO malvin")
        own_schema(superuser, "malvin")
        bench.rows("GRANT SELECT ON points, packed, packed_summary, models TO malvin")
        session.rows("SET search_path = malvin, public, madlib")
        yield session


def witness(folder: Path) -> str:
    """A file that only code of an attacker would make."""
    folder.chmod(0o777)
    return str(folder / "made")


def job(loss: str = "own", objects: Any = None, **more: Any) -> str:
    """A job of a session's own making."""
    compiled = {"optimizer": {"class_name": "SGD", "config": {}}, "loss": loss, "metrics": []}
    if objects is not None:
        compiled["objects"] = objects
    program = {
        "architecture": json.loads(CLASSES),
        "compile": compiled,
        "targets": [{"kind": "onehot", "classes": 3}],
    }
    request = {
        "job": "predict",
        "program": {**program, **more.pop("program", {})},
        "result_key": "mine",
    }
    return json.dumps({**request, "datasets": [], "state": NEW, **more})


@pytest.mark.checklist(47)
@pytest.mark.parametrize(
    "call",
    [
        "load_custom_function('functions', 'def f(a, b): pass'::text, 'f')",
        "load_custom_function('functions', 'def f(a, b): pass'::bytea, 'f', 'a note')",
        "load_custom_function('my_own', 'def f(a, b): pass', 'f')",
        "load_top_k_accuracy_function('functions', 3)",
        "delete_custom_function('functions', 1)",
        "delete_custom_function('functions', 'own'::text)",
    ],
)
def test_only_a_superuser_registers_and_deletes(malvin: Workbench, call: str) -> None:
    error = refused(malvin, f"SELECT madlib.{call}")
    assert "only a superuser may register or delete custom functions" in str(error)
    assert malvin.rows("SELECT name FROM madlib.functions") == [("own",)] and not malvin.exists(
        "madlib.my_own"
    )


def test_nobody_else_writes_to_the_table(malvin: Workbench, superuser: Workbench) -> None:
    for statement in (
        "INSERT INTO madlib.functions (name, object) VALUES ('f', 'x')",
        "UPDATE madlib.functions SET object = 'x'",
        "DELETE FROM madlib.functions",
        "TRUNCATE madlib.functions",
        "CREATE RULE r AS ON INSERT TO madlib.functions DO INSTEAD NOTHING",
        "CREATE TRIGGER t BEFORE UPDATE ON madlib.functions FOR EACH ROW"
        " EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    ):
        refused(malvin, statement)
    assert superuser.value(
        "SELECT relacl::text FROM pg_class WHERE oid = 'madlib.functions'::regclass"
    ) == ("{postgres=arwdDxt/postgres,=r/postgres}")


@pytest.mark.parametrize(
    "statements",
    [
        "CREATE TABLE child () INHERITS (madlib.functions)",
        "CREATE TABLE child AS SELECT * FROM madlib.functions; ALTER TABLE child INHERIT "
        "madlib.functions",
    ],
)
def test_nobody_gives_the_table_a_child(malvin: Workbench, platform: str, statements: str) -> None:
    """Whose rows would be read with its own. Greenplum lets no table inherit from a replicated one,
    whoever asks.
    """
    refused(malvin, statements, code="42501" if platform == "postgresql" else "0A000")


@pytest.mark.parametrize(
    "made",
    [
        "CREATE TABLE madlib.bait (id serial, name text, description text, object bytea)",
        "CREATE VIEW madlib.bait AS SELECT 1 AS id, 'own'::text AS name, ''::text AS description, "
        "''::bytea AS object",
    ],
)
def test_a_table_of_his_own_is_not_used(
    malvin: Workbench, superuser: Workbench, tmp_path: Path, made: str
) -> None:
    """Neither by name, nor through a summary made by hand, nor by a superuser, nor through a
    function on segments.
    """
    file, words = witness(tmp_path), "DL: Cannot use a table of a non-superuser as object table."
    code = CODE.format(witness=file)
    malvin.rows(made)
    if "TABLE" in made:
        malvin.rows(
            "INSERT INTO madlib.bait (name, object) VALUES ('own', convert_to(%s, 'UTF8'))", code
        )
    malvin.rows(
        "CREATE TABLE mine (mst_key, model_id, compile_params, fit_params) AS SELECT 1, 1, %s, ''",
        compile_text(loss="own"),
    )
    malvin.rows(
        "CREATE TABLE mine_summary AS SELECT 'models' AS model_arch_table, 'bait' AS object_table"
    )
    calls = (
        "madlib.load_model_selection_table('models', 'm', ARRAY[1], "
        "ARRAY[$$loss='mse',optimizer='SGD'$$], ARRAY[''], 'bait')",
        "madlib.madlib_fit_multiple_model('packed', 'o', 'mine', 1)",
    )
    for call in calls:
        assert words in str(refused(malvin, f"SELECT {call}"))
    digest = hashlib.sha256(code.encode()).hexdigest()
    session = malvin.another()
    session.rows("SELECT cerebro_internal.trainer_start(%s)", START)
    told = job(objects={"table": "bait", "digests": {"own": digest}})
    assert words in str(refused(session, "SELECT cerebro_internal.job_begin(%s)", told))
    # Operators of his own in front of PostgreSQL's change nothing.
    session.rows("""SET search_path = malvin, pg_catalog;
        CREATE FUNCTION yes(oid, oid) RETURNS boolean LANGUAGE sql AS 'SELECT true';
        CREATE FUNCTION yes("char", "char") RETURNS boolean LANGUAGE sql AS 'SELECT true';
        CREATE OPERATOR = (LEFTARG = oid, RIGHTARG = oid, FUNCTION = yes);
        CREATE OPERATOR = (LEFTARG = "char", RIGHTARG = "char", FUNCTION = yes)""")
    assert words in str(refused(session, "SELECT cerebro_internal.job_begin(%s)", told))
    session.close()
    superuser.rows("SET search_path = malvin, public, madlib")
    assert words in str(refused(superuser, f"SELECT {calls[1]}"))
    superuser.rows("RESET search_path")
    for call in (
        "load_custom_function('bait', 'def f(a, b): pass', 'f')",
        "delete_custom_function('bait', 1)",
    ):
        assert words in str(refused(superuser, f"SELECT madlib.{call}"))
    assert not Path(file).exists()


def test_a_table_that_others_may_write_to_is_not_used(
    malvin: Workbench, superuser: Workbench
) -> None:
    configure = (
        "SELECT madlib.load_model_selection_table('models', 'open', ARRAY[1], ARRAY[%s], "
        "ARRAY[''], 'functions')"
    )
    for given in ("INSERT", "UPDATE (object)", "TRIGGER"):
        superuser.rows(f"GRANT {given} ON madlib.functions TO malvin")
        error = refused(malvin, configure, compile_text(loss="own"))
        assert "roles that are no superusers may write to it" in str(error)
        superuser.rows(f"REVOKE {given} ON madlib.functions FROM malvin")
    malvin.rows(configure, compile_text(loss="own"))


def test_no_request_brings_a_source(
    malvin: Workbench, superuser: Workbench, tmp_path: Path
) -> None:
    """By all functions that pass a program to a trainer."""
    file = witness(tmp_path)
    code = CODE.format(witness=file)
    session = malvin.another()
    session.rows("SELECT cerebro_internal.trainer_start(%s)", START)
    smuggled = {"sources": {"own": code}}
    for request in (
        job(program=smuggled),
        job(program=smuggled, sources={"own": code}),
        job(sources={"own": code}),
        job(objects={"table": "functions", "digests": {}}, program=smuggled),
        job(objects=code),
    ):
        for call in ("job_begin(%s)", "metric_results(%s)", "sealed_begin(%s, %s)"):
            values = [request, CLASSES][: call.count("%s")]
            with pytest.raises(psycopg2.Error):
                session.rows(f"SELECT cerebro.{call}", *values)
    session.rows(
        "SELECT cerebro_internal.predict_begin(%s)",
        json.dumps({"block": 1, "request": json.loads(job(program=smuggled))}),
    )
    with pytest.raises(psycopg2.Error):
        session.rows(
            "SELECT cerebro_internal.predict_add('1', ''::bytea), cerebro_internal.predict_rest()"
        )
    session.close()
    assert not Path(file).exists()


@pytest.mark.parametrize(
    ("objects", "code"),
    [
        ({"table": "functions", "digests": {"own": "0" * 64}}, "55000"),
        ({"table": "functions", "digests": {"gone": "0" * 64}}, "55000"),
        ({"table": "gone", "digests": {"own": "0" * 64}}, "42P01"),
        ({"table": "madlib.functions", "digests": {"own": "0" * 64}}, "42P01"),
        ({"table": "pg_authid", "digests": {"own": "0" * 64}}, "42P01"),
        ({"table": 'functions" t; DROP TABLE x; --', "digests": {"own": ""}}, "42P01"),
        ({"table": "functions\0", "digests": {"own": ""}}, "42602"),
        ({"table": "functions", "digests": {"own\0": ""}}, "42602"),
        ({"table": "functions", "digests": {"": ""}}, "42602"),
        ({"table": 5, "digests": {}}, "22023"),
        ({"table": "functions"}, "22023"),
        ("functions", "22023"),
    ],
)
def test_functions_are_asked_for_in_known_words(malvin: Workbench, objects: Any, code: str) -> None:
    session = malvin.another()
    session.rows(
        "SELECT cerebro_internal.trainer_start(%s)",
        json.dumps({"framework": "none", "trainers": 1}),
    )
    refused(session, "SELECT cerebro_internal.job_begin(%s)", job(objects=objects), code=code)
    session.close()


def test_the_right_words_are_the_superuser_s_function(malvin: Workbench) -> None:
    digest = hashlib.sha256(SOURCE.format(name="own").encode()).hexdigest()
    session = malvin.another()
    session.rows("SELECT cerebro_internal.trainer_start(%s)", START)
    session.rows(
        "SELECT cerebro_internal.job_begin(%s)",
        job(objects={"table": "functions", "digests": {"own": digest}}),
    )
    session.close()


class Evil:
    """What a pickle would do when it is loaded."""

    def __reduce__(self) -> Any:
        return (open, ("/tmp/cerebro_pickled", "w"))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_are_refused(superuser: Workbench, protocol: int) -> None:
    for value in (Evil(), len, {"a": [1.5]}):
        error = refused(
            superuser,
            "SELECT madlib.load_custom_function('functions', %s::bytea, 'f')",
            pickle.dumps(value, protocol),
            code="0A000",
        )
        hint = str(error.diag.message_hint)
        assert (
            "it is a pickle" in str(error) and "inspect.getsource" in hint and "keras.ops" in hint
        )
    assert not Path("/tmp/cerebro_pickled").exists()


NULL, WRONG, SYNTAX = "22004", "22023", "22P02"
GOOD = "'def f(a, b): pass'"
IN_SCHEMA = "DL: Custom function table has to be in the madlib schema"
WRONG_CALLS = [
    (f"load_custom_function(NULL, {GOOD}, 'f')", NULL, "NULL/empty object table name!"),
    (f"load_custom_function(' ', {GOOD}, 'f')", NULL, "NULL/empty object table name!"),
    ("load_custom_function('t', NULL::text, 'f')", NULL,
    "Keras Custom Function: function object cannot be NULL!"),
    ("load_custom_function('t', NULL::bytea, 'f')", NULL,
    "Keras Custom Function: function object cannot be NULL!"),
    (f"load_custom_function('t', {GOOD}, NULL)", NULL,
    "Keras Custom Function: function name cannot be NULL!"),
    (f"load_custom_function('t', {GOOD}, '')", WRONG, "is not a name of Python"),
    (f"load_custom_function('t', {GOOD}, 'f()')", WRONG, "is not a name of Python"),
    (f"load_custom_function('t', {GOOD}, 'g')", WRONG,
    "Invalid function object: its source does not define 'g'"),
    (f"load_custom_function('t', {GOOD}, 'F')", WRONG, "does not define 'F'"),
    (f"load_custom_function('t', {GOOD}, 'MSE')", WRONG,
    "is one of Keras' own, mean_squared_error"),
    ("load_custom_function('t', 'def f(:', 'f')", SYNTAX,
    "Invalid function object: invalid syntax in line 1"),
    ("load_custom_function('t', '', 'f')", WRONG, "does not define 'f'"),
    ("load_custom_function('t', E'if True:\\n    def f(a, b): pass', 'f')", WRONG,
    "does not define 'f'"),
    (r"load_custom_function('t', '\xff00'::bytea, 'f')", SYNTAX, "it is no text in UTF-8"),
    ("load_custom_function('t', repeat('#', 100001), 'f')", SYNTAX, "expected at most 100000"),
    ("load_custom_function('t', repeat('(', 90000), 'f')", SYNTAX, "Invalid function object"),
    (f"load_custom_function('madlib.t', {GOOD}, 'f')", WRONG, IN_SCHEMA),
    (f"load_custom_function('public.t', {GOOD}, 'f')", WRONG, IN_SCHEMA),
    (f"load_custom_function('a b', {GOOD}, 'f')", "42602", "Invalid object table name a b"),
    (f"load_custom_function('functions', {GOOD.replace('f(', 'own(')}, 'own')", "42710",
     "Function 'own' already exists in functions"),
    (f"load_custom_function('strange', {GOOD}, 'f')", "42809",
    "it has no column description, id, name, object"),
    ("load_top_k_accuracy_function('t', NULL)", NULL, "k cannot be NULL"),
    ("load_top_k_accuracy_function('t', 0)", WRONG, "expected a positive whole number"),
    ("delete_custom_function('t', 1)", "42P01", "object table 't' does not exist"),
    ("delete_custom_function('functions', 99)", "42704", "function id 99 not found in functions"),
    ("delete_custom_function('functions', 'Own'::text)", "42704",
    "function name Own not found in functions"),
    ("delete_custom_function('functions', NULL::text)", NULL, "function id/name cannot be NULL!"),
    ("delete_custom_function('madlib.functions', 1)", WRONG, IN_SCHEMA),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "code", "words"), WRONG_CALLS, ids=[call for call, _, _ in WRONG_CALLS]
)
def test_wrong_calls(superuser: Workbench, call: str, code: str, words: str) -> None:
    superuser.rows("CREATE TABLE IF NOT EXISTS madlib.strange (a integer)")
    assert words in str(refused(superuser, f"SELECT madlib.{call}", code=code))
    assert superuser.rows("SELECT name FROM madlib.functions") == [
        ("own",)
    ] and not superuser.exists("madlib.t")


def test_a_table_comes_with_its_first_function_and_goes_with_the_last(superuser: Workbench) -> None:
    superuser.messages()
    as_bytes = "SELECT madlib.load_custom_function('some', %s::bytea, 'f', 'a note')"
    superuser.rows(as_bytes, "def f(a, b): return 'ä'".encode())
    superuser.rows(LOAD, "some", "from elsewhere import G as g\n", "g")
    superuser.rows(LOAD, "some", "h: int\n(a, *h) = 1, 2", "h")
    found = superuser.rows(
        "SELECT id, name, description, convert_from(object, 'UTF8') FROM madlib.some ORDER BY id"
    )
    assert found[0] == (1, "f", "a note", "def f(a, b): return 'ä'")
    assert [row[:3] for row in found[1:]] == [(2, "g", None), (3, "h", None)]
    superuser.rows("SELECT madlib.delete_custom_function('some', 2)")
    superuser.rows("SELECT madlib.delete_custom_function('some', 'h'::text)")
    assert superuser.exists("madlib.some")
    superuser.rows("SELECT madlib.delete_custom_function('some', 1)")
    assert not superuser.exists("madlib.some")
    said = "".join(superuser.messages())
    assert "Keras Custom Function: Created new custom function table some." in said
    assert "Keras Custom Function: Added function g to some table" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("ARRAY[$$loss='own',optimizer='SGD'$$], ARRAY['']",
         "custom function 'own' used in compile params but input object table missing!"),
        ("ARRAY[$$loss='mse',optimizer='SGD',metrics=['Own']$$], ARRAY[''], 'functions'",
         "custom function 'Own' is not defined in object table 'functions'!"),
    ],
)  # fmt: skip
def test_names_that_nothing_stands_for(
    bench: Workbench, superuser: Workbench, arguments: str, words: str
) -> None:
    call = f"SELECT load_model_selection_table('models', 'm', ARRAY[1], {arguments})"
    assert words in str(refused(bench, call, code="22023"))
    assert not bench.exists("m", "m_summary")
