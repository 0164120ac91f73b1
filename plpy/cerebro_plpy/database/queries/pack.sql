-- name: is_heap
-- True if its rows are stored one after another in pages of one file, and can be found by their location there.
SELECT c.relkind = 'r' AND a.amname = 'heap' FROM pg_catalog.pg_class c JOIN pg_catalog.pg_am a ON a.oid = c.relam WHERE c.oid = %s::oid

-- name: seen
-- Always true; now and then it reports how many rows have been read. Reading the time costs as much as all other work for a small
-- row, so it is not read for each of many rows.
CASE WHEN (n.number < 1024::bigint OR n.number & 63::bigint = 0::bigint)
          AND pg_catalog.current_setting('cerebro_db.look_at')::float8 <= pg_catalog.date_part('epoch', pg_catalog.clock_timestamp())
     THEN cerebro_internal.rows_seen(n.number) ELSE true END

-- name: watched
-- The rows of a source, counted while they are read.
(SELECT {names} FROM (SELECT pg_catalog.row_number() OVER () AS number, {columns} FROM {source} t OFFSET 0) n WHERE {seen})

-- name: count
SELECT count(*) AS rows{nulls} FROM {source} t

-- name: count_weights
-- The number of rows with a valid weight, and of those whose weight is positive.
, count(*) FILTER (WHERE {weight} >= 0 AND {weight}::real < 'Infinity') AS w{number},
count(*) FILTER (WHERE {weight} > 0) AS p{number}

-- name: forms
-- The texts of the values of a target.
SELECT pg_catalog.array_agg(d.form) AS forms
FROM (SELECT DISTINCT t.{column}::text AS form FROM {source} t LIMIT {most}) d

-- name: classes
-- The classes of which these are the texts: NULL first, then by code point of their text, numbers by value.
SELECT pg_catalog.array_agg(d.v ORDER BY d.v IS NOT NULL, {order})::text[] AS classes
FROM (SELECT DISTINCT f.v FROM pg_catalog.unnest(%s::text[]::{type}[]) AS f (v)) d

-- name: class_numbers
-- The numbers of the classes that equal further texts.
SELECT pg_catalog.array_agg(pg_catalog.array_position(%s::text[]::{type}[], f.v) - 1 ORDER BY f.n)
FROM pg_catalog.unnest(%s::text[]::{type}[]) WITH ORDINALITY AS f (v, n)

-- name: elements
SELECT pg_catalog.cardinality(t.{column}) AS elements FROM {source} t LIMIT 1

-- name: bytes
-- Of a file, on average; it is not read for that.
SELECT pg_catalog.avg(pg_catalog.octet_length(t.{column}))::bigint AS bytes FROM {source} t

-- name: image
-- What the packer says of the first image.
SELECT b.about
FROM (SELECT cerebro_internal.pack_block(%s::json, ARRAY[pg_catalog.int8send(1), r.image]) AS about
      FROM (SELECT {image} AS image FROM {source} t LIMIT 1) r
      UNION ALL SELECT cerebro_internal.pack_block(NULL, NULL)) b
WHERE b.about IS NOT NULL

-- name: shapes
SELECT t.{shape}[2:] AS shape, sum(t.{shape}[1]) AS rows FROM {output} t GROUP BY 1 ORDER BY 2 DESC, 1

-- name: table
CREATE TABLE {output} (
    __dist_key__ integer NOT NULL, {columns}, {shapes}, buffer_id integer NOT NULL)
{distributed_by_dist_key};
SELECT cerebro_internal.keep_private({literal}::pg_catalog.regclass)

-- name: external
ALTER TABLE {output} ALTER COLUMN {column} SET STORAGE EXTERNAL

-- name: fill
-- Neighbouring buffers form a segment, so that segments are as even as buffers. The rows of a buffer are sent in so many
-- blocks, about equal; it is done with the first call for the one that follows it, and its arrays are fetched one by one.
INSERT INTO {output} (__dist_key__, {names}, {shape_names}, buffer_id)
SELECT ('{keys}'::integer[])[(a.buffer_id * {segments}::bigint / {buffers})::integer + 1], {parts}, {part_shapes}, a.buffer_id
FROM (SELECT cerebro_internal.pack_block(
          pg_catalog.json_build_object('rows', count(*), 'seed', {seed}, 'buffer_id', g.block / {blocks}, 'arrays', %s::json),
          ARRAY[pg_catalog.string_agg(pg_catalog.int8send(g.number), ''::bytea), {aggregates}]) AS about
      FROM (SELECT {buffer}::bigint * {blocks} + (pg_catalog.hashint8(n.number) & ({blocks} - 1)) AS block, n.number, {carried}
            FROM (SELECT pg_catalog.row_number() OVER () AS number, {columns} FROM {source} t OFFSET 0) n {joins}
            WHERE {seen}
            ORDER BY 1) g
      GROUP BY g.block
      UNION ALL SELECT cerebro_internal.pack_block(NULL, NULL)) b
     CROSS JOIN LATERAL pg_catalog.json_to_record(b.about) AS a (buffer_id integer, shapes json)
WHERE b.about IS NOT NULL

-- name: fill_in_order
-- The same of rows that stay in their order: those of a block lie beside each other, so nothing is sorted, and each is read once.
INSERT INTO {output} (__dist_key__, {names}, {shape_names}, buffer_id)
SELECT ('{keys}'::integer[])[(a.buffer_id * {segments}::bigint / {buffers})::integer + 1], {parts}, {part_shapes}, a.buffer_id
FROM (SELECT (SELECT cerebro_internal.pack_block(
                  pg_catalog.json_build_object('rows', count(*), 'seed', NULL, 'buffer_id', k.block / {blocks}, 'arrays', %s::json),
                  ARRAY[pg_catalog.string_agg(pg_catalog.int8send(g.number), ''::bytea), {aggregates}])
              FROM (SELECT n.number, {carried}
                    FROM (SELECT k.number - 1 + pg_catalog.row_number() OVER () AS number, {columns}
                          FROM {source} t WHERE t.ctid >= k.first AND t.ctid < k.next OFFSET 0) n {joins}
                    WHERE {seen} OFFSET 0) g) AS about
      FROM (SELECT f.block, f.number, f.first, pg_catalog.lead(f.first, 1, '(4294967295,65535)'::tid) OVER (ORDER BY f.number) AS next
            FROM (SELECT r.number, r.first, least((r.number - 1) * {buffers} * {blocks} / {rows}, {buffers} * {blocks} - 1) AS block,
                         least((r.number - 2) * {buffers} * {blocks} / {rows}, {buffers} * {blocks} - 1) AS before
                  FROM (SELECT pg_catalog.row_number() OVER () AS number, t.ctid AS first FROM {source} t OFFSET 0) r) f
            WHERE f.number = 1 OR f.block > f.before
            ORDER BY f.number) k
      UNION ALL SELECT cerebro_internal.pack_block(NULL, NULL)) b
     CROSS JOIN LATERAL pg_catalog.json_to_record(b.about) AS a (buffer_id integer, shapes json)
WHERE b.about IS NOT NULL

-- name: buffer_by_hash
-- How many of the hashes at which a buffer begins lie below that of the row. They are taken from the order of the hashes
-- of all row numbers, so that the sizes of buffers differ by at most one.
pg_catalog.width_bucket(pg_catalog.hashint8extended(n.number, {seed}), (
    SELECT pg_catalog.percentile_disc(ARRAY(
               SELECT ((k * {rows}::bigint + {buffers} - 1) / {buffers} + 0.5::float8) / {rows}
               FROM pg_catalog.generate_series(1, {buffers} - 1) AS k))
           WITHIN GROUP (ORDER BY pg_catalog.hashint8extended(r.i, {seed}))
    FROM (SELECT pg_catalog.generate_series(1, {rows}::bigint)) AS r (i)))

-- name: buffer_in_order
least((n.number - 1) * {buffers} / {rows}, {buffers} - 1)::integer

-- name: buffer_of_group
-- Rows come in the order in which buffers are listed, each of them from its first row on.
('{numbers}'::integer[])[pg_catalog.width_bucket(n.number, '{firsts}'::bigint[]) + 1]

-- name: index
CREATE INDEX ON {output} (__dist_key__, buffer_id)

-- name: summary
CREATE TABLE {summary} (
    source_table text, output_table text, dependent_varname text[], independent_varname text[], dependent_vartype text[],
    {class_columns}, buffer_size integer, normalizing_const real, num_classes integer[], distribution_rules {rules},
    __internal_gpu_config__ {rules})
{distributed_replicated};
SELECT cerebro_internal.keep_private({literal}::pg_catalog.regclass)

-- name: summarize
INSERT INTO {summary} VALUES (
    %s::text, %s::text, %s::text[], %s::text[], %s::text[], {class_values}, %s::integer, %s::real, %s::integer[], %s::{rules}, %s::{rules})

-- name: summary_weight
-- Only packed tables with weights have it, so that others are as MADlib's.
ALTER TABLE {summary} ADD COLUMN sample_weight_varname text

-- name: summarize_weight
UPDATE {summary} SET sample_weight_varname = %s::text
