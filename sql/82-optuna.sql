-- Runs in the shape of Optuna's storage (its schema of version 12): a run is a study, a configuration a trial. Numbers of
-- trials are those of their run times 2^31 plus the mst_key, so that none has to be stored; JavaScript keeps them exact up to
-- run 4,194,304, and beyond run 4,294,967,295, which only somebody comes to who takes numbers for nothing, none is shown. Keys of rows
-- of which nothing is asked are numeric, for they need more digits.

-- Quotes and brackets hold commas together; what a bracket in a bracket holds stays one text, and so does what no double can be.
CREATE OR REPLACE FUNCTION cerebro_internal.settings_of(parameters text) RETURNS TABLE (name text, value jsonb)
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
WITH source AS (
    SELECT parameters AS content
    UNION ALL SELECT substring(parameters, 'optimizer\s*=\s*''\w+\(([^'']*)\)''')
    UNION ALL SELECT substring(parameters, 'optimizer\s*=\s*"\w+\(([^"]*)\)"')
), pair AS (
    SELECT m.part[1] AS name, btrim(m.part[2], ' ''"') AS value
    FROM source s CROSS JOIN LATERAL regexp_matches(
        s.content, '([A-Za-z_]\w*)\s*=\s*(''[^'']*''|"[^"]*"|\[[^\]]*\]|\{[^}]*\}|\w+\([^()]*\)|[^,()]+)', 'g') AS m (part)
)
SELECT p.name,
       CASE WHEN p.value ~ '^[-+]?(\d{1,99}\.?\d{0,99}|\.\d{1,99})([eE][-+]?\d{1,2})?$' THEN to_jsonb(p.value::numeric)
            WHEN p.value IN ('True', 'False') THEN to_jsonb(p.value::boolean)
            WHEN p.name = 'optimizer' THEN to_jsonb(split_part(p.value, '(', 1))
            ELSE to_jsonb(p.value) END
FROM pair p
$$;
COMMENT ON FUNCTION cerebro_internal.settings_of IS 'Internal: the settings of a parameter string by name; of an optimizer its name, and its own settings beside it';

CREATE OR REPLACE VIEW cerebro.parameter WITH (security_barrier) AS
SELECT c.run_id, c.mst_key, p.name, p.value
FROM cerebro.config_log c JOIN cerebro.run_log r USING (run_id)
     CROSS JOIN LATERAL (
         SELECT e.key, e.value
         FROM pg_catalog.jsonb_each(CASE WHEN pg_catalog.jsonb_typeof(c.params) = 'object' THEN c.params ELSE '{}' END) e WHERE c.template IS NOT NULL
         UNION ALL SELECT 'model_id', pg_catalog.to_jsonb(c.model_id) WHERE c.template IS NULL
         UNION ALL SELECT s.name, s.value FROM cerebro_internal.settings_of(c.compile_params) s WHERE c.template IS NULL
         UNION ALL SELECT s.name, s.value FROM cerebro_internal.settings_of(c.fit_params) s WHERE c.template IS NULL) p (name, value)
WHERE cerebro_internal.may_see(r.owner);
COMMENT ON VIEW cerebro.parameter IS 'The settings in which configurations differ, one value a row: the fields of a template, or compile and fit parameters and those of their optimizer';

CREATE OR REPLACE VIEW cerebro_optuna.studies WITH (security_barrier) AS
SELECT r.run_id AS study_id, pg_catalog.concat(coalesce(r.name, 'run'), ' #', r.run_id) AS study_name
FROM cerebro.run_log r WHERE cerebro_internal.may_see(r.owner) AND r.run_id < 4294967296;
COMMENT ON VIEW cerebro_optuna.studies IS 'A study for each run that the reader may see; its number tells apart what has the same name';

CREATE OR REPLACE VIEW cerebro_optuna.study_directions WITH (security_barrier) AS
SELECT r.run_id AS study_direction_id,
       (CASE WHEN r.rank_descending THEN 'MAXIMIZE' ELSE 'MINIMIZE' END)::cerebro_optuna.studydirection AS direction,
       r.run_id AS study_id, 0 AS objective
FROM cerebro.run_log r WHERE cerebro_internal.may_see(r.owner) AND r.run_id < 4294967296;
COMMENT ON VIEW cerebro_optuna.study_directions IS 'Whether smaller or larger values of the metric that ranks are better';

CREATE OR REPLACE VIEW cerebro_optuna.study_user_attributes WITH (security_barrier) AS
SELECT r.run_id * 10 + a.place AS study_user_attribute_id, r.run_id AS study_id, a.key, pg_catalog.to_json(a.value)::text AS value_json
FROM cerebro.run r CROSS JOIN LATERAL (VALUES (1, 'status', r.status), (2, 'owner', r.owner::text), (3, 'error', r.error)) a (place, key, value)
WHERE a.value IS NOT NULL AND r.run_id < 4294967296;
COMMENT ON VIEW cerebro_optuna.study_user_attributes IS 'What stands beside a run: its status, whose it is, and why it ended';

CREATE OR REPLACE VIEW cerebro_optuna.study_system_attributes WITH (security_barrier) AS
SELECT r.run_id AS study_system_attribute_id, r.run_id AS study_id, 'study:metric_names'::text AS key,
       pg_catalog.json_build_array(pg_catalog.concat_ws(' ', r.rank_dataset, r.rank_metric))::text AS value_json
FROM cerebro.run_log r WHERE cerebro_internal.may_see(r.owner) AND r.run_id < 4294967296;
COMMENT ON VIEW cerebro_optuna.study_system_attributes IS 'The name of the metric that ranks, as the label of an axis';

-- The value of a configuration is that of the leaderboard; one without a value cannot be complete for Optuna. Here and below the
-- leaderboard itself is not read, for Optuna asks for single trials by numbers, which no index has: it would be made of all runs.
CREATE OR REPLACE VIEW cerebro_optuna.trials WITH (security_barrier) AS
SELECT run_id * 2147483648 + mst_key AS trial_id,
       (row_number() OVER (PARTITION BY run_id ORDER BY mst_key) - 1)::integer AS number,
       run_id AS study_id,
       (CASE WHEN c.status = 'completed' AND v.value <> 'NaN' THEN 'COMPLETE'
             WHEN c.status IN ('completed', 'failed') THEN 'FAIL'
             WHEN c.status = 'stopped' OR r.status NOT IN ('running', 'queued', 'paused') THEN 'PRUNED'
             WHEN c.status = 'waiting' THEN 'WAITING' ELSE 'RUNNING' END)::cerebro_optuna.trialstate AS state,
       v.started_at AT TIME ZONE 'UTC' AS datetime_start,
       CASE WHEN c.status IN ('completed', 'failed', 'stopped') OR r.status NOT IN ('running', 'queued', 'paused')
            THEN v.ended_at AT TIME ZONE 'UTC' END AS datetime_complete
-- Why it is joined so: see cerebro.config.
FROM cerebro.config_log c
FULL JOIN (
    SELECT e.run_id, e.mst_key, min(e.started_at) AS started_at, max(e.ended_at) AS ended_at, max(e.value) AS value
    FROM (SELECT t.run_id, t.mst_key, t.started_at, t.ended_at, NULL::double precision AS value FROM cerebro.visit t
          WHERE t.run_id IN (SELECT s.run_id FROM cerebro.visible_run s)
          UNION ALL
          SELECT n.run_id, n.mst_key, NULL, NULL, n.value FROM cerebro.newest_value n) e
    GROUP BY e.run_id, e.mst_key) v USING (run_id, mst_key)
JOIN cerebro.run r USING (run_id)
WHERE coalesce(c.status IS NOT NULL, false) AND run_id < 4294967296;
COMMENT ON VIEW cerebro_optuna.trials IS 'A trial for each configuration; its number counts those of its run by mst_key';

CREATE OR REPLACE VIEW cerebro_optuna.trial_user_attributes WITH (security_barrier) AS
SELECT (c.run_id * 2147483648 + c.mst_key)::numeric * 10 + a.place AS trial_user_attribute_id,
       c.run_id * 2147483648 + c.mst_key AS trial_id, a.key, a.value::text AS value_json
FROM cerebro.config c CROSS JOIN LATERAL (VALUES
    (1, 'mst_key', pg_catalog.to_json(c.mst_key)), (2, 'status', pg_catalog.to_json(c.status)), (3, 'reason', pg_catalog.to_json(c.reason)),
    (4, 'template', pg_catalog.to_json(c.template)), (5, 'group', pg_catalog.to_json(c.group_value)), (6, 'epochs', pg_catalog.to_json(c.epochs)),
    (7, 'source', pg_catalog.to_json(c.source)), (8, 'cloned_from', pg_catalog.to_json(c.cloned_from)),
    (9, 'backend', pg_catalog.to_json(c.backend))) a (place, key, value)
WHERE a.value IS NOT NULL AND c.run_id < 4294967296;
COMMENT ON VIEW cerebro_optuna.trial_user_attributes IS 'What stands beside a configuration, as columns of the dashboard';

CREATE OR REPLACE VIEW cerebro_optuna.trial_system_attributes AS
SELECT NULL::bigint AS trial_system_attribute_id, NULL::bigint AS trial_id, NULL::text AS key, NULL::text AS value_json WHERE false;
COMMENT ON VIEW cerebro_optuna.trial_system_attributes IS 'Nothing';

-- Optuna wants one distribution of a name in all trials of a study. So a name whose values are not numbers everywhere is a choice.
CREATE OR REPLACE VIEW cerebro_optuna.trial_params WITH (security_barrier) AS
WITH flat AS (
    SELECT p.run_id, p.mst_key, p.name,
           CASE WHEN pg_catalog.jsonb_typeof(p.value) IN ('array', 'object') THEN pg_catalog.to_jsonb(p.value::text)
                WHEN pg_catalog.jsonb_typeof(p.value) <> 'number' THEN p.value
                WHEN (p.value #>> '{}')::numeric = 0 OR abs((p.value #>> '{}')::numeric) BETWEEN 1e-300 AND 1e300 THEN p.value
                ELSE pg_catalog.to_jsonb(p.value::text) END AS value
    FROM cerebro.parameter p WHERE p.run_id < 4294967296
), space AS (
    SELECT f.run_id, f.name, bool_and(pg_catalog.jsonb_typeof(f.value) = 'number') AS numeric,
           array_agg(DISTINCT f.value ORDER BY f.value) AS choices,
           min(CASE WHEN pg_catalog.jsonb_typeof(f.value) = 'number' THEN (f.value #>> '{}')::double precision END) AS low,
           max(CASE WHEN pg_catalog.jsonb_typeof(f.value) = 'number' THEN (f.value #>> '{}')::double precision END) AS high,
           dense_rank() OVER (PARTITION BY f.run_id ORDER BY f.name) AS place
    FROM flat f GROUP BY f.run_id, f.name
)
SELECT (f.run_id * 2147483648 + f.mst_key)::numeric * 1000 + s.place AS param_id,
       f.run_id * 2147483648 + f.mst_key AS trial_id, f.name AS param_name,
       CASE WHEN s.numeric THEN (f.value #>> '{}')::double precision
            ELSE (pg_catalog.array_position(s.choices, f.value) - 1)::double precision END AS param_value,
       CASE WHEN s.numeric
            THEN pg_catalog.json_build_object('name', 'FloatDistribution', 'attributes', pg_catalog.json_build_object(
                     'step', NULL, 'low', s.low, 'high', s.high, 'log', s.low > 0 AND s.high >= s.low * 100))::text
            ELSE pg_catalog.json_build_object('name', 'CategoricalDistribution', 'attributes',
                                              pg_catalog.json_build_object('choices', pg_catalog.to_json(s.choices)))::text END AS distribution_json
FROM flat f JOIN space s ON s.run_id = f.run_id AND s.name = f.name;
COMMENT ON VIEW cerebro_optuna.trial_params IS 'The parameters of configurations, as numbers or as places in a list of choices';

CREATE OR REPLACE VIEW cerebro_optuna.trial_values WITH (security_barrier) AS
SELECT l.run_id * 2147483648 + l.mst_key AS trial_value_id, l.run_id * 2147483648 + l.mst_key AS trial_id, 0 AS objective,
       CASE WHEN l.value NOT IN ('Infinity', '-Infinity') THEN l.value END AS value,
       (CASE l.value WHEN 'Infinity' THEN 'INF_POS' WHEN '-Infinity' THEN 'INF_NEG' ELSE 'FINITE' END)::cerebro_optuna.trialvaluetype AS value_type
FROM cerebro.config c JOIN cerebro.run r USING (run_id)
JOIN cerebro.newest_value l ON l.run_id = c.run_id AND l.mst_key = c.mst_key
WHERE l.run_id < 4294967296 AND l.value <> 'NaN' AND (c.status IN ('completed', 'stopped') OR c.status <> 'failed' AND r.status NOT IN ('running', 'queued', 'paused'));
COMMENT ON VIEW cerebro_optuna.trial_values IS 'What configurations that ended came to, as in cerebro.leaderboard';

CREATE OR REPLACE VIEW cerebro_optuna.trial_intermediate_values WITH (security_barrier) AS
SELECT (m.run_id * 2147483648 + m.mst_key)::numeric * 2147483648 + m.epoch AS trial_intermediate_value_id,
       m.run_id * 2147483648 + m.mst_key AS trial_id, m.epoch AS step,
       CASE WHEN m.value NOT IN ('NaN', 'Infinity', '-Infinity') THEN m.value END AS intermediate_value,
       (CASE m.value WHEN 'NaN' THEN 'NAN' WHEN 'Infinity' THEN 'INF_POS' WHEN '-Infinity' THEN 'INF_NEG' ELSE 'FINITE' END)::cerebro_optuna.trialintermediatevaluetype AS intermediate_value_type
FROM cerebro.metric m JOIN cerebro.run_log r USING (run_id)
WHERE cerebro_internal.may_see(r.owner) AND r.run_id < 4294967296 AND m.dataset = r.rank_dataset AND m.name = r.rank_metric AND m.value IS NOT NULL;
COMMENT ON VIEW cerebro_optuna.trial_intermediate_values IS 'The metric that ranks, by epoch';

CREATE OR REPLACE VIEW cerebro_optuna.trial_heartbeats AS
SELECT NULL::bigint AS trial_heartbeat_id, NULL::bigint AS trial_id, NULL::timestamp AS heartbeat WHERE false;
COMMENT ON VIEW cerebro_optuna.trial_heartbeats IS 'Nothing';

CREATE OR REPLACE VIEW cerebro_optuna.version_info AS
SELECT 1 AS version_info_id, 12 AS schema_version, '5.0.0'::varchar AS library_version;
COMMENT ON VIEW cerebro_optuna.version_info IS 'The version of Optuna''s schema that these views have';

CREATE OR REPLACE VIEW cerebro_optuna.alembic_version AS
SELECT 'v3.2.0.a'::varchar AS version_num;
COMMENT ON VIEW cerebro_optuna.alembic_version IS 'The newest change of that schema';
