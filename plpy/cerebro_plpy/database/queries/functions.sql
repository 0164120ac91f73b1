-- name: table
-- The table of this name in the extension's schema: whether it is an ordinary table of a superuser, and whether roles other than
-- superusers may write to it. Operators are qualified, because the statement also runs under the path of the caller of a function
-- on a segment.
SELECT c.oid::bigint AS oid, n.nspname::pg_catalog.text AS schema, c.relkind OPERATOR(pg_catalog.=) 'r' AS ordinary, o.rolsuper AS trusted,
       EXISTS (SELECT FROM (SELECT c.relacl AS acl UNION ALL
                            SELECT a.attacl FROM pg_catalog.pg_attribute a WHERE a.attrelid OPERATOR(pg_catalog.=) c.oid) p
               CROSS JOIN LATERAL pg_catalog.aclexplode(p.acl) g LEFT JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) g.grantee
               WHERE g.privilege_type OPERATOR(pg_catalog.=) ANY (ARRAY['INSERT', 'UPDATE', 'TRIGGER'])
                 AND r.rolsuper IS NOT TRUE) AS open
FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) e.extnamespace
     JOIN pg_catalog.pg_class c ON c.relnamespace OPERATOR(pg_catalog.=) n.oid
     JOIN pg_catalog.pg_roles o ON o.oid OPERATOR(pg_catalog.=) c.relowner
WHERE e.extname OPERATOR(pg_catalog.=) 'cerebro_db' AND c.relname OPERATOR(pg_catalog.=) %s::pg_catalog.name

-- name: sources
SELECT t.name, t.object FROM ONLY {table} t WHERE t.name OPERATOR(pg_catalog.=) ANY (%s::pg_catalog.text[])

-- name: superuser
SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname OPERATOR(pg_catalog.=) current_user

-- name: schema
SELECT n.nspname::text FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname = 'cerebro_db'

-- name: digests
SELECT t.name, pg_catalog.encode(pg_catalog.sha256(t.object), 'hex') AS digest FROM ONLY {table} t WHERE t.object IS NOT NULL ORDER BY t.name

-- name: create
CREATE TABLE {table} (id serial, name text PRIMARY KEY, description text, object bytea)
{distributed_replicated}

-- name: grant
-- Independent of default privileges: every role may read it, and no other role may write it.
REVOKE ALL ON {table} FROM PUBLIC;
GRANT SELECT ON {table} TO PUBLIC

-- name: lock
LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE

-- name: known
SELECT EXISTS (SELECT FROM {table} t WHERE t.name = %s::text)

-- name: add
INSERT INTO {table} (name, description, object) VALUES (%s::text, %s::text, %s::bytea)

-- name: delete_by_id
DELETE FROM {table} t WHERE t.id = %s::integer RETURNING t.name

-- name: delete_by_name
DELETE FROM {table} t WHERE t.name = %s::text RETURNING t.name
