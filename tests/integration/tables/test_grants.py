"""Predictions with a model for who may not read its weights: what is granted, and no way to
more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg2
import pytest
from models import CLASSES, dense, sequential
from roles import another_role, refused
from workbench import Workbench, compile_text, superuser

pytestmark = pytest.mark.postgresql(
    "on Greenplum nobody can predict with a model table without reading it"
)

FIT_WORKERS = 1
PREDICT = "SELECT madlib_predict('model', %s, 'id', 'x', %s, mst_key => 1)"
START = json.dumps({"framework": "tensorflow", "trainers": 2})
COMPILE = {
    "optimizer": {"class_name": "SGD", "config": {}},
    "loss": "categorical_crossentropy",
    "metrics": [],
}


@pytest.fixture(scope="module")
def model(bench: Workbench) -> Workbench:
    """The session of a model's owner."""
    bench.pack("packed", 2)
    bench.configure("one", [compile_text(), compile_text("SGD(learning_rate=1e38)")])
    bench.fit("packed", "model", "one", 2, seed=1)
    return bench


@pytest.fixture(scope="module")
def ann(model: Workbench, shared_superuser: Workbench) -> Iterator[Workbench]:
    """A session of a role with data of its own, that may predict."""
    with another_role(model, shared_superuser, "tenant") as session:
        shared_superuser.rows("CREATE SCHEMA tenant AUTHORIZATION tenant")
        session.rows("SET search_path = tenant, public, madlib")
        model.rows("GRANT SELECT ON points, packed, packed_summary TO tenant")
        session.rows("CREATE TABLE mine AS TABLE points")
        session.rows(
            "CREATE TABLE mine_packed AS TABLE packed; CREATE TABLE mine_packed_summary AS TABLE "
            "packed_summary"
        )
        model.rows("SELECT cerebro.grant_predict('model', 'tenant')")
        yield session


@pytest.mark.long
def test_predictions_and_metrics_are_those_of_the_owner(model: Workbench, ann: Workbench) -> None:
    model.rows(PREDICT, "points", "predicted")
    ann.rows(PREDICT, "mine", "tenant.predicted")
    query = "SELECT id, class_value, prob, rank FROM predicted ORDER BY 1, 2"
    assert ann.rows(query) == model.rows(query) and len(ann.rows(query)) == 288
    model.rows("SELECT madlib_evaluate('model', 'packed', 'evaluated', mst_key => 1)")
    ann.rows("SELECT madlib_evaluate('model', 'mine_packed', 'tenant.evaluated', mst_key => 1)")
    assert ann.rows("SELECT * FROM evaluated") == model.rows("SELECT * FROM evaluated")


@pytest.mark.long
def test_in_the_caller_s_own_session(ann: Workbench) -> None:
    ann.rows("CREATE TEMP TABLE passing AS TABLE mine")
    ann.rows(PREDICT, "passing", "of_passing")
    assert ann.value("SELECT count(*) FROM of_passing") == 288
    refused(ann, "SELECT cerebro_internal.state_chunks(8120, 'result')", code="55000")


def test_the_weights_are_not_read(ann: Workbench) -> None:
    ann.rows(
        "SELECT mst_key, model_arch FROM model; SELECT * FROM model_info; SELECT * FROM "
        "model_summary"
    )
    for statement in (
        "SELECT model_weights FROM model",
        "SELECT * FROM model",
        "SELECT model FROM model",
        "COPY model TO STDOUT",
        f"SELECT FROM {ann.states('model')}",
        "CREATE TABLE tenant.copied AS TABLE model",
    ):
        refused(ann, statement)


def test_a_model_that_failed_has_none(ann: Workbench) -> None:
    error = refused(
        ann,
        "SELECT madlib_predict('model', 'mine', 'id', 'x', 'failed', mst_key => 2)",
        code="55000",
    )
    assert "has no weights" in str(error)


def job(kind: str = "predict", **more: Any) -> str:
    """A job of the tenant's own making."""
    program = {
        "architecture": json.loads(CLASSES),
        "compile": COMPILE,
        "targets": [{"kind": "onehot", "classes": 3}],
    }
    return json.dumps(
        {"job": kind, "program": program, "result_key": "mine", "datasets": [], **more}
    )


KEPT = {"source": "kept", "key": "mine", "seed": 0}


def test_by_hand_the_weights_do_not_come_out(ann: Workbench) -> None:
    """All that a session can ask of the trainer that holds them."""
    session = ann.another()
    session.rows("SET search_path = tenant, public, madlib")
    session.rows("SELECT cerebro_internal.trainer_start(%s)", START)
    fill = "SELECT model_predict(%s, 1)"
    assert session.value(fill, job()) > 0
    error = refused(
        session, "SELECT count(*) FROM cerebro_internal.state_chunks(8120, 'result')", code="55000"
    )
    assert "sealed" in str(error)
    session.rows(fill, job())
    session.rows("SELECT cerebro_internal.job_finish()")
    refused(
        session, "SELECT count(*) FROM cerebro_internal.state_chunks(8120, 'result')", code="55000"
    )
    refused(session, "SELECT cerebro_internal.job_begin(%s)", job(state=KEPT), code="55000")
    session.rows(fill, job())
    refused(session, "SELECT cerebro_internal.job_begin(%s)", job(state=KEPT), code="55000")
    # Nor is another job given them: of another kind, of another architecture, one that is not
    # sealed.
    refused(session, fill, job("train"), code="22023")
    refused(session, fill, job("time"), code="22023")
    session.rows(
        "SELECT cerebro_internal.job_begin(%s)",
        job(state={"source": "weights_of_chunks", "key": "", "seed": 0}),
    )
    session.rows("SELECT cerebro.sealed_add(1, 'abc')")
    refused(session, "SELECT cerebro_internal.job_finish()")
    session.close()


def test_the_architecture_is_the_owner_s(ann: Workbench, model: Workbench) -> None:
    """One that puts its weights out would tell them: here an embedding's rows, or a kernel on the
    unit vectors.
    """
    tell = sequential([1], dense(67, "o", "linear", use_bias=False))
    session = ann.another()
    session.rows("SET search_path = tenant, public, madlib")
    session.rows("SELECT cerebro_internal.trainer_start(%s)", START)
    program = {"architecture": json.loads(tell), "compile": COMPILE, "targets": [{"kind": "float"}]}
    session.rows(
        "SELECT model_predict(%s, 1)",
        job(program=program, sealed=False, do="state_get", chunk_bytes=8120),
    )
    session.rows(
        "SELECT cerebro_internal.predict_begin(%s)",
        json.dumps(
            {
                "block": 1,
                "request": {
                    "arrays": [{"kind": "float32", "column": "x", "divide": 1.0}],
                    "want": {"kind": "prob"},
                    "classes": [0],
                },
            }
        ),
    )
    query = (
        "SELECT cerebro_internal.predict_add('1', "
        "ARRAY[cerebro_internal.array_bytes(%s::real[])]), "
        "cerebro_internal.predict_rest()"
    )
    assert (
        session.row(query, [1.0, 2.0, 3.0, 4.0])[1] is not None
    )  # the owner's model takes four numbers
    with pytest.raises(psycopg2.Error):
        session.row(query, [1.0])
    session.close()


def test_code_in_the_guest_s_rows_gets_nothing(ann: Workbench) -> None:
    """It runs in the worker session, beside the trainer that holds the weights."""
    ann.rows("""
        CREATE FUNCTION spying(id integer) RETURNS text LANGUAGE plpgsql AS $$
        BEGIN
            RETURN (SELECT sum(octet_length(c))
                    FROM cerebro_internal.state_chunks(8120, 'result') c);
        EXCEPTION WHEN OTHERS THEN
            RETURN SQLSTATE || ' ' || SQLERRM;
        END $$;
        CREATE VIEW spied AS SELECT spying(id) AS id, x FROM (SELECT * FROM mine LIMIT 3) m""")
    with pytest.raises(psycopg2.Error):
        # An error ends the job whose state it asked for.
        ann.rows(PREDICT, "spied", "of_spied")
    assert not ann.exists("tenant.of_spied")


def test_only_the_owner_grants(ann: Workbench, model: Workbench) -> None:
    for session in (ann, other := superuser(model)):
        session.rows("SET search_path = public, madlib, tenant")
        for function in ("grant_predict", "revoke_predict"):
            error = refused(session, f"SELECT cerebro.{function}('model', 'tenant')")
            assert "expected tables of your own" in str(error)
    other.close()
    ann.rows("SET search_path = tenant, public, madlib")
    for statement, code in {
        "SELECT cerebro.grant_predict(NULL, 'tenant')": "22004",
        "SELECT cerebro.grant_predict('model', NULL)": "22004",
        "SELECT cerebro.grant_predict('gone', 'tenant')": "42P01",
        "SELECT cerebro.grant_predict('points', 'tenant')": "42703",
        "SELECT cerebro.grant_predict('model', '12345678')": "42704",
        "SELECT cerebro.grant_predict('model', 'nobody_at_all')": "42704",
        "SELECT cerebro.revoke_predict('model; DROP TABLE model', 'tenant')": "42602",
        "SELECT cerebro.grant_predict('model', current_user::text::regrole)": "22023",
        "SELECT cerebro.revoke_predict('model', current_user::text::regrole)": "22023",
    }.items():
        refused(model, statement, code=code)


def test_a_function_of_somebody_else_is_not_called(model: Workbench, ann: Workbench) -> None:
    """It would run as the caller, where it is not declared to run as the owner of the tables."""
    columns = "mst_key, model_arch, NULL::bytea AS model_weights, __dist_key__"
    for suffix, taken in {"": columns, "_info": "*", "_summary": "*"}.items():
        ann.rows(f"CREATE TABLE tenant.trap{suffix} AS SELECT {taken} FROM model{suffix}")
    ann.rows(
        "GRANT USAGE ON SCHEMA tenant TO cerebro; GRANT SELECT ON trap_info, trap_summary TO "
        "cerebro"
    )
    ann.rows("GRANT SELECT (mst_key, model_arch) ON trap TO cerebro")
    ann.rows(
        "CREATE FUNCTION tenant.trap_predict(spec json, mst_key integer) RETURNS bigint LANGUAGE "
        "plpgsql AS $$BEGIN RAISE EXCEPTION 'ran as %', current_user; END$$"
    )
    error = refused(
        model, "SELECT madlib_predict('tenant.trap', 'points', 'id', 'x', 'caught', mst_key => 1)"
    )
    assert "permission denied for the weights" in str(error) and "grant_predict" in str(
        error.diag.message_hint
    )


LEAK = """
CREATE TABLE stolen (chunk bytea); CREATE TABLE tried (sqlstate text);
CREATE FUNCTION leak(spec json) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    key text;
BEGIN
    FOR key IN SELECT json_array_elements_text(spec -> 'datasets') LOOP
        PERFORM cerebro_internal.job_begin((spec::jsonb || jsonb_build_object(
            'job', 'train', 'datasets', jsonb_build_array(key), 'state',
                '{"source": "new", "seed": 1}'::jsonb,
            'fit', '{"batch_size": 8, "epochs": 1, "shuffle": false}'::jsonb,
            'order', '{"seed": 1, "mst_key": 1, "epoch": 1, "segment_id": 0}'::jsonb))::json);
        PERFORM cerebro_internal.job_finish();
        INSERT INTO public.stolen SELECT c FROM cerebro_internal.state_chunks(8120, 'result') c;
    END LOOP;
    RETURN 0;
EXCEPTION WHEN OTHERS THEN
    INSERT INTO public.tried VALUES (SQLSTATE);
    RETURN 0;
END $$;
CREATE FUNCTION constant(n integer) RETURNS integer IMMUTABLE LANGUAGE plpgsql
    AS $$BEGIN RETURN n; END$$;
"""
REPLACED = """
CREATE OR REPLACE FUNCTION model_predict(spec json, mst_key integer) RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT public.leak($1);
    SELECT cerebro.sealed_begin($1, m.model_arch) FROM public.model m WHERE m.mst_key = $2;
    SELECT count(cerebro.sealed_add(s.part, s.chunk))
    FROM (SELECT t.part, t.chunk FROM {states} t WHERE t.mst_key = $2 ORDER BY t.part OFFSET 0) s;
END"""
CHANGES = {
    "another body": (REPLACED, ""),
    "another setting": ("ALTER FUNCTION model_predict SET work_mem = '1MB'", ""),
    "a policy": (
        "ALTER TABLE model ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON model USING (constant(1) "
        "= 1)",
        "ALTER TABLE model DISABLE ROW LEVEL SECURITY; DROP POLICY p ON model",
    ),
    "a child": ("CREATE TABLE child () INHERITS ({states})", "DROP TABLE child"),
    "an index of an expression": (
        "CREATE INDEX computed ON model ((constant(1)))",
        "DROP INDEX computed",
    ),
    "an index of some rows": (
        "CREATE INDEX partial ON model (mst_key) WHERE constant(1) = 1",
        "DROP INDEX partial",
    ),
    "statistics": (
        "CREATE STATISTICS seen ON (constant(1)), mst_key FROM model",
        "DROP STATISTICS seen",
    ),
    "a check": (
        "ALTER TABLE model ADD CONSTRAINT c CHECK (constant(1) = 1)",
        "ALTER TABLE model DROP CONSTRAINT c",
    ),
}


@pytest.fixture(scope="module")
def leaking(model: Workbench) -> Workbench:
    """The owner, who has functions that would steal the tenant's rows."""
    model.rows(LEAK)
    return model


@pytest.fixture
def bare(ann: Workbench) -> Iterator[Workbench]:
    """A session of the tenant with a trainer that has no framework: what is refused needs none."""
    session = ann.another()
    session.rows("SELECT cerebro_internal.trainer_start(%s)", json.dumps({"framework": "none"}))
    yield session
    session.close()


@pytest.mark.parametrize("kind", CHANGES)
def test_no_code_of_the_owner_runs_beside_the_guest_s_rows(
    leaking: Workbench, ann: Workbench, bare: Workbench, kind: str
) -> None:
    """It runs in the session that reads them, and could have the trainer learn them by heart."""
    states = leaking.states("model")
    change, back = (text.replace("{states}", states) for text in CHANGES[kind])
    words = "is not the one that cerebro.grant_predict makes"
    try:
        leaking.rows(change)
        error = refused(
            bare,
            "SELECT cerebro_internal.sealed_job('public.model'::regclass, %s, 1)",
            job(),
            words=words,
        )
        assert "revoke_predict" in str(error.diag.message_hint)
        if not back:
            call = "SELECT madlib_evaluate('model', 'mine_packed', 'tenant.never', mst_key => 1)"
            refused(ann, call, words=words)
        assert leaking.rows("SELECT FROM stolen") == leaking.rows("SELECT FROM tried") == []
    finally:
        leaking.rows(back or "SELECT cerebro.revoke_predict('model', 'tenant')")
        leaking.rows("SELECT cerebro.grant_predict('model', 'tenant')")


FOR_ALL = {
    "trainer_start",
    "trainer_rest",
    "trainer_stop",
    "trainer_report",
    "gpu_count",
}  # they give and take nothing
GIVING = {"sealed_begin", "sealed_add"}  # what an owner's function is for


def test_a_trainer_serves_the_role_that_started_it_alone(
    model: Workbench, ann: Workbench, bare: Workbench
) -> None:
    """Whatever lets another role's code run in a session: its trainer gives that code nothing, and
    takes nothing.
    """
    model.rows(
        "CREATE FUNCTION as_owner(statement text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS"
        " $$BEGIN EXECUTE statement; END$$"
    )
    functions = ann.rows(
        "SELECT proname::text, format('SELECT %s(%s)', oid::regproc, array_to_string(ARRAY( "
        "SELECT 'NULL::' || format_type(t, NULL) FROM unnest(proargtypes) t), ', ')) FROM pg_proc "
        "WHERE pronamespace IN ('cerebro'::regnamespace, 'cerebro_internal'::regnamespace) "
        "AND prosrc LIKE '%%api import segment%%'"
    )
    assert FOR_ALL | GIVING | {"state_chunks", "predict_rest", "pack_block"} < {
        name for name, _ in functions
    }
    session = ann.another()
    session.rows("SELECT cerebro_internal.trainer_start(%s)", START)
    session.rows('SELECT cerebro_internal.predict_begin(\'{"request": {}, "block": 10}\')')
    for name, call in functions:
        if name not in FOR_ALL | GIVING:
            given = (
                call.replace("NULL::text", "'1'")
                .replace("NULL::json", "'{}'")
                .replace("NULL::bytea", "''")
            )
            given = (
                given.replace("''[]", "ARRAY[''::bytea]")
                .replace("NULL::integer", "1")
                .replace("NULL::oid", "1")
            )
            refused(
                bare,
                "SELECT public.as_owner(%s)",
                given.replace("NULL::bigint", "1"),
                words="another role",
            )
    model.rows("DROP FUNCTION as_owner")


def test_the_function_keeps_its_model(model: Workbench) -> None:
    with pytest.raises(psycopg2.errors.DependentObjectsStillExist, match="model_predict"):
        model.rows("DROP TABLE model")


def test_what_was_granted_is_taken_back(
    model: Workbench, ann: Workbench, shared_superuser: Workbench
) -> None:
    with another_role(model, shared_superuser, "second_guest") as second:
        second.rows("SET search_path = public, madlib")
        error = refused(
            second, "SELECT madlib_predict('model', 'points', 'id', 'x', 'public.o', mst_key => 1)"
        )
        model.rows("SELECT cerebro.grant_predict('model', 'second_guest')")
        model.rows("SELECT cerebro.revoke_predict('model', 'tenant')")
        error = refused(ann, PREDICT, "mine", "tenant.no_more")
        assert "model" in str(error)
        assert second.value("SELECT count(*) FROM model_info") == 2
        model.rows("SELECT cerebro.revoke_predict('model', 'second_guest')")
    assert model.rows("SELECT FROM pg_proc WHERE proname = 'model_predict'") == []
    refused(model, "SELECT cerebro.revoke_predict('model', 'tenant')", code="42704")
    model.rows("SELECT cerebro.grant_predict('model', 'tenant')")
