-- name: identity
-- The caller, and this server: the start time, a number that no time zone changes, distinguishes a restored copy from the
-- original.
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
-- The properties of the caller's transaction that decide whether a run may start in it.
SELECT pg_catalog.current_setting('transaction_isolation') AS isolation,
       pg_catalog.current_setting('default_transaction_isolation') AS default_isolation,
       pg_catalog.current_setting('transaction_read_only') AS read_only,
       pg_catalog.current_setting('default_transaction_read_only') AS default_read_only,
       pg_catalog.pg_is_in_recovery() AS is_standby

-- name: mark_alive
-- The holder of this lock is the orchestrator of the run: see the view cerebro.orchestrator.
SELECT pg_catalog.{lock}((1667590770::bigint << 32) # %s::bigint)

-- name: work_for
-- Each session of a call holds this lock as a worker of a run, or of none (0): see the view cerebro.worker.
SELECT pg_catalog.{lock}(((25446::bigint << 16 | pg_catalog.floor(pg_catalog.random() * 65536)::bigint) << 32) | (%s::bigint & 4294967295))

-- name: work_for_nobody
SELECT pg_catalog.pg_advisory_unlock_all()

-- name: reserve
-- The holder of this lock is about to create a table of that name.
SELECT pg_catalog.{lock}(1667590772, pg_catalog.hashtext(%s))

-- name: train_model
-- The holder of this lock trains a version of a model of its role on a table.
SELECT pg_catalog.{lock}(pg_catalog.hashtext(current_user::text || '.'::text || %s::text), pg_catalog.hashtext(%s::text))

-- name: name_model
-- The holder of this lock is about to find out whether another session trains a model of this name.
SELECT pg_catalog.{lock}(1667590774, pg_catalog.hashtext(current_user::text || '.'::text || %s::text))

-- name: silence
-- Send no messages: the client has left.
SELECT pg_catalog.set_config('client_min_messages', 'error', false)

-- name: begin
BEGIN ISOLATION LEVEL {isolation}

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: idle
-- The server ends a parked session if no call comes in time.
SELECT pg_catalog.set_config('idle_session_timeout', %s, false)

-- name: busy
SELECT pg_catalog.set_config('idle_session_timeout', '0', false), pg_catalog.set_config('application_name', %s, false)

-- name: label
SELECT pg_catalog.set_config('application_name', %s, false)

-- name: progress
-- The activity that others see of this session, and the time when the rows that it reads are counted again.
SELECT pg_catalog.set_config('application_name', %s, true), pg_catalog.set_config('cerebro_db.look_at', %s, true)

-- name: setting
SELECT pg_catalog.current_setting(%s) AS value

-- name: settings
-- This statement and the next run under the caller's path, which may have types of these names.
SELECT pg_catalog.json_object_agg(s.name, pg_catalog.current_setting(s.name))::pg_catalog.text
FROM pg_catalog.unnest(%s::pg_catalog.text[]) s (name)

-- name: configure
SELECT pg_catalog.set_config(s.key, s.value, true) FROM pg_catalog.json_each_text(%s::pg_catalog.json) s

-- name: patience
-- The caller's setting, or else a limit.
SELECT coalesce(nullif(s.setting::double precision, 0) / 1000, %s::double precision) AS seconds
FROM pg_catalog.pg_settings s WHERE s.name = 'lock_timeout'

-- name: wait_for
-- Set the same limit until the subtransaction ends.
SELECT pg_catalog.set_config('lock_timeout', %s::text || 's', true) WHERE pg_catalog.current_setting('lock_timeout') = '0'

-- name: holders
-- The session that has locked a table of schema cerebro against all others.
SELECT l.pid, l.relation::pg_catalog.regclass::text AS table, a.query
FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_database d ON d.oid = l.database
LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
WHERE l.granted AND l.locktype = 'relation' AND l.mode = 'AccessExclusiveLock' AND d.datname = pg_catalog.current_database()
  AND pg_catalog.starts_with(l.relation::pg_catalog.regclass::text, 'cerebro.')
LIMIT 1

-- name: waits
-- The process that waits for the caller's backend, directly or indirectly; the process that blocks these backends at a table of
-- schema cerebro; and the process that blocks them directly at any other table.
WITH RECURSIVE blocked (pid, by, is_ours) AS (
    SELECT w.pid, b.pid, true
    FROM pg_catalog.unnest(%s::integer[]) w (pid), pg_catalog.unnest(pg_catalog.pg_blocking_pids(w.pid)) b (pid)
    UNION
    SELECT k.by, b.pid, false FROM blocked k, pg_catalog.unnest(pg_catalog.pg_blocking_pids(k.by)) b (pid)
), waits (pid, by, is_ours, relation, is_log) AS (
    SELECT k.pid, k.by, k.is_ours, r.name, pg_catalog.starts_with(r.name, 'cerebro.')
    FROM blocked k JOIN pg_catalog.pg_locks l ON l.pid = k.pid, LATERAL (SELECT l.relation::pg_catalog.regclass::text) r (name)
    WHERE NOT l.granted AND l.locktype = 'relation'
)
(SELECT k.pid, a.query, NULL AS table, true AS is_log, a.usename::text AS role, a.state
 FROM blocked k LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = k.pid WHERE k.by = %s::integer LIMIT 1)
UNION ALL
(SELECT w.by, a.query, w.relation, true, a.usename::text, a.state
 FROM waits w LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = w.by WHERE w.is_log LIMIT 1)
UNION ALL
(SELECT w.by, a.query, w.relation, false, a.usename::text, a.state
 FROM waits w LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = w.by WHERE w.is_ours AND NOT w.is_log LIMIT 1)

-- name: room
-- The number of free slots for sessions of the server, the role and the database, as far as any role may know.
SELECT least(pg_catalog.current_setting('max_connections')::integer - pg_catalog.current_setting('superuser_reserved_connections')::integer
                 - coalesce(pg_catalog.current_setting('reserved_connections', true)::integer, 0) - s.sessions,
             nullif(r.rolconnlimit, -1) - s.of_role, nullif(d.datconnlimit, -1) - s.in_database)
FROM (SELECT count(*) AS sessions, count(*) FILTER (WHERE a.usename = session_user) AS of_role,
             count(*) FILTER (WHERE a.datname = pg_catalog.current_database()) AS in_database
      FROM pg_catalog.pg_stat_activity a WHERE a.usesysid IS NOT NULL) s,
     pg_catalog.pg_roles r, pg_catalog.pg_database d
WHERE r.rolname = session_user AND d.datname = pg_catalog.current_database()

-- name: workers_total
-- The number of open sessions of calls of all roles, and its default limit: half of all slots. Any role may take their lock, so
-- only roles are counted that may use the extension.
SELECT (SELECT count(DISTINCT a.pid) FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
        WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.classid::bigint >> 16 = 25446
          AND EXISTS (SELECT FROM pg_catalog.pg_namespace n
                      CROSS JOIN LATERAL pg_catalog.aclexplode(coalesce(n.nspacl, pg_catalog.acldefault('n', n.nspowner))) g
                      WHERE n.nspname = 'cerebro' AND g.privilege_type = 'USAGE'
                        AND (g.grantee = 0 OR pg_catalog.pg_has_role(a.usesysid, g.grantee, 'MEMBER')))) AS open,
       greatest(2, pg_catalog.current_setting('max_connections')::integer / 2) AS most

-- name: look_anew
-- Discard the snapshot of other sessions that a transaction otherwise keeps.
SELECT pg_catalog.pg_stat_clear_snapshot()

-- name: still_there
SELECT EXISTS (SELECT FROM pg_catalog.pg_stat_activity a WHERE a.pid = ANY (%s::integer[]))

-- name: users
SELECT current_user::text, session_user::text

-- name: hold
LOCK TABLE {table} IN ACCESS SHARE MODE
