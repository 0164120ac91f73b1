-- name: reserve
SELECT nextval(pg_catalog.pg_get_serial_sequence('cerebro.run_log', 'run_id'))

-- name: recorded
SELECT (r.spec ->> 'seed')::bigint, r.epochs, r.segments, r.spec ->> 'dtype_policy' FROM cerebro.run_log r WHERE r.run_id = %s::bigint AND r.owner = current_user

-- name: recorded_visits
SELECT v.mst_key, v.epoch, pg_catalog.array_agg(v.segment_id ORDER BY v.visit_no), max(v.threads),
       pg_catalog.array_agg(v.form ORDER BY v.visit_no)
FROM cerebro.visit v WHERE v.run_id = %s::bigint AND v.status = 'completed' GROUP BY v.mst_key, v.epoch

-- name: recorded_backends
SELECT c.mst_key, c.backend FROM cerebro.config_log c WHERE c.run_id = %s::bigint

-- name: begin
INSERT INTO cerebro.run_log (run_id, name, spec, pid, epochs, segments) OVERRIDING SYSTEM VALUE
VALUES (%s::bigint, %s::text, %s::jsonb, %s::integer, %s::integer, %s::integer[])

-- name: config
INSERT INTO cerebro.config_log (run_id, mst_key, params, state_tables, model_id, compile_params, fit_params, architecture, backend)
SELECT c.run_id, c.mst_key,
       pg_catalog.jsonb_build_object('model_id', c.model_id, 'compile_params', c.compile_params, 'fit_params', c.fit_params),
       c.state_tables, c.model_id, c.compile_params, c.fit_params, c.architecture, c.backend
FROM (VALUES (%s::bigint, %s::integer, %s::text[], %s::integer, %s::text, %s::text, %s::json, %s::text))
     AS c (run_id, mst_key, state_tables, model_id, compile_params, fit_params, architecture, backend)

-- name: state_table
-- A chunk fills a page, so that no TOAST table is needed: with one and its index, a TRUNCATE takes four times as long.
-- It is not made either, because there never is a column that could be moved to it.
CREATE TABLE IF NOT EXISTS {state} (part integer NOT NULL) WITH (autovacuum_enabled = false);
ALTER TABLE {state} ADD COLUMN IF NOT EXISTS chunk bytea NOT NULL, ALTER COLUMN chunk SET STORAGE PLAIN

-- name: add_state_table
UPDATE cerebro.config_log c SET state_tables = c.state_tables || %s::text WHERE c.run_id = %s::bigint AND c.mst_key = %s::integer AND %s::text <> ALL (c.state_tables)

-- name: spare_state_tables
-- State tables of a run that do not hold a newest state.
SELECT t.name FROM cerebro.config_log c CROSS JOIN LATERAL pg_catalog.unnest(c.state_tables) AS t (name)
WHERE c.run_id = %s::bigint AND t.name <> ALL (%s::text[])

-- name: drop_state_table
SET LOCAL lock_timeout = '2s';
DROP TABLE {state};
UPDATE cerebro.config_log c SET state_tables = pg_catalog.array_remove(c.state_tables, %s::text)
WHERE c.run_id = %s::bigint AND %s::text = ANY (c.state_tables)

-- name: config_running
UPDATE cerebro.config_log c SET status = 'running' WHERE c.run_id = %s::bigint AND c.mst_key = %s::integer

-- name: config_completed
UPDATE cerebro.config_log c SET status = 'completed' WHERE c.run_id = %s::bigint AND c.mst_key = %s::integer

-- name: config_failed
UPDATE cerebro.config_log c SET status = 'failed', reason = %s::text WHERE c.run_id = %s::bigint AND c.mst_key = %s::integer

-- name: metrics
INSERT INTO cerebro.metric (run_id, mst_key, epoch, dataset, name, value)
SELECT %s::bigint, %s::integer, %s::integer, m.dataset, m.name, m.value::double precision
FROM pg_catalog.json_to_recordset(%s::json) AS m (dataset text, name text, value text)

-- name: end
UPDATE cerebro.run_log r SET status = %s::text, error = %s::text, ended_at = pg_catalog.clock_timestamp()
WHERE r.run_id = %s::bigint

-- name: visit_lost
-- Also where it was committed just before: nobody heard of that, so it is done again.
UPDATE cerebro.visit v SET status = 'failed', ended_at = coalesce(v.ended_at, pg_catalog.clock_timestamp()), error = %s::text
WHERE v.run_id = %s::bigint AND v.mst_key = %s::integer AND v.visit_no = %s::integer AND v.attempt = %s::integer

-- name: evaluation_lost
UPDATE cerebro.evaluation e SET status = 'failed', ended_at = coalesce(e.ended_at, pg_catalog.clock_timestamp()), error = %s::text
WHERE e.run_id = %s::bigint AND e.epoch = %s::integer AND e.mst_key = %s::integer AND e.segment_id = %s::integer AND e.attempt = %s::integer

-- name: known_timings
SELECT t.machine, t.program, t.batch_size, t.threads, t.form, t.seconds_per_row, t.compile_seconds
FROM cerebro.form_timing t WHERE t.owner = current_user AND t.program = ANY (%s::text[])

-- name: add_timing
INSERT INTO cerebro.form_timing (machine, program, batch_size, threads, form, seconds_per_row, compile_seconds)
VALUES (%s::text, %s::text, %s::integer, %s::integer, %s::text, %s::double precision, %s::double precision)
ON CONFLICT (owner, machine, program, batch_size, threads, form) DO UPDATE
SET seconds_per_row = excluded.seconds_per_row, compile_seconds = excluded.compile_seconds, measured_at = excluded.measured_at

-- name: stop_configs
UPDATE cerebro.config_log c SET status = 'stopped' WHERE c.run_id = %s::bigint AND c.status IN ('waiting', 'running')

-- name: stop_visits
UPDATE cerebro.visit v SET status = 'failed', ended_at = pg_catalog.clock_timestamp(), error = %s::text
WHERE v.run_id = %s::bigint AND v.status = 'running'

-- name: stop_evaluations
UPDATE cerebro.evaluation e SET status = 'failed', ended_at = pg_catalog.clock_timestamp(), error = %s::text
WHERE e.run_id = %s::bigint AND e.status = 'running'
