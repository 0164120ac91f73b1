-- name: may_rewrite
SELECT bool_and(pg_catalog.has_table_privilege(%s::oid, p)) FROM pg_catalog.unnest(ARRAY['SELECT', 'INSERT', 'DELETE']) p

-- name: foreign_code
-- Of these tables those of somebody else with triggers or rules, which would run as the caller.
SELECT c.oid::pg_catalog.regclass::text AS name FROM pg_catalog.pg_class c
WHERE c.oid = ANY (%s::oid[]) AND c.relowner <> (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = current_user)
  AND (c.relkind <> 'r' OR EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal)
       OR EXISTS (SELECT FROM pg_catalog.pg_rewrite w WHERE w.ev_class = c.oid)
       OR EXISTS (SELECT FROM pg_catalog.pg_attrdef d WHERE d.adrelid = c.oid)
       OR EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'c'))

-- name: trained
SELECT i.mst_key, i.compile_params FROM {info} i WHERE EXISTS (SELECT FROM {state} s WHERE s.mst_key = i.mst_key)

-- name: trained_single
-- Of the output of a call that trained a single model.
SELECT s.mst_key, m.compile_params FROM {summary} m CROSS JOIN (SELECT DISTINCT t.mst_key FROM {state} t) s

-- name: state
SELECT t.part, t.chunk FROM {state} t WHERE t.mst_key = %s::integer ORDER BY t.part OFFSET 0

-- name: has_state
SELECT 1 FROM {state} t WHERE t.mst_key = %s::integer LIMIT 1

-- name: empty
DELETE FROM {table}
