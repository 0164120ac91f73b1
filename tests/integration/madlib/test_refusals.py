"""Wrong calls of every public function: each is told what is wrong before any work, and leaves
nothing.

The messages that MADlib's users know are compared whole, of others a noun.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg2
import pytest
import scene as tables
from madlib_messages import MESSAGES
from processes import eventually, trainers
from workbench import Workbench, setting
from wrong_byom import BYOM
from wrong_calls import DATA, Case
from wrong_runs import RUNS
from wrong_searches import AUTOML

CASES = [*DATA, *RUNS, *AUTOML, *BYOM, *MESSAGES]
OF_FUNCTION: dict[str, list[Case]] = {}
for each in CASES:
    OF_FUNCTION.setdefault(each.call.split("(")[0], []).append(each)


@pytest.fixture(scope="module")
def scene(bench: Workbench, shared_superuser: Workbench) -> Iterator[Workbench]:
    """A new session beside tables of every wrong kind; no trainer runs at first."""
    tables.build(bench, shared_superuser)
    session = bench.another()
    bench.close()
    eventually(lambda: not session.workers())
    yield session
    session.close()


def everything(bench: Workbench) -> list[tuple[str, ...]]:
    """All relations of the database, and the runs in the log."""
    # By one snapshot of the catalogs: a session that ends meanwhile takes its temporary schema
    # along.
    relations = (
        "SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = "
        "c.relnamespace WHERE n.nspname !~ '^pg_' ORDER BY 1"
    )
    return bench.rows(
        f"SELECT * FROM ({relations}) r UNION ALL SELECT 'run ' || run_id FROM cerebro.run_log "
        "ORDER BY 1"
    )


@contextmanager
def nothing_left(bench: Workbench, runs: int = 0) -> Iterator[None]:
    """What is called within leaves nothing behind, but for failed runs in the log."""
    before = everything(bench)
    yield
    later = [name for name in everything(bench) if name not in before]
    assert len(later) == runs and all(name.startswith("run ") for (name,) in later)
    assert len(everything(bench)) == len(before) + runs
    eventually(lambda: not trainers({bench.pid(), *bench.workers()}))


def error_of(bench: Workbench, call: str) -> psycopg2.Error:
    with pytest.raises(psycopg2.Error) as error:
        bench.rows(f"SELECT {call}")
        pytest.fail(f"is not refused: {call}")
    return error.value


def refused(bench: Workbench, call: str) -> psycopg2.Error:
    """The error of a call, which left nothing behind."""
    with nothing_left(bench):
        return error_of(bench, call)


@pytest.mark.checklist(37, 38, 39, 40, 41, 42, 43, 44)
@pytest.mark.parametrize("function", OF_FUNCTION)
def test_wrong_calls_are_refused(scene: Workbench, function: str) -> None:
    with nothing_left(scene):
        for case in OF_FUNCTION[function]:
            error = error_of(scene, case.call)
            found = case.words in str(error.diag.message_primary), error.pgcode
            assert found == (True, case.sqlstate), f"{case.call}: {error}"


@pytest.mark.parametrize("function", OF_FUNCTION)
def test_an_error_has_no_class_and_one_frame_of_python(scene: Workbench, function: str) -> None:
    """The first frame is the body of the function, the second the entry of the package."""
    diagnostics = error_of(scene, OF_FUNCTION[function][0].call).diag
    assert not str(diagnostics.message_primary).startswith("plpy.")
    assert len(re.findall(r"^  PL/Python function ", str(diagnostics.context), re.MULTILINE)) == 2


def test_every_public_function_is_here(scene: Workbench) -> None:
    functions = scene.rows(
        "SELECT DISTINCT proname::text FROM pg_proc WHERE pronamespace = 'madlib'::regnamespace "
        "AND pronargs > 0 AND proname NOT IN ('madlib_fit', 'madlib_fit_multiple_model', "
        "'madlib_evaluate', 'madlib_predict', 'madlib_automl', 'madlib_predict_byom')"
    )
    assert {name for (name,) in functions} == OF_FUNCTION.keys()


HELP = {
    "training_preprocessor_dl('gone', 'o', 'label', 'x')": "Check the spelling and the search_path",
    "training_preprocessor_dl('points', 'points', 'label', 'x')": 'DROP TABLE "public"."points";',
    "training_preprocessor_dl('points', 'o', 'gone', 'x')": "Its columns are: id, x, label",
    "training_preprocessor_dl('secret', 'o', 'label', 'x')": "Its owner can GRANT SELECT ON "
    "secret to you.",
    "delete_keras_model('models', 99)": 'SELECT model_id, name FROM "public"."models";',
    "madlib_evaluate('model', 'packed', 'o')": "SELECT mst_key, training_loss_final FROM "
    '"public"."model_info"',
    "madlib_fit_multiple_model('points', 'o', 'mst', 1)": "Pack the table with "
    "training_preprocessor_dl()",
    "madlib_fit_multiple_model('packed', 'o', 'alone', 1)": "load_model_selection_table() or "
    "generate_model_configs()",
    "madlib_fit_multiple_model('packed', 'o', 'wide_mst', 1)": "Give the first layer the shape of "
    "the rows",
    "madlib_fit_multiple_model('packed', 'o', 'loss_mst', 1)": "categorical_crossentropy",
    (
        "madlib_fit_multiple_model('packed', 'o', 'mst', 1, FALSE, 'spread_packed')"
    ): "validation_preprocessor_dl()",
}


@pytest.mark.checklist(38)
@pytest.mark.parametrize(("call", "words"), HELP.items(), ids=HELP)
def test_a_hint_says_what_to_do(scene: Workbench, call: str, words: str) -> None:
    assert words in str(refused(scene, call).diag.message_hint)


@pytest.mark.parametrize(
    "call",
    ["madlib_evaluate('model', 'other_packed', 'o', FALSE, 1)",
     "madlib_fit_multiple_model('packed', 'o', 'mst', 1, FALSE, 'other_packed')"],
)  # fmt: skip
def test_classes_are_told_in_their_order(scene: Workbench, call: str) -> None:
    told = refused(scene, call).diag.message_detail
    assert told == "Column label has highx, lowx, middlex; expected high, low, middle."


WORK = {
    "packing": "training_preprocessor_dl('points', 'o', 'label', 'x')",
    "fit": "madlib_fit_multiple_model('packed', 'o', 'mst', 1)",
    "evaluate": "madlib_evaluate('model', 'packed', 'o', mst_key => 1)",
    "predict": "madlib_predict('model', 'points', 'id', 'x', 'o', mst_key => 1)",
    "predict_byom": "madlib_predict_byom('own_models', 1, 'points', 'id', 'x', 'o')",
}
SEEING = [WORK[name] for name in ("fit", "evaluate", "predict", "predict_byom")]
INTERPRETERS = {
    "missing": (None, "55000", "no trainer interpreter is set"),
    "no file": ("/nowhere/python", "55000", "'/nowhere/python', which is not an executable file"),
    "not executable": ("/etc/passwd", "55000", "'/etc/passwd', which is not an executable file"),
    "a folder": ("/tmp", "55000", "'/tmp' cannot be started"),
    "another program": ("/bin/false", "55000", "could not start: /bin/false ended"),
    "without the package": ("/usr/bin/python3", "55000", "could not start: /usr/bin/python3 ended"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("work", "kind"),
    [("evaluate", kind) for kind in INTERPRETERS]
    + [(name, "another program") for name in WORK if name != "evaluate"],
)
def test_an_unusable_trainer(
    scene: Workbench, shared_superuser: Workbench, work: str, kind: str
) -> None:
    """Each kind for one call, and one kind for all: the same code starts every trainer."""
    call, (interpreter, sqlstate, words) = WORK[work], INTERPRETERS[kind]
    # The id of a run is printed before its trainers start, so that the run is kept.
    runs = int(work == "fit" and words.startswith("could not start"))
    with (
        setting(shared_superuser, "trainer_python", interpreter),
        nothing_left(scene, runs),
    ):
        error = error_of(scene, call)
    assert (words in str(error.diag.message_primary), error.pgcode) == (True, sqlstate), str(error)
    assert "trainer_python" in str(error.diag.message_hint) or interpreter is None


@pytest.mark.parametrize("call", SEEING)
@pytest.mark.parametrize(
    ("begin", "sqlstate"),
    [("BEGIN READ ONLY", "25006"), ("BEGIN ISOLATION LEVEL REPEATABLE READ", "25001"),
     ("BEGIN ISOLATION LEVEL SERIALIZABLE", "25001")],
)  # fmt: skip
def test_transactions_that_could_not_see_the_work(
    scene: Workbench, call: str, begin: str, sqlstate: str
) -> None:
    scene.rows(begin)
    try:
        with pytest.raises(psycopg2.Error) as error:
            scene.rows(f"SELECT {call}")
    finally:
        scene.rows("ROLLBACK")
    assert error.value.pgcode == sqlstate
    assert error.value.diag.message_hint


def test_packing_in_a_read_only_transaction(scene: Workbench) -> None:
    scene.rows("BEGIN READ ONLY")
    with pytest.raises(psycopg2.errors.ReadOnlySqlTransaction):
        scene.rows(f"SELECT {WORK['packing']}")
    scene.rows("ROLLBACK")


SETTINGS = {
    "no folder": ("compilation_cache", "/nowhere", "with mode 0700: No such file or directory"),
    "a folder of all": (
        "compilation_cache",
        "/tmp",
        "compilation_cache is '/tmp'; expected the absolute path",
    ),
    "a file": ("compilation_cache", "/etc/passwd", "it is no folder by its absolute path"),
}
"""Folders that only a call can see; test_settings.py has the values that no statement stores."""


@pytest.mark.parametrize(("name", "value", "words"), SETTINGS.values(), ids=SETTINGS)
def test_bad_settings(
    scene: Workbench, shared_superuser: Workbench, name: str, value: str, words: str
) -> None:
    shared_superuser.rows("BEGIN; DELETE FROM cerebro.setting WHERE name = %s", name)
    shared_superuser.rows("INSERT INTO cerebro.setting VALUES (%s, %s); COMMIT", name, value)
    try:
        error = refused(scene, WORK["packing"])
    finally:
        shared_superuser.rows("DELETE FROM cerebro.setting WHERE name = %s", name)
    assert (words in str(error.diag.message_primary), error.pgcode) == (True, "22023"), str(error)


def test_without_a_schema_to_create_in(scene: Workbench) -> None:
    scene.rows("SET search_path = madlib, nowhere")
    try:
        with pytest.raises(psycopg2.Error) as error:
            scene.rows("SELECT training_preprocessor_dl('public.points', 'o', 'label', 'x')")
    finally:
        scene.rows("RESET search_path")
    assert error.value.pgcode == "42501"
    assert "schema madlib" in str(error.value)


@pytest.fixture
def stranger(scene: Workbench, shared_superuser: Workbench) -> Iterator[Workbench]:
    """A session of a role that was granted nothing, inside a transaction."""
    shared_superuser.rows("CREATE ROLE stranger")
    shared_superuser.rows("GRANT USAGE ON SCHEMA madlib TO stranger")
    shared_superuser.rows("BEGIN; SET LOCAL ROLE stranger")
    yield shared_superuser
    shared_superuser.rows("ROLLBACK; DROP OWNED BY stranger; DROP ROLE stranger")


@pytest.mark.parametrize("call", WORK.values(), ids=WORK)
def test_only_who_was_granted_may_call(stranger: Workbench, call: str) -> None:
    with pytest.raises(
        psycopg2.errors.InsufficientPrivilege, match="permission denied for function"
    ):
        stranger.rows(f"SELECT madlib.{call}")
