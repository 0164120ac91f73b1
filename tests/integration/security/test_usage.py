"""The use of the extension is granted, to a role or to a group, and taken back whole."""

from __future__ import annotations

import pytest
from roles import another_role, own_schema, refused, session_of
from workbench import Workbench

ACLS = """
    SELECT d.classid::regclass::text, d.objid, a.grantee, a.privilege_type, a.is_grantable, 0
    FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'cerebro_db'
    LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
    LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
    LEFT JOIN pg_namespace n ON d.classid = 'pg_namespace'::regclass AND n.oid = d.objid
    CROSS JOIN aclexplode(CASE WHEN p.oid IS NOT NULL THEN coalesce(p.proacl, acldefault('f',
        p.proowner))
      WHEN c.oid IS NOT NULL THEN coalesce(c.relacl, acldefault(CASE c.relkind WHEN 'S' THEN 's'
        ELSE 'r' END::"char", c.relowner))
      ELSE coalesce(n.nspacl, acldefault('n', n.nspowner)) END) a
    WHERE d.deptype = 'e'
  UNION ALL
    SELECT 'schema of functions', n.oid, a.grantee, a.privilege_type, a.is_grantable, 0
    FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
    CROSS JOIN aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a
    WHERE e.extname = 'cerebro_db'
  UNION ALL
    SELECT 'column', t.attrelid, a.grantee, a.privilege_type, a.is_grantable, t.attnum
    FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'cerebro_db'
    JOIN pg_attribute t ON d.classid = 'pg_class'::regclass AND t.attrelid = d.objid
    CROSS JOIN aclexplode(t.attacl) a
  ORDER BY 1, 2, 3, 4, 5, 6"""
TENANTS = "SELECT * FROM cerebro.setting WHERE name = 'tenant_roles'"
EARLIER = """
    GRANT UPDATE, DELETE ON cerebro.run_log, cerebro.metric TO "Use's";
    GRANT EXECUTE ON FUNCTION cerebro.set(text, text) TO "Use's\""""


def test_revoke_usage_undoes_grant_usage(bench: Workbench, shared_superuser: Workbench) -> None:
    """With what earlier versions and other calls gave; the role has no privilege left."""
    role = '"Use\'s"'
    before = shared_superuser.rows(ACLS)
    tenants = shared_superuser.rows(TENANTS)
    shared_superuser.rows(f"CREATE ROLE {role} LOGIN")
    try:
        shared_superuser.rows("SELECT cerebro.grant_usage(%s, keep_trainers => false)", role)
        shared_superuser.rows(EARLIER)
        granted = {row[2:5] for row in shared_superuser.rows(ACLS)}
        assert {kind for _, kind, _ in granted} >= {"EXECUTE", "USAGE", "SELECT", "CREATE"}
        session = session_of(bench, "Use%27s")
        refused(session, "SELECT cerebro.revoke_usage('cerebro')")
        session.rows("SELECT FROM cerebro.run")
        shared_superuser.rows("SELECT cerebro.revoke_usage(%s)", role)
        assert shared_superuser.rows(ACLS) == before
        assert shared_superuser.rows(TENANTS) == tenants
        refused(session, "SELECT FROM cerebro.run")
        session.close()
        shared_superuser.rows("SELECT cerebro.revoke_usage(%s)", role)  # nothing is left to do
    finally:
        shared_superuser.rows(f"DROP ROLE {role}")


@pytest.mark.postgresql("trains by name")
def test_members_of_a_group_train_and_predict_as_themselves(
    bench: Workbench, shared_superuser: Workbench
) -> None:
    with (
        another_role(bench, shared_superuser, "analysts", options="NOLOGIN"),
        another_role(bench, shared_superuser, "amy", granted=False) as amy,
        another_role(bench, shared_superuser, "ben", granted=False) as ben,
    ):
        shared_superuser.rows("GRANT analysts TO amy, ben")
        own_schema(shared_superuser, "amy")
        amy.rows("CREATE TABLE amy.points AS SELECT n AS x, n % 2 = 0 AS y FROM "
                 "generate_series(1, 60) n")  # fmt: skip
        answer = amy.rows(
            "SELECT FROM cerebro.train('amy.points', 'y', 'parity', models => '{linear}', "
            "configs => 1, epochs => 1, ensemble => 1, seed => 1)"
        )
        assert answer and amy.value("SELECT owner FROM cerebro.model") == "amy"
        assert amy.value("SELECT count(*) FROM cerebro.predict('parity', 'amy.points')") == 60
        assert ben.rows("SELECT FROM cerebro.model") == []
        amy.rows("SELECT cerebro.grant_predict('parity', 'analysts')")
        amy.rows("GRANT USAGE ON SCHEMA amy TO ben; GRANT SELECT ON amy.points TO ben")
        predict = "SELECT count(*) FROM cerebro.predict('parity', 'amy.points', owner => 'amy')"
        assert ben.value(predict) == 60
        shared_superuser.rows("REVOKE analysts FROM ben")
        refused(ben, predict)
        amy.rows("SELECT cerebro.drop_model('parity')")


def test_the_version_has_all_parts(bench: Workbench) -> None:
    parts = dict(part.split(" ", 1) for part in bench.value("SELECT cerebro.version()").split(", "))
    versions = bench.value("SELECT cerebro.python_version()")
    assert parts["cerebro_db"] == versions["extension"]
    assert parts["cerebro_plpy"] == versions["package"]
    assert (parts["Python"], parts["psycopg2"]) == (versions["python"], versions["psycopg2"])
    assert bench.value("SHOW server_version").split()[0] in parts["PostgreSQL"]
