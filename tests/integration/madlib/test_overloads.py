"""Every form in which MADlib declares its functions can be called, with all arguments in their
places.
"""

from __future__ import annotations

from typing import Any

import madlib_job
import psycopg2
import pytest
from madlib_contract import FORMS
from madlib_job import COMPILE
from models import CLASSES
from workbench import Workbench

SGD = COMPILE.format("SGD", 0.05)
GRID = "{'loss': ['mse'], 'optimizer_params_list': [{'optimizer': ['SGD'], 'lr': [0.1, 0.2]}]}"


@pytest.fixture(scope="module", autouse=True)
def job(bench: Workbench) -> None:
    madlib_job.build(bench)


def test_a_form_is_one_function(bench: Workbench) -> None:
    """PostgreSQL finds exactly one function for these types; it is not called."""
    calls = [
        f"{form.function}({', '.join(f'NULL::{kind}' for kind in form.types)})" for form in FORMS
    ]
    assert len(calls) > 50
    for each in calls:
        assert bench.rows(f"EXPLAIN (VERBOSE) SELECT {each}")  # an error names the form


def call(bench: Workbench, function: str, values: list[Any], count: int) -> None:
    """Call a function with the first `count` of these arguments."""
    bench.rows("SELECT " + function.format(", ".join(["%s"] * count)), *values[:count])


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_load_keras_model(bench: Workbench, count: int) -> None:
    table = f"models_{count}"
    values = [table, CLASSES, psycopg2.Binary(b"\0" * 268), "a name", "a note"]
    call(bench, "load_keras_model({})", values, count)
    stored, *texts = bench.row(f"SELECT model_weights, name, description FROM {table}")
    found = [None if stored is None else bytes(stored), *texts]
    assert found == [
        value if count > at else None
        for at, value in enumerate((b"\0" * 268, "a name", "a note"), 2)
    ]
    bench.rows(f"SELECT delete_keras_model('{table}', 1)")
    assert not bench.exists(table)


@pytest.mark.parametrize("kind", ["json", "jsonb", "text", "varchar"])
def test_an_architecture_may_have_the_type_that_a_driver_gives_it(
    bench: Workbench, kind: str
) -> None:
    """Drivers that send types with their values, as those of Java, Go and R do, have none for json,
    or jsonb only.
    """
    table = f"models_of_{kind}"
    bench.rows(f"SELECT load_keras_model(%s::text, %s::{kind}, name => 'one')", table, CLASSES)
    assert bench.value(f"SELECT model_arch::jsonb = %s::jsonb FROM {table}", CLASSES)
    assert bench.value(f"SELECT pg_typeof(model_arch)::text FROM {table}") == "json"
    with pytest.raises(psycopg2.errors.InvalidTextRepresentation):
        bench.rows(f"SELECT load_keras_model(%s::text, %s::{kind})", table, "no JSON")


@pytest.mark.parametrize("kind", ["real", "double precision", "numeric", "integer"])
def test_a_constant_may_have_any_type_of_number(bench: Workbench, kind: str) -> None:
    """It is rounded to the real that the summary keeps, so the buffers are the same."""
    table = f"divided_by_{kind.replace(' ', '_')}"
    value = 3 if kind == "integer" else 3.3
    how = "buffer_size => 96, n_segments => 1, seed => 1, normalizing_const"
    bench.rows(
        f"SELECT training_preprocessor_dl('points', '{table}', 'label', 'x', {how} => %s::{kind})",
        value,
    )
    bench.rows(
        f"SELECT training_preprocessor_dl('points', '{table}_real', 'label', 'x', {how} => "
        f"{value}::real)"
    )
    assert bench.value(f"SELECT normalizing_const = {value}::real FROM {table}_summary")
    assert bench.rows(f"SELECT x FROM {table}") == bench.rows(f"SELECT x FROM {table}_real")


@pytest.mark.parametrize("count", range(4, 9))
def test_training_preprocessor_dl(bench: Workbench, count: int) -> None:
    table = f"trained_{count}"
    call(
        bench,
        "training_preprocessor_dl({})",
        ["points", table, "label", "x", 16, 4.0, [5], "ALL_SEGMENTS"],
        count,
    )
    classes, constant, rules = bench.row(
        f"SELECT num_classes, normalizing_const, distribution_rules FROM {table}_summary"
    )
    assert (classes, constant, rules) == (
        [5] if count > 6 else [3],
        4.0 if count > 5 else 1.0,
        "all_segments",
    )
    assert bench.value(f"SELECT max(x_shape[1]) FROM {table}") <= (16 if count > 4 else 96)


@pytest.mark.parametrize("count", range(5, 8))
def test_validation_preprocessor_dl(bench: Workbench, count: int) -> None:
    table = f"validated_{count}"
    call(
        bench,
        "validation_preprocessor_dl({})",
        ["points", table, "label", "x", "packed", 4, "all_segments"],
        count,
    )
    assert bench.value(f"SELECT normalizing_const FROM {table}_summary") == madlib_job.CONSTANT
    assert bench.value(f"SELECT max(x_shape[1]) <= 4 FROM {table}") is (count > 5)


@pytest.mark.parametrize("count", [5, 6])
def test_load_model_selection_table(bench: Workbench, count: int) -> None:
    table = f"loaded_{count}"
    call(
        bench,
        "load_model_selection_table({})",
        ["models", table, [1], [SGD], ["epochs=1"], None],
        count,
    )
    assert bench.row(f"SELECT model_id, compile_params, fit_params FROM {table}") == (
        1,
        SGD,
        "epochs=1",
    )


@pytest.mark.parametrize("count", range(5, 10))
def test_generate_model_configs(bench: Workbench, count: int) -> None:
    table, random = f"generated_{count}", count > 6
    values = [
        "models",
        table,
        [1],
        GRID,
        "{'epochs': [1, 2]}",
        "random" if random else "grid",
        3,
        1,
        None,
    ]
    call(bench, "generate_model_configs({})", values, count)
    assert bench.value(f"SELECT count(*) FROM {table}") == (3 if random else 4)


@pytest.mark.checklist(1, 6)
@pytest.mark.parametrize("count", [5, 7, 10, 11])
def test_madlib_keras_fit_multiple_model(bench: Workbench, count: int) -> None:
    """What is left out is as if it were NULL: its default. One function has all forms: so a few
    stand for all.
    """
    table = f"of_several_{count}"
    values = ["packed", table, "mst", 2, False, "packed_val", 1, False, "a name", "a note", True]
    if count == 11:
        values[4:] = [None] * 7
    call(bench, "madlib_keras_fit_multiple_model({})", values, count)
    columns = "validation_table, metrics_iters, warm_start, name, description"
    assert bench.row(f"SELECT {columns} FROM {table}_summary") == (
        values[5] if count > 5 else None,
        [1, 2] if 6 < count < 11 else [2],
        False,
        values[8] if count > 8 else None,
        values[9] if count > 9 else None,
    )


@pytest.mark.checklist(1)
def test_arguments_by_name(bench: Workbench) -> None:
    bench.rows(
        "SELECT madlib_keras_fit_multiple_model(description => 'a note', num_iterations => 2, "
        "source_table => 'packed', use_gpus => FALSE, model_output_table => 'named', "
        "model_selection_table => 'mst')"
    )
    assert bench.row("SELECT num_iterations, name, description FROM named_summary") == (
        2,
        None,
        "a note",
    )


@pytest.mark.parametrize("count", [7, 9, 10, 14])
def test_madlib_keras_fit(bench: Workbench, count: int) -> None:
    """With fewer arguments the defaults count; a warm start goes on from the table that is
    there.
    """
    table = f"fitted_{count}"
    values = [
        "packed",
        table,
        "models",
        1,
        SGD,
        "batch_size=8",
        2,
        False,
        "packed_val",
        1,
        count > 10,
        "a name",
        "a description",
        None,
    ]
    if count > 10:
        call(bench, "madlib_keras_fit({})", values, 7)
    call(bench, "madlib_keras_fit({})", values, count)
    found = bench.row(
        f"SELECT validation_table, metrics_iters, name, description FROM {table}_summary"
    )
    assert found == (
        "packed_val" if count > 8 else None,
        [1, 2] if count > 9 else [2],
        "a name" if count > 11 else None,
        "a description" if count > 12 else None,
    )


@pytest.mark.parametrize("count", [3, 4, 5])
def test_madlib_keras_evaluate(bench: Workbench, count: int) -> None:
    """A table of several models needs the last argument; the others are read."""
    values = ["model", "packed", f"evaluated_{count}", False, 3]
    if count < 5:
        with pytest.raises(
            psycopg2.errors.NullValueNotAllowed, match="Multi-model needs to pass mst_key"
        ):
            call(bench, "madlib_keras_evaluate({})", values, count)
    else:
        call(bench, "madlib_keras_evaluate({})", values, count)
        assert bench.value(f"SELECT loss FROM evaluated_{count}") > 0


@pytest.mark.parametrize(
    ("count", "pred_type", "rows"),
    [
        (5, "prob", 3),
        (6, "prob", 3),
        (7, 2, 2),
        (8, "prob", 3),
        (8, "response", 1),
        (8, 2, 2),
        (8, 0.0, 3),
    ],
)
def test_madlib_keras_predict(bench: Workbench, count: int, pred_type: object, rows: int) -> None:
    table = f"predicted_{count}_{rows}_{type(pred_type).__name__}"
    values = ["model", "points", "id", "x", table, pred_type, False, 3]
    if count < 8:
        with pytest.raises(
            psycopg2.errors.NullValueNotAllowed, match="Multi-model needs to pass mst_key"
        ):
            call(bench, "madlib_keras_predict({})", values, count)
    else:
        call(bench, "madlib_keras_predict({})", values, count)
        assert bench.value(f"SELECT count(*) FROM {table}") == 96 * rows


@pytest.mark.parametrize("count", [2, 3, 4])
def test_hyperband_schedule(bench: Workbench, count: int) -> None:
    table = f"rounds_{count}"
    call(bench, "hyperband_schedule({})", [table, 9, 2, 1], count)
    found = bench.row(f"SELECT count(*), max(s), min(r_i) FROM {table}")
    assert found == {2: (6, 2, 1), 3: (10, 3, 1), 4: (6, 3, 1)}[count]


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("count", [3, 4])
def test_custom_functions(shared_superuser: Workbench, count: int, by_name: bool) -> None:
    source = b"def own(y_true, y_pred):\n    return y_true\n"
    call(
        shared_superuser,
        "madlib.load_custom_function({})",
        ["own", psycopg2.Binary(source), "own", "a note"],
        count,
    )
    shared_superuser.rows("SELECT madlib.load_top_k_accuracy_function('own', 2)")
    found = shared_superuser.rows(
        "SELECT id, name, description, object FROM madlib.own ORDER BY id"
    )
    assert [row[1] for row in found] == ["own", "top_2_accuracy"]
    assert (found[0][2], bytes(found[0][3])) == ("a note" if count > 3 else None, source)
    for number, name, *_ in found:
        shared_superuser.rows(
            "SELECT madlib.delete_custom_function('own', %s)", name if by_name else number
        )
    assert not shared_superuser.exists("madlib.own")
