"""Models by name for who may not read them: what is granted is what the owner has, and there is no
way to more.
"""

from __future__ import annotations

import json
import re
import struct
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest
from followed_hints import read_hint
from roles import another_role, own_schema, refused
from versions import BatchResult, deploy, trained
from workbench import Workbench

from cerebro_plpy.configs.templates.layers.model_io import Measure
from cerebro_plpy.preprocessing.kinds.category import Category
from cerebro_plpy.preprocessing.kinds.number import Number

MODEL = """a.b "c" '%s'"""
ROWS = 5000
PLACES = ("Xanadu", 'Zembla "%s"', "Erewhon")
HOMES = f"""
    CREATE TABLE homes AS
    SELECT n AS id, CASE WHEN n % 10 > 0 THEN (1e6 + 1000 * (n * 7919 % 97))::numeric END
               AS "Area %s",
           (ARRAY['Xanadu', 'Zembla "%s"', NULL, 'Erewhon'])[n % 4 + 1] AS place, sin(n) AS slope,
           timestamp '2020-01-01' + n * interval '7 hours' AS built, n % 3 = 0 AS flag,
           CASE WHEN n % 4 < 2 THEN 'yes' ELSE 'no' END AS sold, (n % 50)::smallint AS rooms
    FROM generate_series(1, {ROWS}) n;
    ALTER TABLE homes ADD PRIMARY KEY (id);
    CREATE VIEW sold_homes AS SELECT id, "Area %s", place, slope, built, flag, sold FROM homes;
    CREATE VIEW roomy AS SELECT id, place, slope, rooms FROM homes"""
ALL = "SELECT * FROM cerebro.predict(%s, %s, 'id', owner => 'cerebro') ORDER BY id::integer"
ROW = (
    "SELECT cerebro.predict_row(%s, r, 'cerebro')"
    " FROM unnest(ARRAY(SELECT to_jsonb(t) FROM {} t WHERE id < 20 ORDER BY id)) AS r"
)
START = json.dumps({"framework": "tensorflow", "trainers": 2})


@pytest.fixture(scope="module")
def owner(bench: Workbench) -> Workbench:
    """The session of the owner of two models."""
    with bench.connection.cursor() as cursor:
        cursor.execute(HOMES)
    bench.rows("GRANT SELECT ON homes TO PUBLIC")
    return bench


@pytest.fixture(scope="module")
def homes(owner: Workbench) -> BatchResult:
    return trained(owner, MODEL, "sold_homes", "sold", epochs=1, template="linear")


@pytest.fixture(scope="module")
def rooms(owner: Workbench, homes: BatchResult) -> BatchResult:
    floats = Measure(25.0, 15.0, 0.0, 49.0)
    return trained(
        owner, "rooms", "roomy", "rooms", epochs=1, margin=2.5, floats=floats, template="linear"
    )


@pytest.fixture(scope="module")
def guest(
    owner: Workbench, shared_superuser: Workbench, homes: BatchResult, rooms: BatchResult
) -> Iterator[Workbench]:
    """A session of a role with rows of its own, that may predict with both."""
    with another_role(owner, shared_superuser, "guest") as session:
        own_schema(shared_superuser, "guest")
        session.rows(
            "CREATE TABLE guest.mine AS TABLE homes; ALTER TABLE guest.mine ADD PRIMARY KEY (id);"
            " SET search_path = guest, madlib"
        )
        owner.rows(
            "SELECT cerebro.grant_predict(%s, 'guest'), cerebro.grant_predict('rooms', 'guest')",
            MODEL,
        )
        yield session


@pytest.fixture
def session(guest: Workbench) -> Iterator[Workbench]:
    """The same in whatever state a test leaves it: a transaction that is open is undone."""
    yield guest
    guest.rows("ROLLBACK; RESET ALL; SET search_path = guest, madlib")


@pytest.mark.long
def test_predictions_are_those_of_the_owner(owner: Workbench, session: Workbench) -> None:
    for model in (MODEL, "rooms"):
        rows = session.rows(ALL, model, "mine")
        assert rows == owner.rows(ALL, model, "homes") and len(rows) == ROWS
        assert len({row[1] for row in rows}) > 1
        assert session.rows(ROW.format("mine"), model) == owner.rows(ROW.format("homes"), model)


def test_wherever_a_query_stands(session: Workbench) -> None:
    """In transactions that only read, at any isolation, in a view, and left in the middle."""
    session.rows(
        "CREATE TABLE few AS SELECT * FROM mine WHERE id <= 50; ALTER TABLE few ADD PRIMARY KEY "
        "(id)"
    )
    session.rows(
        "CREATE VIEW told AS SELECT * FROM cerebro.predict('rooms', 'guest.few', owner => "
        "'cerebro')"
    )
    for level in ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"):
        session.rows(f"BEGIN ISOLATION LEVEL {level} READ ONLY")
        assert session.value("SELECT count(*) FROM told t JOIN mine m ON m.id::text = t.id") == 50
        assert len(session.rows("SELECT * FROM told LIMIT 3")) == 3
        assert session.value(
            "SELECT cerebro.predict_row('rooms', '{\"place\": \"Xanadu\"}', 'cerebro')"
        )["prediction"]
        session.rows("COMMIT")
    session.rows("DROP VIEW told; DROP TABLE few")


def test_what_a_guest_sees(session: Workbench) -> None:
    found = session.rows(
        "SELECT model, owner, task, target, source, metric, value, split FROM cerebro.model ORDER "
        "BY 1"
    )
    assert found == [
        (MODEL, "cerebro", "classification", None, None, None, None, None),
        ("rooms", "cerebro", "regression", None, None, None, None, None),
    ]
    outlines: dict[str, Any] = dict(session.rows("SELECT model, outline FROM cerebro.model_grant"))
    assert '"place"' in str(json.dumps(outlines)) and not any(
        json.dumps(p)[1:-1] in json.dumps(outlines) for p in PLACES
    )
    taken = {"Area %s", "place", "slope", "built", "flag"}
    assert outlines[MODEL]["types"].keys() == taken, (
        "neither that of the rows' number nor that of the target"
    )
    assert outlines["rooms"]["types"].keys() == {"place", "slope"}
    assert not {"target", "target_type", "source"} & outlines[MODEL].keys()
    for table in (
        "model_log",
        "version_log",
        "grant_log",
        "grant_state",
        "model_version",
        "feature",
    ):
        assert session.rows(f"SELECT * FROM cerebro.{table}") == []
    for table in ("version_log", "grant_state"):
        assert (
            session.rows(
                "SELECT FROM pg_stats WHERE schemaname = 'cerebro' AND tablename = %s", table
            )
            == []
        )
        refused(session, f"DELETE FROM cerebro.{table}")


def states(owner: Workbench, model: str) -> str:
    """The table with the weights of a model's first version."""
    number = owner.value(
        "SELECT run_id FROM cerebro.version_log WHERE model = %s AND version = 1", model
    )
    return f'cerebro_state."r{number}_m1"'


def test_the_tables_are_the_owner_s(owner: Workbench, session: Workbench) -> None:
    for model in (MODEL, "rooms"):
        refused(session, f"SELECT * FROM {states(owner, model)}")
    gates = owner.rows("SELECT gate FROM cerebro.grant_log")
    assert len(gates) == 2
    for (gate,) in gates:
        assert session.rows(f"TABLE cerebro_state.{gate}") == []


def printed(value: float | str) -> str:
    """A constant as PostgreSQL prints it in a plan: the bytes of it."""
    data = struct.pack("=d", value) if isinstance(value, float) else value.encode()
    return " ".join(str(byte - 256 if byte > 127 else byte) for byte in data)


def shown(session: Workbench, query: str, *values: object) -> str:
    """All that a session is told while it looks at every plan."""
    notices: Any = deque()  # of a list only the last ones are kept
    session.connection.notices = notices
    for name in ("debug_print_parse", "debug_print_rewritten", "debug_print_plan"):
        session.rows(f"SET {name} = on")
    session.rows(
        "SET client_min_messages = debug5; SET debug_pretty_print = off; SET plan_cache_mode = "
        "force_custom_plan"
    )
    session.rows(query, *values)
    session.rows("RESET ALL")
    return re.sub(r"\s+", " ", "".join(notices))


@pytest.mark.long
@pytest.mark.parametrize("statement", [ALL, "SELECT cerebro.predict_row(%s, '{}', 'cerebro')"])
def test_plans_do_not_tell_constants(
    owner: Workbench, homes: BatchResult, guest: Workbench, statement: str
) -> None:
    """A session may have its plans shown, and a plan has the values of its parameters."""
    texts = [
        printed(value)
        for each in homes.recipe.inputs
        if isinstance(each, Category)
        for value in each.values
    ]
    numbers = [
        printed(each.scale.center) for each in homes.recipe.inputs if isinstance(each, Number)
    ]
    texts, numbers = (
        [text for text in texts if text.count(" ") > 4],
        [n for n in numbers if n.count(" 0") < 6],
    )
    assert len(texts) == 3 and numbers
    told = {}
    for who, table in ((owner, "homes"), (guest, "mine")):
        values = (MODEL, table) if statement is ALL else (MODEL,)
        fresh = who.another()
        fresh.rows("SET search_path = guest, public, madlib")
        told[who] = shown(fresh, statement, *values)
        fresh.close()
    assert "QUERY" in told[guest].upper() or "PLANNEDSTMT" in told[guest].upper()
    assert all(constant in told[owner] for constant in (*texts, *numbers)), (
        "this is how they would be seen"
    )
    assert not [constant for constant in (*texts, *numbers) if constant in told[guest]]
    for secret in ("class_name", "Dense", *PLACES):
        assert secret not in told[guest]


KEPT = {"source": "kept", "key": "", "seed": 0}


def test_by_hand_nothing_comes_out_of_the_trainer(guest: Workbench) -> None:
    session = guest.another()
    session.rows("SET search_path = guest, public, madlib")
    refused(session, "SELECT cerebro_internal.sealed_version()", words="for nobody else")
    session.rows(ALL, MODEL, "mine")
    refused(session, "SELECT cerebro_internal.sealed_version()", words="for nobody else")
    request = {"arrays": [{"kind": "float32"}], "want": {"kind": "prob"}, "classes": [2]}
    session.rows(
        "SELECT cerebro_internal.predict_begin(%s)", json.dumps({"block": 1, "request": request})
    )
    row = (
        "SELECT cerebro_internal.predict_add('1', "
        "ARRAY[cerebro_internal.array_bytes('{1,2,3}'::real[])]), "
        "cerebro_internal.predict_rest()"
    )
    refused(session, row, words="made of raw values here")
    session.rows(ALL, MODEL, "mine")
    refused(
        session, "SELECT count(*) FROM cerebro_internal.state_chunks(8120, 'result')", code="55000"
    )
    session.rows(ALL, MODEL, "mine")
    session.rows("SELECT cerebro_internal.job_finish()")
    refused(
        session, "SELECT count(*) FROM cerebro_internal.state_chunks(8120, 'result')", code="55000"
    )
    program: dict[str, object] = {"architecture": {}, "compile": {}, "targets": []}
    begun = json.dumps({"job": "predict", "program": program, "state": KEPT, "result_key": ""})
    refused(session, "SELECT cerebro_internal.job_begin(%s)", begun, code=None)
    session.close()


@pytest.mark.postgresql("on Greenplum no function that writes is called for the rows of a table")
def test_code_in_the_rows_gets_nothing(session: Workbench) -> None:
    """A function of the guest's runs beside the trainer that has the model, and may go through all
    open cursors.
    """
    session.rows("""
        CREATE TABLE seen (what text);
        CREATE FUNCTION spy(n numeric) RETURNS numeric LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO guest.seen SELECT statement FROM pg_cursors;
            BEGIN
                PERFORM cerebro_internal.sealed_version();
                INSERT INTO guest.seen VALUES ('filled');
            EXCEPTION WHEN insufficient_privilege THEN NULL;
            END;
            RETURN n;
        END $$;
        CREATE VIEW spied AS SELECT id, spy("Area %s") AS "Area %s", place, slope, built, flag
            FROM mine
        WHERE id % 1000 < 5""")
    assert len(session.rows(ALL, MODEL, "spied")) == 25
    seen = {text for (text,) in session.rows("SELECT what FROM seen")}
    assert [("spied" in text, "hashtextextended" in text) for text in seen] == [(True, True)], (
        "the rows that are read"
    )
    session.rows("DROP VIEW spied; DROP TABLE seen; DROP FUNCTION spy")


@pytest.mark.long
def test_nothing_of_the_owner_s_is_read(owner: Workbench, guest: Workbench) -> None:
    """So nothing of theirs can run: what they have may be gone, or be a trap."""
    owner.rows(
        "CREATE FUNCTION trap() RETURNS boolean LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER AS"
        " $$BEGIN RAISE EXCEPTION 'ran as % for %', current_user, session_user; END$$"
    )
    gate = owner.value("SELECT gate FROM cerebro.grant_log WHERE model = 'rooms'")
    name = states(owner, "rooms")
    owner.rows(
        f"ALTER TABLE {name} RENAME TO aside; CREATE VIEW {name} AS SELECT 1 AS part, trap() AS "
        "chunk"
    )
    owner.rows(
        f"GRANT SELECT ON {name} TO PUBLIC; ALTER TABLE cerebro_state.{gate} ADD COLUMN a integer"
    )
    owner.rows(f"CREATE INDEX trapped ON cerebro_state.{gate} (a) WHERE a > 0")
    owner.rows(f"ALTER TABLE cerebro_state.{gate} ENABLE ROW LEVEL SECURITY")
    owner.rows(f"CREATE POLICY p ON cerebro_state.{gate} USING (trap())")
    fresh = guest.another()
    try:
        fresh.rows("SET search_path = guest, public, madlib")
        assert len(fresh.rows(ALL, "rooms", "mine")) == ROWS
        assert fresh.value("SELECT cerebro.predict_row('rooms', '{}', 'cerebro')")
        refused(owner, ALL, "rooms", "homes", code="55000")
    finally:
        fresh.close()
        owner.rows(
            f"DROP VIEW {name}; ALTER TABLE cerebro_state.aside RENAME TO {name.split('.')[1]}"
        )
        owner.rows(
            f"DROP POLICY p ON cerebro_state.{gate}; ALTER TABLE cerebro_state.{gate} DROP COLUMN a"
        )
        owner.rows(
            f"ALTER TABLE cerebro_state.{gate} DISABLE ROW LEVEL SECURITY; DROP FUNCTION trap()"
        )


WRONG: dict[str, Any] = {
    "types": {"place": "text); SELECT spoiled()"}, "classes": 7, "margin": "x",
    "backend": "/bin/sh", "task": "rule",
    "recipe": {"version": 1, "features": [{"kind": "number", "column": 'x") FROM',
    "family": "real"}]},
    "base": ["int2"],
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_an_owner_tells_is_checked(owner: Workbench, session: Workbench, name: str) -> None:
    """A guest does not rely on it: where it is not refused, it changes nothing."""
    record = '{"place": "Xanadu", "slope": 0.5}'
    before = session.value("SELECT cerebro.predict_row('rooms', %s, 'cerebro')", record)
    owner.rows(
        "CREATE TEMP TABLE kept AS SELECT outline FROM cerebro.grant_log WHERE model = 'rooms'"
    )
    changed = "UPDATE cerebro.grant_log SET outline = outline || %s::jsonb WHERE model = 'rooms'"
    owner.rows(changed, json.dumps({name: WRONG[name]}))
    try:
        if name in ("types", "base"):
            assert (
                session.value("SELECT cerebro.predict_row('rooms', %s, 'cerebro')", record)["upper"]
                == before["upper"]
            )
        else:
            refused(
                session,
                "SELECT cerebro.predict_row('rooms', %s, 'cerebro')",
                record,
                code="XX001",
                words="cerebro tells of",
            )
            refused(session, ALL, "rooms", "mine", code="XX001")
    finally:
        owner.rows(
            "UPDATE cerebro.grant_log SET outline = (SELECT outline FROM kept) WHERE model = "
            "'rooms'"
        )
        owner.rows("DROP TABLE kept")


@pytest.mark.long
def test_what_is_wrong_with_a_model_is_told_to_its_owner(
    owner: Workbench, guest: Workbench, shared_superuser: Workbench, rooms: BatchResult
) -> None:
    """For it may be wrong with a constant."""
    recipe = owner.value("SELECT recipe FROM cerebro.version_log WHERE model = 'rooms'")
    spoiled = [
        {**each, "values": ["secret", "secret"]} if "values" in each else each
        for each in recipe["features"]
    ]
    statement = "UPDATE cerebro.version_log SET recipe = %s::jsonb WHERE model = 'rooms'"
    shared_superuser.rows(statement, json.dumps({**recipe, "features": spoiled}))
    fresh = guest.another()
    try:
        assert "secret" in str(refused(owner, ALL, "rooms", "homes", code="XX001"))
        error = refused(fresh, ALL, "rooms", "guest.mine", code="XX001", words="cannot be used")
        assert "secret" not in f"{error} {error.diag.context} {error.diag.message_detail}"
    finally:
        fresh.close()
        shared_superuser.rows(statement, json.dumps(recipe))


@pytest.mark.long
def test_a_later_version_is_granted_too(
    owner: Workbench, session: Workbench, rooms: BatchResult
) -> None:
    before = session.rows(ALL, "rooms", "mine"), session.rows(ROW.format("mine"), "rooms")
    floats = Measure(25.0, 15.0, 0.0, 49.0)
    other = trained(
        owner,
        "other rooms",
        "roomy",
        "rooms",
        epochs=2,
        margin=9.5,
        floats=floats,
        params={"width": 8},
    )
    (row,) = owner.rows(
        "SELECT run_id, architecture::text, compile_params FROM cerebro.member_log WHERE model = "
        "'other rooms'"
    )
    deploy(
        owner, "rooms", 2, run_id=row[0], source="roomy", target="rooms", recipe=other.recipe,
        classes=(),
        architecture=row[1], compiled=row[2], margin=9.5, template="realmlp",
    )  # fmt: skip
    owner.rows("UPDATE cerebro.model_log SET deployed = 1 WHERE model = 'rooms'")
    assert session.rows(ALL, "rooms", "mine") == before[0]
    owner.rows("SELECT cerebro.deploy('rooms', '2')")
    assert session.rows(ALL, "rooms", "mine") == owner.rows(ALL, "rooms", "homes") != before[0]
    assert (
        session.rows(ROW.format("mine"), "rooms")
        == owner.rows(ROW.format("homes"), "rooms")
        != before[1]
    )
    assert owner.rows("SELECT DISTINCT version FROM cerebro.grant_state WHERE model = 'rooms'") == [
        (2,)
    ]
    owner.rows("SELECT cerebro.deploy('rooms', '1')")
    assert session.rows(ALL, "rooms", "mine") == before[0]


BARE = (
    "SELECT * FROM cerebro.predict('rooms', 'public.homes')",
    "SELECT cerebro.predict_row('rooms', '{}')",
)


def test_a_bare_name_is_not_that_of_a_model_that_was_granted(
    session: Workbench, rooms: BatchResult
) -> None:
    for statement in BARE:
        error = refused(session, statement, code="42704", words="you have no model named 'rooms'")
        template = (
            "{} {} granted you one. Name the owner of a model that is not your own: owner => {}."
        )
        assert read_hint(error, template).startswith("cerebro has granted you one.")
        assert "owner => 'cerebro'" in str(error.diag.message_hint)


@pytest.mark.long
def test_a_bare_name_means_a_model_of_one_s_own(
    owner: Workbench, session: Workbench, shared_superuser: Workbench, rooms: BatchResult
) -> None:
    """Whatever others grant, to the role or to everybody, before it has one of that name and after
    it was dropped.
    """
    told = session.rows(ALL, "rooms", "mine")
    gate = owner.value("SELECT gate FROM cerebro.grant_log WHERE model = 'rooms'")
    with another_role(owner, shared_superuser, "bob") as bob:
        owner.rows(f"GRANT SELECT ON cerebro_state.{gate} TO PUBLIC")
        for statement in BARE:
            refused(bob, statement, code="42704", words="you have no model named 'rooms'")
        own_schema(shared_superuser, "bob")
        bob.rows(
            "SET search_path = bob, madlib; CREATE VIEW roomy AS SELECT id, place, slope, rooms "
            "FROM public.homes"
        )
        bob.data()
        floats = Measure(25.0, 15.0, 0.0, 49.0)
        trained(
            bob, "rooms", "roomy", "rooms", template="linear", epochs=1, margin=1.5, floats=floats
        )
        assert bob.rows("SELECT owner FROM cerebro.model ORDER BY 1") == [("bob",), ("cerebro",)]
        own = bob.rows(ALL.replace("'cerebro'", "'bob'"), "rooms", "public.homes")
        assert (
            own
            == bob.rows(ALL.replace(", owner => 'cerebro'", ""), "rooms", "public.homes")
            != told
        )
        bob.rows("SELECT cerebro.grant_predict('rooms', 'guest')")
        for statement in BARE:
            error = refused(
                session, statement, code="42704", words="you have no model named 'rooms'"
            )
            assert str(error.diag.message_hint).startswith("bob, cerebro have granted you one.")
        whose = (
            "SELECT * FROM cerebro.predict('rooms', 'mine', 'id', owner => %s) ORDER BY id::integer"
        )
        assert session.rows(whose, "bob") == own != told
        assert (
            session.rows(whose, "cerebro")
            == told
            == bob.rows(whose.replace("mine", "public.homes"), "cerebro")
        )
        one = "SELECT cerebro.predict_row('rooms', '{}', owner => %s)"
        assert session.value(one, "bob") != session.value(one, "cerebro")
        refused(session, one, "guest", code="42704")
        refused(session, one, "nobody", code="42704", words="role 'nobody' has no model")
        assert bob.value(BARE[1])
        bob.rows("SELECT cerebro.drop_model('rooms')")
        for statement in BARE:
            refused(bob, statement, code="42704", words="you have no model named 'rooms'")
        owner.rows(f"REVOKE SELECT ON cerebro_state.{gate} FROM PUBLIC")
    assert session.rows(ALL, "rooms", "mine") == told


@pytest.mark.long
def test_members_of_a_role_predict_too(
    owner: Workbench, shared_superuser: Workbench, guest: Workbench
) -> None:
    with another_role(owner, shared_superuser, "member") as member:
        refused(member, "SELECT cerebro.predict_row('rooms', '{}', 'cerebro')", code="42704")
        shared_superuser.rows("GRANT guest TO member")
        assert member.value("SELECT cerebro.predict_row('rooms', '{}', 'cerebro')")
        shared_superuser.rows("REVOKE guest FROM member")
        refused(member, "SELECT cerebro.predict_row('rooms', '{}', 'cerebro')", code="42704")


@pytest.mark.long
def test_what_was_granted_is_taken_back(
    owner: Workbench, session: Workbench, shared_superuser: Workbench
) -> None:
    assert session.value("SELECT cerebro.predict_row('rooms', '{}', 'cerebro')")
    gate = owner.value("SELECT gate FROM cerebro.grant_log WHERE model = 'rooms'")
    with another_role(owner, shared_superuser, "second") as second:
        owner.rows(
            "SELECT cerebro.grant_predict('rooms', 'second'), cerebro.revoke_predict('rooms', "
            "'guest')"
        )
        refused(session, "SELECT cerebro.predict_row('rooms', '{}', 'cerebro')", code="42704")
        refused(session, ALL, "rooms", "mine", code="42704")
        assert second.value("SELECT cerebro.predict_row('rooms', '{}', 'cerebro')")
        owner.rows("SELECT cerebro.revoke_predict('rooms', 'second')")
        refused(second, "SELECT cerebro.predict_row('rooms', '{}', 'cerebro')", code="42704")
    assert owner.rows("SELECT FROM cerebro.grant_log WHERE model = 'rooms'") == []
    assert owner.rows("SELECT FROM cerebro.grant_state WHERE model = 'rooms'") == []
    assert owner.rows("SELECT FROM pg_class WHERE relname = %s", gate) == []
    refused(
        owner,
        "SELECT cerebro.revoke_predict('rooms', 'guest')",
        code="42704",
        words="nobody was granted",
    )
    owner.rows("SELECT cerebro.grant_predict('rooms', 'guest')")


def test_only_the_owner_grants(
    owner: Workbench, session: Workbench, shared_superuser: Workbench
) -> None:
    for function in ("grant_predict", "revoke_predict"):
        refused(session, f"SELECT cerebro.{function}('rooms', 'guest')", code="42P01")
    for statement, code in {
        "SELECT cerebro.grant_predict('rooms', NULL)": "22004",
        "SELECT cerebro.grant_predict('Rooms', 'guest')": "42P01",
        "SELECT cerebro.grant_predict('rooms', '12345678')": "42704",
    }.items():
        refused(owner, statement, code=code)
    owner.messages()
    with another_role(owner, shared_superuser, "bare", granted=False):
        owner.rows("SELECT cerebro.grant_predict('rooms', 'bare')")
        assert "grant_usage" in str(owner.connection.notices)
        owner.rows("SELECT cerebro.revoke_predict('rooms', 'bare')")
    owner.rows("CREATE TABLE rooms (a integer)")
    owner.rows("SELECT cerebro.grant_predict('rooms', 'guest')")
    assert "taken for the name of a model" in str(owner.connection.notices)
    refused(owner, "SELECT cerebro.grant_predict('public.rooms', 'guest')", code="42703")
    owner.rows("DROP TABLE rooms")


def test_a_model_that_is_dropped_leaves_nothing(
    owner: Workbench, session: Workbench, homes: BatchResult
) -> None:
    """The last test: the other model is gone after it."""
    gate = owner.value("SELECT gate FROM cerebro.grant_log WHERE model = %s", MODEL)
    owner.rows("SELECT cerebro.drop_model(%s)", MODEL)
    refused(session, ALL, MODEL, "mine", code="42704")
    for table in ("grant_log", "grant_state"):
        assert owner.rows(f"SELECT FROM cerebro.{table} WHERE model = %s", MODEL) == []
    assert owner.rows("SELECT FROM pg_class WHERE relname = %s", gate) == []
