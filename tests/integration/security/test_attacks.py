"""What a user might try, each tried: nothing of it runs with somebody else's rights, and nothing
else breaks.
"""

from __future__ import annotations

import itertools
import json
import struct
from collections.abc import Iterator
from pathlib import Path

import networks
import psycopg2
import pytest
from models import CLASSES, dense, layer, perceptron, sequential
from roles import another_role, own_schema, refused, session_of
from workbench import Workbench, compile_text

FIT_WORKERS = 1
numbers = itertools.count(1)
# What a statement of a user would do if somebody ran it as text: the table says who did.
LOOT = "CREATE TABLE public.loot AS SELECT current_user::text AS thief"
PREDICT = "SELECT madlib_predict(%s, %s, %s, 'x', %s, 'response', mst_key => 1)"


def fresh(stem: str) -> str:
    """A table name that no other test uses."""
    return f"{stem}_{next(numbers)}"


@pytest.fixture(scope="module")
def tables(bench: Workbench) -> Workbench:
    """A packed table, configurations and a model of the ordinary role."""
    bench.pack("packed", 2)
    bench.configure("one", [compile_text()])
    bench.fit("packed", "model", "one", 1, seed=1)
    return bench


@pytest.fixture(scope="module")
def mallorys(tables: Workbench, shared_superuser: Workbench) -> Iterator[Workbench]:
    """A session of a role of its own, whose trainers wait between the tests."""
    with another_role(tables, shared_superuser, "mallory") as session:
        session.fit_workers = FIT_WORKERS
        yield session


@pytest.fixture
def mallory(
    tables: Workbench, shared_superuser: Workbench, mallorys: Workbench
) -> Iterator[Workbench]:
    """A session of a role that may use the extension and the tables, and has a schema of its
    own.
    """
    own_schema(shared_superuser, "mallory")
    shared_superuser.rows(
        "GRANT USAGE ON SCHEMA madlib TO mallory; SELECT cerebro.grant_usage('mallory')"
    )
    shared_superuser.rows("GRANT USAGE ON SCHEMA mallory TO PUBLIC")
    tables.rows(
        "GRANT SELECT ON points, packed, packed_summary, one, one_summary, models TO mallory"
    )
    mallorys.rows("SET search_path = mallory, public, madlib")
    yield mallorys
    shared_superuser.rows("DROP OWNED BY mallory CASCADE")


# The log is its owner's to write in.

FORGED = {
    "a statement": f"cerebro_state.t; {LOOT}; --",
    "a query": "(SELECT 1 AS part, ''::bytea AS chunk FROM public.points) x",
    "another's table": "public.points",
    "a catalog": "pg_catalog.pg_authid",
    "a quoted name": f'cerebro_state."r1_c1_a"; {LOOT}; --"',
    "nothing": "",
}


@pytest.mark.long
@pytest.mark.parametrize("name", FORGED.values(), ids=FORGED)
def test_names_of_state_tables_in_the_log(
    tables: Workbench, shared_superuser: Workbench, mallory: Workbench, name: str
) -> None:
    run = mallory.fit("packed", "own", "one", 1)
    mallory.rows("UPDATE cerebro.config_log SET state_tables = ARRAY[%s]", name)
    mallory.rows("UPDATE cerebro.visit SET state_table = %s", name)
    refused(mallory, "SELECT cerebro.write_outputs(%s, 'stolen')", run, code="55000")
    refused(
        shared_superuser, "SELECT cerebro.write_outputs(%s, 'public.stolen')", run, code="42704"
    )
    mallory.rows(
        "UPDATE cerebro.run_log SET status = 'failed'; UPDATE cerebro.config_log SET status = "
        "'stopped'"
    )
    mallory.rows("DROP TABLE own, own_info, own_summary")
    for session, code in ((mallory, "55000"), (shared_superuser, "42704")):
        refused(session, "SELECT cerebro.resume(%s)", run, code=code)
    refused(shared_superuser, "SELECT cerebro.drop_run(%s)", run, code="42704")
    mallory.rows("SELECT cerebro.drop_run(%s)", run)
    assert not tables.exists("public.loot", "public.stolen")
    assert tables.value("SELECT count(*) FROM points") == 96


@pytest.mark.long
def test_types_in_the_log(
    tables: Workbench, shared_superuser: Workbench, mallory: Workbench
) -> None:
    """A role can only log a run like that, not change one; which makes no difference to who reads
    it.
    """
    run = mallory.fit("packed", "own", "one", 1)
    change = (
        "UPDATE cerebro.run_log SET spec = jsonb_set(spec, '{source,class_types}', %s) WHERE "
        "run_id = %s"
    )
    refused(mallory, change, '["text[]"]', run)
    call = "SELECT cerebro.write_outputs(%s, %s)"
    for kind in (f"text[]); {LOOT}; --", "text[] DEFAULT '{a}'", "no_type"):
        shared_superuser.rows(change, json.dumps([kind]), run)
        refused(mallory, call, run, "stolen", code="XX001")  # before any of it is executed
        refused(shared_superuser, call, run, "public.stolen", code="42704")
    shared_superuser.rows(change, '["text[]"]', run)
    mallory.rows(call, run, "again")
    assert not tables.exists("public.loot", "public.stolen", "mallory.stolen")


def test_nonsense_in_the_log_does_not_stop_an_administrator_s_views(
    shared_superuser: Workbench, mallory: Workbench
) -> None:
    mallory.rows(
        'INSERT INTO cerebro.run_log (spec, pid, epochs, segments) VALUES (\'{"rank_descending": '
        "\"?\"}', 1, 1, '{}')"
    )
    run = mallory.value("SELECT max(run_id) FROM cerebro.run")
    mallory.rows(
        "INSERT INTO cerebro.config_log VALUES (%s, 1, '{}', 'waiting', NULL, '{}', 1, '', '', "
        "'{}', 'x')",
        run,
    )
    for view in ("run", "config", "leaderboard", "progress", "timeline", "learning_curve"):
        shared_superuser.rows(f"SELECT * FROM cerebro.{view}")


# Everyone may create tables where states lie.


def plant(mallory: Workbench, first: int) -> None:
    """Tables where the states of the next runs would lie, with a trigger that would run as who
    fills them.
    """
    mallory.rows(f"""
        CREATE OR REPLACE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql
            AS $$BEGIN {LOOT}; RETURN NULL; END$$""")
    # Greenplum has no triggers for statements.
    event = (
        "AFTER INSERT ON {} FOR EACH ROW" if mallory.greenplum else "AFTER INSERT OR TRUNCATE ON {}"
    )
    for run, letter in itertools.product(range(first, first + 5), "ab"):
        name = f'cerebro_state."r{run}_c1_{letter}"'
        mallory.rows(f"CREATE TABLE {name} (part integer, chunk bytea)")
        mallory.rows(f"CREATE TRIGGER t {event.format(name)} EXECUTE FUNCTION planted()")


def test_planted_state_tables_are_passed_by(
    tables: Workbench, shared_superuser: Workbench, mallory: Workbench
) -> None:
    plant(mallory, tables.newest_run() + 1)
    for session in (tables, shared_superuser):
        name = f"public.{fresh('unharmed')}"
        session.rows("SET search_path = public, madlib")
        run = session.fit("packed", name, "one", 1)
        owners = session.rows(
            "SELECT DISTINCT pg_get_userbyid(c.relowner) FROM cerebro.config, "
            "unnest(state_tables) t, pg_class c WHERE run_id = %s AND c.oid = to_regclass(t)",
            run,
        )
        assert owners == [(session.value("SELECT current_user"),)]
    assert not tables.exists("public.loot")


def test_a_state_table_planted_during_a_run_is_not_filled(
    tables: Workbench, shared_superuser: Workbench, mallory: Workbench
) -> None:
    """A run that went on with a table of that name would run its triggers."""
    shared_superuser.rows("SET search_path = public, madlib")
    run = shared_superuser.fit("packed", f"public.{fresh('ended')}", "one", 1)
    shared_superuser.rows(
        "UPDATE cerebro.run_log SET status = 'failed', epochs = 2,"
        " spec = jsonb_set(spec, '{num_iterations}', '2') WHERE run_id = %s",
        run,
    )
    names = shared_superuser.rows(
        "SELECT name FROM cerebro.config_log, unnest(state_tables) name WHERE run_id = %s", run
    )
    for (name,) in names:
        shared_superuser.rows(f"DROP TABLE {name}")
    mallory.rows(
        f"CREATE FUNCTION planted() RETURNS integer LANGUAGE plpgsql AS $$BEGIN {LOOT}; RETURN 1; "
        "END$$"
    )
    for (name,) in names:
        mallory.rows(
            f"CREATE VIEW {name} AS SELECT planted() AS part, ''::bytea AS chunk; GRANT SELECT ON "
            f"{name} TO PUBLIC"
        )
    refused(shared_superuser, "SELECT cerebro.resume(%s)", run, code=None)
    refused(shared_superuser, "SELECT cerebro.write_outputs(%s, 'public.looted')", run, code=None)
    shared_superuser.rows("SELECT cerebro.drop_run(%s)", run)
    assert not tables.exists("public.loot")


def test_a_table_planted_before_a_first_visit_is_replaced(
    tables: Workbench, shared_superuser: Workbench, mallory: Workbench
) -> None:
    """Between the log of a run and the first visit of a configuration anybody may make a table."""
    shared_superuser.rows("SET search_path = public, madlib")
    name = fresh("resumed")
    run = shared_superuser.fit("packed", f"public.{name}", "one", 1)
    shared_superuser.rows(f"DROP TABLE {name}, {name}_info, {name}_summary")
    names = shared_superuser.rows(
        "SELECT name FROM cerebro.config_log, unnest(state_tables) name WHERE run_id = %s", run
    )
    for (table,) in names:
        shared_superuser.rows(f"DROP TABLE {table}")
    for log in ("visit", "evaluation", "metric"):
        shared_superuser.rows(f"DELETE FROM cerebro.{log} WHERE run_id = %s", run)
    shared_superuser.rows("UPDATE cerebro.config_log SET status = 'waiting' WHERE run_id = %s", run)
    shared_superuser.rows("UPDATE cerebro.run_log SET status = 'failed' WHERE run_id = %s", run)
    plant(mallory, run)
    shared_superuser.rows("SELECT cerebro.resume(%s)", run)
    assert tables.exists(f"public.{name}") and not tables.exists("public.loot")


# Operators, functions and types of the caller's path.

EVIL = """
CREATE FUNCTION evil() RETURNS text LANGUAGE plpgsql IMMUTABLE
    AS $$BEGIN RAISE EXCEPTION 'ran'; END$$;
CREATE FUNCTION same(name, name) RETURNS boolean LANGUAGE plpgsql
    AS $$BEGIN RAISE EXCEPTION 'ran'; END$$;
CREATE FUNCTION same(integer, integer) RETURNS boolean LANGUAGE plpgsql
    AS $$BEGIN RAISE EXCEPTION 'ran'; END$$;
CREATE FUNCTION same(bigint, bigint) RETURNS boolean LANGUAGE plpgsql
    AS $$BEGIN RAISE EXCEPTION 'ran'; END$$;
CREATE FUNCTION same(text, text) RETURNS boolean LANGUAGE plpgsql
    AS $$BEGIN RAISE EXCEPTION 'ran'; END$$;
CREATE FUNCTION same(oid, oid) RETURNS boolean LANGUAGE plpgsql
    AS $$BEGIN RAISE EXCEPTION 'ran'; END$$;
CREATE OPERATOR = (FUNCTION = same, LEFTARG = name, RIGHTARG = name);
CREATE OPERATOR = (FUNCTION = same, LEFTARG = integer, RIGHTARG = integer);
CREATE OPERATOR = (FUNCTION = same, LEFTARG = bigint, RIGHTARG = bigint);
CREATE OPERATOR = (FUNCTION = same, LEFTARG = text, RIGHTARG = text);
CREATE OPERATOR = (FUNCTION = same, LEFTARG = oid, RIGHTARG = oid);
CREATE FUNCTION add(bigint, bigint) RETURNS bigint LANGUAGE plpgsql
    AS $$BEGIN RAISE EXCEPTION 'ran'; END$$;
CREATE OPERATOR + (FUNCTION = add, LEFTARG = bigint, RIGHTARG = bigint);
CREATE FUNCTION format_type(oid, integer) RETURNS text LANGUAGE plpgsql
    AS $$BEGIN RAISE EXCEPTION 'ran'; END$$;
CREATE FUNCTION octet_length(bytea) RETURNS integer LANGUAGE plpgsql
    AS $$BEGIN RAISE EXCEPTION 'ran'; END$$;
CREATE FUNCTION current_schema() RETURNS name LANGUAGE plpgsql
    AS $$BEGIN RAISE EXCEPTION 'ran'; END$$;
CREATE FUNCTION set_config(text, text, boolean) RETURNS text LANGUAGE plpgsql
    AS $$BEGIN RAISE EXCEPTION 'ran'; END$$;
CREATE FUNCTION row_number() RETURNS bigint LANGUAGE plpgsql
    AS $$BEGIN RAISE EXCEPTION 'ran'; END$$;
CREATE FUNCTION nextval(regclass) RETURNS bigint LANGUAGE plpgsql
    AS $$BEGIN RAISE EXCEPTION 'ran'; END$$;
CREATE AGGREGATE sum(bigint) (SFUNC = add, STYPE = bigint, INITCOND = '0');
CREATE AGGREGATE sum(integer) (SFUNC = int4_sum, STYPE = bigint, INITCOND = '0');
CREATE DOMAIN int4 AS text CHECK (evil() = VALUE);
CREATE DOMAIN text AS varchar CHECK (evil() = VALUE::varchar);
CREATE DOMAIN bytea AS varchar CHECK (evil() = VALUE::varchar);
"""


def test_what_lies_in_the_caller_s_path_is_not_used(
    tables: Workbench, shared_superuser: Workbench, mallory: Workbench
) -> None:
    """Not by the owner of the objects either, so that nothing rests on who calls."""
    mallory.rows(EVIL)
    session = session_of(tables, "mallory")
    session.rows("SET search_path = mallory, pg_catalog, public, madlib")
    assert (
        refused(session, "SELECT 1 WHERE 1::int8 = 1::int8", code=None).diag.message_primary
        == "ran"
    )
    session.rows(
        "SELECT training_preprocessor_dl('points', 'own', 'label', 'x', 8, n_segments => 2, seed "
        "=> 1)"
    )
    session.rows("SELECT load_keras_model('nets', %s)", CLASSES)
    session.rows(
        "SELECT load_model_selection_table('nets', 'rows', ARRAY[1], ARRAY[%s], "
        "ARRAY['batch_size=8'])",
        compile_text(),
    )
    session.rows("SELECT madlib_fit_multiple_model('own', 'trained', 'rows', 1, FALSE, 'own')")
    session.rows("SELECT madlib_evaluate('trained', 'own', 'evaluated', mst_key => 1)")
    session.rows(PREDICT, "trained", "points", "id", "predicted")
    if not session.greenplum:  # nobody can be granted that there
        session.rows("SELECT cerebro.grant_predict('trained', 'cerebro')")
    session.rows("SELECT cerebro.drop_run(%s)", session.newest_run())
    session.close()


@pytest.mark.long
def test_nor_in_a_path_that_a_role_begins_with(tables: Workbench, mallory: Workbench) -> None:
    """A worker session has settings of its own, whatever the role's are."""
    mallory.rows(EVIL)
    session = session_of(tables, "mallory")  # has no workers yet: they will begin with the settings
    session.rows("SET search_path = mallory, public, madlib")
    for setting in (
        "search_path = mallory, pg_catalog, public, madlib",
        "row_security = off",
        "statement_timeout = '1ms'",
        "lock_timeout = '1ms'",
        "standard_conforming_strings = off",
        "default_transaction_isolation = serializable",
        "default_transaction_read_only = on",
        "idle_in_transaction_session_timeout = '1ms'",
        "bytea_output = escape",
        "client_encoding = 'LATIN1'",
        "datestyle = 'SQL, DMY'",
        "array_nulls = off",
        "role = mallory",
    ):
        mallory.rows(f"ALTER ROLE mallory SET {setting}")
    session.fit("packed", "trained", "one", 1, workers=1)
    session.rows(PREDICT, "trained", "points", "id", "predicted")
    assert session.value("SELECT count(*) FROM predicted") == 96
    session.close()
    mallory.rows("ALTER ROLE mallory RESET ALL")


# Names and texts.

BAD_NAMES = (f'x"; {LOOT}; --', f"x'; {LOOT}; --", "$$;1;$$ {state} %s a\\'b E'\\'' ../../x ☃")
"""The last name has the signs of several languages at once: interpreting any of them breaks a call.
"""


@pytest.mark.long_for(name=BAD_NAMES[:2])
@pytest.mark.parametrize("name", BAD_NAMES)
def test_hostile_names(tables: Workbench, name: str) -> None:
    def table(stem: str) -> str:
        return '"' + f"{stem}{name}"[:50].replace('"', '""') + '"'

    tables.rows("SET search_path = public, madlib")
    source, packed, configs, models, trained, predicted = map(table, ("s", "p", "c", "a", "t", "r"))
    column = '"' + name[:40].replace('"', '""') + '"'
    escaped = column.replace("%", "%%")
    quoted = source.replace("%", "%%")
    tables.rows(
        f"CREATE TABLE {quoted} AS SELECT id AS {escaped}, x, label || %s AS y FROM points", name
    )
    tables.rows(
        "SELECT training_preprocessor_dl(%s, %s, 'y', 'x', 8, n_segments => 2)", source, packed
    )
    tables.rows("SELECT load_keras_model(%s, %s, NULL, %s, %s)", models, CLASSES, name, name)
    tables.rows(
        "SELECT load_model_selection_table(%s, %s, ARRAY[1], ARRAY[%s], ARRAY['batch_size=8'])",
        models,
        configs,
        compile_text(),
    )
    run = tables.fit(packed, trained, configs, 1, name=name, description=name)
    tables.rows(PREDICT, trained, source, column, predicted)
    found = tables.row(
        "SELECT count(*), bool_and(class_value LIKE '%%' || %s) FROM "
        f"{predicted.replace('%', '%%')}",
        name.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_"),
    )
    assert found == (96, True)
    assert tables.value("SELECT name FROM cerebro.run WHERE run_id = %s", run) == name
    if not tables.greenplum:  # nobody can be granted that there
        tables.rows("SELECT cerebro.grant_predict(%s, 'postgres')", trained)
        tables.rows("SELECT cerebro.revoke_predict(%s, 'postgres')", trained)
    assert not tables.exists("public.loot")


CODE = "__import__('os').system('touch {witness}')"
TEXTS = {
    "a call": "optimizer={code},loss='mse'",
    "in an argument": "optimizer='SGD(learning_rate={code})',loss='mse'",
    "as the loss": "optimizer='SGD',loss={code}",
    "as a metric": "optimizer='SGD',loss='mse',metrics=[{code}]",
    "a lambda": "optimizer='SGD',loss=lambda a, b: {code}",
    "an f-string": "optimizer='SGD',loss=f\"{{{code}}}\"",
    "an attribute": "optimizer='SGD',loss=().__class__.__base__.__subclasses__()",
    "deep": "optimizer='SGD',loss=" + "(" * 5000 + ")" * 5000,
    "a long power": "optimizer='SGD(learning_rate=9**9**9**9)',loss='mse'",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_parameter_strings_are_not_evaluated(tables: Workbench, text: str) -> None:
    witness = f"/tmp/{fresh('cerebro_witness')}"
    hostile = text.format(code=CODE.format(witness=witness))
    call = "SELECT load_model_selection_table('models', %s, ARRAY[1], ARRAY[%s], ARRAY[%s])"
    refused(tables, call, fresh("m"), hostile, "batch_size=8", code=None)
    refused(
        tables,
        call,
        fresh("m"),
        compile_text(),
        f"batch_size={CODE.format(witness=witness)}",
        code=None,
    )
    name = fresh("by_hand")
    tables.configure(name, [compile_text()])
    tables.rows(f"UPDATE {name} SET compile_params = %s", hostile)
    refused(
        tables,
        f"SELECT madlib_fit_multiple_model('packed', '{fresh('o')}', '{name}', 1)",
        code=None,
    )
    refused(
        tables,
        f"SELECT generate_model_configs('models', '{fresh('m')}', ARRAY[1], %s, %s)",
        hostile,
        hostile,
        code=None,
    )
    assert not Path(witness).exists()


DEEP = "[" * 3000 + "]" * 3000
ARCHITECTURES = {
    "Lambda": sequential(
        [4], layer("Lambda", "l", function={"class_name": "__lambda__", "config": {"code": "4wEA"}})
    ),
    "a foreign module": sequential([4], {**dense(3, "o", "softmax"), "module": "os"}),
    "another package": sequential(
        [4], {**dense(3, "o", "softmax"), "module": "keras.src.utils.python_utils"}
    ),
    "registered": sequential([4], {**dense(3, "o", "softmax"), "registered_name": "custom>Dense"}),
    "custom objects": json.dumps(
        {**json.loads(CLASSES), "custom_objects": {"Dense": {"class_name": "Lambda"}}}
    ),
    "a function": sequential(
        [4], dense(3, "o", {"class_name": "function", "config": "eval", "module": "builtins"})
    ),
    "a file": sequential([4], layer("StringLookup", "s", vocabulary="/etc/passwd"), dense(3, "o")),
    "a saved model": sequential([4], layer("TFSMLayer", "s", filepath="/tmp/model"), dense(3, "o")),
    "an initializer": sequential(
        [4], dense(3, "o", "softmax", kernel_initializer={"class_name": "Lambda", "config": {}})
    ),
    "a task of keras_hub": sequential(
        [6], networks.of_hub("BertTextClassifier", "t", preset="hf://evil/model")
    ),
    "a tokenizer": sequential([6], networks.of_hub("BertTokenizer", "t", vocabulary="/etc/passwd")),
    "a preset": sequential([6], networks.bert(preset="/tmp/model"), dense(3, "o", "softmax")),
    "a Lambda in a backbone": sequential(
        [6], networks.bert(activation=layer("Lambda", "l")), dense(3, "o", "softmax")
    ),
    "another's backbone": sequential(
        [6], {**networks.bert(), "registered_name": "custom>BertBackbone"}
    ),
    "a million layers": sequential([6], networks.bert(num_layers=10**6), dense(3, "o", "softmax")),
    "nested deep": '{"class_name": "Sequential", "config": {"layers": ' + DEEP + "}}",
    "too many units": perceptron(2**40, "softmax"),
    "too large an input": sequential([2**31, 2**31], dense(3, "o")),
    "a negative size": perceptron(-3, "softmax"),
    "an endless number": CLASSES.replace('"units": 3', '"units": 1e999'),
    "no layers": '{"class_name": "Sequential", "config": {"name": "a", "layers": []}}',
    "not an object": "[1]",
    "a path as a name": sequential([4], dense(3, "../../../../tmp/x", "softmax")),
}
LOADED = {"another package", "a path as a name"}  # the first is taken for Keras' own Dense
TRAINED = {"another package"}


@pytest.mark.checklist(47)
@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_hostile_architectures(tables: Workbench, kind: str) -> None:
    """By the front door, and by hand into the table, past the check at loading."""
    text, net = ARCHITECTURES[kind], fresh("nets")
    tables.rows("SET search_path = public, madlib")
    tables.rows("SELECT load_keras_model(%s, %s)", net, CLASSES)
    tables.rows(
        f"SELECT load_model_selection_table('{net}', '{net}_rows', ARRAY[1], ARRAY[%s], "
        "ARRAY['batch_size=8'])",
        compile_text(),
    )
    tables.rows(f"UPDATE {net} SET model_arch = %s", text)
    fit = f"SELECT madlib_fit_multiple_model('packed', '{net}_trained', '{net}_rows', 1)"
    load = "SELECT load_keras_model(%s, %s)"
    tables.rows(load, net, text) if kind in LOADED else refused(tables, load, net, text, code=None)
    tables.rows(fit) if kind in TRAINED else refused(tables, fit, code=None)
    assert tables.exists(f"{net}_trained") == (kind in TRAINED)


def safetensors(header: object, data: bytes = b"") -> bytes:
    """A file of that format, whatever its header says."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


META = {"format": "cerebro_db.state/1", "weights": '["00000"]'}
STATES = {
    "nothing": b"",
    "no header": b"\x01",
    "an endless header": struct.pack("<Q", 2**63) + b"{}",
    "no JSON": safetensors(b"\xff\xfe{"),
    "deep JSON": safetensors(b"[" * 8000),
    "a list": safetensors([1, 2]),
    "no tensors": safetensors({"__metadata__": META}),
    "metadata of another kind": safetensors({"__metadata__": {**META, "weights": 5}}),
    "weights that are none": safetensors({"__metadata__": {**META, "weights": '[["a"]]'}}),
    "huge": safetensors({"__metadata__": META,
                         "00000": {"dtype": "F32", "shape": [2**26], "data_offsets": [0, 2**28]}}),
    "backwards": safetensors({"__metadata__": META, "00000": {"dtype": "F32", "shape": [1],
    "data_offsets": [8, 4]}}),
    "an unknown type": safetensors({"__metadata__": META,
                                    "00000": {"dtype": "PICKLE", "shape": [1], "data_offsets": [0,
                                    4]}}, b"abcd"),
    "a pickle": b"\x80\x04\x95" + b"cos\nsystem\n(S'id'\ntR.",
}  # fmt: skip


# How such states are read is tested of the trainer and of the backend alone, too.
@pytest.mark.long_for(state=tuple(state for kind, state in STATES.items() if kind != "a pickle"))
@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_hostile_states(tables: Workbench, state: bytes) -> None:
    """In a model's table, for a trainer; in the tables of a run, for a backend and a trainer."""
    tables.rows("SET search_path = public, madlib")
    name = fresh("damaged")
    run = tables.fit("packed", name, "one", 1)
    states = tables.states(name)
    tables.rows(f"DELETE FROM {states}; UPDATE {name} SET model_weights = NULL")
    tables.rows(f"INSERT INTO {states} VALUES (1, 1, %s)", state)
    refused(tables, PREDICT, name, "points", "id", fresh("o"), code=None)
    ((table,),) = tables.rows(
        "SELECT unnest(state_tables) FROM cerebro.config WHERE run_id = %s", run
    )
    tables.rows(f"DELETE FROM {table} WHERE part > 1")
    tables.rows(f"UPDATE {table} SET chunk = %s", state)
    refused(tables, f"SELECT cerebro.write_outputs(%s, '{fresh('o')}')", run, code="XX001")
    tables.rows(PREDICT, "model", "points", "id", fresh("still"))


# Tables of others, with code on them.


PLANTED = {
    (
        "CREATE TRIGGER t BEFORE INSERT OR DELETE ON {0} FOR EACH ROW EXECUTE FUNCTION taking()"
    ): "DROP TRIGGER t ON {0}",
    "CREATE RULE r AS ON INSERT TO {0} DO ALSO SELECT taken()": "DROP RULE r ON {0}",
    "ALTER TABLE {0} ALTER COLUMN mst_key SET DEFAULT taken()": "ALTER TABLE {0} ALTER COLUMN "
    "mst_key DROP DEFAULT",
    "ALTER TABLE {0} ADD CONSTRAINT c CHECK (taken() = 1) NOT VALID": "ALTER TABLE {0} DROP "
    "CONSTRAINT c",
    "CREATE INDEX i ON {0} ((taken()))": "DROP INDEX mallory.i",
    "CREATE INDEX i ON {0} (mst_key) WHERE taken() = 1": "DROP INDEX mallory.i",
    "CREATE TABLE heir () INHERITS ({0})": "DROP TABLE heir",
    (
        "CREATE DOMAIN d AS integer CHECK (taken() = 1); ALTER TABLE {0} ADD COLUMN more d"
    ): "ALTER TABLE {0} DROP COLUMN more; DROP DOMAIN d",
}
"""Each with what removes it."""
TAKEN = (
    "CREATE OR REPLACE FUNCTION taken() RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$BEGIN {} "
    "RETURN 1; END$$"
)


def test_code_on_the_output_tables_of_another(
    tables: Workbench, shared_superuser: Workbench, mallory: Workbench
) -> None:
    mallory.fit("packed", "bait", "one", 1)
    mallory.rows(f"""
        CREATE FUNCTION taking() RETURNS trigger LANGUAGE plpgsql
            AS $$BEGIN {LOOT}; RETURN NULL; END$$;
        GRANT ALL ON bait, bait_info, bait_summary, {mallory.states("bait")} TO PUBLIC""")
    for (planted, removed), session in itertools.product(
        PLANTED.items(), (tables, shared_superuser)
    ):
        mallory.rows(TAKEN.format(""))
        mallory.rows(planted.format("bait_info"))
        mallory.rows(TAKEN.format(f"{LOOT};"))
        session.rows("SET search_path = public, madlib")
        error = refused(
            session,
            "SELECT madlib_fit_multiple_model('packed', 'mallory.bait', 'one', 1, warm_start => "
            "TRUE)",
            code="42501",
        )
        assert "bait_info" in str(error) and error.diag.message_hint, planted
        mallory.rows(removed.format("bait_info"))
    assert not tables.exists("public.loot")


@pytest.mark.long
def test_a_superuser_s_rights_do_not_come_back_within_a_run(
    tables: Workbench, shared_superuser: Workbench, mallory: Workbench
) -> None:
    """Code in the rows tries, in the session of a worker, what would work in that of the caller."""
    mallory.rows("""
        CREATE FUNCTION climb(id integer) RETURNS text LANGUAGE plpgsql AS $$
        BEGIN
            RESET ROLE;
            EXECUTE 'SET SESSION AUTHORIZATION postgres';
            RETURN 'climbed';
        EXCEPTION WHEN insufficient_privilege OR feature_not_supported THEN
            -- a segment refuses any SET
            RETURN session_user || ' ' || current_user || ' ' || current_setting('is_superuser');
        END $$;
        CREATE VIEW ladder AS SELECT climb(id) AS id, x FROM public.points LIMIT 3""")
    mallory.fit("packed", "trained", "one", 1)
    session = Workbench(shared_superuser.url)
    session.rows("SET search_path = mallory, public, madlib; SET ROLE mallory")
    session.rows(PREDICT, "trained", "ladder", "id", "climbed")
    assert mallory.rows("SELECT DISTINCT id FROM climbed") == [("mallory mallory off",)]
    session.close()


# The functions that talk to the trainer, by hand.

BY_HAND = {
    "a program of one's own": (
        "SELECT cerebro_internal.trainer_start(%s)",
        '{"python": "/bin/sh"}',
        "22023",
    ),
    "a folder of code": (
        "SELECT cerebro_internal.trainer_start(%s)",
        '{"compilation_cache": "/tmp"}',
        "22023",
    ),
    "arguments": (
        "SELECT cerebro_internal.trainer_start(%s)",
        '{"threads": "1 --compilation-cache /tmp"}',
        "22023",
    ),
    "a framework": ("SELECT cerebro_internal.trainer_start(%s)", '{"framework": "os"}', "22023"),
    "countless threads": (
        "SELECT cerebro_internal.trainer_start(%s)",
        '{"threads": 1000000000}',
        "22023",
    ),
    "an unhashable": (
        "SELECT cerebro_internal.trainer_start(%s)",
        '{"framework": ["none"]}',
        "22023",
    ),
    "no object": ("SELECT cerebro_internal.trainer_start(%s)", "[]", "22023"),
    "deep JSON": ("SELECT cerebro_internal.trainer_start(%s)", DEEP, "22P02"),
    "a job without a trainer": ("SELECT cerebro_internal.job_begin(%s)", "{}", "55000"),
    "rows without a prediction": (
        "SELECT cerebro_internal.predict_add('1', ARRAY[%s]::bytea[])",
        "x",
        "55000",
    ),
    "another framework's report": ("SELECT cerebro.trainer_report(%s)", "os; import os", "22023"),
}


@pytest.mark.parametrize(("call", "value", "code"), BY_HAND.values(), ids=BY_HAND)
def test_what_a_trainer_is_is_not_the_user_s_choice(
    tables: Workbench, call: str, value: str, code: str
) -> None:
    session = tables.another()
    refused(session, call, value, code=code)
    session.close()


def test_a_user_gets_no_other_device_than_the_administrator_s(
    tables: Workbench, shared_superuser: Workbench
) -> None:
    shared_superuser.rows("INSERT INTO cerebro.setting VALUES ('gpus', '0')")
    try:
        error = refused(
            tables,
            "SELECT cerebro_internal.trainer_start(%s)",
            '{"framework": "none", "gpu": 1}',
            code="22023",
        )
        assert "GPU 1" in str(error)
    finally:
        shared_superuser.rows("DELETE FROM cerebro.setting WHERE name = 'gpus'")


REQUESTS = {
    "another command": ("job_begin", {"do": "reset"}),
    "a command without a reply": ("job_begin", {"do": "open", "dataset": "d", "cache_bytes": 1}),
    "results of nothing": ("metric_results", {"do": "reset"}),
    "a packing": ("metric_results", {"do": "pack"}),
    "a state of a file": (
        "job_begin",
        {"job": "train", "state": {"source": "/etc/passwd"}, "result_key": "a"},
    ),
}


@pytest.mark.parametrize(("function", "asked"), REQUESTS.values(), ids=REQUESTS)
def test_a_request_is_what_its_function_says(
    tables: Workbench, function: str, asked: dict[str, object]
) -> None:
    """And an answer that never came would be waited for."""
    session = tables.another()
    session.rows("SET statement_timeout = '60s'")
    session.rows("SELECT cerebro_internal.trainer_start(%s)", '{"framework": "none"}')
    refused(session, f"SELECT cerebro_internal.{function}(%s)", json.dumps(asked), code="0A000")
    session.close()


SHAPES = {
    "no JSON object": "[]",
    "sizes that lie": '{"inputs": 1, "shapes": [[1, 4], [1, 3]], "sizes": [16, 4000000000]}',
    "negative sizes": '{"inputs": 1, "shapes": [[1, 4], [1, 3]], "sizes": [-16, 6]}',
    "no shapes": '{"inputs": 1, "sizes": [16]}',
    "texts": '{"inputs": "1", "shapes": ["a"], "sizes": ["b"]}',
    "huge": '{"inputs": 1, "shapes": [[4611686018427387904]], "sizes": [18446744073709551616]}',
}


@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
def test_lies_about_packed_rows(tables: Workbench, shapes: str) -> None:
    session = tables.another()
    session.rows("SET statement_timeout = '60s'")
    session.rows("SELECT cerebro_internal.trainer_start(%s)", '{"framework": "none"}')
    session.rows("SELECT cerebro_internal.dataset_open('d', 1000)")
    with pytest.raises(psycopg2.Error):
        session.rows(
            "SELECT cerebro_internal.dataset_add('d', 0, 0, %s, 'abcd'), "
            "cerebro_internal.dataset_close('d')",
            shapes,
        )
    assert session.value("SELECT 1") == 1
    session.close()


def test_a_packed_table_of_lies(tables: Workbench, mallory: Workbench) -> None:
    """The bytes of a packed table are whatever its owner writes into them."""
    mallory.rows(
        "CREATE TABLE lies AS TABLE packed; CREATE TABLE lies_summary AS TABLE packed_summary"
    )
    for change in (
        "x = 'abc'::bytea",
        "x_shape = ARRAY[2147483647, 4]",
        "x_shape = ARRAY[-1, 4]",
        "x = repeat('a', 1000)::bytea",
        "label = ''::bytea",
        "x_shape = NULL",
        "__dist_key__ = -5",
        "buffer_id = NULL",
    ):
        mallory.rows("ALTER TABLE lies ALTER x_shape DROP NOT NULL, ALTER buffer_id DROP NOT NULL")
        mallory.rows("DELETE FROM lies; INSERT INTO lies SELECT * FROM packed")
        mallory.rows(f"UPDATE lies SET {change} WHERE buffer_id = 0")
        try:
            mallory.rows("SELECT madlib_fit_multiple_model('lies', %s, 'one', 1)", fresh("of_lies"))
        except psycopg2.Error as error:
            assert error.pgcode not in (None, "XX000", "38000"), str(error)
    tables.rows(PREDICT, "model", "points", "id", f"public.{fresh('still')}")
