-- name: may_rewrite
SELECT bool_and(pg_catalog.has_table_privilege(%s::oid, p)) FROM pg_catalog.unnest(ARRAY['SELECT', 'INSERT', 'DELETE']) p

-- name: foreign_code
-- The tables among these that belong to other roles and have code that would run as the caller: triggers, rules, defaults, checks (but
-- the one that ties states to a summary, see states.tie), expressions of indexes, domains, and code of children.
SELECT c.oid::pg_catalog.regclass::text AS name FROM pg_catalog.pg_class c
WHERE c.oid = ANY (%s::oid[]) AND c.relowner <> (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = current_user)
  AND (c.relkind <> 'r' OR EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal)
       OR EXISTS (SELECT FROM pg_catalog.pg_rewrite w WHERE w.ev_class = c.oid)
       OR EXISTS (SELECT FROM pg_catalog.pg_attrdef d WHERE d.adrelid = c.oid)
       OR EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'c'
                  AND pg_catalog.pg_get_constraintdef(k.oid)
                      !~ '^CHECK [(]+''cerebro_state[.]model_[0-9a-f]+''::regclass IS NOT NULL[)]+ NOT VALID$')
       OR EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL))
       OR EXISTS (SELECT FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type y ON y.oid = a.atttypid
                  WHERE a.attrelid = c.oid AND a.attnum > 0 AND y.typtype = 'd')
       OR EXISTS (SELECT FROM pg_catalog.pg_inherits h WHERE h.inhparent = c.oid))

-- name: trained
-- The beginning of a state contains how far it was trained.
SELECT i.mst_key, i.compile_params, m.model_arch::text, pg_catalog.substring(s.chunk, 1, 1024)
FROM {info} i JOIN {model} m USING (mst_key) JOIN {state} s ON s.mst_key = i.mst_key AND s.part = 1

-- name: trained_single
-- The output of a call that trained a single model.
SELECT s.mst_key, u.compile_params, m.model_arch::text, pg_catalog.substring(s.chunk, 1, 1024)
FROM {summary} u CROSS JOIN {model} m CROSS JOIN {state} s WHERE s.part = 1

-- name: state
SELECT t.part, t.chunk FROM {state} t WHERE t.mst_key = %s::integer ORDER BY t.part OFFSET 0

-- name: has_state
SELECT 1 FROM {state} t WHERE t.mst_key = %s::integer LIMIT 1

-- name: empty
DELETE FROM {table}
