"""AutoML: the tables that a search leaves, which configuration is the best, and what can be done with it."""

from __future__ import annotations

import psycopg2
import pytest
from searches import BOTH, FITS, FROZEN, OUTPUTS, compiles, family, runs, search, states
from states import metadata, stored, weights
from workbench import Workbench

COLUMNS = {
    "": "mst_key integer, model_weights bytea, model_arch json, __dist_key__ integer",
    "_info": "mst_key integer, model_id integer, compile_params text, fit_params text, model_type text,"
    " model_size double precision, metrics_elapsed_time double precision[], metrics_type text[], loss_type text,"
    " training_metrics_final double precision, training_loss_final double precision,"
    " training_metrics double precision[], training_loss double precision[],"
    " validation_metrics_final double precision, validation_loss_final double precision,"
    " validation_metrics double precision[], validation_loss double precision[], metrics_iters integer[]",
    "_summary": "source_table text, validation_table text, model text, model_info text, dependent_varname text[],"
    " independent_varname text[], model_arch_table text, model_selection_table text, automl_method text,"
    " automl_params text, random_state text, object_table text, use_gpus boolean, metrics_compute_frequency integer,"
    " name text, description text, start_training_time timestamp without time zone,"
    " end_training_time timestamp without time zone, madlib_version text, num_classes integer[],"
    " label_class_values text[], dependent_vartype text[], normalizing_const real",
}
PLACES = ", s integer, i integer"
STEPS = 96 // 8  # of an iteration


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", 2)
    bench.rows("CREATE TABLE held_out AS SELECT * FROM points WHERE id % 3 = 0")
    bench.rows("SELECT validation_preprocessor_dl('held_out', 'held_out_packed', 'label', 'x', 'packed')")


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
    """A search by Hyperopt, without a validation table; two configurations at a time."""
    return search(bench, "opted", automl_method="hyperopt", automl_params="num_configs=5, num_iterations=2")


TRAINED_TO_THE_END = {"banded": "s = i", "opted": "TRUE"}
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
def test_all_configurations_have_a_row_and_those_trained_to_the_end_have_weights(
    bench: Workbench, banded: str, opted: str, output: str
) -> None:
    keys = [(key,) for key in range(1, 6)]
    for table in (output, f"{output}_info"):
        assert bench.rows(f"SELECT mst_key FROM {table} ORDER BY 1") == keys
    ((best, model_id, compiled, fitted),) = bench.rows(
        f"SELECT mst_key, model_id, compile_params, fit_params FROM {output}_mst"
    )
    ended = bench.rows(f"SELECT mst_key FROM {output}_info WHERE {TRAINED_TO_THE_END[output]} OR mst_key = %s", best)
    assert set(bench.rows(f"SELECT mst_key FROM {output} WHERE model_weights IS NOT NULL")) == set(ended)
    assert set(bench.rows(f"SELECT DISTINCT mst_key FROM {bench.states(output)}")) == set(ended)
    for (key,) in ended:
        bench.rows(f"SELECT madlib_predict('{output}', 'points', 'id', 'x', 'predicted', mst_key => {key})")
        bench.rows("DROP TABLE predicted")
    flat = bench.value(f"SELECT model_weights FROM {output} WHERE mst_key = %s", best)
    assert bytes(flat) == weights(stored(bench, output, best))
    assert bench.row(f"SELECT model_id, compile_params, fit_params FROM {output}_info WHERE mst_key = %s", best) == (
        model_id,
        compiled,
        fitted,
    )
    assert bench.rows(f"SELECT model_arch_table, object_table FROM {output}_mst_summary") == [("models", None)]


@pytest.mark.checklist(36)
@pytest.mark.parametrize(("output", "dataset"), [("banded", "validation"), ("opted", "training")])
def test_the_best_has_the_lowest_loss_after_any_run(
    bench: Workbench, banded: str, opted: str, output: str, dataset: str
) -> None:
    lowest, key = bench.row(
        "SELECT m.value, m.mst_key FROM cerebro.metric m JOIN cerebro.run r USING (run_id)"
        " WHERE m.run_id = ANY (%s) AND m.dataset = %s AND m.name = 'loss' AND m.epoch ="
        " (SELECT max(e.epoch) FROM cerebro.metric e WHERE e.run_id = m.run_id) ORDER BY m.value LIMIT 1",
        runs(bench, output),
        dataset,
    )
    assert bench.value(f"SELECT mst_key FROM {output}_mst") == key
    assert bench.value(f"SELECT {dataset}_loss_final FROM {output}_info WHERE mst_key = %s", key) == lowest
    assert bench.value(f"SELECT min({dataset}_loss_final) FROM {output}_info") == lowest


@SEARCHES
@pytest.mark.parametrize(("kind", "packed"), [("training", "packed"), ("validation", "held_out_packed")])
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
def test_predictions_are_as_good_as_told(bench: Workbench, banded: str, opted: str, output: str) -> None:
    best, name = bench.value(f"SELECT mst_key FROM {output}_mst"), f"{output}_predicted"
    bench.rows(f"SELECT madlib_predict('{output}', 'points', 'id', 'x', %s, 'response', mst_key => %s)", name, best)
    right = bench.value(f"SELECT avg((class_value = label)::int)::float FROM {name} JOIN points USING (id)")
    final = bench.value(f"SELECT training_metrics_final FROM {output}_info WHERE mst_key = %s", best)
    assert right == pytest.approx(final, abs=1e-6)
    bench.rows(f"SELECT madlib_predict('{output}', 'points', 'id', 'x', '{name}_too', 'response')")
    assert bench.rows(f"TABLE {name}_too EXCEPT TABLE {name}") == []
    for (other,) in bench.rows(f"SELECT mst_key FROM {output} WHERE model_weights IS NULL"):
        with pytest.raises(psycopg2.Error, match="has no weights in table") as caught:
            bench.rows(f"SELECT madlib_predict('{output}', 'points', 'id', 'x', 'o', mst_key => %s)", other)
        assert caught.value.pgcode == "55000" and "the last round" in str(caught.value.diag.message_hint)


@SEARCHES
def test_numbers_of_all_runs_follow_each_other(bench: Workbench, banded: str, opted: str, output: str) -> None:
    """Iterations count on from run to run, and so do metrics; each configuration has those of its own runs."""
    for key, run_ids, iterations, losses, accuracies in bench.rows(
        f"SELECT mst_key, run_ids, metrics_iters, training_loss, training_metrics FROM {output}_info"
    ):
        logged, before = [], 0
        for run_id in run_ids:
            logged += [
                (before + epoch, loss, accuracy)
                for epoch, loss, accuracy in bench.rows(
                    "SELECT l.epoch, l.value, a.value FROM cerebro.metric l JOIN cerebro.metric a"
                    " USING (run_id, mst_key, epoch, dataset) WHERE l.name = 'loss' AND a.name = 'accuracy'"
                    " AND dataset = 'training' AND run_id = %s AND mst_key = %s ORDER BY epoch",
                    run_id,
                    key,
                )
            ]
            before += bench.value("SELECT max(epoch) FROM cerebro.visit WHERE run_id = %s", run_id)
        assert list(zip(iterations, losses, accuracies, strict=True)) == logged
        assert iterations[-1] == before


@pytest.mark.checklist(36)
@SEARCHES
def test_times_add_up_over_the_runs(bench: Workbench, banded: str, opted: str, output: str) -> None:
    took = bench.value(
        f"SELECT extract(epoch FROM end_training_time - start_training_time)::float FROM {output}_summary"
    )
    for times, iterations in bench.rows(f"SELECT metrics_elapsed_time, metrics_iters FROM {output}_info"):
        assert times == sorted(set(times)) and len(times) == len(iterations)
        assert times[0] > 0 and times[-1] <= took


def test_brackets_and_rounds_are_hyperband_s(bench: Workbench, banded: str) -> None:
    found = bench.rows("SELECT mst_key, s, i, metrics_iters FROM banded_info ORDER BY 1")
    assert [(key, s) for key, s, _, _ in found] == [(1, 1), (2, 1), (3, 1), (4, 0), (5, 0)]
    assert [iterations for _, s, _, iterations in found if s == 0] == [[2, 4, 6]] * 2
    on = bench.rows(
        "SELECT DISTINCT mst_key FROM cerebro.visit WHERE run_id = %s AND mst_key <= 3", runs(bench, banded)[1]
    )
    first = bench.value(
        "SELECT mst_key FROM cerebro.metric WHERE run_id = %s AND dataset = 'validation' AND name = 'loss'"
        " ORDER BY value LIMIT 1",
        runs(bench, banded)[0],
    )
    assert on == [(first,)], "of three the one with the lowest loss on the validation set"
    for key, s, i, iterations in found:
        if s == 1:
            assert (i, iterations) in ([(0, [2]), (1, [2, 4, 6, 8])] if key == first else [(0, [2])])


def test_a_survivor_goes_on_with_all_of_its_state(bench: Workbench) -> None:
    """The number of steps is part of the state; what was begun anew would have made fewer."""
    search(bench, "stepping", compiles(family("Adam", "[0.001, 0.002, 'log']")), random_state=1)
    key, iterations = bench.row("SELECT mst_key, metrics_iters FROM stepping_info JOIN stepping_mst USING (mst_key)")
    assert key <= 3 and iterations == [2, 8], "eight iterations of a slow optimizer are better than six"
    assert int(metadata(stored(bench, "stepping", key))["step"]) == iterations[-1] * STEPS


def test_a_frozen_survivor_keeps_its_loss(bench: Workbench) -> None:
    search(bench, "frozen", FROZEN)
    query = "SELECT mst_key, value FROM cerebro.metric WHERE run_id = %s AND name = 'loss'"
    first, second = ({key: loss for key, loss in bench.rows(query, run_id)} for run_id in runs(bench, "frozen"))
    (survivor,) = first.keys() & second.keys()
    assert second[survivor] == pytest.approx(first[survivor], rel=1e-6)
    assert len({round(loss, 5) for loss in first.values()}) == 3, "each configuration begins with weights of its own"


def test_the_summary_repeats_the_call(bench: Workbench, banded: str, opted: str) -> None:
    """A frequency of metrics that was not given is that of the last run, as in MADlib."""
    columns = (
        "source_table, validation_table, model, model_info, dependent_varname, independent_varname, model_arch_table,"
        " model_selection_table, automl_method, automl_params, random_state, object_table, use_gpus,"
        " metrics_compute_frequency, name, description, num_classes, label_class_values, dependent_vartype"
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


def test_each_round_is_a_run_whose_name_tells_which(bench: Workbench, banded: str, opted: str) -> None:
    query = "SELECT name, status FROM cerebro.run WHERE run_id = ANY (%s) ORDER BY run_id"
    assert bench.rows(query, runs(bench, banded)) == [
        ("a name: hyperband 1 of 2", "completed"),
        ("a name: hyperband 2 of 2", "completed"),
    ]
    assert bench.rows(query, runs(bench, opted)) == [
        ("opted: hyperopt 1 of 2", "completed"),
        ("opted: hyperopt 2 of 2", "completed"),
    ]
    sizes = "SELECT count(*) FROM cerebro.config WHERE run_id = ANY (%s) GROUP BY run_id ORDER BY run_id"
    assert bench.rows(sizes, runs(bench, opted)) == [(2,), (3,)], "as many at a time as there are segments"


def test_workers_and_their_data_stay_from_run_to_run(bench: Workbench, banded: str) -> None:
    query = "SELECT DISTINCT worker_pid FROM cerebro.visit WHERE run_id = %s"
    first, second = (set(bench.rows(query, run_id)) for run_id in runs(bench, banded))
    assert first & second


def test_no_state_of_a_run_is_left(bench: Workbench, banded: str, opted: str) -> None:
    assert not states(bench)


@pytest.mark.checklist(36)
def test_the_caller_is_told_in_madlib_s_words(bench: Workbench) -> None:
    bench.messages()
    search(bench, "told", validation_table="held_out_packed", metrics_compute_frequency=3)
    said = "".join(bench.messages())
    assert "*** Diagonally evaluating 3 configs under bracket=1 & round=0 with 2 iterations ***" in said
    assert (
        "*** Diagonally evaluating 1 configs under bracket=1 & round=1, 2 configs under bracket=0 & round=0 with 6"
        " iterations ***" in said
    )
    best, loss = bench.row("SELECT mst_key, validation_loss_final FROM told_info JOIN told_mst USING (mst_key)")
    assert f"Best validation loss so far:\nmst_key={best}: metric=" in said and f"loss={loss}" in said
    assert said.count("Best training loss so far:\nmst_key=") == 2
    assert said.count("NOTICE:  metrics_compute_frequency is 3, but this run has 2 iterations") == 1


def test_later_configurations_have_other_keys(bench: Workbench, opted: str) -> None:
    bench.rows(
        "SELECT generate_model_configs('models', 'opted_mst', ARRAY[1], %s, %s)", compiles(family("SGD", "[0.3]")), FITS
    )
    assert bench.value("SELECT max(mst_key) FROM opted_mst") == 6


@pytest.mark.long
@pytest.mark.parametrize("method", ["hyperband", "hyperopt"])
def test_a_random_state_can_be_repeated(bench: Workbench, method: str) -> None:
    given = {"hyperband": "R=3, eta=3", "hyperopt": "num_configs=4, num_iterations=1, algorithm=rand"}[method]

    def tried(output: str, state: int | None) -> list[tuple[object, ...]]:
        search(bench, output, automl_method=method, automl_params=given, random_state=state)
        return bench.rows(f"SELECT mst_key, compile_params, fit_params FROM {output}_info ORDER BY 1")

    found = [tried(f"repeated_{method}_{number}", state) for number, state in enumerate((0, 0, 1, None, None))]
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
        """SELECT madlib_automl('packed', '"My data"."Out put"', 'models', '"My data"."Con figs"', ARRAY[1], %s, %s,
           'hyperband', 'R=3, eta=3, skip_last=1')""",
        BOTH,
        FITS,
    )
    for suffix in OUTPUTS:
        assert bench.value(f'SELECT count(*) > 0 FROM "My data"."Out put{suffix}"')
    assert bench.value('SELECT count(*) FROM "My data"."Con figs"') == 1
