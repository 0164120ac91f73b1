-- name: table
CREATE TABLE {table} (
    model_id integer PRIMARY KEY, model_arch json, model_weights bytea, name text, description text, __internal_madlib_id__ text)

-- name: lock
-- Two concurrent loads would otherwise take the same model_id.
LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE

-- name: add
INSERT INTO {table} (model_id, model_arch, model_weights, name, description, __internal_madlib_id__)
SELECT coalesce(max(t.model_id), 0) + 1, %s::json, %s::bytea, %s::text, %s::text, %s::text FROM {table} t
RETURNING model_id

-- name: delete
DELETE FROM {table} t WHERE t.model_id = %s::integer RETURNING t.model_id

-- name: empty
SELECT NOT EXISTS (SELECT FROM {table}) AS empty

-- name: drop
DROP TABLE {table}

-- name: ids
SELECT t.model_id FROM {table} t WHERE t.model_id = ANY (%s::integer[])

-- name: selection
CREATE TABLE {table} (
    mst_key serial, model_id integer, compile_params varchar, fit_params varchar, PRIMARY KEY (mst_key),
    UNIQUE (model_id, compile_params, fit_params))
{distributed_replicated}

-- name: selection_summary
CREATE TABLE {table} (model_arch_table varchar, object_table varchar)
{distributed_replicated}

-- name: distant_summary
-- Of a model selection table in another schema than that of its architectures.
CREATE TABLE {table} (model_arch_table varchar, object_table varchar, model_arch_schema varchar)
{distributed_replicated}

-- name: add_selection_summary
INSERT INTO {table} VALUES (%s::varchar, %s::varchar)

-- name: add_distant_summary
INSERT INTO {table} VALUES (%s::varchar, %s::varchar, %s::varchar)

-- name: read_selection
SELECT t.model_id::integer AS model_id, t.compile_params::text AS compile_params, t.fit_params::text AS fit_params FROM {table} t ORDER BY t.mst_key

-- name: add_selection
INSERT INTO {table} (model_id, compile_params, fit_params)
SELECT r.model_id, r.compile_params, r.fit_params
FROM ROWS FROM (pg_catalog.json_to_recordset(%s::json) AS (model_id integer, compile_params text, fit_params text)) WITH ORDINALITY
     AS r (model_id, compile_params, fit_params, n)
ORDER BY r.n
