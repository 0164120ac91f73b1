"""cerebro.register: a model of a model table under a name, of which all is asked that is asked of
models by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from models import dense, layer, perceptron, sequential
from roles import another_role, own_schema, refused
from workbench import Workbench, compile_text

SQUARE = sequential(
    [2, 2], layer("Flatten", "flat"), dense(8, "hidden"), dense(3, "output", "softmax")
)
SHAPED = """CREATE TABLE squares AS
    SELECT id, ARRAY[ARRAY[x[1], x[2]], ARRAY[x[3], x[4]]]::double precision[] AS "a ""%s", label
        FROM points"""
NAMED = (
    "SELECT id::integer, prediction, probabilities FROM cerebro.predict(%s, %s, 'id', owner => "
    "'cerebro') ORDER BY 1"
)
STATES = (
    "SELECT relname::text FROM pg_class WHERE relnamespace = 'cerebro_state'::regnamespace AND "
    "relkind = 'r'"
)


@pytest.fixture(scope="module")
def trained(bench: Workbench) -> Workbench:
    """Model tables: of classes with two keys, of arrays of two dimensions that are divided, and of
    a number.
    """
    with bench.connection.cursor() as cursor:
        cursor.execute(SHAPED)
    bench.pack("packed", 2)
    bench.configure(
        "two", [compile_text("Adam(learning_rate=0.03)"), compile_text("Adam(learning_rate=0.01)")]
    )
    bench.fit("packed", "flat", "two", 1, seed=1, validation_table="packed", workers=1)
    bench.rows(
        "SELECT training_preprocessor_dl('squares', 'boxed', 'label', '\"a \"\"%s\"', 8, 4.0, "
        "n_segments => 1)"
    )
    bench.configure("square", [compile_text("Adam(learning_rate=0.01)")], model=bench.model(SQUARE))
    bench.fit("boxed", "square_model", "square", 1, seed=1)
    bench.pack("numbers", 1, target="amount", kind="float")
    compiled = "loss='mse',optimizer='Adam(learning_rate=0.01)',metrics=['mae']"
    key = bench.model(perceptron(1, "linear"))
    bench.rows(
        "SELECT madlib_fit('numbers', 'single', 'models', %s, %s, 'batch_size=8', 1, seed => 1)",
        key,
        compiled,
    )
    return bench


@pytest.fixture
def session(trained: Workbench) -> Iterator[Workbench]:
    """Without models by name before and after."""
    trained.messages()
    yield trained
    trained.rows("ROLLBACK")
    trained.rows(
        "SELECT cerebro.drop_model(model) FROM unnest(ARRAY(SELECT model FROM cerebro.model)) AS "
        "model"
    )


def told(
    session: Workbench, table: str, source: str, columns: str, key: int
) -> list[tuple[Any, ...]]:
    """What madlib_predict says: of each row the likeliest class, and the probabilities of all."""
    session.rows("DROP TABLE IF EXISTS said")
    session.rows(
        "SELECT madlib_predict(%s, %s, 'id', %s, 'said', 'prob', mst_key => %s)",
        table,
        source,
        columns,
        key,
    )
    return session.rows(
        "SELECT id, (array_agg(class_value ORDER BY prob DESC))[1], jsonb_object_agg(class_value, "
        "prob) FROM said GROUP BY id ORDER BY id"
    )


@pytest.mark.parametrize(
    ("table", "source", "column", "keys"),
    [("flat", "points", "x", (1, 2)), ("square_model", "squares", '"a ""%s"', (1,))],
)
def test_predictions_are_those_of_the_model_table(
    session: Workbench, table: str, source: str, column: str, keys: Sequence[int]
) -> None:
    for version, key in enumerate(keys, 1):
        assert session.value("SELECT cerebro.register('named', %s, %s)", table, key) == version
        assert session.value("SELECT cerebro.deploy('named', %s)", str(version)) == version
        found, wanted = (
            session.rows(NAMED, "named", source),
            told(session, table, source, column, key),
        )
        assert len(found) == len(wanted) > 10
        for (number, prediction, probabilities), (other, label, shares) in zip(
            found, wanted, strict=True
        ):
            assert (number, prediction) == (other, label)
            assert probabilities == pytest.approx(shares, abs=1e-6)
        row = session.value(
            f"SELECT cerebro.predict_row('named', (SELECT to_jsonb(t) FROM {source} t WHERE id = "
            "7))"
        )
        assert row["prediction"] == dict((n, p) for n, p, _ in found)[7]


def test_a_model_of_a_number_and_what_is_known_of_versions(session: Workbench) -> None:
    assert session.value("SELECT cerebro.register('amount', 'single')") == 1
    session.rows("SELECT madlib_predict('single', 'points', 'id', 'x', 'told')")
    pairs = session.rows(
        "SELECT p.prediction::float8, t.prob FROM cerebro.predict('amount', 'points', 'id') p"
        " JOIN told t ON t.id = p.id::integer"
    )
    assert len(pairs) > 10 and all(
        mine == pytest.approx(theirs, rel=1e-5, abs=1e-5) for mine, theirs in pairs
    )
    known = (
        "task, target, source, metric, value, training_rows, template, software, deployed, params"
    )
    model = session.row(f"SELECT {known} FROM cerebro.model_version")
    source, params = '"public"."points"', {"table": '"public"."single"'}
    assert model == (
        "regression",
        "amount",
        source,
        "mae",
        None,
        None,
        "registered",
        {},
        True,
        params,
    )
    session.rows("SELECT cerebro.register('flat', 'flat', 2)")
    row = session.row(
        "SELECT metric, value, params -> 'mst_key' FROM cerebro.model_version WHERE model = 'flat'"
    )
    wanted = session.value("SELECT validation_metrics_final FROM flat_info WHERE mst_key = 2")
    assert row == ("accuracy", wanted, 2) and wanted is not None
    feature = session.row(
        "SELECT column_name, kind, constants, importance FROM cerebro.feature WHERE model = 'flat'"
    )
    assert feature == ("x", "array", {"shape": [4], "divisor": 1.0, "single": False}, None)


def test_a_key_is_wanted_where_there_are_several(session: Workbench) -> None:
    assert session.value("SELECT cerebro.register('alone', 'square_model')") == 1
    assert "skipping" not in "".join(session.messages())
    assert (
        session.value("SELECT params -> 'mst_key' FROM cerebro.model_version WHERE model = 'alone'")
        == 1
    )
    refused(session, "SELECT cerebro.register('named', 'flat')", code="22004", words="mst_key")


def test_what_is_asked_of_models_by_name_is_answered(session: Workbench) -> None:
    session.rows("SELECT cerebro.register('named', 'flat', 1)")
    right = session.value(
        "SELECT avg((p.prediction = t.label)::integer)::float8 FROM cerebro.predict('named', "
        "'points', 'id') p JOIN points t ON t.id = p.id::integer"
    )
    evaluated = (
        "SELECT value FROM cerebro.evaluate('named', 'points') WHERE metric = 'accuracy' AND "
        "class IS NULL"
    )
    assert session.value(evaluated) == pytest.approx(right)
    column, importance, _, _, rows = session.row(
        "SELECT * FROM cerebro.importance('named', 'points')"
    )
    assert (
        column == "x" and importance > 0.05 and rows == session.value("SELECT count(*) FROM points")
    )
    values = session.rows(
        "SELECT column_name, attribution, gap FROM cerebro.attribution('named', 'points', 'id')"
    )
    assert len(values) == rows and {name for name, _, _ in values} == {"x"}
    assert all(abs(gap) < 0.2 and attribution is not None for _, attribution, gap in values)
    for call, words in (("verify", "registered"), ("refresh", "registered")):
        refused(session, f"SELECT * FROM cerebro.{call}('named')", code="55000", words=words)
    refused(
        session,
        "SELECT * FROM cerebro.drift('named', 'points')",
        code="55000",
        words="has no record of its training rows",
    )


@pytest.mark.parametrize(
    ("table", "key", "source"),
    [("flat", 1, "points"), ("square_model", 1, "squares"), ("single", None, "points")],
)
def test_it_is_transferred_as_a_file(
    session: Workbench, table: str, key: int | None, source: str
) -> None:
    """The network predicts a row without content first, although no array may be missing."""
    session.rows("SELECT cerebro.register('named', %s, %s)", table, key)
    exported = session.value("SELECT cerebro.export_model('named')")
    assert session.value("SELECT cerebro.import_model(%s, 'copied')", exported) == 1
    assert session.rows(NAMED, "copied", source) == session.rows(NAMED, "named", source)


def test_versions_come_and_go_with_the_transaction_and_with_the_name(session: Workbench) -> None:
    before = sorted(session.rows(STATES))
    session.rows("BEGIN")
    assert session.value("SELECT cerebro.register('named', 'flat', 1)") == 1
    session.rows("ROLLBACK")
    assert not session.rows("SELECT FROM cerebro.model") and sorted(session.rows(STATES)) == before
    assert session.value("SELECT cerebro.register('named', 'flat', 1)") == 1
    assert session.value("SELECT cerebro.register('named', 'flat', 2)") == 2
    assert session.value("SELECT version FROM cerebro.model") == 1, (
        "whether the second is better nobody has seen"
    )
    # A version does not need the tables that it was made of.
    session.rows("BEGIN; DROP TABLE flat, flat_info, flat_summary")
    assert len(session.rows(NAMED, "named", "points")) == session.value(
        "SELECT count(*) FROM points"
    )
    session.rows("ROLLBACK")
    session.rows("SELECT cerebro.drop_model('named')")
    assert sorted(session.rows(STATES)) == before


@pytest.mark.long
def test_another_version_is_compared_with_it(session: Workbench) -> None:
    """Over rows that are held back for it: which it was trained on is not known of the first."""
    session.rows("SELECT cerebro.register('named', 'flat', 1)")
    options = (
        "columns => 'amount, flag', models => '{linear}', configs => 1, epochs => 1, seed => 1, "
        "workers => 1"
    )
    session.rows(f"SELECT * FROM cerebro.train('points', 'label', 'named', {options})")
    said = "".join(session.messages())
    assert "model 'named': version 2" in said and "cannot any more" not in said
    assert session.value("SELECT count(*) FROM cerebro.model_version") == 2
    query = (
        f"SELECT * FROM cerebro.train('points', 'label', 'other', {options}, start_from => "
        f"'{{named}}')"
    )
    session.rows("SELECT cerebro.deploy('named', '1')")
    refused(session, query, code="42704", words="start_from")


@pytest.mark.long
def test_a_version_that_cannot_predict_the_rows_of_another_stands_in_no_way(
    session: Workbench,
) -> None:
    """Of some rows its input is missing, which is noticed when they are packed."""
    session.rows("SELECT cerebro.register('named', 'flat', 1)")
    session.rows(
        "CREATE TABLE gaps AS SELECT id, amount, flag, label, CASE WHEN id % 5 > 0 THEN x END AS "
        "x FROM points"
    )
    options = (
        "columns => 'amount, flag', models => '{linear}', configs => 1, epochs => 1, seed => 1, "
        "workers => 1"
    )
    (run_id, *_), *_ = session.rows(
        f"SELECT * FROM cerebro.train('gaps', 'label', 'named', {options})"
    )
    assert "can no longer predict" in "".join(session.messages())
    assert session.value("SELECT version FROM cerebro.model WHERE model = 'named'") == 2
    assert not session.exists(f"cerebro_state.r{run_id}_compared")


def test_others_predict_with_it_who_may_not_read_it(
    session: Workbench, shared_superuser: Workbench
) -> None:
    session.rows("SELECT cerebro.register('named', 'square_model', 1)")
    wanted = session.rows(NAMED, "named", "squares")
    with another_role(session, shared_superuser, "buyer") as buyer:
        own_schema(shared_superuser, "buyer")
        session.rows(
            "GRANT SELECT ON squares TO buyer; SELECT cerebro.grant_predict('named', 'buyer')"
        )
        assert buyer.rows(NAMED, "named", "squares") == wanted
        refused(buyer, "SELECT cerebro.register('mine', 'square_model', 1)", code="42501")
        session.rows("SELECT cerebro.revoke_predict('named', 'buyer')")


def test_rows_that_do_not_fit_are_refused(session: Workbench) -> None:
    session.rows("SELECT cerebro.register('named', 'flat', 1)")
    predict = "SELECT * FROM cerebro.predict('named', '{}', 'id')"
    for value, code in {
        "NULL": "22004",
        "ARRAY[1, NULL, 2, 3]": "22004",
        "ARRAY[1, 2, 3]": "42804",
    }.items():
        session.rows(
            f"CREATE OR REPLACE VIEW wrong AS SELECT id, ({value})::real[] AS x FROM points"
        )
        refused(session, predict.format("wrong"), code=code)
    for value in ("'a'::text", "5", "ARRAY['a']"):
        session.rows(f"DROP VIEW wrong; CREATE VIEW wrong AS SELECT id, {value} AS x FROM points")
        refused(session, predict.format("wrong"), code="42804", words="array of 4 numbers")
    refused(session, predict.format("flat_info"), code="42703")
    refused(session, "SELECT cerebro.predict_row('named', '{\"x\": [1, 2]}')", code="42804")
    refused(session, "SELECT cerebro.predict_row('named', '{}')", code="22004", words="column x")
    assert session.value(
        "SELECT cerebro.predict_row('named', (SELECT to_jsonb(t) FROM points t WHERE id = 7))"
    )


@pytest.mark.long
def test_a_model_of_classes_without_names_is_refused(session: Workbench) -> None:
    session.rows(
        "CREATE VIEW encoded AS SELECT id, x, ARRAY[(id % 2), 1 - id % 2]::smallint[] AS y, label "
        "FROM points"
    )
    session.pack("one_hot", 1, source="encoded", target="y")
    session.configure("pair", [compile_text()], model=session.model(perceptron(2, "softmax")))
    session.fit("one_hot", "unnamed", "pair", 1)
    refused(session, "SELECT cerebro.register('n', 'unnamed', 1)", code="0A000")
    assert not session.rows("SELECT FROM cerebro.model")


def test_what_cannot_be_registered_is_refused_and_leaves_nothing(session: Workbench) -> None:
    session.rows("CREATE TABLE lone AS TABLE flat; CREATE TABLE lone_info AS TABLE flat_info")
    session.rows("CREATE TABLE lone_summary AS TABLE flat_summary")
    before = sorted(session.rows(STATES))
    wrong = {
        "NULL, 'flat', 1": "22004", "'', 'flat', 1": "22004", "'n', NULL": "22004",
        "'n', 'gone'": "42P01",
        "'n', 'points'": "42703", "'n', 'flat'": "22004", "'n', 'flat', 9": "42704",
        "'n', 'single', 1": "22023",
        "'n', 'lone', 1": "55000",
    }  # fmt: skip
    for arguments, code in wrong.items():
        refused(session, f"SELECT cerebro.register({arguments})", code=code)
    assert sorted(session.rows(STATES)) == before and not session.rows("SELECT FROM cerebro.model")
