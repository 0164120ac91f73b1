-- name: may_rewrite
SELECT bool_and(pg_catalog.has_table_privilege(%s::oid, p)) FROM pg_catalog.unnest(ARRAY['SELECT', 'INSERT', 'DELETE']) p

-- name: trained
SELECT i.mst_key, i.compile_params FROM {info} i WHERE EXISTS (SELECT FROM {state} s WHERE s.mst_key = i.mst_key)

-- name: state
SELECT t.part, t.chunk FROM {state} t WHERE t.mst_key = %s::integer ORDER BY t.part OFFSET 0

-- name: has_state
SELECT 1 FROM {state} t WHERE t.mst_key = %s::integer LIMIT 1

-- name: empty
DELETE FROM {table}
