-- name: may_read
SELECT pg_catalog.has_column_privilege(%s::oid, 'model_weights', 'SELECT')

-- name: function
-- The function that separates a model's weights from roles with a grant of predictions. It runs as the owner of the tables,
-- begins the job, sends the weights, and returns nothing; a job that it has not begun does not accept its chunks. Its tables and
-- functions are resolved when it is created, not by a search_path.
CREATE FUNCTION {function} (spec json, mst_key integer) RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT cerebro.sealed_begin($1, m.model_arch) FROM {model} m WHERE m.mst_key = $2;
    SELECT count(cerebro.sealed_add(s.part, s.chunk))
    FROM (SELECT t.part, t.chunk FROM {state} t WHERE t.mst_key = $2 ORDER BY t.part OFFSET 0) s;
END;
SELECT cerebro_internal.keep_private({literal}::pg_catalog.regprocedure);
COMMENT ON FUNCTION {function} (json, integer) IS 'Made by cerebro.grant_predict: lets who may execute it predict with the model, and not read it'

-- name: found
-- The function of a model: whether it runs as the owner of the model table, and whether the caller may execute it.
SELECT p.prosecdef AND p.prosqlbody IS NOT NULL AND p.proowner = c.relowner AS genuine,
       pg_catalog.has_function_privilege(p.oid, 'EXECUTE') AS granted
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_proc p ON p.pronamespace = c.relnamespace
WHERE c.oid = %s::oid AND p.proname = %s::text AND p.prokind = 'f' AND p.pronargs = 2
  AND p.proargtypes[0] = 'json'::pg_catalog.regtype AND p.proargtypes[1] = 'integer'::pg_catalog.regtype

-- name: begin
SELECT cerebro_internal.sealed_job({model}::pg_catalog.oid, %s::json, %s::integer)

-- name: call
SELECT {function} (%s::json, %s::integer)

-- name: definition
-- The current function of a model. Its version changes when it is replaced, or when its schema is renamed, even if its
-- definition looks the same.
SELECT p.oid::bigint AS oid, p.xmin::text || ' ' || n.xmin::text AS version,
       pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(p.proname) AS qualified,
       pg_catalog.quote_ident(p.proname) AS name, pg_catalog.pg_get_functiondef(p.oid) AS definition
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_proc p ON p.pronamespace = n.oid AND p.proname = c.relname || '_predict' AND p.proowner = c.relowner
WHERE c.oid = %s::oid AND p.prokind = 'f' AND p.pronargs = 2
  AND p.proargtypes[0] = 'json'::pg_catalog.regtype AND p.proargtypes[1] = 'integer'::pg_catalog.regtype

-- name: definition_of
SELECT pg_catalog.pg_get_functiondef(%s::pg_catalog.regprocedure)

-- name: reads
-- The objects that a function refers to, except PostgreSQL's own; and whether they can run no code of their owner. A plain table
-- has no policies, no children and no expressions, the constant ones of which the planner computes. A column of the owner's type
-- would need a conversion, which would be listed here.
SELECT DISTINCT c.oid::bigint AS oid, pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname) AS name,
       CASE d.refclassid
           WHEN 'pg_catalog.pg_namespace'::pg_catalog.regclass THEN true
           WHEN 'pg_catalog.pg_proc'::pg_catalog.regclass THEN
               d.refobjid IN ('cerebro.sealed_begin(json, json)'::pg_catalog.regprocedure, 'cerebro.sealed_add(integer, bytea)'::pg_catalog.regprocedure)
           WHEN 'pg_catalog.pg_class'::pg_catalog.regclass THEN
               c.relkind = 'r' AND NOT c.relrowsecurity AND c.relowner = p.proowner
               AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid)
               AND NOT EXISTS (SELECT FROM pg_catalog.pg_index x WHERE x.indrelid = c.oid AND (x.indexprs IS NOT NULL OR x.indpred IS NOT NULL))
               AND NOT EXISTS (SELECT FROM pg_catalog.pg_statistic_ext s WHERE s.stxrelid = c.oid AND s.stxexprs IS NOT NULL)
               AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'c')
           ELSE false
       END AS plain
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objid = p.oid AND d.deptype = 'n'
LEFT JOIN (pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace)
    ON d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND c.oid = d.refobjid
WHERE p.oid = %s::oid

-- name: model
-- The architecture of a model with weights.
SELECT t.model_arch::text FROM {table} t JOIN {info} i USING (mst_key) WHERE t.mst_key = %s::integer AND i.model_size IS NOT NULL

-- name: not_own
-- The relations in this list that are not tables of the current user.
SELECT c.oid::pg_catalog.regclass::text AS name FROM pg_catalog.pg_class c
WHERE c.oid = ANY (%s::oid[])
  AND (c.relkind <> 'r' OR c.relowner <> (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = current_user))

-- name: role
SELECT pg_catalog.quote_ident(r.rolname) AS role, pg_catalog.has_schema_privilege(r.oid, %s, 'USAGE') AS may_use,
       r.rolname = current_user AS own
FROM pg_catalog.pg_roles r WHERE r.oid = %s::pg_catalog.regrole

-- name: allow
GRANT EXECUTE ON FUNCTION {function} (json, integer) TO {role};
GRANT SELECT (mst_key, model_arch, __dist_key__) ON {model} TO {role};
GRANT SELECT ON {info}, {summary} TO {role}

-- name: forbid
REVOKE EXECUTE ON FUNCTION {function} (json, integer) FROM {role};
REVOKE SELECT (mst_key, model_arch, __dist_key__) ON {model} FROM {role};
REVOKE SELECT ON {info}, {summary} FROM {role}

-- name: others
-- True if any role but the owner may still execute it.
SELECT EXISTS (SELECT FROM pg_catalog.pg_proc p CROSS JOIN LATERAL pg_catalog.aclexplode(p.proacl) a
               WHERE p.oid = pg_catalog.to_regprocedure(%s) AND a.grantee <> p.proowner)

-- name: drop
DROP FUNCTION {function} (json, integer)
