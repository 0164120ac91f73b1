-- name: prepare
-- Messages reach the one who asked until the run is logged.
SELECT pg_catalog.set_config('client_min_messages', 'notice', false), pg_catalog.set_config('client_connection_check_interval', '0', false)

-- name: begin
CALL cerebro.work(%s::json)

-- name: at_work
-- Backends that say that they work for the run, in a statement of its own: Greenplum cannot look up locks beside a table.
SELECT l.pid FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_database d ON d.oid = l.database
WHERE l.locktype = 'advisory' AND l.objsubid = 1
  AND ((l.classid::bigint << 32) | l.objid::bigint) = (1667590770::bigint << 32) # %s::bigint AND d.datname = current_database()

-- name: standing
SELECT r.status, r.pid FROM cerebro.run r WHERE r.run_id = %s::bigint

-- name: cancel
SELECT pg_catalog.pg_cancel_backend(%s::integer)
