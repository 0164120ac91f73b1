-- name: columns
-- The columns of a relation that the current user may not read.
SELECT a.attname::text AS name
FROM pg_catalog.pg_attribute a
WHERE a.attrelid = %s::oid AND a.attnum > 0 AND NOT a.attisdropped AND NOT pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT')
ORDER BY a.attnum

-- name: kind
-- The kind of a relation, and whether reading it runs code of users or fetches rows from another server: a view, a foreign table or a
-- child that is one, row security that applies to the current user, or generated columns that are not stored.
WITH RECURSIVE child (oid) AS (
    SELECT %s::oid
    UNION
    SELECT i.inhrelid FROM child c JOIN pg_catalog.pg_inherits i ON i.inhparent = c.oid
)
SELECT p.relkind::text AS kind,
       p.relkind IN ('v', 'f') OR pg_catalog.row_security_active(p.oid)
           OR EXISTS (SELECT FROM child c JOIN pg_catalog.pg_class k ON k.oid = c.oid WHERE k.relkind = 'f')
           OR EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = p.oid AND a.attgenerated = 'v') AS evaluated
FROM pg_catalog.pg_class p WHERE p.oid = %s::oid

-- name: copy
-- The only statement that runs under the caller's path: it contains columns, and no operator or function of the product.
CREATE UNLOGGED TABLE {copy} AS SELECT {columns} FROM {source} AS t

-- name: copied
-- The bytes of a copy.
SELECT pg_catalog.pg_total_relation_size({literal}::pg_catalog.regclass) AS bytes

-- name: oid
SELECT {literal}::pg_catalog.regclass::oid::bigint AS oid

-- name: drop
DROP TABLE IF EXISTS {table}

-- name: fence
-- The fence keeps the conditions of a statement out of the source.
(SELECT {columns} FROM {source} AS t OFFSET 0)

-- name: described
-- The columns of a query, of which no row is read.
SELECT t.* FROM {source} AS t LIMIT 0

-- name: kept
(SELECT {columns} FROM {table} AS t)

-- name: reset
-- Undo the changes of the source's code to the session, and reset the caller's path.
RESET ALL

-- name: query_columns
-- The columns of a query, or the error if it is not a single query that only reads.
SELECT d.name, d.type, d.modifier, d.error FROM cerebro_internal.describe_query(%s::text) d

-- name: pseudo_types
-- The columns whose types no table can have.
SELECT c.name, pg_catalog.format_type(c.type::oid, NULL) AS type
FROM ROWS FROM (pg_catalog.unnest(%s::text[]), pg_catalog.unnest(%s::bigint[])) WITH ORDINALITY AS c (name, type, place)
JOIN pg_catalog.pg_type t ON t.oid = c.type::oid
WHERE t.typtype = 'p' ORDER BY c.place

-- name: view
-- Undone as soon as the catalog has told what the query reads.
CREATE VIEW {view} AS {query}

-- name: objects
-- What a view names: tables, views, functions, operators and types, but for those of PostgreSQL itself, on which nothing depends.
SELECT DISTINCT o.type || ' ' || o.identity AS name
FROM pg_catalog.pg_rewrite r
JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = r.oid
CROSS JOIN LATERAL pg_catalog.pg_identify_object(d.refclassid, d.refobjid, 0) o
WHERE r.ev_class = %s::oid AND NOT (d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = %s::oid)
ORDER BY 1
