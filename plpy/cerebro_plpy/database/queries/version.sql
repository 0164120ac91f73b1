-- name: model
-- The current content of a name of the caller.
SELECT m.split, m.split_seed, m.bound, m.deployed, m.identity FROM cerebro.model_log m
WHERE m.owner = current_user AND m.model = %s::text AND NOT m.dropped

-- name: lock_model
-- Versions of a name are added one after another.
SELECT m.deployed FROM cerebro.model_log m WHERE m.owner = current_user AND m.model = %s::text AND NOT m.dropped FOR NO KEY UPDATE

-- name: add_model
INSERT INTO cerebro.model_log (model, split, split_seed, bound, identity) VALUES (%s::text, %s::text, %s::bigint, %s::text, %s::text[]) ON CONFLICT DO NOTHING

-- name: next
SELECT coalesce(max(v.version), 0) + 1 AS version FROM cerebro.version_log v WHERE v.owner = current_user AND v.model = %s::text

-- name: add
-- It adds no row if row security hides the log of the run, which has another owner after a rename. All members predict in the
-- framework of the first network among them: boosted trees do so in any.
INSERT INTO cerebro.version_log (model, version, run_id, mst_key, task, source, target, target_type, template, params, metric, value,
                                 training_rows, validation_rows, seed, recipe, classes, margin,
                                 backend, state_bytes, software, fingerprint, profile, group_by, reading, loss, calibration, holdout_calibration)
SELECT %s::text, %s::integer, c.run_id, c.mst_key, t.spec ->> 'task', t.spec ->> 'relation', t.spec ->> 'target',
       t.spec ->> 'target_type', coalesce(%s::text, c.template), coalesce(%s::jsonb, c.params), t.spec ->> 'metric', %s::double precision,
       (t.spec ->> 'training_rows')::bigint, (t.spec ->> 'validation_rows')::bigint, (r.spec ->> 'seed')::bigint, t.spec -> 'recipe',
       ARRAY(SELECT e.value FROM pg_catalog.jsonb_array_elements_text(t.spec -> 'classes') WITH ORDINALITY e (value, n) ORDER BY e.n),
       %s::double precision, coalesce(b.backend, c.backend), b.state_bytes, r.software,
       t.spec ->> 'fingerprint', nullif(t.spec -> 'profile', 'null'), t.spec ->> 'group_by', nullif(t.spec -> 'reading', 'null'), %s::double precision, %s::jsonb, %s::jsonb
FROM cerebro.config_log c JOIN cerebro.run_log r USING (run_id) CROSS JOIN LATERAL (SELECT r.spec -> 'train' AS spec) t
CROSS JOIN LATERAL (
    SELECT (pg_catalog.array_agg(o.backend ORDER BY k.n) FILTER (WHERE o.architecture ->> 'class_name' <> 'BoostedTrees'))[1] AS backend,
           sum(pg_catalog.pg_total_relation_size(k.state_table::regclass))::bigint AS state_bytes
    FROM ROWS FROM (pg_catalog.unnest(%s::integer[]), pg_catalog.unnest(%s::text[])) WITH ORDINALITY AS k (mst_key, state_table, n)
    JOIN cerebro.config_log o ON o.run_id = c.run_id AND o.mst_key = k.mst_key) b
WHERE c.run_id = %s::bigint AND c.mst_key = %s::integer
RETURNING backend

-- name: add_group
INSERT INTO cerebro.group_log (model, version, group_value, run_id, mst_key, template, params, value, training_rows, margin,
                               backend, state_bytes, calibration)
SELECT %s::text, %s::integer, c.group_value, c.run_id, c.mst_key, c.template, c.params, %s::double precision, %s::bigint, %s::double precision,
       c.backend, pg_catalog.pg_total_relation_size(%s::regclass), %s::jsonb
FROM cerebro.config_log c WHERE c.run_id = %s::bigint AND c.mst_key = %s::integer

-- name: add_member
-- A configuration becomes a member of the model of its group, or of all rows.
INSERT INTO cerebro.member_log (model, version, group_value, position, run_id, mst_key, template, params, share, architecture, compile_params,
                                backend, state_bytes, refit_run_id)
SELECT %s::text, %s::integer, coalesce(c.group_value, ''), %s::integer, c.run_id, c.mst_key, c.template, c.params, %s::double precision,
       c.architecture, c.compile_params, c.backend,
       (SELECT sum(pg_catalog.pg_total_relation_size(n.state_table::regclass)) FROM pg_catalog.unnest(%s::text[]) n (state_table)), %s::bigint
FROM cerebro.config_log c WHERE c.run_id = %s::bigint AND c.mst_key = %s::integer

-- name: members
-- The members of a version of the caller, or, with an empty text, of its model of all rows, or with another one, of its group of that
-- value. A version without rows in member_log has one network, in its own row.
SELECT m.group_value, m.run_id, m.mst_key, m.template, m.params, m.share, m.architecture, m.compile_params, m.backend, m.refit_run_id
FROM (SELECT %s::name AS owner, %s::text AS model, %s::integer AS version, %s::text AS group_value OFFSET 0) k
JOIN (SELECT b.owner, b.model, b.version, b.group_value, b.position, b.run_id, b.mst_key, b.template, b.params::text AS params, b.share,
             b.architecture::text AS architecture, b.compile_params, b.backend, b.refit_run_id
      FROM cerebro.member_log b
      UNION ALL
      SELECT v.owner, v.model, v.version, '', 1, v.run_id, v.mst_key, v.template, v.params::text, 1, v.architecture::text, v.compile_params, v.backend, NULL
      FROM cerebro.version_log v WHERE v.architecture IS NOT NULL
      UNION ALL
      SELECT g.owner, g.model, g.version, g.group_value, 1, g.run_id, g.mst_key, g.template, g.params::text, 1, g.architecture::text, g.compile_params, g.backend, NULL
      FROM cerebro.group_log g WHERE g.architecture IS NOT NULL) m
    ON m.owner = k.owner AND m.model = k.model AND m.version = k.version AND m.group_value = coalesce(k.group_value, m.group_value)
ORDER BY m.group_value COLLATE "C", m.position

-- name: groups
-- The models of groups of a version of the caller.
SELECT g.group_value, g.run_id, g.mst_key, g.margin, g.calibration::text AS calibration, g.backend
FROM cerebro.group_log g WHERE g.owner = %s::name AND g.model = %s::text AND g.version = %s::integer ORDER BY g.group_value COLLATE "C"

-- name: add_registered
INSERT INTO cerebro.version_log (model, version, run_id, mst_key, task, source, target, target_type, template, params, metric, value,
                                 recipe, classes, backend, state_bytes, reading, software)
VALUES (%s::text, %s::integer, %s::bigint, %s::integer, %s::text, %s::text, %s::text, %s::text, %s::text, %s::jsonb, %s::text, %s::double precision,
        %s::jsonb, %s::text[], %s::text, pg_catalog.pg_total_relation_size(%s::regclass), %s::jsonb, '{}')

-- name: exported
-- A version of the caller, with the entry of its model.
SELECT v.owner::text AS owner, v.model, v.version, v.run_id, v.mst_key, v.task, v.source, v.target, v.target_type, v.metric, v.value,
       v.training_rows, v.validation_rows, v.seed, v.recipe::text AS recipe, v.classes, v.margin, v.calibration::text AS calibration, v.backend, v.software::text AS software,
       v.fingerprint, v.profile::text AS profile, v.group_by,
       v.reading::text AS reading, v.importance, v.importance_error, v.template, v.params::text AS params,
       m.split, m.split_seed, m.bound, m.identity
FROM cerebro.version_log v JOIN cerebro.model_log m USING (owner, model)
WHERE v.owner = current_user AND v.model = %s::text AND v.version = %s::integer AND NOT m.dropped

-- name: exported_groups
SELECT g.group_value, g.margin, g.calibration::text AS calibration, g.backend, g.template, g.params::text AS params, g.value, g.training_rows
FROM cerebro.group_log g WHERE g.owner = current_user AND g.model = %s::text AND g.version = %s::integer ORDER BY g.group_value COLLATE "C"

-- name: state_size
SELECT coalesce(pg_catalog.sum(pg_catalog.octet_length(s.chunk)), 0)::bigint FROM ({rows}) s (part, chunk)

-- name: state_bytes
SELECT pg_catalog.string_agg(s.chunk, ''::bytea ORDER BY s.part) FROM ({rows}) s (part, chunk)

-- name: chunks
-- A state as the chunks of its table.
SELECT n.n AS part, pg_catalog.substring(b.state, (n.n - 1) * {size} + 1, {size}) AS chunk
FROM (SELECT %s::bytea AS state OFFSET 0) b CROSS JOIN LATERAL pg_catalog.generate_series(1, (pg_catalog.octet_length(b.state) + {size} - 1) / {size}) AS n (n)

-- name: add_imported
INSERT INTO cerebro.version_log (model, version, run_id, mst_key, task, source, target, target_type, metric, validation_rows, seed, recipe, classes,
                                 software, fingerprint, profile, group_by, reading, importance, importance_error,
                                 template, params, value, training_rows, margin, calibration, backend, state_bytes)
VALUES (%s::text, %s::integer, %s::bigint, 1, %s::text, %s::text, %s::text, %s::text, %s::text, %s::bigint, %s::bigint, %s::jsonb, %s::text[],
        %s::jsonb, %s::text, %s::jsonb, %s::text, %s::jsonb, %s::double precision[], %s::double precision[],
        %s::text, %s::jsonb, %s::double precision, %s::bigint, %s::double precision, %s::jsonb, %s::text,
        (SELECT sum(pg_catalog.pg_total_relation_size(n.state_table::regclass)) FROM pg_catalog.unnest(%s::text[]) n (state_table)))

-- name: add_imported_group
INSERT INTO cerebro.group_log (model, version, group_value, run_id, mst_key, template, params, value, training_rows, margin,
                               calibration, backend, state_bytes)
VALUES (%s::text, %s::integer, %s::text, %s::bigint, %s::integer, %s::text, %s::jsonb, %s::double precision, %s::bigint, %s::double precision,
        %s::jsonb, %s::text, (SELECT sum(pg_catalog.pg_total_relation_size(n.state_table::regclass)) FROM pg_catalog.unnest(%s::text[]) n (state_table)))

-- name: add_untrained_member
-- A member that no run of this database has trained.
INSERT INTO cerebro.member_log (model, version, group_value, position, run_id, mst_key, template, params, share, architecture, compile_params,
                                backend, state_bytes)
VALUES (%s::text, %s::integer, %s::text, %s::integer, %s::bigint, %s::integer, %s::text, %s::jsonb, %s::double precision, %s::json, %s::text,
        %s::text, pg_catalog.pg_total_relation_size(%s::regclass))

-- name: told_of_key
-- The properties of a model in the information table of a model table.
SELECT pg_catalog.to_json(t)::text AS told FROM {table} t WHERE t.mst_key = %s::integer

-- name: told_of_single
SELECT pg_catalog.to_json(t)::text AS told FROM {table} t

-- name: deploy
UPDATE cerebro.model_log m SET previous = m.deployed, deployed = %s::integer, deployed_at = pg_catalog.clock_timestamp()
WHERE m.owner = current_user AND m.model = %s::text

-- name: choose
-- A version of a model of the caller: by its number, by its time, or by its metric, among versions with the same task, target
-- and metric as the newest. Equally good ones are ranked as configurations are: by the loss, then by the size; and of equally large
-- ones the newest is the best. The first parameter has the metrics of which larger values are better. The previously deployed
-- version is recorded with the model.
SELECT m.deployed, m.previous, pg_catalog.array_agg(v.version ORDER BY v.version) AS versions, max(v.version) AS newest,
       (pg_catalog.array_agg(v.version ORDER BY v.value IS NULL OR v.value = 'NaN',
                                                CASE WHEN v.metric = ANY (%s::text[]) THEN -v.value ELSE v.value END,
                                                v.loss, v.state_bytes, v.version DESC)
        FILTER (WHERE v.aim = v.newest_aim))[1] AS best
FROM cerebro.model_log m
JOIN (SELECT l.owner, l.model, l.version, l.metric, l.value, l.loss, l.state_bytes, a.aim,
             pg_catalog.first_value(a.aim) OVER (PARTITION BY l.owner, l.model ORDER BY l.version DESC) AS newest_aim
      FROM cerebro.version_log l, LATERAL (SELECT ARRAY[l.task, l.target, l.metric] AS aim) a) v USING (owner, model)
WHERE m.owner = current_user AND m.model = %s::text AND NOT m.dropped
GROUP BY m.owner, m.model, m.deployed, m.previous

-- name: sources
-- The tables that the versions of a model of the caller were trained on.
SELECT DISTINCT v.source FROM cerebro.version_log v JOIN cerebro.model_log m USING (owner, model)
WHERE v.owner = current_user AND v.model = %s::text AND NOT m.dropped ORDER BY v.source

-- name: base
-- True if a version of a model of the caller still exists; its name is locked, so that nobody drops it meanwhile.
SELECT EXISTS (SELECT FROM cerebro.version_log v WHERE v.owner = current_user AND v.model = m.model AND v.run_id = %s::bigint AND v.mst_key = %s::integer)
FROM cerebro.model_log m WHERE m.owner = current_user AND m.model = %s::text AND NOT m.dropped FOR NO KEY UPDATE OF m

-- name: names
SELECT m.model FROM cerebro.model_log m WHERE m.owner = current_user AND NOT m.dropped

-- name: runs
SELECT v.run_id, v.mst_key FROM cerebro.version_log v WHERE v.owner = current_user AND v.model = %s::text
UNION SELECT g.run_id, g.mst_key FROM cerebro.group_log g WHERE g.owner = current_user AND g.model = %s::text
UNION SELECT r.run_id, b.mst_key FROM cerebro.member_log b CROSS JOIN LATERAL (VALUES (b.run_id), (b.refit_run_id)) AS r (run_id)
      WHERE b.owner = current_user AND b.model = %s::text AND r.run_id IS NOT NULL

-- name: mark_dropped
UPDATE cerebro.model_log m SET dropped = true WHERE m.owner = current_user AND m.model = %s::text

-- name: remove_dropped
SELECT cerebro_internal.remove_dropped_model(current_user, %s::text)

-- name: add_final_values
-- Values of a metric that is computed at the end of a run, after the epoch of each configuration's state. A resumed run may have
-- them already.
INSERT INTO cerebro.metric (run_id, mst_key, epoch, dataset, name, value)
SELECT c.run_id, c.mst_key, m.epoch, 'validation', %s::text, f.value
FROM ROWS FROM (pg_catalog.unnest(%s::integer[]), pg_catalog.unnest(%s::double precision[])) AS f (mst_key, value)
JOIN cerebro.config_log c USING (mst_key)
CROSS JOIN LATERAL (
    SELECT max(n.epoch) AS epoch FROM cerebro.metric n
    WHERE n.run_id = c.run_id AND n.mst_key = c.mst_key AND n.dataset = 'validation' AND (c.best_epoch IS NULL OR n.epoch <= c.best_epoch)) m
WHERE c.run_id = %s::bigint AND m.epoch IS NOT NULL
ON CONFLICT (run_id, mst_key, epoch, dataset, name) DO NOTHING

-- name: best
-- The configurations of a run over all rows that have a state, the best first.
SELECT l.mst_key, l.value FROM cerebro.leaderboard l
WHERE l.run_id = %s::bigint AND l.status <> 'failed' AND l.epochs IS NOT NULL AND l.mst_key = ANY (%s::integer[])
  AND l.group_value IS NULL
ORDER BY l.rank, l.mst_key

-- name: best_of_groups
-- The same for each group.
SELECT l.group_value, l.mst_key, l.value FROM cerebro.leaderboard l
WHERE l.run_id = %s::bigint AND l.status <> 'failed' AND l.epochs IS NOT NULL AND l.mst_key = ANY (%s::integer[])
  AND l.group_value IS NOT NULL
ORDER BY l.group_value, l.rank, l.mst_key

-- name: leaderboard
-- The configurations that were started; the others have no results.
SELECT l.run_id, l.rank, l.mst_key, l.template, l.metric, l.validation, l.epochs, l.status, l.training, l.seconds, l.group_value, l.params::text AS params
FROM cerebro.leaderboard l WHERE l.run_id = %s::bigint AND (l.seconds IS NOT NULL OR l.status = 'failed')
ORDER BY l.group_value IS NOT NULL, l.group_value COLLATE "C", l.rank, l.mst_key

-- name: best_of_run
-- The best configurations of a run of train that the caller may see.
SELECT l.template, l.params::text AS params, 'run ' || l.run_id AS origin, l.run_id
FROM cerebro.leaderboard l
WHERE l.run_id = %s::bigint AND l.template IS NOT NULL AND l.status <> 'failed' AND l.epochs IS NOT NULL AND l.group_value IS NULL
ORDER BY l.rank, l.mst_key LIMIT %s::integer

-- name: like_model
-- The configuration of the deployed version; for an ensemble the first of its members, which is the best. Ensembles without members
-- in member_log have it in the log of their run.
SELECT coalesce(b.template, c.template, v.template) AS template, coalesce(b.params, c.params, v.params)::text AS params, 'model ' || v.model AS origin, v.run_id
FROM cerebro.model_log m JOIN cerebro.version_log v ON v.owner = m.owner AND v.model = m.model AND v.version = m.deployed
     LEFT JOIN cerebro.member_log b ON b.owner = v.owner AND b.model = v.model AND b.version = v.version AND b.group_value = '' AND b.position = 1
     LEFT JOIN cerebro.config_log c ON c.run_id = v.run_id AND c.mst_key = v.mst_key
WHERE m.owner = current_user AND m.model = %s::text AND NOT m.dropped AND v.template NOT IN ('registered', 'imported')

-- name: like
-- Configurations of the caller's newest versions for a target of this name and task, and columns of these names.
SELECT coalesce(b.template, c.template, v.template) AS template, coalesce(b.params, c.params, v.params)::text AS params,
       'model ' || v.model || ', version ' || v.version AS origin, v.run_id
FROM cerebro.version_log v JOIN cerebro.model_log m ON m.owner = v.owner AND m.model = v.model
     LEFT JOIN cerebro.member_log b ON b.owner = v.owner AND b.model = v.model AND b.version = v.version AND b.group_value = '' AND b.position = 1
     LEFT JOIN cerebro.config_log c ON c.run_id = v.run_id AND c.mst_key = v.mst_key
WHERE v.owner = current_user AND NOT m.dropped AND v.target = %s::text AND v.task = %s::text AND v.template NOT IN ('registered', 'imported')
  AND (SELECT pg_catalog.array_agg(f.feature ->> 'column' ORDER BY f.feature ->> 'column' COLLATE "C")
       FROM pg_catalog.jsonb_array_elements(
           CASE WHEN pg_catalog.jsonb_typeof(v.recipe -> 'features') = 'array' THEN v.recipe -> 'features' ELSE '[]' END) AS f (feature))
      = %s::text[]
ORDER BY v.created_at DESC, v.version DESC LIMIT %s::integer
