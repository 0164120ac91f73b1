"""What scripts of MADlib's users rely on beside names, forms and messages: how tables are made,
named and left.
"""

from __future__ import annotations

import madlib_job
import pytest
from madlib_job import COMPILE, configure
from models import CLASSES
from workbench import Workbench, compile_text

FIT = "SELECT madlib_keras_fit_multiple_model"
RATE = 0.05
ORDERED = "batch_size=8,shuffle=False"


@pytest.fixture(scope="module", autouse=True)
def job(bench: Workbench) -> None:
    madlib_job.prepare(bench)


@pytest.mark.checklist(3)
@pytest.mark.parametrize(
    ("made", "objects"), [("generated", True), ("by hand", True), ("by hand", False)]
)
def test_configurations_however_they_were_made(bench: Workbench, made: str, objects: bool) -> None:
    """MADlib's manual shows a summary without the column object_table."""
    name = f"mst_{made.replace(' ', '_')}_{objects}"
    if made == "generated":
        bench.rows(
            f"SELECT generate_model_configs('models', '{name}', ARRAY[1], $${{'loss': "
            "['categorical_crossentropy'], 'metrics': [['acc']], 'optimizer_params_list': "
            "[{'optimizer': ['SGD'], 'lr': [0.05]}]}$$, $${'batch_size': [8], 'epochs': [1]}$$)"
        )
    else:
        bench.rows(
            f"CREATE TABLE {name} (mst_key serial, model_id integer, compile_params varchar, "
            "fit_params varchar)"
        )
        bench.rows(
            f"INSERT INTO {name} VALUES (1, 1, %s, 'batch_size=8')", COMPILE.format("SGD", 0.05)
        )
        bench.rows(f"CREATE TABLE {name}_summary (model_arch_table varchar, object_table varchar)")
        bench.rows(f"INSERT INTO {name}_summary VALUES ('models', NULL)")
    if not objects:
        bench.rows(f"ALTER TABLE {name}_summary DROP COLUMN object_table")
    bench.rows(f"{FIT}('packed', 'of_{name}', '{name}', 1, FALSE)")
    used = "model_selection_table, model_arch_table, object_table"
    assert bench.row(f"SELECT {used} FROM of_{name}_summary") == (name, "models", None)


@pytest.mark.checklist(5)
def test_names_with_schema_and_quotes_everywhere(bench: Workbench) -> None:
    bench.rows('CREATE SCHEMA "A Lab"')
    bench.rows(
        'CREATE TABLE "A Lab"."Raw" AS SELECT id AS "Id", x AS "X", label AS "The Label" FROM '
        "points"
    )
    at = {
        name: f'"A Lab"."{name.title()}, all"'
        for name in ("models", "packed", "held", "mst", "out", "score", "guess")
    }
    bench.rows("SELECT load_keras_model(%s, %s::json)", at["models"], CLASSES)
    raw, target, inputs = '"A Lab"."Raw"', '"The Label"', '"X"'
    bench.rows("SELECT training_preprocessor_dl(%s, %s, %s, %s)", raw, at["packed"], target, inputs)
    bench.rows(
        "SELECT validation_preprocessor_dl(%s, %s, %s, %s, %s)",
        raw,
        at["held"],
        target,
        inputs,
        at["packed"],
    )
    bench.rows(
        "SELECT load_model_selection_table(%s, %s, ARRAY[1], ARRAY[%s], ARRAY['batch_size=8'])",
        at["models"],
        at["mst"],
        COMPILE.format("SGD", 0.05),
    )
    bench.rows(f"{FIT}(%s, %s, %s, 1, FALSE, %s)", at["packed"], at["out"], at["mst"], at["held"])
    bench.rows(
        "SELECT madlib_keras_evaluate(%s, %s, %s, FALSE, 1)", at["out"], at["held"], at["score"]
    )
    bench.rows(
        "SELECT madlib_keras_predict(%s, %s, %s, %s, %s, 'response', FALSE, 1)",
        at["out"],
        raw,
        '"Id"',
        inputs,
        at["guess"],
    )
    assert bench.value(f"SELECT count(*) FROM {at['score']}") == 1
    assert (
        bench.value(
            f'SELECT count(DISTINCT "Id") FROM {at["guess"]} WHERE class_name = %s', "The Label"
        )
        == 96
    )
    made = {
        name
        for (name,) in bench.rows(
            "SELECT relname FROM pg_class WHERE relnamespace = '\"A Lab\"'::regnamespace"
        )
    }
    assert {"Out, all", "Out, all_info", "Out, all_summary"} <= made


def test_configurations_are_trained_from_any_search_path(bench: Workbench) -> None:
    bench.rows("CREATE SCHEMA archive; CREATE SCHEMA desk; SET search_path = archive, madlib")
    bench.rows("SELECT load_keras_model('kinds', %s::json)", CLASSES)
    bench.rows("SET search_path = desk, archive, madlib")
    try:
        bench.rows(
            "SELECT load_model_selection_table('kinds', 'chosen', ARRAY[1], %s, "
            "ARRAY['batch_size=8'])",
            [COMPILE.format("SGD", 0.05)],
        )
        bench.rows("SET search_path = public, madlib")
        bench.rows(f"{FIT}('packed', 'of_chosen', 'desk.chosen', 1, FALSE)")
    finally:
        bench.rows("RESET search_path")
    for table in ("of_chosen", "desk.chosen"):
        assert bench.value(f"SELECT model_arch_table FROM {table}_summary") == "kinds"
    query = "SELECT spec -> 'tables' ->> 'architectures' FROM cerebro.run ORDER BY run_id DESC"
    assert bench.rows(query)[0] == ('"archive"."kinds"',)


@pytest.mark.checklist(20)
def test_iterations_times_epochs_are_passes(bench: Workbench) -> None:
    """Over one segment, in a fixed order of rows, it does not matter which of the two says how
    often.
    """
    bench.pack("single_packed", 1)
    found = set()
    for iterations, epochs in ((4, 1), (2, 2), (1, 4)):
        configure(
            bench, f"passes_{epochs}", COMPILE.format("SGD", RATE), fit=f"{ORDERED},epochs={epochs}"
        )
        bench.fit("single_packed", f"of_{epochs}_passes", f"passes_{epochs}", iterations, seed=2)
        found.add(bench.weights(f"of_{epochs}_passes")[1])
    assert len(found) == 1


FITS = {
    "madlib_keras_fit": "SELECT madlib_keras_fit('packed', '{0}', 'models', 1, {1}, "
    "'batch_size=8', 1)",
    "madlib_keras_fit_multiple_model": "SELECT madlib_keras_fit_multiple_model('packed', '{0}', "
    "'mst', 1)",
    "madlib_keras_automl": "DROP TABLE IF EXISTS chosen, chosen_summary; SELECT "
    "madlib_keras_automl('packed', '{0}', 'models', 'chosen', ARRAY[1], {1}, $${{'batch_size': "
    "[8]}}$$, automl_params => 'R=2, eta=2, skip_last=1')",
}
STATES = (
    "SELECT count(*) FROM pg_tables WHERE schemaname = 'cerebro_state' AND tablename LIKE "
    "'model\\_%'"
)


@pytest.mark.parametrize("function", FITS)
def test_a_script_that_drops_what_madlib_makes_can_be_repeated(
    bench: Workbench, function: str
) -> None:
    """Nothing is in the way of the second time, and no states of a dropped model stay."""
    optimizers = "[{'optimizer': ['SGD'], 'lr': [0.1, 0.2]}]"
    compiled = (
        f"$${{'loss': ['categorical_crossentropy'], 'optimizer_params_list': {optimizers}}}$$"
    )
    params = compiled if "automl" in function else f"$${compile_text()}$$"
    bench.rows("SELECT cerebro.vacuum_runs()")
    before = bench.value(STATES)
    for _ in range(2):
        bench.rows("DROP TABLE IF EXISTS again, again_summary, again_info")
        bench.rows(FITS[function].format("again", params))
        assert bench.value(STATES) == before + 1
    bench.rows("DROP TABLE IF EXISTS again, again_summary, again_info")
    assert bench.value("SELECT cerebro.vacuum_runs()") > 0
    assert bench.value(STATES) == before


@pytest.mark.checklist(27)
def test_nothing_stays_but_the_logged_tables(bench: Workbench) -> None:
    # Greenplum shows how many statements the session has run as if that were a setting.
    session = (
        "SELECT name, setting FROM pg_settings WHERE name NOT IN ('application_name', "
        "'gp_command_count')"
    )
    relations = (
        "SELECT relname::text FROM pg_class WHERE relkind IN ('r', 'v', 'S') AND "
        "relnamespace::regnamespace::text !~ '^(cerebro|pg_catalog|pg_toast$|information_schema)'"
    )
    settings, before = set(bench.rows(session)), set(bench.rows(relations))
    bench.fit("packed", "left", "mst", 1)
    made = {name for (name,) in set(bench.rows(relations)) - before}
    assert made == {"left", "left_info", "left_summary"}
    assert set(bench.rows(session)) == settings
    assert bench.rows(
        "SELECT DISTINCT relpersistence::text FROM pg_class WHERE relname = ANY (%s)", sorted(made)
    ) == [("p",)]
