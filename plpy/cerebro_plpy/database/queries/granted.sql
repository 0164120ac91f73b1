-- name: models
-- The model of this name that this owner has granted to the caller.
SELECT g.owner::text AS owner, g.model, g.version, g.outline::text AS outline, g.mark
FROM cerebro.model_grant g WHERE g.model = %s::text AND g.owner::text = %s::text

-- name: owners
-- Roles that have granted the caller a model of this name.
SELECT g.owner::text AS owner FROM cerebro.model_grant g WHERE g.model = %s::text ORDER BY g.owner LIMIT 100

-- name: mark
-- A text that changes when another version is deployed, or when its row or a table of its weights was replaced: for the model of an
-- owner, by default the caller.
SELECT coalesce(
    (SELECT nullif(pg_catalog.concat_ws('/', max(pg_catalog.concat_ws('/', m.owner, v.version, v.xmin, v.ctid)),
                                        pg_catalog.string_agg(pg_catalog.concat_ws('.', c.oid, pg_catalog.pg_relation_filenode(c.oid)), '/' ORDER BY c.oid)), '')
     FROM cerebro.model_log m
     JOIN cerebro.version_log v ON v.owner = m.owner AND v.model = m.model AND v.version = m.deployed
     LEFT JOIN cerebro.member_log b ON b.owner = v.owner AND b.model = v.model AND b.version = v.version AND b.group_value = ''
     LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = 'cerebro_state'::pg_catalog.regnamespace
                                        AND c.relname = 'r' || coalesce(b.refit_run_id, b.run_id, v.run_id) || '_m' || coalesce(b.mst_key, v.mst_key)
     WHERE m.owner = current_user AND m.model = w.model AND NOT m.dropped AND m.owner::text = coalesce(w.owner, m.owner::text)),
    (SELECT pg_catalog.concat_ws('/', g.owner, g.mark) FROM cerebro.model_grant g
     WHERE g.model = w.model AND g.owner::text = w.owner), '') AS mark
FROM (SELECT %s::text AS model, %s::text AS owner OFFSET 0) w

-- name: caller
SELECT current_user::text

-- name: names
SELECT DISTINCT g.model FROM cerebro.model_grant g ORDER BY g.model LIMIT 1000

-- name: types
-- The names in this list that are types of PostgreSQL itself.
SELECT DISTINCT n.name AS type FROM pg_catalog.unnest(%s::text[]) AS n (name)
JOIN pg_catalog.pg_type t ON pg_catalog.format_type(t.oid, -1) = n.name
WHERE t.typnamespace = 'pg_catalog'::pg_catalog.regnamespace AND t.typtype IN ('b', 'r')

-- name: fill
SELECT cerebro_internal.sealed_version()

-- name: network
SELECT v.owner::text AS owner, v.model, v.version, v.run_id, v.mst_key, v.task, v.source, v.target, v.target_type,
       v.recipe::text AS recipe, v.classes, v.margin, v.calibration::text AS calibration, v.backend,
       v.metric, coalesce(v.seed, 0) AS seed, v.group_by, v.reading::text AS reading
FROM cerebro.version_log v WHERE v.owner = %s::name AND v.model = %s::text AND v.version = %s::integer

-- name: group
-- The model for the rows of a version with this value, if these rows have their own model.
SELECT g.run_id, g.mst_key, g.margin, g.calibration::text AS calibration, g.backend
FROM cerebro.group_log g WHERE g.owner = %s::name AND g.model = %s::text AND g.version = %s::integer AND g.group_value = %s::text

-- name: marks
-- The hashes of the values of each category, as they are made of columns: see preprocessing/recipe/split_encoding.py. They come from
-- the table, not as a parameter: a plan, which the session may show, contains its parameters.
SELECT pg_catalog.array_agg(pg_catalog.hashtextextended(e.value COLLATE pg_catalog."C", 0) ORDER BY e.n) AS first,
       pg_catalog.array_agg(pg_catalog.hashtextextended(e.value COLLATE pg_catalog."C", 1) ORDER BY e.n) AS second
FROM cerebro.version_log v
CROSS JOIN LATERAL pg_catalog.jsonb_array_elements(v.recipe -> 'features') WITH ORDINALITY AS f (feature, n)
CROSS JOIN LATERAL pg_catalog.jsonb_array_elements_text(f.feature -> 'values') WITH ORDINALITY AS e (value, n)
WHERE v.owner = %s::name AND v.model = %s::text AND v.version = %s::integer AND f.feature ->> 'kind' = 'category'
GROUP BY f.n ORDER BY f.n

-- name: state
-- A number of chunks at a time. A cursor would stay open for FETCH until the transaction ends; and a function that takes the chunks
-- where they are read would run in another process on Greenplum.
SELECT c.part, c.chunk FROM cerebro.grant_state c
WHERE c.owner = %s::name AND c.model = %s::text AND c.version = %s::integer AND c.mst_key = %s::integer AND c.part > %s::integer ORDER BY c.part LIMIT %s::integer

-- name: gate
-- The empty table of the caller whose privileges grant predictions with a model; NULL if it was dropped.
SELECT g.version, (SELECT pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname)
        FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = 'cerebro_state' AND c.relname = g.gate::name AND c.relkind = 'r'
          AND c.relowner = (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = current_user)) AS gate
FROM cerebro.grant_log g WHERE g.owner = current_user AND g.model = %s::text AND g.gate IS NOT NULL

-- name: add_gate
CREATE TABLE {gate} ();
SELECT cerebro_internal.keep_private({literal}::pg_catalog.regclass);
COMMENT ON TABLE {gate} IS {comment}

-- name: add
INSERT INTO cerebro.grant_log (model, gate) VALUES (%s::text, %s::text)
ON CONFLICT (owner, model) DO UPDATE SET gate = excluded.gate, version = NULL

-- name: role
-- A role as it is written in a statement, and whether it may call cerebro.predict at all.
SELECT pg_catalog.quote_ident(r.rolname) AS role,
       pg_catalog.has_schema_privilege(r.oid, 'cerebro', 'USAGE')
       AND pg_catalog.has_function_privilege(r.oid, 'cerebro_internal.sealed_version()', 'EXECUTE') AS may_use,
       r.rolname = current_user AS own
FROM pg_catalog.pg_roles r WHERE r.oid = %s::pg_catalog.regrole

-- name: open
GRANT SELECT ON {gate} TO {role}

-- name: close
REVOKE SELECT ON {gate} FROM {role}

-- name: others
-- True if any role but the owner may still read it.
SELECT EXISTS (SELECT FROM pg_catalog.pg_class c CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) a
               WHERE c.oid = pg_catalog.to_regclass(%s) AND a.grantee <> c.relowner)

-- name: own_version
SELECT m.owner::text AS owner, m.model, v.version, v.run_id, v.mst_key, v.task, v.source, v.target, v.target_type,
       v.recipe::text AS recipe, v.classes, v.margin, v.calibration::text AS calibration, v.backend, v.metric, coalesce(v.seed, 0) AS seed, v.group_by, v.reading::text AS reading
FROM cerebro.model_log m JOIN cerebro.version_log v ON v.owner = m.owner AND v.model = m.model AND v.version = m.deployed
JOIN cerebro.grant_log g ON g.owner = m.owner AND g.model = m.model
WHERE m.owner = current_user AND m.model = %s::text AND NOT m.dropped AND g.gate IS NOT NULL AND g.version IS DISTINCT FROM v.version

-- name: tell
UPDATE cerebro.grant_log g SET version = %s::integer, outline = %s::jsonb WHERE g.owner = current_user AND g.model = %s::text

-- name: copy
INSERT INTO cerebro.grant_state (model, version, mst_key, part, chunk)
SELECT %s::text, %s::integer, %s::integer, t.part, t.chunk FROM ({rows}) t ON CONFLICT DO NOTHING

-- name: shut
-- No role may read it any more.
UPDATE cerebro.grant_log g SET gate = NULL WHERE g.owner = current_user AND g.model = %s::text

-- name: remove
SELECT cerebro_internal.remove_grants(current_user, %s::text)
