-- name: run
-- By what a run that the caller may see compares its configurations, for which task, and whether they begin from states of before.
SELECT r.spec ->> 'rank_dataset' AS dataset, r.spec ->> 'rank_metric' AS metric, r.spec ->> 'rank_descending' = 'true' AS descending,
       r.spec -> 'train' ->> 'task' AS task,
       coalesce(r.spec ->> 'warm_start' = 'true' OR nullif(r.spec -> 'train' -> 'start', 'null') IS NOT NULL, false) AS warm
FROM cerebro.run r WHERE r.run_id = %s::bigint

-- name: configs
-- Those of its configurations over all rows of which it is known what became of them. A warm clone is none of them: what it came
-- to, it owes to the parameters of its parent as well.
SELECT l.mst_key, CASE WHEN l.status <> 'failed' THEN l.value END AS value, l.status = 'failed' AS failed, c.model_id, c.compile_params, c.fit_params,
       c.architecture::text AS architecture, c.template, CASE WHEN c.template IS NOT NULL THEN c.params::text END AS params
FROM cerebro.leaderboard l JOIN cerebro.config c USING (run_id, mst_key)
WHERE l.run_id = %s::bigint AND c.group_value IS NULL AND c.warm_started_from IS NULL
  AND (l.status = 'failed' OR l.status IN ('completed', 'stopped') AND l.value IS NOT NULL)
ORDER BY l.mst_key
