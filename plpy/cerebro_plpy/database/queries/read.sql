-- name: settings
-- True if the caller's role is one of those that many tenants share, or a member of one. A superuser counts as a member of all.
SELECT s.name, CASE s.name WHEN 'tenant_roles' THEN (EXISTS (
                   SELECT FROM pg_catalog.pg_roles u, pg_catalog.pg_roles t
                   WHERE u.rolname IN (current_user, session_user) AND t.rolname::pg_catalog.text = ANY (s.value::pg_catalog.text[])
                     AND (u.oid = t.oid OR NOT u.rolsuper AND pg_catalog.pg_has_role(u.oid, t.oid, 'MEMBER'))))::pg_catalog.text
                   ELSE s.value END AS value
FROM cerebro.setting s WHERE s.value IS NOT NULL

-- name: caller
-- Runs under the caller's path, which may have a type named text.
SELECT pg_catalog.current_setting('search_path') AS path, pg_catalog.current_schema()::pg_catalog.text AS schema,
       pg_catalog.current_database()::pg_catalog.text AS database,
       pg_catalog.date_part('epoch', pg_catalog.statement_timestamp()) AS began,
       pg_catalog.current_setting('statement_timeout') AS timeout,
       pg_catalog.date_part('epoch', pg_catalog.current_setting('statement_timeout')::pg_catalog.interval) AS timeout_seconds,
       (SELECT pg_catalog.json_object_agg(s.name, pg_catalog.current_setting(s.name))
        FROM pg_catalog.unnest(%s::pg_catalog.text[]) s (name))::pg_catalog.text AS settings

-- name: resolve
-- Runs under the caller's path, so that only the name may depend on it.
SELECT pg_catalog.to_regclass(%s)::pg_catalog.oid::bigint AS oid

-- name: names_type
-- Runs under the caller's path.
SELECT pg_catalog.to_regtype(%s) IS NOT NULL

-- name: open
-- A session resolves a name as before until it locks another relation; reading the size of this relation locks it.
SELECT pg_catalog.pg_relation_size(c.oid) AS bytes
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s::text AND c.relname = %s::text

-- name: path
-- Runs under the caller's path.
SELECT pg_catalog.current_schemas(true)::pg_catalog.text[] AS schemas

-- name: tables_named
-- Readable tables and views whose names are equal but for their case; those of the caller's path first, and the exact name first.
SELECT n.nspname::text AS schema, c.relname::text AS name, p.place IS NOT NULL AS is_visible
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     LEFT JOIN pg_catalog.unnest(%s::text[]) WITH ORDINALITY p (name, place) ON p.name = n.nspname::text
WHERE c.relkind::text IN ('r', 'v', 'm', 'p', 'f') AND pg_catalog.lower(c.relname::text) = pg_catalog.lower(%s::text)
      AND (%s::text IS NULL OR pg_catalog.lower(n.nspname::text) = pg_catalog.lower(%s::text))
      AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
      AND (pg_catalog.has_table_privilege(c.oid, 'SELECT') OR pg_catalog.has_any_column_privilege(c.oid, 'SELECT'))
ORDER BY p.place, c.relname::text <> %s::text, n.nspname::text, c.relname::text
LIMIT 1

-- name: tables_in
SELECT c.relname::text AS name FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname::text = ANY (%s::text[]) AND n.nspname::text NOT IN ('pg_catalog', 'cerebro', 'madlib') AND c.relkind::text IN ('r', 'v', 'm', 'p', 'f')
      AND (pg_catalog.has_table_privilege(c.oid, 'SELECT') OR pg_catalog.has_any_column_privilege(c.oid, 'SELECT'))
ORDER BY c.relname::text LIMIT 1000

-- name: table_of
-- The table of an index, or of the column that a sequence belongs to.
SELECT n.nspname::text AS schema, c.relname::text AS name
FROM (SELECT i.indrelid AS oid FROM pg_catalog.pg_index i WHERE i.indexrelid = %s::oid
      UNION ALL
      SELECT d.refobjid FROM pg_catalog.pg_depend d
      WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objid = %s::oid AND d.deptype::text IN ('a', 'i')
            AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass) o
     JOIN pg_catalog.pg_class c ON c.oid = o.oid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind::text IN ('r', 'p', 'm')
LIMIT 1

-- name: relation
SELECT c.oid::bigint AS oid, n.nspname::text AS schema, c.relname::text AS name, c.relkind::text AS kind, c.relpersistence::text AS persistence
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = %s::oid

-- name: schema
-- The schema pg_temp is an alias of a schema that exists from the first temporary table on.
SELECT pg_catalog.has_schema_privilege(n.oid, 'CREATE') AS may_create FROM pg_catalog.pg_namespace n WHERE n.nspname = %s::text
UNION ALL SELECT pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMPORARY') WHERE %s::text = 'pg_temp'

-- name: may_select
SELECT pg_catalog.has_table_privilege(%s::oid, 'SELECT') OR pg_catalog.has_any_column_privilege(%s::oid, 'SELECT')

-- name: filtered
SELECT pg_catalog.row_security_active(%s::oid)

-- name: columns
SELECT a.attname::text AS name, pg_catalog.format_type(a.atttypid, a.atttypmod) AS type, t.typcategory::text AS category,
       t.typname::text AS base, pg_catalog.format_type(t.typelem, NULL) AS element, e.typcategory::text AS element_category
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem
WHERE a.attrelid = %s::oid AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum

-- name: held_by_caller
-- Tables that other sessions cannot see or use while the caller's transaction is open, also behind views, partitions and children.
WITH RECURSIVE behind (oid) AS (
    SELECT s.oid FROM pg_catalog.unnest(%s::oid[]) s (oid)
    UNION
    SELECT n.oid FROM behind b CROSS JOIN LATERAL (
        SELECT d.refobjid FROM pg_catalog.pg_rewrite r
        JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = r.oid
        WHERE r.ev_class = b.oid AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid <> b.oid
        UNION ALL
        SELECT i.inhrelid FROM pg_catalog.pg_inherits i WHERE i.inhparent = b.oid) n (oid)
)
SELECT c.oid::bigint AS oid, c.oid::pg_catalog.regclass::text AS name
FROM behind b JOIN pg_catalog.pg_class c ON c.oid = b.oid
WHERE (c.relpersistence = 't' OR EXISTS (
      SELECT FROM pg_catalog.pg_locks l
      WHERE l.pid = pg_catalog.pg_backend_pid() AND l.locktype = 'relation' AND l.relation = c.oid AND l.mode <> 'AccessShareLock'))
ORDER BY 2

-- name: has_rows
SELECT EXISTS (SELECT FROM {table})

-- name: packed_summary
SELECT pg_catalog.to_json(s) FROM {table} s LIMIT 1

-- name: packed_segments
SELECT DISTINCT t.{key}::integer FROM {table} t ORDER BY 1

-- name: packed_nowhere
SELECT EXISTS (SELECT FROM {table} t WHERE {key} IS NULL OR t.buffer_id IS NULL OR t.buffer_id < 0)

-- name: packed_buffers
SELECT count(*) AS rows, count(DISTINCT t.buffer_id) AS ids FROM {table} t

-- name: packed_rows
-- The shapes of all buffers without their number of rows, and the bytes of an element of a target.
SELECT DISTINCT pg_catalog.json_build_array({shapes})::text AS shapes, pg_catalog.json_build_array({sizes})::text AS sizes FROM {table} t

-- name: packed_total
SELECT coalesce(sum(t.{shape}[1]), 0)::bigint FROM {table} t

-- name: selection
SELECT t.mst_key::integer, t.model_id::integer, t.compile_params::text, t.fit_params::text FROM {table} t ORDER BY t.mst_key LIMIT %s::bigint

-- name: architectures
SELECT t.model_id, t.model_arch::text, t.model_weights IS NOT NULL AS has_weights FROM {table} t WHERE t.model_id = ANY (%s::integer[]) ORDER BY t.model_id

-- name: class_values
SELECT s.{column}::text[] FROM {table} s LIMIT 1

-- name: encoding
SELECT pg_catalog.getdatabaseencoding()

-- name: version
SELECT e.extversion FROM pg_catalog.pg_extension e WHERE e.extname = 'cerebro_db'

-- name: seconds
SELECT extract(epoch FROM %s::interval)::double precision
