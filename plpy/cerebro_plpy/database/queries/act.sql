-- name: run
SELECT r.status, r.spec ->> 'schedule' = 'averaging' AS averages, r.spec ? 'train' AS trained FROM cerebro.run r WHERE r.run_id = %s::bigint

-- name: configs
SELECT c.model_id, c.compile_params, c.fit_params FROM cerebro.config c WHERE c.run_id = %s::bigint ORDER BY c.mst_key

-- name: config
SELECT c.model_id, c.compile_params, c.fit_params FROM cerebro.config c WHERE c.run_id = %s::bigint AND c.mst_key = %s::integer

-- name: add
INSERT INTO cerebro.act_log (run_id, action, mst_key, change) VALUES (%s::bigint, %s::text, %s::integer, %s::jsonb)
RETURNING act_id
