-- name: deployed
-- The current user's own model of this name with its deployed version; NULLs if none is deployed.
SELECT m.owner::text AS owner, m.model, v.version, v.run_id, v.mst_key, v.task, v.source, v.target, v.target_type,
       v.recipe::text AS recipe, v.classes, v.margin, v.calibration::text AS calibration, v.holdout_calibration::text AS holdout_calibration, v.backend, v.metric, coalesce(v.seed, 0) AS seed, v.group_by, v.reading::text AS reading
FROM cerebro.model_log m LEFT JOIN cerebro.version_log v
     ON v.owner = m.owner AND v.model = m.model AND v.version = m.deployed
WHERE m.owner = current_user AND m.model = %s::text AND NOT m.dropped

-- name: names
SELECT m.model FROM cerebro.model_log m WHERE m.owner = current_user AND NOT m.dropped ORDER BY m.model LIMIT 1000

-- name: state
-- True if a table of weights exists, and is a plain table of the model's owner.
SELECT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_roles r ON r.oid = c.relowner
               WHERE c.oid = pg_catalog.to_regclass(%s) AND c.relkind = 'r' AND r.rolname = %s::text) AS genuine

-- name: types
-- The base types of the columns of a table that are PostgreSQL's own: other types run code of their owners. Their length is left out,
-- because a value has it already.
SELECT a.attname::text AS name, pg_catalog.format_type(b.oid, -1) AS type
FROM pg_catalog.pg_attribute a CROSS JOIN LATERAL (
    WITH RECURSIVE d AS (
        SELECT t.oid, t.typtype, t.typbasetype, t.typnamespace FROM pg_catalog.pg_type t WHERE t.oid = a.atttypid
        UNION ALL
        SELECT t.oid, t.typtype, t.typbasetype, t.typnamespace FROM pg_catalog.pg_type t JOIN d ON t.oid = d.typbasetype
    )
    SELECT d.oid FROM d WHERE d.typtype <> 'd' AND d.typnamespace = 'pg_catalog'::pg_catalog.regnamespace) b
WHERE a.attrelid = pg_catalog.to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped

-- name: result_types
-- The same of the columns of a query, whose names and types are known.
SELECT c.name, pg_catalog.format_type(b.oid, -1) AS type
FROM ROWS FROM (pg_catalog.unnest(%s::text[]), pg_catalog.unnest(%s::bigint[])) AS c (name, type) CROSS JOIN LATERAL (
    WITH RECURSIVE d AS (
        SELECT t.oid, t.typtype, t.typbasetype, t.typnamespace FROM pg_catalog.pg_type t WHERE t.oid = c.type::oid
        UNION ALL
        SELECT t.oid, t.typtype, t.typbasetype, t.typnamespace FROM pg_catalog.pg_type t JOIN d ON t.oid = d.typbasetype
    )
    SELECT d.oid FROM d WHERE d.typtype <> 'd' AND d.typnamespace = 'pg_catalog'::pg_catalog.regnamespace) b

-- name: base
-- The base type of a type, by its name; NULL if the type does not exist.
WITH RECURSIVE d AS (
    SELECT t.typname, t.typtype, t.typbasetype FROM pg_catalog.pg_type t WHERE t.oid = pg_catalog.to_regtype(%s)
    UNION ALL
    SELECT t.typname, t.typtype, t.typbasetype FROM pg_catalog.pg_type t JOIN d ON t.oid = d.typbasetype
)
SELECT d.typname::text FROM d WHERE d.typtype <> 'd'

-- name: key
-- The columns of the primary key in its order; those of another unique index if there is none.
SELECT i.indisprimary AS is_primary, ARRAY(
       SELECT a.attname::text FROM pg_catalog.generate_series(0, i.indnkeyatts::integer - 1) p (place)
       JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[p.place] ORDER BY p.place) AS columns
FROM pg_catalog.pg_index i
WHERE i.indrelid = %s::oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
ORDER BY i.indisprimary DESC, i.indnkeyatts, i.indexrelid
LIMIT 1

-- name: row_type
-- A type by its oid, with the columns of its rows. A type that CREATE TYPE made has no relation with rows.
SELECT t.typtype::text AS kind, pg_catalog.format_type(t.oid, NULL) AS type,
       coalesce(c.relkind IN ('r', 'v', 'm', 'p', 'f'), false) AS has_rows,
       (SELECT pg_catalog.array_agg(a.attname::text ORDER BY a.attnum) FROM pg_catalog.pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS names,
       (SELECT pg_catalog.array_agg(pg_catalog.format_type(a.atttypid, a.atttypmod) ORDER BY a.attnum) FROM pg_catalog.pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS types
FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_class c ON c.oid = t.typrelid
WHERE t.oid = %s::oid

-- name: transaction
-- The beginning of the caller's transaction.
SELECT pg_catalog.now()::text AS began

-- name: rows
SELECT {id} AS id{inputs} FROM {table} t

-- name: in_groups
-- The rows of a table by group; only the columns that are read are sorted.
(SELECT t.* FROM {table} t ORDER BY {group} OFFSET 0)

-- name: record
-- The columns of a row that is an object of JSON, and the current mark of the model.
SELECT {inputs}, ARRAY(SELECT pg_catalog.jsonb_object_keys(r.record)) AS keys, ({mark}) AS mark
FROM (SELECT %s::jsonb AS record OFFSET 0) r CROSS JOIN LATERAL pg_catalog.jsonb_to_record(r.record) AS t ({columns})

-- name: castable
SELECT t.c FROM pg_catalog.jsonb_to_record(pg_catalog.jsonb_build_object('c', %s::jsonb -> %s::text)) AS t (c {type})

-- name: value
SELECT (%s::jsonb -> %s::text)::text

-- name: kind
SELECT pg_catalog.jsonb_typeof(%s::jsonb)

-- name: told
-- The only row of a block, as an object.
SELECT pg_catalog.jsonb_build_object(
    'prediction', r.prediction, 'probability', r.probability, 'probabilities', r.probabilities::jsonb,
    'lower', r.number - r.margin, 'upper', r.number + r.margin)::text AS told
FROM (SELECT %s::double precision AS margin,
             (pg_catalog.convert_from(%s::bytea, 'UTF8')::text[])[1] AS prediction,
             (pg_catalog.convert_from(%s::bytea, 'UTF8')::double precision[])[1] AS probability,
             (pg_catalog.convert_from(%s::bytea, 'UTF8')::text[])[1] AS probabilities,
             (pg_catalog.convert_from(%s::bytea, 'UTF8')::double precision[])[1] AS number) r
