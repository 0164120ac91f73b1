-- name: applies
-- True if a policy `p` of a relation `c` limits the rows that the role `b.reader` (`k` in pg_roles) reads.
b.is_read AND c.relrowsecurity AND p.polqual IS NOT NULL AND p.polcmd IN ('r', '*') AND NOT k.rolsuper AND NOT k.rolbypassrls
AND (c.relforcerowsecurity OR NOT pg_catalog.pg_has_role(k.oid, c.relowner, 'USAGE'))
AND EXISTS (SELECT FROM pg_catalog.unnest(p.polroles) m (oid)
            WHERE CASE WHEN m.oid = 0 THEN true ELSE pg_catalog.pg_has_role(k.oid, m.oid, 'USAGE') END)

-- name: relations
-- The relations that a SELECT on others reads: those of views, those in conditions of policies, and children; with the role that reads
-- each relation, and whether it is read by its name, so that its own policies apply.
WITH RECURSIVE behind (oid, reader, is_read) AS (
    SELECT s.oid, r.oid, true FROM pg_catalog.unnest(%s::oid[]) s (oid), pg_catalog.pg_roles r WHERE r.rolname = current_user
    UNION
    SELECT n.oid, n.reader, n.is_read
    FROM behind b JOIN pg_catalog.pg_class c ON c.oid = b.oid JOIN pg_catalog.pg_roles k ON k.oid = b.reader CROSS JOIN LATERAL (
        SELECT d.refobjid, CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_options_to_table(c.reloptions) o
                                             WHERE o.option_name = 'security_invoker' AND o.option_value::boolean)
                           THEN b.reader ELSE c.relowner END, true
        FROM pg_catalog.pg_rewrite r
        JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = r.oid
        WHERE r.ev_class = c.oid AND c.relkind = 'v' AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid <> c.oid
        UNION ALL
        SELECT d.refobjid, b.reader, true
        FROM pg_catalog.pg_policy p
        JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_policy'::pg_catalog.regclass AND d.objid = p.oid
        WHERE p.polrelid = c.oid AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid <> c.oid AND {applies}
        UNION ALL
        SELECT i.inhrelid, b.reader, false FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid) n (oid, reader, is_read)
)
SELECT b.oid, b.reader, b.is_read FROM behind b

-- name: definitions
-- The views, policies and functions that a SELECT on a relation evaluates, with the role that reads each of them, and the temporary
-- tables that it reads. Parse trees are read, because deparsing them to SQL locks their tables.
WITH behind (oid, reader, is_read) AS ({relations}), trees (class, oid, kind, name, tree) AS (
    SELECT 'pg_catalog.pg_rewrite'::pg_catalog.regclass, r.oid, 'view', 'view ' || r.ev_class::pg_catalog.regclass, r.ev_action::text
    FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_class c ON c.oid = r.ev_class
    WHERE c.relkind = 'v' AND r.ev_type = '1' AND c.oid IN (SELECT b.oid FROM behind b)
    UNION ALL
    SELECT DISTINCT 'pg_catalog.pg_policy'::pg_catalog.regclass, p.oid, 'policy',
           'policy ' || pg_catalog.quote_ident(p.polname) || ' of ' || p.polrelid::pg_catalog.regclass, p.polqual::text
    FROM behind b JOIN pg_catalog.pg_class c ON c.oid = b.oid JOIN pg_catalog.pg_roles k ON k.oid = b.reader
    JOIN pg_catalog.pg_policy p ON p.polrelid = c.oid
    WHERE {applies}
)
SELECT t.kind, t.name, t.tree, NULL AS source, NULL::bigint AS function, NULL AS user_name FROM trees t
UNION ALL
SELECT DISTINCT 'function', 'function ' || f.oid::pg_catalog.regprocedure, pg_catalog.to_jsonb(f) ->> 'prosqlbody', f.prosrc,
       f.oid::bigint, t.name
FROM trees t JOIN pg_catalog.pg_depend d ON d.classid = t.class AND d.objid = t.oid
LEFT JOIN pg_catalog.pg_operator o ON d.refclassid = 'pg_catalog.pg_operator'::pg_catalog.regclass AND o.oid = d.refobjid
JOIN pg_catalog.pg_proc f ON f.oid = CASE WHEN d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass THEN d.refobjid ELSE o.oprcode::oid END
UNION ALL
SELECT DISTINCT 'temporary table', 'temporary table ' || c.oid::pg_catalog.regclass, NULL, NULL, NULL::bigint, NULL
FROM behind b JOIN pg_catalog.pg_class c ON c.oid = b.oid WHERE c.relpersistence = 't' AND c.relkind <> 'v'

-- name: functions
-- The functions of PostgreSQL itself with these names.
SELECT p.oid::bigint AS oid, p.proname::text AS name FROM pg_catalog.pg_proc p
WHERE p.pronamespace = 'pg_catalog'::pg_catalog.regnamespace AND p.proname::text = ANY (%s::text[])

-- name: wait
-- Reading the size of a relation waits until it can be read, and releases it immediately; then the caller's setting applies again.
SELECT pg_catalog.set_config('cerebro_db.lock_timeout', pg_catalog.current_setting('lock_timeout'), true),
       pg_catalog.set_config('lock_timeout', %s, true);
SELECT pg_catalog.pg_relation_size(b.oid::pg_catalog.regclass) FROM pg_catalog.unnest(%s::oid[]) b (oid);
SELECT pg_catalog.set_config('lock_timeout', pg_catalog.current_setting('cerebro_db.lock_timeout'), true)

-- name: bound
-- Until the transaction ends.
SELECT pg_catalog.set_config('lock_timeout', %s, true)

-- name: holder
-- The session that has locked one of these relations against readers, or waits to do so before them; other roles cannot see the query.
SELECT l.pid, l.granted, l.relation::pg_catalog.regclass::text AS relation, a.usename::text AS role, a.state,
       CASE WHEN a.query <> '<insufficient privilege>' THEN a.query END AS query
FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_database d ON d.oid = l.database
LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'relation' AND l.mode = 'AccessExclusiveLock' AND d.datname = pg_catalog.current_database()
  AND l.relation = ANY (%s::oid[])
ORDER BY l.granted DESC, l.pid LIMIT 1
