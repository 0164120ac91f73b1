-- name: version
-- A version of a model of the current user.
SELECT v.owner::text AS owner, v.model, v.version, v.run_id, v.mst_key, v.task, v.source, v.target, v.target_type,
       v.recipe::text AS recipe, v.classes, v.margin, v.calibration::text AS calibration, v.holdout_calibration::text AS holdout_calibration, v.backend, v.metric, coalesce(v.seed, 0) AS seed, v.group_by, v.reading::text AS reading,
       v.software::text AS software, v.fingerprint, v.template, v.params::text AS params
FROM cerebro.version_log v WHERE v.owner = current_user AND v.model = %s::text AND v.version = %s::integer

-- name: configs
-- The configurations of a version, as the log of its run contains them.
SELECT c.mst_key, c.model_id, c.compile_params, c.fit_params, c.architecture::text AS architecture, c.backend, c.status, c.best_epoch,
       true AS trained, c.template, c.params::text AS params, c.warm_started_from, c.group_value
FROM cerebro.config_log c JOIN cerebro.run_log r USING (run_id)
WHERE r.owner = current_user AND c.run_id = %s::bigint AND c.mst_key = ANY (%s::integer[]) AND c.backend IS NOT NULL ORDER BY c.mst_key

-- name: software
-- The software that trains a run.
SELECT r.software::text FROM cerebro.run_log r WHERE r.run_id = %s::bigint

-- name: differing
-- The number of chunks that differ between two states; {one} and {other} return their rows.
SELECT count(*) FILTER (WHERE a.chunk IS DISTINCT FROM b.chunk) AS differing, count(*) AS chunks
FROM ({one}) a (part, chunk) FULL JOIN ({other}) b (part, chunk) ON a.part = b.part

-- name: tables_with_columns
-- A readable table or view that has all of these columns; one in the schema of the old name, given quoted, first.
SELECT n.nspname::text AS schema, c.relname::text AS name
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind::text IN ('r', 'v', 'm', 'p', 'f') AND c.relpersistence::text <> 't' AND n.nspname::text <> 'information_schema'
      AND pg_catalog.left(n.nspname::text, 3) <> 'pg_' AND n.nspname::text NOT IN ('cerebro', 'cerebro_internal', 'cerebro_state', 'madlib')
      AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(c.oid, 'SELECT')
      AND NOT EXISTS (
          SELECT FROM pg_catalog.unnest(%s::text[]) AS required (name)
          WHERE NOT EXISTS (
              SELECT FROM pg_catalog.pg_attribute a
              WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attname::text = required.name))
ORDER BY pg_catalog.starts_with(%s::text, pg_catalog.concat('"', pg_catalog.replace(n.nspname::text, '"', '""'), '".')) DESC, n.nspname::text, c.relname::text
LIMIT 1
