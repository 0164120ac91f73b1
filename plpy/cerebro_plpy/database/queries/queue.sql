-- name: enter
SELECT cerebro_internal.enter_queue(%s::bigint, %s::text, %s::integer, %s::integer, %s::integer, %s::boolean)

-- name: take
SELECT cerebro_internal.take_places(%s::bigint, %s::text, %s::integer, %s::integer)

-- name: add
SELECT cerebro_internal.add_to_queue(%s::bigint, %s::text, %s::integer, %s::integer)

-- name: leave
SELECT cerebro_internal.leave_queue(%s::bigint, %s::text)

-- name: entries
-- All runs that have places or wait for places, in the order of their arrival.
SELECT q.run_id, q.status, q.position, q.places, q.fewest, q.most, q.configs, q.steady, q.role, q.role_used, q.role_trainers, q.role_configs, q.rests,
       q.owner = current_user AS own
FROM cerebro.queue q ORDER BY q.arrived_at, q.run_id

-- name: quotas
-- The quota of the current role, and that of all roles together.
SELECT q.role::text AS role, q.trainers, q.configs, q.runs_waiting, q.cpu_a_day::text AS cpu_a_day
FROM cerebro.quota q WHERE q.role IS NULL OR q.role = current_user

-- name: waiting
SELECT count(*) AS of_all, count(*) FILTER (WHERE q.owner = current_user) AS of_role FROM cerebro.queue q WHERE q.status = 'queued'

-- name: queued
UPDATE cerebro.run_log r SET status = %s::text WHERE r.run_id = %s::bigint AND r.status IN ('running', 'queued')
