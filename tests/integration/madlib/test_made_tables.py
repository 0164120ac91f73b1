"""Tables that MADlib itself made are used as they are, or refused with the reason and what to
do.
"""

from __future__ import annotations

import keras
import madlib_made
import numpy as np
import psycopg2
import pytest
from followed_hints import read_statements
from madlib_job import TOLERANCE
from madlib_made import LABELS, architectures, network, outputs, packed, selection, trained
from workbench import Workbench

FIT_WORKERS = 1
OF_POSTGRESQL = pytest.mark.postgresql("elsewhere a segment's rows are found by their key")
PACKED = [
    pytest.param(True, "manual", True, id="with keys-manual-encoded"),
    pytest.param(False, "2.x", False, id="without keys-2.x-classes", marks=OF_POSTGRESQL),
]
"""Each value of keys, summary and targets once: no code asks for two of them at once."""


@pytest.fixture(scope="module", autouse=True)
def others(bench: Workbench) -> None:
    architectures(bench, "arch", version="2.x")
    selection(bench, "mst", "arch")


@pytest.fixture(scope="module")
def models() -> dict[int, keras.Model]:
    return {3: network(1), 40: network(2)}


@pytest.mark.parametrize(("keys", "summary", "encoded"), PACKED)
def test_packed_tables(bench: Workbench, keys: bool, summary: str, encoded: bool) -> None:
    """They are trained on and evaluated on, whole: the loss is that of Keras over all rows."""
    name = f"packed_{keys}_{summary.replace('.', '_')}_{encoded}"
    packed(bench, name, keys=keys, summary=summary, encoded=encoded)
    run = bench.fit(name, f"of_{name}", "mst", 1, validation_table=name)
    segments = bench.value(
        "SELECT count(DISTINCT segment_id) FROM cerebro.visit WHERE run_id = %s", run
    )
    assert segments >= 2
    rows = "SELECT sum(rows) FROM cerebro.visit WHERE run_id = %s AND epoch = 1"
    assert bench.value(rows, run) == 96
    bench.rows(f"SELECT madlib_keras_evaluate('of_{name}', '{name}', 'scored_{name}', FALSE, 1)")
    final = bench.row(f"SELECT validation_loss_final, validation_metrics_final FROM of_{name}_info")
    assert bench.row(f"SELECT loss, metric FROM scored_{name}") == pytest.approx(
        final, abs=TOLERANCE
    )
    bench.rows(
        f"SELECT madlib_keras_predict('of_{name}', 'points', 'id', 'x', 'guess_{name}', 'prob', "
        "FALSE, 1)"
    )
    labels = {label for (label,) in bench.rows(f"SELECT class_value FROM guess_{name}")}
    assert labels == ({"0", "1", "2"} if encoded else set(LABELS))
    losses = bench.rows(
        f"SELECT -ln(prob) FROM guess_{name} JOIN points USING (id)"
        f" WHERE class_value = {'(array_position(%s, label) - 1)::text' if encoded else 'label'}",
        *([LABELS] if encoded else []),
    )
    assert np.mean([loss for (loss,) in losses]) == pytest.approx(final[0], abs=TOLERANCE)


@pytest.mark.parametrize(
    "keys", [True, pytest.param(False, marks=pytest.mark.postgresql("there are keys elsewhere"))]
)
def test_packing_for_validation_against_a_table_of_madlib_s(bench: Workbench, keys: bool) -> None:
    """Keys of segments may be any, such as those of a Greenplum that the table was restored
    from.
    """
    older, newer = f"older_{keys}", f"newer_{keys}"
    packed(bench, older, keys=keys)
    bench.rows("SELECT validation_preprocessor_dl('points', %s, 'label', 'x', %s)", newer, older)
    assert bench.value(f"SELECT label_class_values FROM {newer}_summary") == LABELS
    bench.fit(older, f"of_{older}", "mst", 1, validation_table=newer)
    losses = f"SELECT training_loss_final, validation_loss_final FROM of_{older}_info"
    first, second = bench.row(losses)
    assert first == pytest.approx(second, abs=TOLERANCE)


def test_packed_tables_before_1_18_are_refused_as_madlib_does(bench: Workbench) -> None:
    madlib_made.packed_of_1_17(bench, "ancient")
    for call in (
        "madlib_keras_fit_multiple_model('ancient', 'o', 'mst', 1)",
        "validation_preprocessor_dl('points', 'o', 'label', 'x', 'ancient')",
    ):
        with pytest.raises(psycopg2.Error) as error:
            bench.rows(f"SELECT {call}")
        assert error.value.pgcode == "42809"
        assert (
            "Input table 'ancient' was preprocessed with an older version of the input "
            "preprocessor. Please re-run the current version of input preprocessor on the "
            "dataset."
        ) in str(error.value)
        assert "training_preprocessor_dl" in str(error.value.diag.message_hint)


@pytest.mark.parametrize("version", ["1.x", "2.x"])
def test_architecture_tables(bench: Workbench, version: str) -> None:
    """They are added to, trained from, deleted from, and dropped with their last row."""
    name = architectures(bench, f"arch_{version.replace('.', '_')}", version=version)
    bench.rows(f"SELECT load_keras_model('{name}', (SELECT model_arch FROM {name}), NULL, 'added')")
    assert bench.rows(f"SELECT model_id, name FROM {name} ORDER BY 1") == [
        (1, "from MADlib"),
        (2, "added"),
    ]
    selection(bench, f"mst_of_{name}", name, objects=version == "2.x")
    packed(bench, f"packed_for_{name}")
    bench.fit(f"packed_for_{name}", f"of_{name}", f"mst_of_{name}", 1)
    assert bench.value(f"SELECT training_loss_final > 0 FROM of_{name}_info")
    bench.rows(f"SELECT delete_keras_model('{name}', 2), delete_keras_model('{name}', 1)")
    assert not bench.exists(name)


def test_configurations_are_added_to_a_table_of_madlib_s(bench: Workbench) -> None:
    selection(bench, "grown", "arch")
    bench.rows(
        "SELECT generate_model_configs('arch', 'grown', ARRAY[1], $${'loss': ['mse'], "
        "'optimizer_params_list': [{'optimizer': ['SGD'], 'lr': [0.1]}]}$$, $${'epochs': [1, "
        "2]}$$)"
    )
    assert bench.rows("SELECT mst_key FROM grown ORDER BY 1") == [(1,), (2,), (3,)]


@pytest.mark.parametrize(
    ("version", "encoded"), [("2.x", False), ("1.17", True)], ids=["2.x-classes", "1.17-encoded"]
)
def test_trained_models(
    bench: Workbench, models: dict[int, keras.Model], version: str, encoded: bool
) -> None:
    """They predict and are evaluated as Keras does with their weights."""
    name = f"model_{version.replace('.', '_')}_{encoded}"
    trained(bench, name, models, version=version, encoded=encoded)
    packed(bench, f"test_of_{name}", encoded=encoded)
    labels = [label for (label,) in bench.rows("SELECT label FROM points ORDER BY id")]
    for key, model in models.items():
        wanted = outputs(bench, model)
        table = f"guess_{name}_{key}"
        bench.rows(
            f"SELECT madlib_keras_predict('{name}', 'points', 'id', 'x', '{table}', 'prob', FALSE, "
            f"{key})"
        )
        found = bench.rows(f"SELECT prob FROM {table} ORDER BY id, class_value")
        assert [p for (p,) in found] == pytest.approx(wanted.reshape(-1), abs=TOLERANCE)
        classes = [
            value for (value,) in bench.rows(f"SELECT DISTINCT class_value FROM {table} ORDER BY 1")
        ]
        assert classes == (["0", "1", "2"] if encoded else LABELS)
        bench.rows(
            f"SELECT madlib_keras_evaluate('{name}', 'test_of_{name}', 'scored_{table}', FALSE, "
            f"{key})"
        )
        loss, metric, kinds, kind = bench.row(f"SELECT * FROM scored_{table}")
        truth = [LABELS.index(label) for label in labels]
        assert loss == pytest.approx(-np.log(wanted[np.arange(96), truth]).mean(), abs=TOLERANCE)
        assert metric == pytest.approx(np.mean(wanted.argmax(axis=1) == truth), abs=TOLERANCE)
        assert (kinds, kind) == (["accuracy"], "categorical_crossentropy")


@pytest.mark.parametrize("version", ["2.x", "1.17"])
def test_a_lone_null_says_that_classes_are_unknown(
    bench: Workbench, models: dict[int, keras.Model], version: str
) -> None:
    """As where targets came encoded: predictions go by place, and shapes alone decide what is
    evaluated.
    """
    name = f"unsure_{version.replace('.', '_')}"
    trained(bench, name, models, version=version)
    column = "label_class_values" if version == "2.x" else "class_values"
    bench.rows(f"UPDATE {name}_summary SET {column} = ARRAY[NULL]::text[]")
    bench.rows(
        f"SELECT madlib_keras_predict('{name}', 'points', 'id', 'x', 'guess_{name}', mst_key => 3)"
    )
    found = bench.rows(f"SELECT class_value, prob FROM guess_{name} ORDER BY id, class_value")
    assert [label for label, _ in found[:3]] == ["0", "1", "2"]
    assert [p for _, p in found] == pytest.approx(
        outputs(bench, models[3]).reshape(-1), abs=TOLERANCE
    )
    packed(bench, f"known_{name}")
    bench.rows(
        f"SELECT madlib_keras_evaluate('{name}', 'known_{name}', 'scored_{name}', mst_key => 3)"
    )
    assert bench.value(f"SELECT loss > 0 FROM scored_{name}")


def test_shapes_decide_what_is_validated_and_evaluated_on(bench: Workbench) -> None:
    """Encoded targets are of the classes of the others, in their order; a lone NULL says that
    nobody knows them.
    """
    for name in ("named", "coded", "nulled"):
        packed(bench, name, encoded=name == "coded")
    bench.rows("UPDATE nulled_summary SET label_class_values = ARRAY[NULL]::text[]")
    for source, other in (("named", "coded"), ("coded", "named"), ("nulled", "named")):
        name = f"{source}_{other}"
        bench.fit(source, name, "mst", 1, validation_table=other)
        first, second = bench.row(
            f"SELECT training_loss_final, validation_loss_final FROM {name}_info"
        )
        assert first == pytest.approx(second, abs=TOLERANCE)
        bench.rows(
            f"SELECT madlib_keras_evaluate('{name}', '{other}', 'scored_{name}', mst_key => 1)"
        )
        assert bench.value(f"SELECT loss FROM scored_{name}") == pytest.approx(first, abs=TOLERANCE)


def test_the_output_of_madlib_holds_no_states_to_go_on_from(
    bench: Workbench, models: dict[int, keras.Model]
) -> None:
    """warm_start says so, and how its weights are gone on from; that way works."""
    trained(bench, "before", models, version="2.x")
    packed(bench, "go_on")
    with pytest.raises(
        psycopg2.errors.UndefinedTable, match="table 'before' has no states"
    ) as error:
        bench.fit("go_on", "before", "mst", 1, warm_start=True)
    (statement,) = read_statements(
        error.value,
        "Load a network with these weights: {} Then train its model_id without warm_start, into "
        "another table.",
    )
    bench.rows(statement)
    loaded = bench.value("SELECT max(model_id) FROM networks")
    selection(bench, "mst_on", "networks")
    bench.rows(
        "UPDATE mst_on SET model_id = %s, compile_params = replace(compile_params, '0.01', "
        "'1e-30')",
        loaded,
    )
    bench.fit("go_on", "after", "mst_on", 1)
    found = np.frombuffer(bench.weights("after")[1], "<f4")
    assert found == pytest.approx(
        np.frombuffer(madlib_made.flat(models[min(models)]), "<f4"), abs=1e-20
    )


def test_tables_of_one_model(bench: Workbench, models: dict[int, keras.Model]) -> None:
    madlib_made.single(bench, "one", models[3])
    packed(bench, "scene")
    wanted = outputs(bench, models[3])
    labels = [label for (label,) in bench.rows("SELECT label FROM points ORDER BY id")]
    bench.rows("SELECT madlib_keras_predict('one', 'points', 'id', 'x', 'one_predicted')")
    told = bench.rows("SELECT prob FROM one_predicted ORDER BY id, class_value")
    assert np.array(told).reshape(-1, 3) == pytest.approx(wanted, abs=TOLERANCE)
    bench.rows("SELECT madlib_keras_evaluate('one', 'scene', 'one_loss')")
    truth = [LABELS.index(label) for label in labels]
    loss = bench.value("SELECT loss FROM one_loss")
    assert loss == pytest.approx(-np.log(wanted[np.arange(96), truth]).mean(), abs=TOLERANCE)
    with pytest.raises(
        psycopg2.errors.InvalidParameterValue, match="Single model should not pass mst_key"
    ):
        bench.rows("SELECT madlib_keras_evaluate('one', 'scene', 'o', mst_key => 1)")
