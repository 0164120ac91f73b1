-- name: grown
SELECT EXISTS (SELECT FROM {source} t WHERE {later})

-- name: known
-- True if a version of a model of the current user was trained on these rows.
SELECT EXISTS (SELECT FROM cerebro.version_log v
               WHERE v.owner = current_user AND v.model = %s::text AND v.fingerprint = %s::text)

-- name: newest
-- The run of the newest version of a model of the current user, if it is in the log.
SELECT v.run_id FROM cerebro.version_log v JOIN cerebro.run_log r USING (run_id)
WHERE v.owner = current_user AND r.owner = current_user AND v.model = %s::text AND r.status = 'completed'
  AND v.version = (SELECT max(n.version) FROM cerebro.version_log n WHERE n.owner = current_user AND n.model = v.model)

-- name: version
SELECT v.run_id, v.version, v.version = m.deployed AS deployed, v.metric, v.value, v.training_rows, v.validation_rows
FROM cerebro.version_log v JOIN cerebro.model_log m USING (owner, model)
WHERE v.owner = current_user AND v.run_id = %s::bigint
