-- name: info
SELECT t.compile_params::text FROM {table} t WHERE t.mst_key = %s::integer

-- name: model
SELECT t.model_arch::text, t.model_weights IS NOT NULL FROM {table} t WHERE t.mst_key = %s::integer

-- name: weights
SELECT 1 AS part, t.model_weights AS chunk FROM {table} t WHERE t.mst_key = %s::integer

-- name: evaluation
CREATE TABLE {output} (loss double precision, metric double precision, metrics_type text[], loss_type text)

-- name: add_evaluation
INSERT INTO {output} VALUES (%s::double precision, %s::double precision, %s::text[], %s::text)

-- name: declare
-- Blocks of rows go through the trainer as a whole; their predictions wait in the cursor, on disk if they are many.
DECLARE cerebro_predict NO SCROLL CURSOR WITH HOLD FOR
SELECT pg_catalog.array_agg(b.id::text)::text, cerebro.predict_rows(%s::json, count(*), ARRAY[pg_catalog.string_agg(cerebro.array_bytes(b.x), ''::bytea)])
FROM (SELECT t.{id} AS id, {input} AS x, (pg_catalog.row_number() OVER () - 1) / {block} AS number FROM {table} t) b
GROUP BY b.number

-- name: shape
SELECT ARRAY(SELECT pg_catalog.array_length(r.x, d.n) FROM pg_catalog.generate_series(1, pg_catalog.array_ndims(r.x)) AS d (n) ORDER BY d.n)
FROM (SELECT {input} AS x FROM {table} t LIMIT 1) r

-- name: fetch
FETCH 1 FROM cerebro_predict

-- name: close
CLOSE cerebro_predict

-- name: predictions
CREATE TABLE {output} ({id} {id_type}, class_name text, class_value text, prob double precision{rank})

-- name: add_predictions
-- ids is an array literal of the block's identifiers as texts; the other arrays have one element per output row.
INSERT INTO {output}
SELECT (%s::text[])[p.row]::{id_type}, %s::text, (%s::text[])[p.class + 1], p.value{rank}
FROM ROWS FROM (pg_catalog.unnest(%s::integer[]), pg_catalog.unnest(%s::integer[]),
                pg_catalog.unnest(%s::double precision[]), pg_catalog.unnest(%s::integer[])) AS p (row, class, value, rank)
