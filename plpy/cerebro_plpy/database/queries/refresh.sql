-- name: newest
-- The largest value of a column, as text, by an index where there is one.
SELECT t.{column}::text FROM {source} t WHERE t.{column} IS NOT NULL ORDER BY t.{column} DESC LIMIT 1

-- name: grown
SELECT EXISTS (SELECT FROM {source} t WHERE t.{column} > %s)

-- name: known
-- Whether a version of a model of the current user's was trained on these rows already.
SELECT EXISTS (SELECT FROM cerebro.version_log v
               WHERE v.owner = current_user AND v.model = %s::text AND v.fingerprint = %s::text)

-- name: seen
-- By a column that grows, the largest value that the newest version of a model of the current user's has seen.
SELECT n.newest ->> 0 AS "column", n.newest ->> 1 AS value
FROM (SELECT CASE WHEN pg_catalog.jsonb_typeof(r.spec #> '{train,newest}') = 'array' THEN r.spec #> '{train,newest}' END AS newest
      FROM cerebro.version_log v JOIN cerebro.run_log r USING (run_id)
      WHERE v.owner = current_user AND r.owner = current_user AND v.model = %s::text
      ORDER BY v.version DESC LIMIT 1) n

-- name: version
SELECT v.run_id, v.version, v.version = m.deployed AS deployed, v.metric, v.value, v.training_rows, v.validation_rows
FROM cerebro.version_log v JOIN cerebro.model_log m USING (owner, model)
WHERE v.owner = current_user AND v.run_id = %s::bigint
