-- name: run
SELECT r.status, r.spec ->> 'schedule' = 'averaging' AS averages FROM cerebro.run r WHERE r.run_id = %s::bigint

-- name: origin
-- The model and the version that a run has made, and whether that version predicts.
SELECT r.spec -> 'train' ->> 'model' AS model, r.spec -> 'train' ->> 'group_by' IS NOT NULL AS grouped,
       v.version, v.version = m.deployed AS deployed
FROM cerebro.run r LEFT JOIN cerebro.version_log v ON v.owner = current_user AND v.run_id = r.run_id
     LEFT JOIN cerebro.model_log m ON m.owner = v.owner AND m.model = v.model
WHERE r.run_id = %s::bigint

-- name: trained
-- The arguments of a call of cerebro.train.
SELECT (r.spec -> 'train')::text AS train FROM cerebro.run r WHERE r.run_id = %s::bigint AND r.spec ? 'train'

-- name: configs
SELECT c.model_id, c.compile_params, c.fit_params, c.template, c.params::text AS params, c.architecture::text AS architecture
FROM cerebro.config c WHERE c.run_id = %s::bigint ORDER BY c.mst_key

-- name: config
SELECT c.mst_key, c.model_id, c.compile_params, c.fit_params, c.template, c.params::text AS params FROM cerebro.config c WHERE c.run_id = %s::bigint AND c.mst_key = %s::integer

-- name: add
INSERT INTO cerebro.act_log (run_id, action, mst_key, change) VALUES (%s::bigint, %s::text, %s::integer, %s::jsonb)
RETURNING act_id
