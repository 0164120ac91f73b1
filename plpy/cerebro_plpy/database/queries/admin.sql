-- name: schema
SELECT pg_catalog.quote_ident(n.nspname) AS schema
FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'cerebro_db'

-- name: functions
-- All functions of the extension but the one that grants them.
SELECT p.oid::pg_catalog.regprocedure::text AS function
FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_proc p ON p.oid = d.objid
WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.deptype = 'e' AND p.proname <> 'grant_usage'
  AND d.refobjid = (SELECT e.oid FROM pg_catalog.pg_extension e WHERE e.extname = 'cerebro_db')

-- name: grant_function
GRANT EXECUTE ON ROUTINE {function} TO {role}

-- name: grant_schema
GRANT USAGE ON SCHEMA {schema}, cerebro, cerebro_state TO {role}

-- name: grant_tables
GRANT CREATE ON SCHEMA cerebro_state TO {role};
GRANT SELECT, INSERT, UPDATE ON cerebro.run_log, cerebro.config_log, cerebro.visit, cerebro.evaluation, cerebro.metric TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON cerebro.form_timing TO {role};
GRANT DELETE ON cerebro.run_log{also_deleted} TO {role};
GRANT USAGE, SELECT ON SEQUENCE cerebro.run_log_run_id_seq TO {role};
GRANT SELECT ON cerebro.setting, cerebro.orchestrator, cerebro.run, cerebro.config, cerebro.leaderboard, cerebro.progress, cerebro.timeline, cerebro.learning_curve TO {role}
