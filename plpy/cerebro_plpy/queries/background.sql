-- name: prepare
-- Messages reach the one who asked until the run is logged.
SELECT pg_catalog.set_config('client_min_messages', 'notice', false), pg_catalog.set_config('client_connection_check_interval', '0', false)

-- name: begin
CALL cerebro.work(%s::integer, %s::json)

-- name: standing
-- Whether somebody works for the run: its own orchestrator, not just anyone who took the lock.
SELECT r.status, r.pid, o.pid IS NOT NULL AS under_way
FROM cerebro.run r LEFT JOIN cerebro.orchestrator o ON o.run_id = r.run_id AND o.pid = r.pid
WHERE r.run_id = %s::bigint

-- name: cancel
SELECT pg_catalog.pg_cancel_backend(%s::integer)
