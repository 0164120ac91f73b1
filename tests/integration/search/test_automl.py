"""AutoML: the tables that a search leaves, which configuration is the best, and what can be done
with it.
"""

from __future__ import annotations

import psycopg2
import pytest
from models import CLASSES, dense, sequential
from searches import BOTH, FITS, FROZEN, OUTPUTS, compiles, family, run_of, search, states
from states import metadata, stored, weights
from workbench import Workbench

COLUMNS = {
    "": "mst_key integer, model_weights bytea, model_arch json, __dist_key__ integer",
    "_info": "mst_key integer, model_id integer, compile_params text, fit_params text, model_type "
    "text, model_size double precision, metrics_elapsed_time double precision[], metrics_type "
    "text[], loss_type text, training_metrics_final double precision, training_loss_final double "
    "precision, training_metrics double precision[], training_loss double precision[], "
    "validation_metrics_final double precision, validation_loss_final double precision, "
    "validation_metrics double precision[], validation_loss double precision[], metrics_iters "
    "integer[]",
    "_summary": "source_table text, validation_table text, model text, model_info text, "
    "dependent_varname text[], independent_varname text[], model_arch_table text, "
    "model_selection_table text, automl_method text, automl_params text, random_state text, "
    "object_table text, use_gpus boolean, metrics_compute_frequency integer, name text, "
    "description text, start_training_time timestamp without time zone, end_training_time "
    "timestamp without time zone, madlib_version text, num_classes integer[], label_class_values "
    "text[], dependent_vartype text[], normalizing_const real",
}
PLACES = ", s integer, i integer"
STEPS = 96 // 8  # of an iteration


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", 2)
    bench.rows("CREATE TABLE held_out AS SELECT * FROM points WHERE id % 3 = 0")
    bench.rows(
        "SELECT validation_preprocessor_dl('held_out', 'held_out_packed', 'label', 'x', 'packed')"
    )


@pytest.fixture(scope="module")
def banded(bench: Workbench) -> str:
    """A search by Hyperband with a validation table, metrics now and then, name and description."""
    bench.messages()
    return search(
        bench,
        "banded",
        automl_params="R=6, eta=3",
        random_state=4,
        validation_table="held_out_packed",
        metrics_compute_frequency=2,
        name="a name",
        description="a description",
    )


@pytest.fixture(scope="module")
def opted(bench: Workbench) -> str:
    """A search by Hyperopt, without a validation table."""
    return search(
        bench, "opted", automl_method="hyperopt", automl_params="num_configs=5, num_iterations=2"
    )


SEARCHES = pytest.mark.parametrize("output", ["banded", "opted"])


@SEARCHES
@pytest.mark.parametrize("suffix", COLUMNS)
def test_tables_have_the_contract_s_columns_first(
    bench: Workbench, banded: str, opted: str, output: str, suffix: str
) -> None:
    found = bench.columns(output + suffix)
    expected = COLUMNS[suffix] + (PLACES if (output, suffix) == ("banded", "_info") else "")
    assert (found + ", ").startswith(expected + ", ")
    assert (PLACES in found) == (output == "banded" and suffix == "_info")


@SEARCHES
def test_all_configurations_have_a_row_and_those_that_did_well_have_weights(
    bench: Workbench, banded: str, opted: str, output: str
) -> None:
    keys = [(key,) for key in range(1, 6)]
    for table in (output, f"{output}_info"):
        assert bench.rows(f"SELECT mst_key FROM {table} ORDER BY 1") == keys
    ((best, model_id, compiled, fitted),) = bench.rows(
        f"SELECT mst_key, model_id, compile_params, fit_params FROM {output}_mst"
    )
    gone = bench.rows(
        "SELECT mst_key FROM cerebro.config_log WHERE run_id = %s AND released",
        run_of(bench, output),
    )
    assert len(gone) == (1 if output == "banded" else 0), (
        "of the two that were left behind in the first round"
    )
    held = set(keys) - set(gone)
    assert set(bench.rows(f"SELECT mst_key FROM {output} WHERE model_weights IS NOT NULL")) == held
    assert set(bench.rows(f"SELECT DISTINCT mst_key FROM {bench.states(output)}")) == held
    for (key,) in held:
        bench.rows(
            f"SELECT madlib_predict('{output}', 'points', 'id', 'x', 'predicted', mst_key => {key})"
        )
        bench.rows("DROP TABLE predicted")
    flat = bench.value(f"SELECT model_weights FROM {output} WHERE mst_key = %s", best)
    assert bytes(flat) == weights(stored(bench, output, best))
    assert bench.row(
        f"SELECT model_id, compile_params, fit_params FROM {output}_info WHERE mst_key = %s", best
    ) == (
        model_id,
        compiled,
        fitted,
    )
    assert bench.rows(f"SELECT model_arch_table, object_table FROM {output}_mst_summary") == [
        ("models", None)
    ]


@pytest.mark.checklist(36)
@pytest.mark.parametrize(("output", "dataset"), [("banded", "validation"), ("opted", "training")])
def test_the_best_has_the_lowest_loss(
    bench: Workbench, banded: str, opted: str, output: str, dataset: str
) -> None:
    """Of those as they are, after the last epoch that each was trained."""
    lowest, key = bench.row(
        "SELECT value, mst_key FROM cerebro.metric m WHERE run_id = %s AND dataset = %s AND name "
        "= 'loss' AND epoch = (SELECT max(epoch) FROM cerebro.metric e WHERE (e.run_id, "
        "e.mst_key) = (m.run_id, m.mst_key)) ORDER BY 1 LIMIT 1",
        run_of(bench, output),
        dataset,
    )
    assert bench.value(f"SELECT mst_key FROM {output}_mst") == key
    assert (
        bench.value(f"SELECT {dataset}_loss_final FROM {output}_info WHERE mst_key = %s", key)
        == lowest
    )
    assert bench.value(f"SELECT min({dataset}_loss_final) FROM {output}_info") == lowest


@SEARCHES
@pytest.mark.parametrize(
    ("kind", "packed"), [("training", "packed"), ("validation", "held_out_packed")]
)
def test_evaluating_the_best_gives_its_final_numbers(
    bench: Workbench, banded: str, opted: str, output: str, kind: str, packed: str
) -> None:
    if (output, kind) == ("opted", "validation"):
        assert bench.rows(f"SELECT DISTINCT validation_loss_final FROM {output}_info") == [(None,)]
        return
    best, name = bench.value(f"SELECT mst_key FROM {output}_mst"), f"{output}_again_{kind}"
    bench.rows(f"SELECT madlib_evaluate('{output}', %s, %s)", packed, name)  # of the best
    loss, metric = bench.row(f"SELECT loss, metric FROM {name}")
    query = f"SELECT {kind}_loss_final, {kind}_metrics_final FROM {output}_info WHERE mst_key = %s"
    assert (loss, metric) == pytest.approx(bench.row(query, best), abs=1e-6)


@SEARCHES
def test_predictions_are_as_good_as_told(
    bench: Workbench, banded: str, opted: str, output: str
) -> None:
    best, name = bench.value(f"SELECT mst_key FROM {output}_mst"), f"{output}_predicted"
    bench.rows(
        f"SELECT madlib_predict('{output}', 'points', 'id', 'x', %s, 'response', mst_key => %s)",
        name,
        best,
    )
    right = bench.value(
        f"SELECT avg((class_value = label)::int)::float FROM {name} JOIN points USING (id)"
    )
    final = bench.value(
        f"SELECT training_metrics_final FROM {output}_info WHERE mst_key = %s", best
    )
    assert right == pytest.approx(final, abs=1e-6)
    bench.rows(f"SELECT madlib_predict('{output}', 'points', 'id', 'x', '{name}_too', 'response')")
    assert bench.rows(f"TABLE {name}_too EXCEPT TABLE {name}") == []


@SEARCHES
def test_numbers_are_those_of_the_log(
    bench: Workbench, banded: str, opted: str, output: str
) -> None:
    for key, iterations, losses, accuracies in bench.rows(
        f"SELECT mst_key, metrics_iters, training_loss, training_metrics FROM {output}_info"
    ):
        logged = bench.rows(
            "SELECT l.epoch, l.value, a.value FROM cerebro.metric l JOIN cerebro.metric a"
            " USING (run_id, mst_key, epoch, dataset) WHERE l.name = 'loss' AND a.name = 'accuracy'"
            " AND dataset = 'training' AND run_id = %s AND mst_key = %s ORDER BY epoch",
            run_of(bench, output),
            key,
        )
        assert list(zip(iterations, losses, accuracies, strict=True)) == logged


@pytest.mark.checklist(36)
@SEARCHES
def test_times_add_up(bench: Workbench, banded: str, opted: str, output: str) -> None:
    took = bench.value(
        "SELECT extract(epoch FROM end_training_time - start_training_time)::float FROM "
        f"{output}_summary"
    )
    for times, iterations in bench.rows(
        f"SELECT metrics_elapsed_time, metrics_iters FROM {output}_info"
    ):
        assert times == sorted(set(times)) and len(times) == len(iterations)
        assert times[0] > 0 and times[-1] <= took


def test_brackets_and_rounds_are_hyperband_s(bench: Workbench, banded: str) -> None:
    found = bench.rows("SELECT mst_key, s, i, metrics_iters FROM banded_info ORDER BY 1")
    assert [(key, s) for key, s, _, _ in found] == [(1, 1), (2, 1), (3, 1), (4, 0), (5, 0)]
    assert [iterations for _, s, _, iterations in found if s == 0] == [[2, 4, 6]] * 2
    first = bench.value(
        "SELECT mst_key FROM cerebro.metric WHERE run_id = %s AND dataset = 'validation' AND name "
        "= 'loss' AND mst_key <= 3 AND epoch = 2 ORDER BY value LIMIT 1",
        run_of(bench, banded),
    )
    for key, s, i, iterations in found:
        if s == 1:
            assert (i, iterations) in (
                [(0, [2]), (1, [2, 4, 6, 8])] if key == first else [(0, [2])]
            )


def test_a_survivor_goes_on_with_all_of_its_state(bench: Workbench) -> None:
    """The number of steps is part of the state; what was begun anew would have made fewer."""
    search(bench, "stepping", compiles(family("Adam", "[0.001, 0.002, 'log']")), random_state=1)
    key, iterations = bench.row(
        "SELECT mst_key, metrics_iters FROM stepping_info JOIN stepping_mst USING (mst_key)"
    )
    assert key <= 3 and iterations == [2, 6, 8], (
        "eight iterations of a slow optimizer are better than six"
    )
    assert int(metadata(stored(bench, "stepping", key))["step"]) == iterations[-1] * STEPS


def test_a_frozen_survivor_keeps_its_loss(bench: Workbench) -> None:
    search(bench, "frozen", FROZEN)
    query = (
        "SELECT mst_key, value FROM cerebro.metric WHERE run_id = %s AND name = 'loss' AND "
        "mst_key <= 3"
    )
    found: list[dict[int, float]] = [
        dict(bench.rows(f"{query} AND epoch = %s", run_of(bench, "frozen"), epoch))
        for epoch in (2, 8)
    ]
    first, second = found
    ((survivor, loss),) = second.items()
    assert loss == pytest.approx(first[survivor], rel=1e-6)
    assert len({round(loss, 5) for loss in first.values()}) == 3, (
        "each configuration begins with weights of its own"
    )


def test_the_summary_repeats_the_call(bench: Workbench, banded: str, opted: str) -> None:
    """A frequency of metrics that was not given is that of the last run, as in MADlib."""
    columns = (
        "source_table, validation_table, model, model_info, dependent_varname, "
        "independent_varname, model_arch_table, model_selection_table, automl_method, "
        "automl_params, random_state, object_table, use_gpus, metrics_compute_frequency, name, "
        "description, num_classes, label_class_values, dependent_vartype"
    )
    data = ([3], ["high", "low", "middle"], ["text"])
    assert bench.row(f"SELECT {columns} FROM banded_summary") == (
        "packed",
        "held_out_packed",
        "banded",
        "banded_info",
        ["label"],
        ["x"],
        "models",
        "banded_mst",
        "hyperband",
        "R=6, eta=3",
        "4",
        None,
        False,
        2,
        "a name",
        "a description",
        *data,
    )
    assert bench.row(f"SELECT {columns} FROM opted_summary") == (
        "packed",
        None,
        "opted",
        "opted_info",
        ["label"],
        ["x"],
        "models",
        "opted_mst",
        "hyperopt",
        "num_configs=5, num_iterations=2",
        None,
        None,
        False,
        2,
        None,
        None,
        *data,
    )


def test_a_search_is_one_run(bench: Workbench, banded: str, opted: str) -> None:
    """It shows who went on and why; a diagonal begins when all of the one before have told what
    they came to.
    """
    query = "SELECT name, status, owner = current_user FROM cerebro.run WHERE run_id = %s"
    assert bench.rows(query, run_of(bench, banded)) == [("a name", "completed", True)]
    assert bench.rows(query, run_of(bench, opted)) == [(None, "completed", True)]
    decided = "SELECT action, reason FROM cerebro.decision WHERE run_id = %s AND action = 'promote'"
    ((_, reason),) = bench.rows(decided, run_of(bench, banded))
    assert "bracket 1, round 1: among the best 1 of 3" in reason
    early, late = bench.row(
        "SELECT max(ended_at) FILTER (WHERE mst_key <= 3 AND epoch <= 2), min(started_at) FILTER "
        "(WHERE mst_key > 3) FROM cerebro.visit WHERE run_id = %s",
        run_of(bench, banded),
    )
    assert early < late


def test_no_state_of_a_run_is_left(bench: Workbench, banded: str, opted: str) -> None:
    assert not states(bench)


@pytest.mark.checklist(36)
def test_the_caller_is_told_in_madlib_s_words(bench: Workbench) -> None:
    bench.messages()
    search(bench, "told", validation_table="held_out_packed", metrics_compute_frequency=9)

    said = "".join(bench.messages())
    assert "NOTICE:  metrics_compute_frequency is 9, but there are 8 iterations at most" in said
    assert (
        "*** Diagonally evaluating 3 configs under bracket=1 & round=0 with 2 iterations ***"
        in said
    )
    assert (
        "*** Diagonally evaluating 1 config under bracket=1 & round=1, 2 configs under bracket=0 "
        "& round=0 with 6 iterations ***" in said
    )
    best, loss = bench.row(
        "SELECT mst_key, validation_loss_final FROM told_info JOIN told_mst USING (mst_key)"
    )
    assert (
        f"Best validation loss so far:\nmst_key={best}: metric=" in said and f"loss={loss}" in said
    )
    assert said.count("Best training loss so far:\nmst_key=") >= 2


def test_later_configurations_have_other_keys(bench: Workbench, opted: str) -> None:
    bench.rows(
        "SELECT generate_model_configs('models', 'opted_mst', ARRAY[1], %s, %s)",
        compiles(family("SGD", "[0.3]")),
        FITS,
    )
    assert bench.value("SELECT max(mst_key) FROM opted_mst") == 6


@pytest.mark.long
@pytest.mark.parametrize("method", ["hyperband", "hyperopt"])
def test_a_random_state_can_be_repeated(bench: Workbench, method: str) -> None:
    given = {
        "hyperband": "R=3, eta=3",
        "hyperopt": "num_configs=4, num_iterations=1, algorithm=rand",
    }[method]

    def tried(output: str, state: int | None) -> list[tuple[object, ...]]:
        search(bench, output, automl_method=method, automl_params=given, random_state=state)
        return bench.rows(
            f"SELECT mst_key, compile_params, fit_params FROM {output}_info ORDER BY 1"
        )

    found = [
        tried(f"repeated_{method}_{number}", state)
        for number, state in enumerate((0, 0, 1, None, None))
    ]
    assert found[0] == found[1]
    assert all(found[1] != other for other in found[2:]) and found[3] != found[4]


def test_schedules(bench: Workbench) -> None:
    bench.rows("SELECT hyperband_schedule('rounds', 81, 3, 1)")
    found = bench.rows("SELECT s, i, n_i, r_i FROM rounds ORDER BY s DESC, i")
    assert found == [
        (4, 0, 81, 1),
        (4, 1, 27, 3),
        (4, 2, 9, 9),
        (4, 3, 3, 27),
        (3, 0, 27, 3),
        (3, 1, 9, 9),
        (3, 2, 3, 27),
        (2, 0, 9, 9),
        (2, 1, 3, 27),
        (1, 0, 6, 27),
    ]
    bench.rows("SELECT hyperband_schedule('defaults', 9)")
    assert bench.value("SELECT count(*) FROM defaults") == 6
    with pytest.raises(psycopg2.errors.UniqueViolation):
        bench.rows("INSERT INTO rounds VALUES (4, 0, 1, 1)")


def test_outputs_are_named_and_typed_by_no_path_of_the_caller(bench: Workbench) -> None:
    bench.rows('CREATE SCHEMA "My data"')
    bench.rows(
        """SELECT madlib_automl('packed', '"My data"."Out put"', 'models', '"My data"."Con figs"',
            ARRAY[1], %s, %s,
           'hyperband', 'R=3, eta=3, skip_last=1')""",
        BOTH,
        FITS,
    )
    for suffix in OUTPUTS:
        assert bench.value(f'SELECT count(*) > 0 FROM "My data"."Out put{suffix}"')
    assert bench.value('SELECT count(*) FROM "My data"."Con figs"') == 1


@pytest.mark.parametrize("method", ["hyperband", "hyperopt"])
def test_a_search_whose_draws_cannot_be_trained_draws_again(bench: Workbench, method: str) -> None:
    """Of ten models one has a layer that can be trained."""
    frozen = sequential([4], dense(3, "output", "softmax", trainable=False))
    table = f"mostly_frozen_{method}"
    for architecture in [*[frozen] * 9, CLASSES]:
        bench.rows("SELECT load_keras_model(%s, %s::json)", table, architecture)
    params = {"hyperband": "R=2, eta=2", "hyperopt": "num_configs=2, num_iterations=1"}[method]
    call = (
        f"SELECT madlib_keras_automl('packed', %s, '{table}', %s, %s, $${{'loss': "
        "['categorical_crossentropy'], 'metrics': [['accuracy']], 'optimizer': ['SGD'], 'lr': "
        f"[0.01]}}$$, $${{'batch_size': [8], 'epochs': [1]}}$$, '{method}', '{params}', "
        "random_state => %s)"
    )
    bench.messages()
    bench.rows(call, table + "_out", table + "_mst", [*range(1, 11)], 1)
    assert bench.value(f"SELECT model_id FROM {table}_mst") == 10
    assert any("cerebro_db draws again" in message for message in bench.messages())
    with pytest.raises(psycopg2.errors.InvalidParameterValue, match="can be trained") as refused:
        bench.rows(call, "refused_out", "refused_mst", [*range(1, 10)], 1)
    assert "trainable" in str(refused.value.diag.message_hint)
    assert not bench.exists("refused_out", "refused_mst")
