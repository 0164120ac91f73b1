-- name: schema
SELECT pg_catalog.quote_ident(n.nspname) AS schema
FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'cerebro_db'

-- name: administers
-- Whether the caller may grant what the extension has: a superuser, or a member of its owner.
SELECT pg_catalog.pg_has_role(e.extowner, 'USAGE') AS administers FROM pg_catalog.pg_extension e WHERE e.extname = 'cerebro_db'

-- name: functions
-- All functions of the extension but those of triggers, which nobody calls. Those of administrators check the rights of their caller, with a hint.
SELECT p.oid::pg_catalog.regprocedure::text AS function
FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_proc p ON p.oid = d.objid
WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.deptype = 'e' AND p.prorettype <> 'pg_catalog.trigger'::pg_catalog.regtype
  AND d.refobjid = (SELECT e.oid FROM pg_catalog.pg_extension e WHERE e.extname = 'cerebro_db')

-- name: grant_function
GRANT EXECUTE ON ROUTINE {function} TO {role}

-- name: grant_schema
GRANT USAGE ON SCHEMA {schema}, cerebro, cerebro_state, cerebro_optuna TO {role}

-- name: grant_tables
-- A role that may update or delete the rows of a table may also lock it against all others (LOCK TABLE); a role that may update only
-- columns may not. Grants of older versions are revoked.
REVOKE UPDATE, DELETE ON cerebro.run_log, cerebro.config_log, cerebro.visit, cerebro.evaluation, cerebro.metric, cerebro.form_timing FROM {role};
GRANT CREATE ON SCHEMA cerebro_state TO {role};
GRANT SELECT, INSERT ON cerebro.run_log, cerebro.config_log, cerebro.visit, cerebro.evaluation, cerebro.metric, cerebro.form_timing,
                        cerebro.decision_log, cerebro.model_log, cerebro.version_log, cerebro.group_log, cerebro.member_log, cerebro.grant_log, cerebro.grant_state TO {role};
-- The pg_dump of PostgreSQL 12 locks all tables of an extension, so that it must be allowed to read them; policies show no rows.
GRANT SELECT ON cerebro.queue_log, cerebro.used_time TO {role};
GRANT UPDATE (deployed, previous, deployed_at, dropped) ON cerebro.model_log TO {role};
GRANT UPDATE (importance, importance_error) ON cerebro.version_log TO {role};
GRANT UPDATE (version, gate, outline) ON cerebro.grant_log TO {role};
GRANT UPDATE (status, ended_at, error, hint, pid, ticket, dropped, software, epochs, plan, phase, deadline, trainer_seconds, backend_seconds, gpu_seconds, read_bytes, peak_memory_bytes) ON cerebro.run_log TO {role};
GRANT UPDATE (status, reason, state_tables, backend, best_epoch, source, cloned_from, warm_started_from, point, released, warm_started_visits, cut) ON cerebro.config_log TO {role};
GRANT UPDATE (status, ended_at, rows, state_bytes, form, threads, error, loss, state_table, base_table, training_seconds, stored_at,
              trainer_seconds, backend_seconds, gpu_seconds, read_bytes, peak_memory_bytes, dropped_at) ON cerebro.visit TO {role};
GRANT UPDATE (status, ended_at, rows, error, trainer_seconds, backend_seconds, gpu_seconds, read_bytes, peak_memory_bytes) ON cerebro.evaluation TO {role};
GRANT UPDATE (seconds_per_row, compile_seconds, measured_at) ON cerebro.form_timing TO {role};
GRANT INSERT (run_id, action, mst_key, change), UPDATE (status, reason, visits, done_at) ON cerebro.act_log TO {role};
GRANT USAGE, SELECT ON SEQUENCE cerebro.run_log_run_id_seq, cerebro.act_log_act_id_seq TO {role};
GRANT SELECT ON cerebro.setting, cerebro.quota, cerebro.queue, cerebro.orchestrator, cerebro.logged_run, cerebro.visible_run, cerebro.run, cerebro.config, cerebro.leaderboard, cerebro.progress, cerebro.timeline, cerebro.learning_curve, cerebro.decision, cerebro.cost,
                cerebro.act, cerebro.act_log,
                cerebro.model, cerebro.model_grant, cerebro.model_version, cerebro.model_group, cerebro.model_member, cerebro.feature, cerebro.template, cerebro.parameter TO {role};
GRANT SELECT ON ALL TABLES IN SCHEMA cerebro_optuna TO {role}

-- name: tenants
-- The roles that many tenants share, after adding or removing one.
INSERT INTO cerebro.setting (name, value)
SELECT 'tenant_roles', (array_remove(coalesce((SELECT t.value::text[] FROM cerebro.setting t WHERE t.name = 'tenant_roles'), '{}'), r.rolname::text)
                        || CASE WHEN %s::boolean THEN '{}'::text[] ELSE ARRAY[r.rolname::text] END)::text
FROM pg_catalog.pg_roles r WHERE r.oid = %s::regrole
ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: no_tenants
DELETE FROM cerebro.setting WHERE name = 'tenant_roles' AND value = '{}'

-- name: granted_functions
-- The functions of the extension that a role itself may execute.
SELECT p.oid::pg_catalog.regprocedure::text AS function
FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_proc p ON p.oid = d.objid
WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.deptype = 'e'
  AND d.refobjid = (SELECT e.oid FROM pg_catalog.pg_extension e WHERE e.extname = 'cerebro_db')
  AND EXISTS (SELECT FROM pg_catalog.aclexplode(p.proacl) a WHERE a.grantee = %s::regrole)

-- name: granted_tables
-- The tables, views and sequences of the extension on which, or on columns of which, a role itself has privileges.
SELECT c.oid::pg_catalog.regclass::text AS name
FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_class c ON c.oid = d.objid CROSS JOIN (SELECT %s::regrole AS role) r
WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.deptype = 'e'
  AND d.refobjid = (SELECT e.oid FROM pg_catalog.pg_extension e WHERE e.extname = 'cerebro_db')
  AND (EXISTS (SELECT FROM pg_catalog.aclexplode(c.relacl) a WHERE a.grantee = r.role)
       OR EXISTS (SELECT FROM pg_catalog.pg_attribute t CROSS JOIN LATERAL pg_catalog.aclexplode(t.attacl) a
                  WHERE t.attrelid = c.oid AND a.grantee = r.role))

-- name: revoke_function
REVOKE ALL ON ROUTINE {function} FROM {role}

-- name: revoke_table
REVOKE ALL ON TABLE {table} FROM {role}

-- name: revoke_schemas
REVOKE USAGE ON SCHEMA {schema} FROM {role};
REVOKE ALL ON SCHEMA cerebro, cerebro_state, cerebro_optuna FROM {role}

-- name: server
SELECT pg_catalog.version()
