-- name: owner
SELECT r.owner::text AS owner FROM cerebro.run_log r WHERE r.run_id = %s::bigint AND r.ticket = %s::text

-- name: count
SELECT cerebro_internal.count_time(%s::bigint, %s::text, %s::double precision)

-- name: call
-- The start of the statement that works for the run, as the server reports it, in a session of a member of the run's owner.
SELECT extract(epoch FROM min(coalesce(a.query_start, a.backend_start)))::double precision AS began,
       extract(epoch FROM pg_catalog.clock_timestamp())::double precision AS now
FROM cerebro.orchestrator o JOIN pg_catalog.pg_stat_activity a ON a.pid = o.pid
WHERE o.run_id = %s::bigint AND a.state <> 'idle'
  AND pg_catalog.pg_has_role(a.usesysid, (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = %s::name), 'MEMBER')

-- name: forget
DELETE FROM cerebro.used_time u WHERE u.owner = %s::name AND u.counted_at < pg_catalog.clock_timestamp() - interval '2 days'

-- name: upsert
INSERT INTO cerebro.used_time AS u (owner, hour, seconds, cores, began_at, counted_at)
SELECT n.owner, date_trunc('hour', n.now), least(n.seconds, n.cores * extract(epoch FROM n.now - n.began)::double precision, 1e9), n.cores, n.began, n.now
FROM (SELECT %s::name AS owner, %s::double precision AS seconds, %s::integer AS cores, pg_catalog.to_timestamp(%s::double precision) AS began,
             pg_catalog.to_timestamp(%s::double precision) AS now) n
ON CONFLICT (owner, hour) DO UPDATE
SET seconds = least(u.seconds + excluded.seconds,
                    greatest(u.cores, excluded.cores) * extract(epoch FROM excluded.counted_at - least(u.began_at, excluded.began_at))::double precision, 1e9),
    cores = greatest(u.cores, excluded.cores), began_at = least(u.began_at, excluded.began_at), counted_at = excluded.counted_at
