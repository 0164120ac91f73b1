-- name: past_training
-- The epochs until the best state of configurations, the seconds that workers took for them, and the size of a state.
SELECT c.mst_key, max(v.epoch) AS epochs, sum(coalesce(v.training_seconds, extract(epoch FROM v.ended_at - v.started_at)))::float8 AS seconds,
       coalesce(max(v.state_bytes), 0) AS state_bytes
FROM cerebro.config_log c JOIN cerebro.run_log r USING (run_id) JOIN cerebro.visit v USING (run_id, mst_key)
WHERE r.owner = current_user AND c.run_id = %s::bigint AND c.mst_key = ANY (%s::integer[]) AND v.status = 'completed'
  AND (c.best_epoch IS NULL OR v.epoch <= c.best_epoch)
GROUP BY c.mst_key ORDER BY c.mst_key

-- name: earlier_runs
-- The runs that have trained members of a version of the caller again on all rows; NULL for a member that none has.
SELECT DISTINCT b.refit_run_id FROM cerebro.member_log b
WHERE b.owner = current_user AND b.model = %s::text AND b.run_id = %s::bigint AND b.mst_key = ANY (%s::integer[])

-- name: abandoned_runs
-- The runs that have trained members of an unfinished run again on all rows: it has no version, which would need their states.
SELECT r.run_id FROM cerebro.run_log r
WHERE r.owner = current_user AND (r.spec -> 'train' ->> 'refit_of')::bigint = %s::bigint ORDER BY r.run_id
