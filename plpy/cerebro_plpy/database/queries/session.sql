-- name: identity
-- Who calls, and which server this is; the start time, as a number that no time zone changes, tells a restored copy
-- from the original.
SELECT session_user::text AS session_user, current_user::text AS current_user, pg_catalog.current_database()::text AS database,
       (SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = session_user) AS session_superuser,
       (SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = current_user) AS current_superuser,
       (SELECT r.rolcanlogin FROM pg_catalog.pg_roles r WHERE r.rolname = current_user) AS may_log_in,
       (SELECT c.system_identifier::text FROM pg_catalog.pg_control_system() c) || '/' || extract(epoch FROM pg_catalog.pg_postmaster_start_time())::text AS server

-- name: server
SELECT (SELECT c.system_identifier::text FROM pg_catalog.pg_control_system() c) || '/' || extract(epoch FROM pg_catalog.pg_postmaster_start_time())::text,
       session_user::text

-- name: set_role
SET ROLE {role}

-- name: transaction
-- What of the caller's transaction decides whether a run may start in it.
SELECT pg_catalog.current_setting('transaction_isolation') AS isolation,
       pg_catalog.current_setting('transaction_read_only') AS read_only

-- name: mark_alive
-- Whoever holds this is the orchestrator of the run.
SELECT pg_catalog.{lock}(1667590770, %s::integer)

-- name: reserve
-- Whoever holds this is about to make a table of that name.
SELECT pg_catalog.{lock}(1667590772, pg_catalog.hashtext(%s))

-- name: silence
-- To nobody: the client has gone.
SELECT pg_catalog.set_config('client_min_messages', 'error', false)

-- name: idle
-- A session that waits for the next call is ended by the server if none comes.
SELECT pg_catalog.set_config('idle_session_timeout', %s, false)

-- name: busy
SELECT pg_catalog.set_config('idle_session_timeout', '0', false), pg_catalog.set_config('application_name', %s, false)

-- name: label
SELECT pg_catalog.set_config('application_name', %s, false)

-- name: setting
SELECT pg_catalog.current_setting(%s) AS value

-- name: set
SELECT pg_catalog.set_config(%s, %s, true)

-- name: waits_for_caller
-- Whether one of these backends waits, directly or through others, for a lock of the caller's own backend.
WITH RECURSIVE blocked (pid, by) AS (
    SELECT w.pid, b.pid FROM pg_catalog.unnest(%s::integer[]) w (pid), pg_catalog.unnest(pg_catalog.pg_blocking_pids(w.pid)) b (pid)
    UNION
    SELECT k.by, b.pid FROM blocked k, pg_catalog.unnest(pg_catalog.pg_blocking_pids(k.by)) b (pid)
)
SELECT k.pid, a.query FROM blocked k LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = k.pid
WHERE k.by = %s::integer LIMIT 1

-- name: still_there
SELECT EXISTS (SELECT FROM pg_catalog.pg_stat_activity a WHERE a.pid = ANY (%s::integer[]))

-- name: users
SELECT current_user::text, session_user::text
