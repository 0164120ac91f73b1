-- name: at_work
-- Backends that hold the lock of a run: see session.mark_alive.
SELECT l.pid FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_database d ON d.oid = l.database
WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
  AND ((l.classid::bigint << 32) | l.objid::bigint) = (1667590770::bigint << 32) # %s::bigint AND d.datname = current_database()

-- name: reserving
-- Backends that hold the lock on the name of a new table: see session.reserve.
SELECT l.pid FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_database d ON d.oid = l.database
WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted AND l.classid::bigint = 1667590772
  AND l.objid::bigint = pg_catalog.hashtext(%s)::bigint & 4294967295 AND d.datname = current_database()

-- name: naming
-- Backends that hold the lock on the name of a model: see session.name_model.
SELECT l.pid FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_database d ON d.oid = l.database
WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted AND l.classid::bigint = 1667590774
  AND l.objid::bigint = pg_catalog.hashtext(current_user::text || '.'::text || %s::text)::bigint & 4294967295
  AND d.datname = current_database()

-- name: training
-- Other backends that train a model of a name on another table: see session.train_model.
SELECT l.pid FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_database d ON d.oid = l.database
WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted AND l.pid IS DISTINCT FROM pg_catalog.pg_backend_pid()
  AND l.classid::bigint = pg_catalog.hashtext(current_user::text || '.'::text || %s::text)::bigint & 4294967295
  AND l.objid::bigint <> pg_catalog.hashtext(%s::text)::bigint & 4294967295 AND d.datname = current_database()

-- name: could_create
-- True if one of these sessions has a role that may create tables in the schema, at least by SET ROLE.
SELECT EXISTS (SELECT FROM pg_catalog.pg_stat_activity a JOIN pg_catalog.pg_roles r ON pg_catalog.pg_has_role(a.usesysid, r.oid, 'MEMBER')
               WHERE a.pid = ANY (%s::integer[]) AND pg_catalog.has_schema_privilege(r.oid, %s::text, 'CREATE'))

-- name: could_be_caller
SELECT EXISTS (SELECT FROM pg_catalog.pg_stat_activity a
               WHERE a.pid = ANY (%s::integer[]) AND pg_catalog.pg_has_role(a.usesysid, current_user, 'MEMBER'))

-- name: roles
SELECT a.pid, a.usename::text AS role FROM pg_catalog.pg_stat_activity a WHERE a.pid = ANY (%s::integer[]) ORDER BY a.pid
