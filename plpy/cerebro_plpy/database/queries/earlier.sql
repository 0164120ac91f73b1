-- name: run
-- By what a run that the caller may see compares its configurations, for which task, and whether they begin from states of before.
SELECT r.spec ->> 'rank_dataset' AS dataset, r.spec ->> 'rank_metric' AS metric, r.spec ->> 'rank_descending' = 'true' AS descending,
       r.spec -> 'train' ->> 'task' AS task,
       coalesce(r.spec ->> 'warm_start' = 'true' OR nullif(r.spec -> 'train' -> 'start', 'null') IS NOT NULL, false) AS warm
FROM cerebro.run r WHERE r.run_id = %s::bigint

-- name: configs
-- Those of its configurations over all rows of which it is known what became of them. A warm clone is none of them: what it came
-- to, it owes to the parameters of its parent as well. The values are those that the search compared.
SELECT c.mst_key, CASE WHEN c.status <> 'failed' THEN n.value END AS value, c.status = 'failed' AS failed, c.model_id, c.compile_params, c.fit_params,
       c.architecture::text AS architecture, c.template, CASE WHEN c.template IS NOT NULL THEN c.params::text END AS params
FROM cerebro.config c
LEFT JOIN (SELECT k.mst_key, (max(ARRAY[m.epoch, m.value]))[2] AS value
           FROM cerebro.config k JOIN cerebro.learning_curve m USING (run_id, mst_key) JOIN cerebro.run r USING (run_id)
           WHERE run_id = %s::bigint AND m.dataset = r.spec ->> 'rank_dataset' AND m.name = r.spec ->> 'rank_metric'
             AND (k.best_epoch IS NULL OR m.epoch <= k.best_epoch)
           GROUP BY k.mst_key) n USING (mst_key)
WHERE c.run_id = %s::bigint AND c.group_value IS NULL AND c.warm_started_from IS NULL
  AND (c.status = 'failed' OR c.status IN ('completed', 'stopped') AND n.value IS NOT NULL)
ORDER BY c.mst_key
