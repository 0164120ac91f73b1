-- name: prepare
-- Messages reach the one who asked until the run is logged.
SELECT pg_catalog.set_config('client_min_messages', 'notice', false), pg_catalog.set_config('client_connection_check_interval', '0', false)

-- name: begin
CALL cerebro.work(%s::integer, %s::json)

-- name: outputs_missing
UPDATE cerebro.run_log r SET error = 'the output tables were not made: ' || %s::text
WHERE r.run_id = %s::bigint AND r.status = 'completed'

-- name: standing
-- Whether somebody works for the run: its own orchestrator, not just anyone who took the lock.
SELECT r.status, r.pid, EXISTS (
    SELECT FROM pg_catalog.pg_locks l
    WHERE l.locktype = 'advisory' AND l.classid = 1667590770 AND l.objid = r.run_id::oid AND l.objsubid = 2 AND l.pid = r.pid
      AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())) AS under_way
FROM cerebro.run r WHERE r.run_id = %s::bigint

-- name: cancel
SELECT pg_catalog.pg_cancel_backend(%s::integer)
