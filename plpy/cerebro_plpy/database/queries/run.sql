-- name: reserve
-- The next number, and whether somebody has made a table where a state of that run would lie: anybody may.
SELECT n.run_id, EXISTS (
    SELECT FROM pg_catalog.pg_class c WHERE c.relnamespace = 'cerebro_state'::pg_catalog.regnamespace
                                        AND pg_catalog.starts_with(c.relname::text, 'r' || n.run_id || '_')) AS taken
FROM (SELECT nextval('cerebro.run_log_run_id_seq') AS run_id OFFSET 0) n

-- name: recorded
SELECT (r.spec ->> 'seed')::bigint, r.epochs, r.segments, r.spec ->> 'dtype_policy', r.spec ->> 'schedule',
       CASE WHEN pg_catalog.jsonb_typeof(r.spec -> 'copies') = 'number' THEN (r.spec ->> 'copies')::double precision END AS copies,
       pg_catalog.jsonb_typeof(r.spec -> 'one') IS NOT DISTINCT FROM 'object' AS single,
       CASE WHEN pg_catalog.jsonb_typeof(r.spec -> 'functions') = 'object' THEN r.spec ->> 'functions' ELSE '{}' END AS functions,
       CASE WHEN pg_catalog.jsonb_typeof(r.spec -> 'epochs_before') = 'object' THEN r.spec ->> 'epochs_before' ELSE '{}' END AS epochs_before
FROM cerebro.run_log r WHERE r.run_id = %s::bigint AND r.owner = current_user

-- name: recorded_search
SELECT r.spec ->> 'search', r.spec ->> 'search_params', r.spec ->> 'rank_dataset', r.spec ->> 'rank_metric',
       r.spec ->> 'rank_descending' = 'true', r.spec ->> 'evaluate_epochs', (r.spec ->> 'replay_run')::bigint
FROM cerebro.run_log r WHERE r.run_id = %s::bigint AND r.owner = current_user

-- name: recorded_visits
SELECT v.mst_key, v.epoch, pg_catalog.array_agg(v.segment_id ORDER BY v.visit_no), max(v.threads),
       pg_catalog.array_agg(v.form ORDER BY v.visit_no)
FROM cerebro.visit v WHERE v.run_id = %s::bigint AND v.status = 'completed' AND v.kind = 'train' GROUP BY v.mst_key, v.epoch

-- name: recorded_configs
SELECT c.mst_key, c.backend, c.warm_started_from, c.source, c.model_id, c.compile_params, c.fit_params, c.warm_started_visits,
       c.status, c.cut
FROM cerebro.config_log c WHERE c.run_id = %s::bigint

-- name: recorded_endings
-- Configurations that ended for this reason, or were stopped by somebody, and the last epoch that metrics were computed of.
SELECT c.mst_key, coalesce(max(m.epoch), 0)
FROM cerebro.config_log c LEFT JOIN cerebro.metric m ON m.run_id = c.run_id AND m.mst_key = c.mst_key
LEFT JOIN (SELECT DISTINCT ON (l.mst_key) l.mst_key, l.action FROM cerebro.decision_log l WHERE l.run_id = %s::bigint
           ORDER BY l.mst_key, l.decision_no DESC) d ON d.mst_key = c.mst_key
WHERE c.run_id = %s::bigint AND c.status = 'stopped' AND (c.reason = %s::text OR pg_catalog.strpos(c.reason, %s::text) = 1 OR d.action IN ('hold', 'stop')) GROUP BY c.mst_key

-- name: recorded_limits
-- How far it was decided that each configuration trains; nothing of a run of which nothing was decided. In a search those
-- without a decision never began, else they go on to the end.
SELECT c.mst_key, coalesce(d.last_epoch, CASE WHEN n.searched THEN 0 ELSE r.epochs END)
FROM cerebro.config_log c JOIN cerebro.run_log r USING (run_id)
JOIN (SELECT s.run_id, pg_catalog.bool_or(s.action = 'start' AND s.act_id IS NULL) AS searched FROM cerebro.decision_log s WHERE s.run_id = %s::bigint AND s.action <> 'replan' GROUP BY s.run_id) n USING (run_id)
LEFT JOIN (SELECT DISTINCT ON (l.mst_key) l.mst_key, l.last_epoch FROM cerebro.decision_log l WHERE l.run_id = %s::bigint
           ORDER BY l.mst_key, l.decision_no DESC) d USING (mst_key)
WHERE c.run_id = %s::bigint

-- name: begin
INSERT INTO cerebro.run_log (run_id, name, spec, pid, epochs, segments, ticket) OVERRIDING SYSTEM VALUE
VALUES (%s::bigint, %s::text, %s::jsonb, %s::integer, %s::integer, %s::integer[], %s::text)

-- name: config
INSERT INTO cerebro.config_log (run_id, mst_key, params, state_tables, model_id, compile_params, fit_params, architecture, backend, template,
                                group_value, segments)
SELECT c.run_id, c.mst_key,
       coalesce(c.params, pg_catalog.jsonb_build_object('model_id', c.model_id, 'compile_params', c.compile_params, 'fit_params', c.fit_params)),
       c.state_tables, c.model_id, c.compile_params, c.fit_params, c.architecture, c.backend, c.template, c.group_value, c.segments
FROM (VALUES (%s::bigint, %s::integer, %s::text[], %s::integer, %s::text, %s::text, %s::json, %s::text, %s::text, %s::jsonb, %s::text, %s::integer[]))
     AS c (run_id, mst_key, state_tables, model_id, compile_params, fit_params, architecture, backend, template, params, group_value, segments)

-- name: software
UPDATE cerebro.run_log r SET software = r.software || %s::jsonb, plan = coalesce(r.plan, %s::jsonb) WHERE r.run_id = %s::bigint

-- name: backends
UPDATE cerebro.config_log c SET backend = b.value FROM pg_catalog.json_each_text(%s::json) b
WHERE c.run_id = %s::bigint AND c.mst_key = b.key::integer

-- name: cuts
UPDATE cerebro.config_log c SET cut = b.value FROM pg_catalog.json_each_text(%s::json) b
WHERE c.run_id = %s::bigint AND c.mst_key = b.key::integer

-- name: features_table
-- One that is there already is of an earlier attempt; a backup that holds it makes no run wait.
SELECT pg_catalog.set_config('cerebro_db.lock_timeout', pg_catalog.current_setting('lock_timeout'), true),
       pg_catalog.set_config('lock_timeout', '2s', true);
DROP TABLE IF EXISTS {features};
SELECT pg_catalog.set_config('lock_timeout', pg_catalog.current_setting('cerebro_db.lock_timeout'), true);
{table};
SELECT {literal}::pg_catalog.regclass::pg_catalog.oid::bigint

-- name: new_state_table
-- A chunk fills a page, so that no TOAST table is needed: with one and its index, a TRUNCATE takes four times as long.
-- It is not made either, because there never is a column that could be moved to it.
CREATE TABLE {state} (part integer NOT NULL) WITH (autovacuum_enabled = false);
ALTER TABLE {state} ADD COLUMN chunk bytea NOT NULL, ALTER COLUMN chunk SET STORAGE PLAIN;
SELECT cerebro_internal.keep_private({literal}::pg_catalog.regclass)

-- name: state_table
-- One that is there already, from an earlier attempt, holds nothing of value; and it may be somebody else's, with triggers.
DROP TABLE IF EXISTS {state};
{made}

-- name: state_tables
-- Nobody who holds one for long, such as a backup, makes a run wait.
SELECT pg_catalog.set_config('cerebro_db.lock_timeout', pg_catalog.current_setting('lock_timeout'), true),
       pg_catalog.set_config('lock_timeout', '2s', true);
{statements};
SELECT pg_catalog.set_config('lock_timeout', pg_catalog.current_setting('cerebro_db.lock_timeout'), true)

-- name: usable_state_tables
-- State tables of a run that the current user owns, so that nobody else can have changed them: those without a page, and
-- those that the next visit empties first. By the catalog alone: Greenplum calls is_state beside no table of ours.
SELECT n.name
FROM pg_catalog.pg_class t CROSS JOIN LATERAL (SELECT 'cerebro_state."' || t.relname || '"' AS name) n
WHERE t.relnamespace = 'cerebro_state'::pg_catalog.regnamespace AND cerebro_internal.is_state(%s::bigint, n.name)
  AND NOT (t.relhastriggers OR t.relhasrules OR t.relrowsecurity)
  AND (n.name = ANY (%s::text[]) OR pg_catalog.pg_relation_size(t.oid) = 0)

-- name: add_state_table
UPDATE cerebro.config_log c SET state_tables = c.state_tables || %s::text WHERE c.run_id = %s::bigint AND c.mst_key = %s::integer AND %s::text <> ALL (c.state_tables)

-- name: spare_state_tables
-- State tables of a run but those to keep, and their bytes, by the catalog: what a log says, its owner may have written.
-- Whoever uses one now may be a backup. What the caller has read is left to a later call: its transaction holds it.
SELECT n.name, pg_catalog.pg_total_relation_size(t.oid) AS bytes,
       EXISTS (SELECT FROM pg_catalog.pg_locks l
               WHERE l.locktype = 'relation' AND l.relation = t.oid AND l.pid <> pg_catalog.pg_backend_pid()
                 AND l.database = (SELECT b.oid FROM pg_catalog.pg_database b WHERE b.datname = pg_catalog.current_database())) AS used
FROM pg_catalog.pg_class t CROSS JOIN LATERAL (SELECT 'cerebro_state."' || t.relname || '"' AS name) n
WHERE t.relnamespace = 'cerebro_state'::pg_catalog.regnamespace AND cerebro_internal.is_state(%s::bigint, n.name) AND n.name <> ALL (%s::text[])
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_locks l WHERE l.locktype = 'relation' AND l.relation = t.oid AND l.pid = %s::integer)

-- name: states_of
SELECT n.name FROM pg_catalog.pg_class t CROSS JOIN LATERAL (SELECT 'cerebro_state."' || t.relname || '"' AS name) n
WHERE t.relnamespace = 'cerebro_state'::pg_catalog.regnamespace AND cerebro_internal.is_state(%s::bigint, n.name)
  AND pg_catalog.starts_with(t.relname::text, %s::text)

-- name: released
-- Their states are of no use any more.
UPDATE cerebro.config_log c SET released = TRUE WHERE c.run_id = %s::bigint AND c.mst_key = ANY (%s::integer[])

-- name: past_released
SELECT c.mst_key FROM cerebro.config_log c WHERE c.run_id = %s::bigint AND c.released

-- name: drop_state_tables
-- Any may be gone, where nobody heard that it was dropped.
SELECT pg_catalog.set_config('cerebro_db.lock_timeout', pg_catalog.current_setting('lock_timeout'), true),
       pg_catalog.set_config('lock_timeout', '2s', true);
DROP TABLE IF EXISTS {states};
SELECT pg_catalog.set_config('lock_timeout', pg_catalog.current_setting('cerebro_db.lock_timeout'), true);
UPDATE cerebro.visit v SET dropped_at = pg_catalog.statement_timestamp()
FROM (SELECT DISTINCT ON (n.state_table) n.mst_key, n.visit_no, n.attempt
      FROM cerebro.config_log g JOIN cerebro.visit n USING (run_id, mst_key)
      WHERE g.run_id = %s::bigint AND g.state_tables && %s::text[] AND n.state_table = ANY (%s::text[]) ORDER BY n.state_table, n.visit_no DESC, n.attempt DESC) d
WHERE v.run_id = %s::bigint AND v.mst_key = d.mst_key AND v.visit_no = d.visit_no AND v.attempt = d.attempt;
UPDATE cerebro.config_log c
SET state_tables = ARRAY(SELECT s.name FROM pg_catalog.unnest(c.state_tables) WITH ORDINALITY AS s (name, n)
                         WHERE s.name <> ALL (%s::text[]) ORDER BY s.n)
WHERE c.run_id = %s::bigint AND c.state_tables && %s::text[]

-- name: config_running
UPDATE cerebro.config_log c SET status = 'running' WHERE c.run_id = %s::bigint AND c.mst_key = %s::integer

-- name: config_completed
UPDATE cerebro.config_log c SET status = 'completed' WHERE c.run_id = %s::bigint AND c.mst_key = %s::integer

-- name: config_failed
UPDATE cerebro.config_log c SET status = 'failed', reason = %s::text WHERE c.run_id = %s::bigint AND c.mst_key = %s::integer

-- name: config_stopped
UPDATE cerebro.config_log c SET status = 'stopped', reason = %s::text WHERE c.run_id = %s::bigint AND c.mst_key = %s::integer

-- name: decide
INSERT INTO cerebro.decision_log (run_id, decision_no, mst_key, action, epoch, visits, last_epoch, cause, rule, reason)
SELECT %s::bigint, d.decision_no, d.mst_key, d.action, d.epoch, d.visits, d.last_epoch, d.cause, %s::text, d.reason
FROM pg_catalog.json_to_recordset(%s::json)
     AS d (decision_no integer, mst_key integer, action text, epoch integer, visits integer, last_epoch integer, cause integer, reason text)

-- name: replan
INSERT INTO cerebro.decision_log (run_id, decision_no, action, rule, epoch, visits, last_epoch, reason)
VALUES (%s::bigint, %s::integer, 'replan', %s::text, %s::integer, %s::integer, %s::integer, %s::text)

-- name: decide_by_act
INSERT INTO cerebro.decision_log (run_id, rule, act_id, decision_no, mst_key, action, epoch, visits, last_epoch, cause, reason)
SELECT %s::bigint, %s::text, %s::bigint, d.decision_no, d.mst_key, d.action, d.epoch, d.visits, d.last_epoch, d.cause, d.reason
FROM pg_catalog.json_to_recordset(%s::json)
     AS d (decision_no integer, mst_key integer, action text, epoch integer, visits integer, last_epoch integer, cause integer, reason text)

-- name: spent
-- What belongs to no visit, beside what the log has of it.
UPDATE cerebro.run_log r SET trainer_seconds = coalesce(r.trainer_seconds, 0) + %s::double precision,
    backend_seconds = coalesce(r.backend_seconds, 0) + %s::double precision,
    gpu_seconds = coalesce(r.gpu_seconds, 0) + %s::double precision, read_bytes = coalesce(r.read_bytes, 0) + %s::bigint,
    peak_memory_bytes = greatest(r.peak_memory_bytes, %s::bigint)
WHERE r.run_id = %s::bigint

-- name: cost
SELECT coalesce(sum(c.trainer_seconds), 0) + coalesce(sum(c.backend_seconds), 0), coalesce(sum(c.gpu_seconds), 0),
       coalesce(sum(c.stored_byte_seconds), 0)
FROM cerebro.cost c WHERE c.run_id = %s::bigint

-- name: more_epochs
UPDATE cerebro.run_log r SET epochs = greatest(r.epochs, %s::integer) WHERE r.run_id = %s::bigint

-- name: last_key
SELECT max(c.mst_key) FROM cerebro.config_log c WHERE c.run_id = %s::bigint

-- name: origin
UPDATE cerebro.config_log c SET source = %s::text, cloned_from = %s::integer, warm_started_from = %s::integer,
       warm_started_visits = %s::integer, point = nullif(%s::jsonb -> c.mst_key::text, 'null')
WHERE c.run_id = %s::bigint AND c.mst_key = ANY (%s::integer[])

-- name: warm_started
-- Of a configuration that is not in the log yet its origin says the same.
UPDATE cerebro.config_log c SET warm_started_visits = %s::integer WHERE c.run_id = %s::bigint AND c.mst_key = %s::integer

-- name: acts
SELECT a.act_id, a.actor::text, a.action, a.mst_key, a.change::text
FROM cerebro.act_log a WHERE a.run_id = %s::bigint AND a.status = 'scheduled' ORDER BY a.act_id

-- name: act_done
UPDATE cerebro.act_log a SET status = 'done', visits = %s::integer, done_at = pg_catalog.clock_timestamp()
WHERE a.run_id = %s::bigint AND a.act_id = %s::bigint

-- name: act_refused
UPDATE cerebro.act_log a SET status = 'refused', reason = %s::text, done_at = pg_catalog.clock_timestamp()
WHERE a.run_id = %s::bigint AND a.act_id = %s::bigint

-- name: paused
UPDATE cerebro.run_log r SET status = %s::text WHERE r.run_id = %s::bigint

-- name: configs_decided
-- Who had come to the end is completed, unless somebody gives it more epochs, and who has failed stays so. Of several decisions about
-- a configuration the last one holds.
UPDATE cerebro.config_log c
SET status = CASE WHEN d.action IN ('rest', 'hold') THEN 'paused' WHEN d.action = 'stop' THEN 'stopped' ELSE 'running' END,
    reason = CASE WHEN d.action IN ('rest', 'hold', 'stop') THEN d.reason END
FROM (SELECT DISTINCT ON (j.mst_key) j.mst_key, j.action, j.reason
      FROM pg_catalog.json_to_recordset(%s::json) AS j (decision_no integer, mst_key integer, action text, reason text)
      ORDER BY j.mst_key, j.decision_no DESC) d
WHERE c.run_id = %s::bigint AND c.mst_key = d.mst_key
  AND (d.action IN ('rest', 'hold', 'stop') AND c.status IN ('waiting', 'running', 'paused')
       OR d.action IN ('promote', 'continue') AND c.status IN ('paused', 'stopped') OR d.action = 'promote' AND c.status = 'completed')

-- name: configs_resting
UPDATE cerebro.config_log c SET status = 'paused', reason = d.reason
FROM (SELECT DISTINCT ON (n.mst_key) n.mst_key, n.reason FROM cerebro.decision_log n WHERE n.run_id = %s::bigint
      ORDER BY n.mst_key, n.decision_no DESC) d
WHERE c.run_id = %s::bigint AND c.mst_key = d.mst_key AND c.mst_key = ANY (%s::integer[]) AND c.status IN ('waiting', 'running')

-- name: search_over
UPDATE cerebro.config_log c SET status = 'stopped', reason = coalesce(c.reason, 'the search was over before it began')
WHERE c.run_id = %s::bigint AND c.status IN ('paused', 'waiting')

-- name: past_decisions
SELECT d.mst_key, d.action, d.last_epoch, d.reason, CASE WHEN d.action = 'clone' THEN c.warm_started_from END AS parent,
       d.cause, CASE WHEN d.act_id IS NOT NULL THEN d.rule END AS act
FROM cerebro.decision_log d JOIN cerebro.config_log c USING (run_id, mst_key) WHERE d.run_id = %s::bigint ORDER BY d.decision_no

-- name: past_replans
-- How often the run has changed its strategy, and to which one at last.
SELECT count(*)::integer, (pg_catalog.array_agg(d.rule ORDER BY d.decision_no DESC))[1]
FROM cerebro.decision_log d WHERE d.run_id = %s::bigint AND d.action = 'replan'

-- name: best_epoch
UPDATE cerebro.config_log c SET best_epoch = %s::integer WHERE c.run_id = %s::bigint AND c.mst_key = %s::integer

-- name: past_best
-- Joined as in cerebro.config.
SELECT DISTINCT ON (mst_key) mst_key, c.best_epoch, v.segment_id, CASE WHEN cerebro_internal.is_state(run_id, v.base_table) THEN v.base_table END AS base_table
FROM cerebro.config_log c FULL JOIN cerebro.visit v USING (run_id, mst_key)
WHERE run_id = %s::bigint AND coalesce(v.epoch <= c.best_epoch AND v.status = 'completed', false) ORDER BY mst_key, v.visit_no DESC

-- name: metrics
-- They are there already where a session was lost just after it had committed its tour, which is made again.
INSERT INTO cerebro.metric (run_id, mst_key, epoch, time, dataset, name, value)
SELECT %s::bigint, %s::integer, %s::integer, coalesce(pg_catalog.to_timestamp(%s::double precision), pg_catalog.clock_timestamp()),
       m.dataset, m.name, m.value::double precision
FROM pg_catalog.json_to_recordset(%s::json) AS m (dataset text, name text, value text)
ON CONFLICT (run_id, mst_key, epoch, dataset, name) DO NOTHING

-- name: end
-- A run ends once: what fails afterwards does not change how it ended. The time of the statement: Greenplum makes the
-- change on every segment, and it must be the same there.
UPDATE cerebro.run_log r SET status = %s::text, error = %s::text, hint = %s::text, ended_at = pg_catalog.statement_timestamp()
WHERE r.run_id = %s::bigint AND r.status IN ('running', 'queued', 'paused')

-- name: phase
-- Without a budget it has no end.
UPDATE cerebro.run_log r SET phase = %s::text,
    deadline = pg_catalog.statement_timestamp() + pg_catalog.make_interval(secs => %s::double precision)
WHERE r.run_id = %s::bigint

-- name: moment
SELECT pg_catalog.clock_timestamp()::text

-- name: complete
UPDATE cerebro.run_log r SET status = 'completed', error = %s::text, ended_at = %s::timestamptz WHERE r.run_id = %s::bigint

-- name: outputs_missing
UPDATE cerebro.run_log r SET error = 'the output tables were not made: ' || %s::text
WHERE r.run_id = %s::bigint AND r.status = 'completed'

-- name: visit_lost
-- Also where it was committed just before: nobody heard of that, so it is done again.
UPDATE cerebro.visit v SET status = 'failed', ended_at = coalesce(v.ended_at, pg_catalog.clock_timestamp()), error = %s::text
WHERE v.run_id = %s::bigint AND v.mst_key = %s::integer AND v.visit_no = %s::integer AND v.attempt = %s::integer

-- name: evaluation_lost
UPDATE cerebro.evaluation e SET status = 'failed', ended_at = coalesce(e.ended_at, pg_catalog.clock_timestamp()), error = %s::text
WHERE e.run_id = %s::bigint AND e.epoch = %s::integer AND e.mst_key = %s::integer AND e.segment_id = %s::integer AND e.attempt = %s::integer

-- name: known_timings
SELECT t.machine, t.program, t.batch_size, t.threads, t.form, t.seconds_per_row, t.compile_seconds
FROM cerebro.form_timing t WHERE t.owner = current_user AND t.program = ANY (%s::text[]) ORDER BY t.measured_at

-- name: add_timing
INSERT INTO cerebro.form_timing (machine, program, batch_size, threads, form, seconds_per_row, compile_seconds)
VALUES (%s::text, %s::text, %s::integer, %s::integer, %s::text, %s::double precision, %s::double precision)
ON CONFLICT (owner, machine, program, batch_size, threads, form) DO UPDATE
SET seconds_per_row = excluded.seconds_per_row, compile_seconds = excluded.compile_seconds, measured_at = excluded.measured_at

-- name: stop_configs
UPDATE cerebro.config_log c SET status = 'stopped' WHERE c.run_id = %s::bigint AND c.status IN ('waiting', 'running', 'paused')

-- name: stop_visits
UPDATE cerebro.visit v SET status = 'failed', ended_at = pg_catalog.clock_timestamp(), error = %s::text
WHERE v.run_id = %s::bigint AND v.status = 'running'

-- name: stop_evaluations
UPDATE cerebro.evaluation e SET status = 'failed', ended_at = pg_catalog.clock_timestamp(), error = %s::text
WHERE e.run_id = %s::bigint AND e.status = 'running'

-- name: abandon_visits
-- What they have cost is in the row of the run.
UPDATE cerebro.visit v SET status = 'failed', ended_at = pg_catalog.clock_timestamp(), error = %s::text,
    trainer_seconds = 0, backend_seconds = 0, gpu_seconds = 0, read_bytes = 0
WHERE v.run_id = %s::bigint AND v.status = 'running'

-- name: abandon_evaluations
UPDATE cerebro.evaluation e SET status = 'failed', ended_at = pg_catalog.clock_timestamp(), error = %s::text,
    trainer_seconds = 0, backend_seconds = 0, gpu_seconds = 0, read_bytes = 0
WHERE e.run_id = %s::bigint AND e.status = 'running'

-- name: own
SELECT r.run_id, r.name, r.status, r.spec::text AS spec, r.epochs, r.segments
FROM cerebro.run_log r WHERE r.run_id = %s::bigint AND r.owner = current_user

-- name: logged
-- Whether the run is in the log, whoever owns it now.
SELECT n.run_id FROM cerebro.logged_run n WHERE n.run_id = %s::bigint

-- name: drop_table
DROP TABLE IF EXISTS {table}

-- name: drop_unread_table
SELECT pg_catalog.set_config('cerebro_db.lock_timeout', pg_catalog.current_setting('lock_timeout'), true),
       pg_catalog.set_config('lock_timeout', '2s', true);
DROP TABLE IF EXISTS {table};
SELECT pg_catalog.set_config('lock_timeout', pg_catalog.current_setting('cerebro_db.lock_timeout'), true)

-- name: no_state_tables
UPDATE cerebro.config_log c SET state_tables = '{}' WHERE c.run_id = %s::bigint AND c.state_tables <> '{}'

-- name: ended_with_states
-- Runs of which the current user has states, and that ended, or were interrupted, so many seconds ago, or are in no log.
SELECT f.run_id
FROM (SELECT DISTINCT pg_catalog.substring(t.relname::text, '^r([0-9]{1,18})_(?:c|z_|training|validation)')::bigint AS run_id FROM pg_catalog.pg_class t
      WHERE t.relnamespace = 'cerebro_state'::pg_catalog.regnamespace
        AND t.relowner = (SELECT u.oid FROM pg_catalog.pg_roles u WHERE u.rolname = current_user)) f
LEFT JOIN cerebro.logged_run n USING (run_id)
LEFT JOIN cerebro.run_log r USING (run_id)
WHERE f.run_id IS NOT NULL
  AND (n.run_id IS NULL OR r.owner = current_user
       AND coalesce(r.ended_at, (SELECT max(v.ended_at) FROM cerebro.visit v WHERE v.run_id = r.run_id), r.started_at)
           <= pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => %s::double precision))
ORDER BY f.run_id

-- name: mark_dropped
UPDATE cerebro.run_log r SET dropped = true WHERE r.run_id = %s::bigint AND r.owner = current_user

-- name: remove_dropped
SELECT cerebro_internal.remove_dropped(%s::bigint)

-- name: logged_configs
SELECT c.mst_key, c.model_id, c.compile_params, c.fit_params, c.architecture::text AS architecture, c.backend, c.status,
       c.warm_started_from, c.warm_started_visits, c.source, c.point::text AS point, c.template, c.params::text AS params, c.group_value, c.cut,
       EXISTS (SELECT FROM cerebro.visit v WHERE v.run_id = c.run_id AND v.mst_key = c.mst_key AND v.status = 'completed') AS trained
FROM cerebro.config_log c WHERE c.run_id = %s::bigint ORDER BY c.mst_key

-- name: past_visits
SELECT v.mst_key, v.epoch, v.segment_id, v.kind, v.rows, v.loss, v.training_seconds, v.state_table, v.base_table
FROM cerebro.visit v WHERE v.run_id = %s::bigint AND v.status = 'completed' ORDER BY v.mst_key, v.visit_no

-- name: past_threads
-- Bits depend on it, so trainers go on with as many.
SELECT max(v.threads) FROM cerebro.visit v WHERE v.run_id = %s::bigint AND v.status = 'completed'

-- name: past_attempts
SELECT v.mst_key, v.visit_no, max(v.attempt) FROM cerebro.visit v WHERE v.run_id = %s::bigint GROUP BY v.mst_key, v.visit_no

-- name: past_evaluations
SELECT e.mst_key, e.epoch, e.segment_id, max(e.attempt)
FROM cerebro.evaluation e WHERE e.run_id = %s::bigint GROUP BY e.mst_key, e.epoch, e.segment_id

-- name: past_metrics
SELECT m.mst_key, m.epoch, m.dataset, pg_catalog.array_agg(m.name), pg_catalog.array_agg(m.value),
       extract(epoch FROM max(m.time) - r.started_at)::double precision
FROM cerebro.metric m JOIN cerebro.run_log r USING (run_id)
WHERE m.run_id = %s::bigint GROUP BY m.mst_key, m.epoch, m.dataset, r.started_at ORDER BY m.epoch

-- name: lost_states
-- Configurations that are to go on from a state whose table is gone. Joined as in cerebro.config.
SELECT n.mst_key
FROM (SELECT DISTINCT ON (mst_key) mst_key, run_id, v.state_table, v.base_table FROM cerebro.visit v FULL JOIN cerebro.config_log c USING (run_id, mst_key)
      WHERE run_id = %s::bigint AND coalesce(v.status = 'completed' AND c.status <> 'failed' AND NOT c.released, false)
      ORDER BY mst_key, v.visit_no DESC) n
WHERE cerebro_internal.is_state(n.run_id, n.state_table) IS NOT TRUE OR cerebro_internal.is_state(n.run_id, n.base_table) IS FALSE

-- name: workers_left
-- Worker sessions that make a visit of the run; a process number alone might be that of a later process, or that of
-- a worker of the database that this one is a restored copy of.
SELECT DISTINCT a.pid
FROM cerebro.visit v JOIN pg_catalog.pg_stat_activity a ON a.pid = v.worker_pid AND a.backend_start <= v.started_at
WHERE v.run_id = %s::bigint AND v.status = 'running' AND pg_catalog.starts_with(a.application_name, 'cerebro_db')
  AND a.datname = pg_catalog.current_database()

-- name: end_workers
SELECT pg_catalog.pg_terminate_backend(p.pid) FROM pg_catalog.unnest(%s::integer[]) AS p (pid)

-- name: resume
UPDATE cerebro.run_log r SET status = 'running', ended_at = NULL, error = NULL, hint = NULL, pid = %s::integer, ticket = %s::text WHERE r.run_id = %s::bigint
RETURNING r.run_id

-- name: resume_configs
UPDATE cerebro.config_log c
SET status = CASE WHEN EXISTS (SELECT FROM cerebro.visit v WHERE v.run_id = c.run_id AND v.mst_key = c.mst_key) THEN 'running' ELSE 'waiting' END,
    reason = NULL
WHERE c.run_id = %s::bigint AND c.status IN ('waiting', 'running', 'paused', 'stopped')

-- name: worked
-- Seconds that a run was at work: those in which a visit or an evaluation was under way.
SELECT coalesce(sum(extract(epoch FROM g.ended_at - g.started_at)), 0)::double precision
FROM (SELECT min(n.started_at) AS started_at, max(n.ended_at) AS ended_at
      FROM (SELECT m.*, count(*) FILTER (WHERE m.begins) OVER (ORDER BY m.started_at, m.ended_at) AS island
            FROM (SELECT t.started_at, t.ended_at,
                         t.started_at > max(t.ended_at) OVER (ORDER BY t.started_at, t.ended_at ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS begins
                  FROM cerebro.timeline t WHERE t.run_id = %s::bigint AND t.ended_at IS NOT NULL) m) n
      GROUP BY n.island) g
