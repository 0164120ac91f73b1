-- name: like_runs
-- Completed runs with any of these programs, the newest first, as they were planned and with the seconds that they took;
-- five of each number of threads, which are the newest. Of one that has changed its strategy these are of no strategy.
SELECT n.run_id, n.plan::text, n.seconds, EXISTS (SELECT FROM cerebro.decision_log d WHERE d.run_id = n.run_id AND d.action = 'replan') AS changed
FROM (SELECT r.run_id, r.plan, extract(epoch FROM r.ended_at - r.started_at)::double precision AS seconds,
             row_number() OVER (PARTITION BY r.plan -> 'chosen' -> 'threads' ORDER BY r.run_id DESC) AS newest
      FROM cerebro.run_log r
      WHERE r.owner = current_user AND r.status = 'completed'
        AND pg_catalog.jsonb_path_exists(r.plan, '$.programs[*] ? (@.name == $names[*])', pg_catalog.jsonb_build_object('names', %s::text[]))) n
WHERE n.newest <= 5 ORDER BY n.run_id DESC

-- name: trained
-- The newest completed runs of cerebro.train over a table for a target, whose trainers had so many threads: as they were
-- planned, with the seconds that they took and the template of each configuration.
SELECT r.run_id, r.plan::text, extract(epoch FROM r.ended_at - r.started_at)::double precision AS seconds,
       (SELECT pg_catalog.jsonb_object_agg(c.mst_key, c.template)::text FROM cerebro.config_log c
        WHERE c.run_id = r.run_id AND c.template IS NOT NULL) AS templates
FROM cerebro.run_log r
WHERE r.owner = current_user AND r.status = 'completed' AND r.spec -> 'train' ->> 'relation' = %s::text
  AND r.spec -> 'train' ->> 'target' = %s::text AND r.plan -> 'chosen' ->> 'threads' = %s::integer::text
ORDER BY r.run_id DESC LIMIT 5

-- name: planned
SELECT r.run_id, r.status, r.plan::text AS plan, r.epochs, r.segments, extract(epoch FROM r.ended_at - r.started_at)::double precision AS seconds
FROM cerebro.run_log r WHERE r.run_id = %s::bigint AND r.owner = current_user

-- name: changes
SELECT d.epoch, d.rule, d.reason FROM cerebro.decision_log d WHERE d.run_id = %s::bigint AND d.action = 'replan' ORDER BY d.decision_no

-- name: money
SELECT sum(c.money) AS money FROM cerebro.cost c WHERE c.run_id = %s::bigint

-- name: visits
-- What visits of a run came to, by what is compiled for their configurations: up to so many of each configuration. What
-- is around training is told apart: where a worker has the program for the first time it compiles; else it reads the
-- state, unless the visit before was of the same configuration. Visits that ended together were one job of a worker, and
-- share what was around it.
SELECT n.program, count(*) AS visits, sum(n.rows)::double precision AS rows, sum(n.training_seconds) AS training,
       coalesce(pg_catalog.stddev_samp(n.training_seconds / n.rows) / nullif(avg(n.training_seconds / n.rows), 0), 0) AS spread,
       pg_catalog.mode() WITHIN GROUP (ORDER BY n.form) AS form, count(*) FILTER (WHERE pg_catalog.starts_with(n.form, 'fused_')) AS fused, max(n.threads) AS threads, max(n.state_bytes) AS state_bytes,
       count(*) FILTER (WHERE n.turn > 1) AS later, coalesce(sum(n.around) FILTER (WHERE n.turn > 1), 0) AS around,
       count(*) FILTER (WHERE n.turn > 1 AND n.moved) AS moves, coalesce(sum(n.around) FILTER (WHERE n.turn > 1 AND n.moved), 0) AS moving,
       count(DISTINCT n.worker_pid) FILTER (WHERE n.turn = 1) AS firsts, coalesce(sum(n.around) FILTER (WHERE n.turn = 1), 0) AS beginning,
       count(n.state_bytes) AS stores, coalesce(sum(n.storing) FILTER (WHERE n.state_bytes IS NOT NULL), 0) AS storing,
       coalesce(sum(n.state_bytes), 0)::double precision AS stored_bytes
FROM (SELECT m.*, dense_rank() OVER (PARTITION BY m.worker_pid, m.program ORDER BY m.ended_at) AS turn,
             lag(m.mst_key) OVER (PARTITION BY m.worker_pid ORDER BY m.started_at) IS DISTINCT FROM m.mst_key AS moved
      FROM (SELECT p.value AS program, v.mst_key, v.worker_pid, v.started_at, v.ended_at, v.rows, v.training_seconds, v.form, v.threads, v.state_bytes,
                   greatest(0, extract(epoch FROM v.ended_at - v.started_at)::double precision / count(*) OVER job - v.training_seconds) AS around,
                   greatest(0, extract(epoch FROM v.stored_at - v.ended_at)::double precision / count(*) OVER job) AS storing
            FROM cerebro.visit v JOIN pg_catalog.json_each_text(%s::json) p ON p.key::integer = v.mst_key
            WHERE v.run_id = %s::bigint AND v.status = 'completed' AND v.kind = 'train' AND v.visit_no <= %s::integer AND v.rows > 0
            WINDOW job AS (PARTITION BY v.worker_pid, v.ended_at)) m) n
GROUP BY n.program

-- name: evaluations
SELECT p.value AS program, count(*) AS visits, coalesce(sum(e.rows), 0)::double precision AS rows,
       coalesce(sum(extract(epoch FROM e.ended_at - e.started_at)), 0)::double precision AS seconds
FROM cerebro.evaluation e JOIN pg_catalog.json_each_text(%s::json) p ON p.key::integer = e.mst_key
WHERE e.run_id = %s::bigint AND e.status = 'completed' GROUP BY p.value

-- name: course
-- How long the workers of a run were at work, from its first visit to its last; visits that ended together share their time.
SELECT count(DISTINCT w.worker_pid) AS workers, coalesce(sum(w.seconds), 0)::double precision AS work,
       coalesce(extract(epoch FROM max(w.ended_at) - min(w.started_at)), 0)::double precision AS span
FROM (SELECT v.worker_pid, v.started_at, greatest(v.ended_at, v.stored_at) AS ended_at,
             extract(epoch FROM v.ended_at - v.started_at) / count(*) OVER (PARTITION BY v.worker_pid, v.ended_at) AS seconds
      FROM cerebro.visit v WHERE v.run_id = %s::bigint AND v.status = 'completed'
      UNION ALL
      SELECT NULL, e.started_at, e.ended_at, extract(epoch FROM e.ended_at - e.started_at)
      FROM cerebro.evaluation e WHERE e.run_id = %s::bigint AND e.status = 'completed') w

-- name: configs
-- What is known of the configurations of a run that has no plan.
SELECT c.mst_key, c.model_id, c.backend, c.fit_params, c.compile_params FROM cerebro.config_log c WHERE c.run_id = %s::bigint ORDER BY c.mst_key
