"""MADlib's output tables: every column of the contract, under its name and type, with its true
value.
"""

from __future__ import annotations

from typing import Any

import psycopg2
import pytest
from models import CLASSES
from processes import eventually
from states import stored, weights
from workbench import Workbench, compile_text, several

COLUMNS = {
    "": "mst_key integer, model_weights bytea, model_arch json, __dist_key__ integer",
    "_info": "mst_key integer, model_id integer, compile_params text, fit_params text, model_type "
    "text, model_size double precision, metrics_elapsed_time double precision[], metrics_type "
    "text[], loss_type text, training_metrics_final double precision, training_loss_final double "
    "precision, training_metrics double precision[], training_loss double precision[], "
    "validation_metrics_final double precision, validation_loss_final double precision, "
    "validation_metrics double precision[], validation_loss double precision[]",
    "_summary": "source_table text, validation_table text, model text, model_info text, "
    "dependent_varname text[], independent_varname text[], model_arch_table text, "
    "model_selection_table text, object_table text, num_iterations integer, "
    "metrics_compute_frequency integer, warm_start boolean, name text, description text, "
    "start_training_time timestamp without time zone, end_training_time timestamp without time "
    "zone, madlib_version text, num_classes integer[], label_class_values text[], "
    "dependent_vartype text[], normalizing_const real, metrics_iters integer[]",
}
FIT_WORKERS = 1
KEYS = (3, 40)
OPTIMIZERS = ("SGD(learning_rate=0.05)", "Adam(learning_rate=0.02)")
ITERATIONS = [2, 4, 6, 7]
FLOATS = 5 * 8 + 9 * 3


@pytest.fixture(scope="module")
def whole(bench: Workbench) -> str:
    """The output of a run with a validation set of some of the classes, metrics now and then, name
    and description.
    """
    bench.rows(
        "CREATE TABLE held_out AS SELECT * FROM points WHERE id % 4 = 0 AND label <> 'middle'"
    )
    bench.rows(
        "SELECT training_preprocessor_dl('points', 'whole_packed', 'label', 'x', 16, 2.0, "
        "n_segments => 2, seed => 1)"
    )
    bench.rows(
        "SELECT validation_preprocessor_dl('held_out', 'whole_held_out', 'label', 'x', "
        "'whole_packed', 10)"
    )
    bench.configure(
        "whole_configs", [compile_text(o) for o in OPTIMIZERS], [" epochs=2 ,batch_size=8"]
    )
    bench.rows(
        "UPDATE whole_configs SET mst_key = CASE WHEN compile_params LIKE '%SGD%' THEN 3 ELSE 40 "
        "END"
    )
    bench.rows(
        "SELECT madlib_keras_fit_multiple_model('whole_packed', 'whole', 'whole_configs', 7, FALSE,"
        " 'whole_held_out', 2, FALSE, 'a name', 'a description', TRUE, workers => 1)"
    )
    return "whole"


@pytest.fixture(scope="module")
def bare(bench: Workbench) -> str:
    """The output of a call with five arguments: no validation, no metric, no name."""
    bench.pack("bare_packed", 2)
    bench.configure("bare_configs", ["loss='categorical_crossentropy', optimizer='SGD'"])
    bench.rows(
        "SELECT madlib_keras_fit_multiple_model('bare_packed', 'bare', 'bare_configs', 3, FALSE)"
    )
    return "bare"


def test_weights_are_stored_as_they_are(bench: Workbench, whole: str) -> None:
    """An attempt to compress what was trained is mostly in vain."""
    storage = (
        "SELECT attstorage FROM pg_attribute WHERE attrelid = %s::regclass AND attname = "
        "'model_weights'"
    )
    assert bench.value(storage, whole) == "e"


def info(bench: Workbench, output: str, column: str) -> list[Any]:
    """One column of an info table, by mst_key."""
    return [
        value for (value,) in bench.rows(f"SELECT {column} FROM {output}_info ORDER BY mst_key")
    ]


def summary(bench: Workbench, output: str, column: str) -> Any:
    """One column of the only row of a summary table."""
    return bench.value(f"SELECT {column} FROM {output}_summary")


@pytest.mark.checklist(7)
@pytest.mark.parametrize("output", ["whole", "bare"])
@pytest.mark.parametrize("suffix", COLUMNS)
def test_tables_have_the_contract_s_columns_first(
    bench: Workbench, whole: str, bare: str, output: str, suffix: str
) -> None:
    found = bench.columns(output + suffix)
    assert (found + ", ").startswith(COLUMNS[suffix] + ", ")


def test_tables_are_logged_and_the_caller_s(bench: Workbench, whole: str) -> None:
    found = bench.rows(
        "SELECT relpersistence, pg_get_userbyid(relowner) = current_user FROM pg_class"
        " WHERE oid = ANY (ARRAY['whole', 'whole_info', 'whole_summary', %s]::regclass[])",
        bench.states("whole"),
    )
    assert found == [("p", True)] * 4


@pytest.mark.checklist(8)
def test_mst_keys_are_kept_and_named_once(bench: Workbench, whole: str) -> None:
    for table in ("whole", "whole_info"):
        assert bench.rows(f"SELECT mst_key FROM {table} ORDER BY 1") == [(key,) for key in KEYS]
    with pytest.raises(Exception, match="whole_info_pkey"):
        bench.rows("INSERT INTO whole_info (mst_key) VALUES (3)")


@pytest.mark.checklist(10)
def test_models_hold_weights_and_architecture(bench: Workbench, whole: str) -> None:
    for key in KEYS:
        flat, architecture, segment = bench.row(
            "SELECT model_weights, model_arch::text, __dist_key__ FROM whole WHERE mst_key = %s",
            key,
        )
        assert bytes(flat) == weights(stored(bench, "whole", key))
        assert len(flat) == 4 * FLOATS
        assert architecture == CLASSES
        assert bench.value("SELECT %s IN (SELECT __dist_key__ FROM whole_packed)", segment)
    assert info(bench, "whole", "model_size") == [4 * FLOATS / 1024] * 2


@pytest.mark.checklist(15)
def test_info_repeats_the_configuration(bench: Workbench, whole: str) -> None:
    same = bench.rows(
        "SELECT i.model_id = c.model_id, i.compile_params = c.compile_params, i.fit_params = "
        "c.fit_params, i.model_type, i.metrics_type, i.loss_type FROM whole_info i JOIN "
        "whole_configs c USING (mst_key)"
    )
    assert (
        same == [(True, True, True, "madlib_keras", ["accuracy"], "categorical_crossentropy")] * 2
    )


@pytest.mark.checklist(11, 12)
@pytest.mark.parametrize("kind", ["training", "validation"])
def test_metrics_stand_at_every_second_iteration_and_the_last(
    bench: Workbench, whole: str, kind: str
) -> None:
    assert summary(bench, "whole", "metrics_iters") == ITERATIONS
    for name in ("metrics", "loss"):
        series, finals = (
            info(bench, "whole", f"{kind}_{name}"),
            info(bench, "whole", f"{kind}_{name}_final"),
        )
        assert [len(values) for values in series] == [len(ITERATIONS)] * 2
        assert [values[-1] for values in series] == finals


@pytest.mark.parametrize("kind", ["training", "validation"])
def test_metrics_are_those_of_the_log(bench: Workbench, whole: str, kind: str) -> None:
    for column, name in (("loss", "loss"), ("metrics", "accuracy")):
        logged = bench.rows(
            "SELECT array_agg(epoch ORDER BY epoch), array_agg(value ORDER BY epoch) FROM "
            "cerebro.learning_curve WHERE run_id = %s AND dataset = %s AND name = %s GROUP BY "
            "mst_key ORDER BY mst_key",
            summary(bench, "whole", "run_id"),
            kind,
            name,
        )
        assert logged == [
            (ITERATIONS, values) for values in info(bench, "whole", f"{kind}_{column}")
        ]


@pytest.mark.checklist(24)
@pytest.mark.parametrize(
    ("kind", "packed"), [("training", "whole_packed"), ("validation", "whole_held_out")]
)
def test_evaluating_a_model_gives_its_final_numbers(
    bench: Workbench, whole: str, kind: str, packed: str
) -> None:
    for key in KEYS:
        name = f"again_{kind}_{key}"
        bench.rows("SELECT madlib_keras_evaluate('whole', %s, %s, FALSE, %s)", packed, name, key)
        assert bench.value(
            f"SELECT e.loss BETWEEN i.{kind}_loss_final - 1e-6 AND i.{kind}_loss_final + 1e-6 AND "
            f"e.metric = i.{kind}_metrics_final FROM {name} e, whole_info i WHERE i.mst_key = %s",
            key,
        )


def test_accuracy_is_what_predictions_say(bench: Workbench, whole: str) -> None:
    for key in KEYS:
        name = f"predicted_{key}"
        bench.rows(
            "SELECT madlib_keras_predict('whole', 'points', 'id', 'x', %s, 'response', FALSE, %s)",
            name,
            key,
        )
        right = bench.value(
            f"SELECT avg((class_value = label)::int) FROM {name} JOIN points USING (id)"
        )
        final = bench.value("SELECT training_metrics_final FROM whole_info WHERE mst_key = %s", key)
        assert float(right) == pytest.approx(final, abs=1e-6)


def test_training_teaches(bench: Workbench, whole: str) -> None:
    for losses in info(bench, "whole", "training_loss"):
        assert losses[-1] < losses[0], (
            "the loss falls on data as simple as these, if not with every pass"
        )


@pytest.mark.checklist(14)
@pytest.mark.parametrize("output", ["whole", "bare"])
def test_elapsed_times_grow_and_stay_within_the_run(
    bench: Workbench, whole: str, bare: str, output: str
) -> None:
    took = summary(
        bench, output, "extract(epoch FROM end_training_time - start_training_time)::float"
    )
    for times in info(bench, output, "metrics_elapsed_time"):
        assert times == sorted(set(times))
        assert times[0] > 0 and times[-1] <= took


@pytest.mark.checklist(16)
def test_the_summary_repeats_the_call(bench: Workbench, whole: str) -> None:
    columns = (
        "source_table, validation_table, model, model_info, dependent_varname, "
        "independent_varname, model_arch_table, model_selection_table, object_table, "
        "num_iterations, metrics_compute_frequency, warm_start, name, description"
    )
    assert bench.row(f"SELECT {columns} FROM whole_summary") == (
        "whole_packed",
        "whole_held_out",
        "whole",
        "whole_info",
        ["label"],
        ["x"],
        "models",
        "whole_configs",
        None,
        7,
        2,
        False,
        "a name",
        "a description",
    )


@pytest.mark.checklist(17, 18)
def test_the_summary_describes_the_data(bench: Workbench, whole: str) -> None:
    columns = "num_classes, label_class_values, dependent_vartype, normalizing_const"
    assert bench.row(f"SELECT {columns} FROM whole_summary") == (
        [3],
        ["high", "low", "middle"],
        ["text"],
        2.0,
    )


@pytest.mark.checklist(16)
def test_the_summary_says_when_and_by_which_version(bench: Workbench, whole: str) -> None:
    version = bench.value("SELECT extversion FROM pg_extension WHERE extname = 'cerebro_db'")
    assert summary(bench, "whole", "madlib_version") == version
    assert bench.value(
        "SELECT s.start_training_time = r.started_at::timestamp AND s.end_training_time = "
        "r.ended_at::timestamp FROM whole_summary s JOIN cerebro.run r USING (run_id)"
    )


@pytest.mark.checklist(13)
def test_what_was_not_asked_for_is_null(bench: Workbench, bare: str) -> None:
    for column in ("metrics_final", "loss_final", "metrics", "loss"):
        assert info(bench, "bare", f"validation_{column}") == [None]
    for column in ("metrics_type", "training_metrics", "training_metrics_final"):
        assert info(bench, "bare", column) == [None]
    for column in ("validation_table", "object_table", "name", "description"):
        assert summary(bench, "bare", column) is None


def test_without_a_frequency_metrics_come_at_the_end(bench: Workbench, bare: str) -> None:
    assert summary(bench, "bare", "metrics_iters") == [3]
    assert summary(bench, "bare", "metrics_compute_frequency") == 3, "MADlib's meaning of NULL"
    assert [len(losses) for losses in info(bench, "bare", "training_loss")] == [1]


def test_names_with_schema_and_quotes(bench: Workbench) -> None:
    bench.rows('CREATE SCHEMA "My data"')
    bench.pack('"My data"."Packed table"', 2)
    bench.configure('"My data"."Configs"', [compile_text()])
    bench.fit('"My data"."Packed table"', '"My data"."Out put"', '"My data"."Configs"', 1)
    for suffix in COLUMNS:
        assert bench.value(f'SELECT count(*) > 0 FROM "My data"."Out put{suffix}"')
    assert bench.row('SELECT source_table, model FROM "My data"."Out put_summary"') == (
        '"My data"."Packed table"',
        '"My data"."Out put"',
    )


def test_what_was_written_beside_the_run_is_what_is_written_after_it(bench: Workbench) -> None:
    """Of a configuration that failed, too."""
    bench.pack("early_packed", 2)
    bench.configure("early_configs", [*several(4), compile_text("SGD(learning_rate=1e30)")])
    run = bench.fit(
        "early_packed", "early", "early_configs", 2, metrics_compute_frequency=1, workers=1
    )
    bench.rows("SELECT cerebro.write_outputs(%s, 'late')", run)
    own = "i.model, i.model_info"
    shown = (
        bench.value("SELECT count(*) FROM early WHERE model_weights IS NULL"),
        len(bench.rows("TABLE early")),
    )
    assert shown == (1, 5)
    for query in (
        "SELECT mst_key, model_weights, model_arch::text, __dist_key__ FROM {0} ORDER BY 1",
        "SELECT * FROM {0}_info ORDER BY mst_key",
        f"SELECT to_jsonb(i) - ARRAY['model', 'model_info'] FROM {{0}}_summary i WHERE ({own}) IS "
        "NOT NULL",
    ):
        assert bench.rows(query.format("early")) == bench.rows(query.format("late"))
    states = [
        bench.rows(f"TABLE {bench.states(name)} ORDER BY mst_key, part")
        for name in ("early", "late")
    ]
    assert states[0] == states[1] and {key for key, *_ in states[0]} == {1, 2, 3, 4}


@pytest.mark.postgresql("a transaction that has written there may be lost with a segment")
def test_who_is_trained_is_written_while_others_train_and_a_cancel_leaves_nothing(
    bench: Workbench,
) -> None:
    """Tables that this transaction alone sees are locked by it, and have rows of the first
    configuration.
    """
    bench.pack("beside_packed", 1)
    bench.configure(
        "beside_configs", [compile_text()], ["batch_size=8", "batch_size=8,epochs=10000000"]
    )
    bench.rows(
        "UPDATE beside_configs SET mst_key = CASE WHEN fit_params LIKE '%epochs%' THEN 2 ELSE 1 END"
    )
    made = (
        "SELECT count(*) FROM pg_locks l WHERE l.pid = %s AND l.locktype = 'relation' AND l.mode "
        "= 'RowExclusiveLock' AND l.database = (SELECT oid FROM pg_database WHERE datname = "
        "current_database()) AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = l.relation)"
    )
    caller, watcher = bench.pid(), bench.another()
    states = "SELECT relname FROM pg_class WHERE relname LIKE 'model\\_%'"
    before = {*watcher.rows(states)}
    turns = {
        "schedule": "rotation",
        "training_metrics": False,
    }  # by the times of earlier runs the long one goes first
    with bench.fitting("beside_packed", "beside", "beside_configs", 1, **turns) as fitted:
        eventually(lambda: watcher.value(made, caller) >= 3)
        assert (
            watcher.value("SELECT status FROM cerebro.run ORDER BY run_id DESC LIMIT 1")
            == "running"
        )
        assert not watcher.exists("beside", "beside_info", "beside_summary")
        watcher.rows("SELECT pg_cancel_backend(%s)", caller)
        with pytest.raises(psycopg2.errors.QueryCanceled):
            fitted.result()
    assert not watcher.exists("beside", "beside_info", "beside_summary")
    assert {*watcher.rows(states)} <= before, "a call may remove those of models that are gone"
    run = watcher.newest_run()
    watcher.rows("SELECT cerebro.write_outputs(%s, 'beside')", run)
    assert watcher.rows("SELECT mst_key, model_weights IS NULL FROM beside ORDER BY 1") == [
        (1, False),
        (2, True),
    ]
    watcher.close()
