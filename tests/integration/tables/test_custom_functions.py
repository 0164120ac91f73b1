"""Losses and metrics of an administrator: trained with like those of Keras, whose bits they
give.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg2
import pytest
from processes import eventually
from roles import another_role, refused
from workbench import Row, Workbench, compile_text

FIT_WORKERS = 1
LOSS = """
import keras

def Own_Loss(y_true, y_pred):
    return keras.losses.categorical_crossentropy(y_true, y_pred)
"""
CLASS = """
import keras

class Own_Class(keras.losses.Loss):
    def call(self, y_true, y_pred):
        return keras.losses.categorical_crossentropy(y_true, y_pred)
"""
METRIC = """
import keras

def own_accuracy(y_true, y_pred):
    return keras.metrics.categorical_accuracy(y_true, y_pred)
"""
COUNTS = """
import keras

class Own_Counts(keras.metrics.CategoricalAccuracy):
    pass
"""
MADE = """
import keras

own_made = keras.losses.CategoricalCrossentropy()
"""
WRONG = """
import keras


def wrong(y_true, y_pred):
    return undefined(y_true)
"""
SOURCES = {
    "Own_Loss": LOSS, "Own_Class": CLASS, "own_accuracy": METRIC, "Own_Counts": COUNTS,
    "own_made": MADE,
    "wrong": WRONG,
    "at_once": "x = 1\nraise OSError('at once')\ndef at_once(y_true, y_pred): pass\n",
    "number": "number = 3\n", "nothing": "class nothing: pass\n",
}  # fmt: skip
FAILURES = {
    "wrong": "custom function 'wrong': NameError: name 'undefined' is not defined (line 6 of its "
    "source)",
    "at_once": "custom function 'at_once': OSError: at once (line 2 of its source)",
    "number": "custom function 'number' is no loss but int",
    "nothing": "custom function 'nothing' is a class, but no keras.losses.Loss or "
    "keras.metrics.Metric",
    "Own_Counts": "custom function 'Own_Counts' is no loss but CategoricalAccuracy",
}
CONFIGS = "SELECT load_model_selection_table('models', %s, ARRAY[1], %s, %s, %s)"


def load(superuser: Workbench, name: str, source: str, table: str = "functions") -> None:
    superuser.rows("SELECT madlib.load_custom_function(%s, %s::text, %s)", table, source, name)


def configure(
    bench: Workbench,
    name: str,
    *compiles: str,
    table: str | None = "functions",
    fit: str = "batch_size=8",
) -> None:
    bench.rows(CONFIGS, name, list(compiles), [fit], table)


@pytest.fixture(scope="module")
def tables(bench: Workbench, shared_superuser: Workbench) -> Iterator[Workbench]:
    """A packed table and the functions."""
    bench.pack("packed", 2)
    for name, source in SOURCES.items():
        load(shared_superuser, name, source)
    shared_superuser.rows("SELECT madlib.load_top_k_accuracy_function('functions', 2)")
    yield bench


SAME = {
    "name": compile_text(),
    "functions": compile_text(loss="Own_Loss", metrics=["own_accuracy"]),
    "classes": compile_text(loss="Own_Class", metrics=["Own_Counts"]),
    "object": compile_text(loss="own_made", metrics=["own_accuracy"]),
    "without": "optimizer='SGD(learning_rate=0.05)',loss='Own_Loss'",
}


def trained(bench: Workbench, name: str, compiled: str) -> tuple[dict[int, bytes], Row]:
    """The weights and the metrics of one configuration."""
    configure(bench, f"{name}_mst", compiled)
    bench.fit("packed", name, f"{name}_mst", 2, seed=1, validation_table="packed")
    return bench.weights(name), bench.row(
        "SELECT training_loss, validation_loss, training_metrics, validation_metrics, "
        f"metrics_type, loss_type FROM {name}_info"
    )


@pytest.mark.long
def test_bits_are_those_of_keras_own(tables: Workbench) -> None:
    """In training and evaluation; with a metric and without one, however the function is made."""
    found = {kind: trained(tables, kind, text) for kind, text in SAME.items()}
    weights, info = found["name"]
    assert all(found[kind][0] == weights for kind in SAME)
    assert all(found[kind][1][:2] == info[:2] for kind in SAME)
    assert all(found[kind][1][2:4] == info[2:4] for kind in ("functions", "classes", "object"))
    assert found["functions"][1][4:] == (["own_accuracy"], "Own_Loss")
    assert found["without"][1][2:] == (None, None, None, "Own_Loss")


def test_what_goes_wrong_in_a_function_fails_its_configuration_alone(tables: Workbench) -> None:
    configure(tables, "fails", compile_text(), *(compile_text(loss=name) for name in FAILURES))
    run = tables.fit("packed", "fails_model", "fails", 1)
    query = "SELECT compile_params, status, reason FROM cerebro.config WHERE run_id = %s"
    found = {text: (status, reason) for text, status, reason in tables.rows(query, run)}
    assert len(found) == 1 + len(FAILURES) and found.pop(compile_text()) == ("completed", None)
    for name, words in FAILURES.items():
        status, reason = found[compile_text(loss=name)]
        assert status == "failed" and words in reason


def change(superuser: Workbench, name: str, source: str) -> None:
    """Another source under the same name."""
    superuser.rows("SELECT madlib.delete_custom_function('functions', %s::text)", name)
    load(superuser, name, source)


@pytest.fixture(scope="module")
def scored(tables: Workbench) -> Workbench:
    """The same with a model that was trained with functions."""
    configure(tables, "scored_mst", compile_text(loss="Own_Loss", metrics=["top_2_accuracy"]))
    tables.fit("packed", "scored", "scored_mst", 1, seed=1)
    return tables


def test_evaluation_and_prediction(scored: Workbench, shared_superuser: Workbench) -> None:
    """Metrics add up over segments as they do for a fit; predictions need no functions at all."""
    tables = scored
    tables.rows("SELECT madlib_evaluate('scored', 'packed', 'evaluated', mst_key => 1)")
    found = tables.row("SELECT * FROM evaluated")
    assert found[:2] == tables.row(
        "SELECT training_loss_final, training_metrics_final FROM scored_info"
    )
    assert found[2:] == (["top_2_accuracy"], "Own_Loss")
    rank = "SELECT madlib_predict('scored', 'points', 'id', 'x', 'ranked', 2, mst_key => 1)"
    tables.rows(rank)
    among = (
        "SELECT avg((EXISTS (SELECT FROM ranked r WHERE r.id = p.id AND r.class_value = "
        "p.label))::int) FROM points p"
    )
    assert float(tables.value(among)) == pytest.approx(found[1], rel=1e-6)
    shared_superuser.rows("ALTER TABLE madlib.functions RENAME TO moved")
    try:
        tables.rows(rank.replace("ranked", "ranked_again"))
        error = refused(
            tables,
            "SELECT madlib_evaluate('scored', 'packed', 'again', mst_key => 1)",
            code="42P01",
        )
        assert "object table 'functions' does not exist" in str(error)
    finally:
        shared_superuser.rows("ALTER TABLE madlib.moved RENAME TO functions")
    assert tables.rows("SELECT * FROM ranked EXCEPT SELECT * FROM ranked_again") == []


# epochs: more visits than a configuration makes before it is stored, and its visits are seen
LONG = 10


def interrupted(bench: Workbench, superuser: Workbench, table: str, output: str) -> int:
    """A run that somebody cancels after its first visits."""
    session = bench.another()
    with session.fitting("packed", output, table, LONG, seed=1) as fitted:
        done = (
            "SELECT count(*) FROM cerebro.visit JOIN cerebro.run USING (run_id) WHERE pid = %s "
            "AND form IS NOT NULL"
        )
        eventually(lambda: superuser.value(done, session.pid()) > 1)
        superuser.rows("SELECT pg_cancel_backend(%s)", session.pid())
        with pytest.raises(psycopg2.Error):
            fitted.result()
    session.close()
    return bench.newest_run()


@pytest.mark.long
def test_a_run_goes_on_and_is_repeated_with_the_sources_it_had(
    tables: Workbench, shared_superuser: Workbench
) -> None:
    lasting = LOSS.replace("Own_Loss", "lasting")
    load(shared_superuser, "lasting", lasting)
    configure(tables, "lasting_mst", compile_text(loss="lasting"), fit="batch_size=2,epochs=64")
    run = interrupted(tables, shared_superuser, "lasting_mst", "lasting_model")
    resume = "SELECT cerebro.resume(%s)"
    again = (
        "SELECT madlib_fit_multiple_model('packed', 'again', 'lasting_mst', %s, schedule => "
        "'replay', replay_run => %s)"
    )
    change(shared_superuser, "lasting", lasting + "# another")
    assert "not what they were" in str(refused(tables, resume, run, code="55000"))
    change(shared_superuser, "lasting", lasting)
    tables.rows(resume, run)
    tables.rows(again, LONG, run)
    assert tables.weights("again") == tables.weights("lasting_model")
    change(shared_superuser, "lasting", lasting + "# another")
    assert "not what they were" in str(
        refused(tables, again.replace("again", "third"), LONG, run, code="22023")
    )


@pytest.mark.long
def test_warm_start_keeps_the_optimizer_s_state(tables: Workbench) -> None:
    configure(tables, "warm_mst", compile_text("Adam()", loss="Own_Loss"))
    tables.fit("packed", "warm", "warm_mst", 1, seed=1)
    tables.fit("packed", "warm", "warm_mst", 1, seed=1, warm_start=True)
    configure(tables, "plain_mst", compile_text("Adam()"))
    tables.fit("packed", "plain", "plain_mst", 1, seed=1)
    tables.fit("packed", "plain", "plain_mst", 1, seed=1, warm_start=True)
    assert tables.weights("warm") == tables.weights("plain")


def test_a_grid_names_functions(tables: Workbench) -> None:
    grid = "SELECT generate_model_configs('models', 'grid', ARRAY[1], %s, %s, object_table => %s)"
    losses = "{'loss': ['Own_Loss', 'mse'], 'metrics': [['own_accuracy']], 'optimizer': ['SGD']}"
    tables.rows(grid, losses, "{'batch_size': [8]}", "functions")
    assert tables.value("SELECT object_table FROM grid_summary") == "functions"
    tables.rows("UPDATE grid_summary SET object_table = 'madlib.functions'")  # as MADlib writes it
    tables.rows(grid, losses, "{'batch_size': [8, 16]}", None)  # the table that it was made with
    tables.rows(grid, losses, "{'batch_size': [8, 16]}", "functions")
    assert tables.value("SELECT count(*) FROM grid") == 4
    assert "Inconsistent object table. Use 'madlib.functions'" in str(
        refused(tables, grid, losses, "{'batch_size': [32]}", "others", code="22023")
    )


@pytest.mark.long
def test_a_source_that_imports_what_it_defines(
    tables: Workbench, shared_superuser: Workbench
) -> None:
    load(
        shared_superuser,
        "imported",
        "from keras.losses import categorical_crossentropy as imported",
    )
    configure(tables, "imported_mst", compile_text(loss="imported"))
    tables.fit("packed", "imported", "imported_mst", 1, seed=1)
    configure(tables, "directly_mst", compile_text())
    tables.fit("packed", "directly", "directly_mst", 1, seed=1)
    assert tables.weights("imported") == tables.weights("directly")
    load(shared_superuser, "missing", "from my_losses import missing")
    configure(tables, "missing_mst", compile_text(loss="missing"))
    error = refused(
        tables, "SELECT madlib_fit_multiple_model('packed', 'o', 'missing_mst', 1)", code="MS001"
    )
    assert (
        "custom function 'missing': ModuleNotFoundError: No module named 'my_losses' (line 1"
        in str(error)
    )


@pytest.mark.postgresql("on Greenplum nobody can predict with a model table without reading it")
def test_who_may_only_predict_evaluates_with_them(
    scored: Workbench, shared_superuser: Workbench
) -> None:
    with another_role(scored, shared_superuser, "visitor") as visitor:
        scored.rows("SELECT cerebro.grant_predict('scored', 'visitor')")
        scored.rows("GRANT SELECT ON packed, packed_summary TO visitor")
        shared_superuser.rows("CREATE SCHEMA visitor AUTHORIZATION visitor")
        visitor.rows(
            "SELECT madlib.madlib_evaluate('scored', 'packed', 'visitor.by_visitor', mst_key => 1)"
        )
        found = visitor.row("SELECT loss, metric FROM visitor.by_visitor")
    assert found == scored.row(
        "SELECT training_loss_final, training_metrics_final FROM scored_info"
    )


@pytest.mark.long
@pytest.mark.postgresql("there no call works in the caller's session")
def test_functions_that_only_the_caller_sees_yet(
    tables: Workbench, shared_superuser: Workbench
) -> None:
    """Registered in the same transaction, they are trained with in the caller's own session, and
    gone with it.
    """
    session = shared_superuser.another()
    session.rows("SET search_path = public, madlib")
    session.rows("BEGIN")
    load(session, "passing", LOSS.replace("Own_Loss", "passing"), "passing_functions")
    configure(session, "passing_mst", compile_text(loss="passing"), table="passing_functions")
    session.rows(
        "SELECT madlib_fit_multiple_model('packed', 'passing', 'passing_mst', 1, seed => 1)"
    )
    weights = session.weights("passing")
    session.rows("ROLLBACK")
    session.close()
    configure(tables, "staying_mst", compile_text())
    tables.fit("packed", "staying", "staying_mst", 1, seed=1)
    assert weights == tables.weights("staying") and not tables.exists("madlib.passing_functions")
