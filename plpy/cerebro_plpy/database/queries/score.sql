-- name: info
-- A table of MADlib has no backend.
SELECT t.compile_params::text, pg_catalog.to_json(t) ->> 'backend' FROM {table} t WHERE t.mst_key = %s::integer

-- name: best
-- In a search, losses of validation decide if there are any.
SELECT t.mst_key::integer FROM {table} t WHERE t.model_size IS NOT NULL
ORDER BY coalesce(t.validation_loss_final, t.training_loss_final), t.mst_key LIMIT 1

-- name: keys
-- The first models of a table.
SELECT t.mst_key::integer FROM {table} t ORDER BY 1 LIMIT 2

-- name: model
SELECT t.model_arch::text, t.model_weights IS NOT NULL FROM {table} t WHERE t.mst_key = %s::integer

-- name: weights
SELECT 1 AS part, t.model_weights AS chunk FROM {table} t WHERE t.mst_key = %s::integer

-- name: single
SELECT t.model_arch::text, t.model_weights IS NOT NULL FROM {table} t

-- name: single_weights
SELECT 1 AS part, t.model_weights AS chunk FROM {table} t

-- name: evaluation
CREATE TABLE {output} (loss double precision, metric double precision, metrics_type text[], loss_type text)
{distributed_replicated}

-- name: add_evaluation
INSERT INTO {output} VALUES (%s::double precision, %s::double precision, %s::text[], %s::text)

-- name: declare
-- The table is read once, in its own order; blocks of predictions are computed as they are fetched. At the end, one block is being
-- computed and the last one has not been sent.
DECLARE cerebro_predict NO SCROLL CURSOR FOR
SELECT (p.block).ids::text, (p.block).found::text
FROM (SELECT cerebro_internal.predict_add(r.id, r.data) AS block FROM (SELECT {id} AS id, {data} AS data FROM {table} t OFFSET 0) r
      UNION ALL SELECT cerebro_internal.predict_rest() UNION ALL SELECT cerebro_internal.predict_rest() OFFSET 0) p
WHERE (p.block).ids IS NOT NULL

-- name: collect
SELECT cerebro_internal.predict_begin(%s::json){at}

-- name: shape
SELECT ARRAY(SELECT pg_catalog.array_length(r.x, d.n) FROM pg_catalog.generate_series(1, pg_catalog.array_ndims(r.x)) AS d (n) ORDER BY d.n)
FROM (SELECT {input} AS x FROM {table} t LIMIT 1) r

-- name: fetch
FETCH 1 FROM cerebro_predict

-- name: close
CLOSE cerebro_predict

-- name: predictions
CREATE TABLE {output} ({id} {id_type}, class_name text, class_value text, prob double precision{rank})
{distributed_randomly}

-- name: add_predictions
-- ids is a JSON array of the block's identifiers as texts; the first arrays have one element per output row, the next two one per
-- output of the model, and the last three one per class value. Long values are bytes: PL/Python keeps a copy of a text until the
-- call ends.
INSERT INTO {output}
SELECT i.id::{id_type}, o.name, CASE WHEN o.by_place THEN p.class::text ELSE l.label END, p.value{rank}
FROM ROWS FROM (pg_catalog.unnest(pg_catalog.convert_from(%s::bytea, 'UTF8')::integer[]),
                pg_catalog.unnest(pg_catalog.convert_from(%s::bytea, 'UTF8')::integer[]),
                pg_catalog.unnest(pg_catalog.convert_from(%s::bytea, 'UTF8')::integer[]),
                pg_catalog.unnest(pg_catalog.convert_from(%s::bytea, 'UTF8')::double precision[]),
                pg_catalog.unnest(pg_catalog.convert_from(%s::bytea, 'UTF8')::integer[])) AS p (row, output, class, value, rank)
     JOIN pg_catalog.json_array_elements_text(pg_catalog.convert_from(%s::bytea, 'UTF8')::json) WITH ORDINALITY
          AS i (id, row) ON i.row = p.row
     JOIN ROWS FROM (pg_catalog.unnest(%s::text[]), pg_catalog.unnest(%s::boolean[])) WITH ORDINALITY
          AS o (name, by_place, output) ON o.output = p.output + 1
     LEFT JOIN ROWS FROM (pg_catalog.unnest(%s::integer[]), pg_catalog.unnest(%s::integer[]), pg_catalog.unnest(%s::text[]))
          AS l (output, class, label) ON l.output = p.output AND l.class = p.class
