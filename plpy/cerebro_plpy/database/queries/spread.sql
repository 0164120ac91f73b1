-- Packing on Greenplum: rows are sent directly to the segments that will store their buffers, and are packed there.

-- name: segments
-- A key, the database id and the content id of each segment, alternating between machines.
SELECT k.key, c.content::integer AS content, c.dbid::integer AS dbid
FROM (SELECT s.gp_segment_id AS content, min(s.key) AS key FROM cerebro.segment_key s GROUP BY 1) k
JOIN pg_catalog.gp_segment_configuration c ON c.content = k.content AND c.role = 'p'
ORDER BY row_number() OVER (PARTITION BY c.hostname ORDER BY c.content), c.content

-- name: segments_of
-- The segments that store rows with these keys, in the order in which ordered rows are stored on them.
SELECT s.key, c.content::integer AS content, c.dbid::integer AS dbid
FROM cerebro.segment_key s JOIN pg_catalog.gp_segment_configuration c ON c.content = s.gp_segment_id AND c.role = 'p'
WHERE s.key = ANY (%s::integer[]) ORDER BY c.content, s.key

-- name: gpu_segments
-- Segments on machines with GPUs that trainers may use.
SELECT s.gp_segment_id AS content FROM (SELECT g.gp_segment_id, cerebro_internal.gpu_count() AS gpus FROM gp_dist_random('pg_catalog.gp_id') g) s
WHERE s.gpus > 0

-- name: named_segments
SELECT t.dbid::integer AS dbid FROM {table} t

-- name: stop_packers
SELECT cerebro_internal.trainer_stop() FROM gp_dist_random('pg_catalog.gp_id')

-- name: has_places
-- Whether each row has a location that can be read: not in views, foreign tables, replicated tables and tables on the coordinator;
-- and whether it is a location in a single table.
WITH RECURSIVE part (oid) AS (
    SELECT %s::oid
    UNION ALL SELECT i.inhrelid FROM part p JOIN pg_catalog.pg_inherits i ON i.inhparent = p.oid
)
SELECT pg_catalog.bool_and(c.relkind IN ('r', 'm', 'p') AND p.policytype IS NOT DISTINCT FROM 'p')
       AND pg_catalog.bool_and(pg_catalog.has_table_privilege(%s::oid, 'SELECT')) AS direct, count(*) = 1 AS single
FROM part t JOIN pg_catalog.pg_class c ON c.oid = t.oid LEFT JOIN pg_catalog.gp_distribution_policy p ON p.localoid = t.oid

-- name: copy
-- Rows without a location get one: equal rows may exchange theirs without any effect.
CREATE TEMPORARY TABLE cerebro_rows AS
SELECT c.*, row_number() OVER (PARTITION BY c.__row_hash__) AS __row_number__
FROM (SELECT pg_catalog.hashtextextended(ROW({columns})::text, 0) AS __row_hash__, {columns} FROM {source} t) c
DISTRIBUTED BY (__row_hash__)

-- name: drop_copy
DROP TABLE pg_temp.cerebro_rows

-- name: ordered
-- An ORDER BY would bring all rows to one process, which would send them on in any order. The window sorts the rows of each
-- segment, and they are written in its order. The transaction that creates the table drops it.
CREATE UNLOGGED TABLE {output} AS
SELECT r.*, row_number() OVER (PARTITION BY r.__place__) AS __number__
FROM (SELECT {columns}, {order} AS __place__ FROM {source} t WHERE {side}) r
DISTRIBUTED BY (__place__)

-- name: numbers
-- The numbers of the rows of a source, which decide their buffers.
SELECT {number} AS number{columns} FROM {source} t OFFSET 0

-- name: number_of_copy
pg_catalog.hashtextextended(t.__row_hash__ || ',' || t.__row_number__, {seed})

-- name: number_of_row
pg_catalog.hashtextextended(t.gp_segment_id || t.ctid::text, {seed})

-- name: number_of_part_row
pg_catalog.hashtextextended(t.tableoid || ',' || t.gp_segment_id || t.ctid::text, {seed})

-- name: number_in_order
-- Numbers in storage order: the rows of a segment are consecutive, so that most of them are not moved.
(t.gp_segment_id::bigint << 48 | ('x' || pg_catalog.encode(pg_catalog.tidsend(t.ctid), 'hex'))::bit(48)::bigint)

-- name: histogram
-- The histogram of the leading bits of the numbers.
SELECT pg_catalog.array_agg(h.bin ORDER BY h.bin) AS bins, pg_catalog.array_agg(h.rows ORDER BY h.bin) AS counts
FROM (SELECT n.number >> {shift} AS bin, count(*) AS rows FROM ({numbers}) n GROUP BY 1) h

-- name: bounds
-- The numbers at these positions among those with the same leading bits.
SELECT pg_catalog.array_agg(p.number ORDER BY p.number)::text AS bounds
FROM (SELECT b.number, b.bin, row_number() OVER (PARTITION BY b.bin ORDER BY b.number) AS place
      FROM (SELECT n.number, n.number >> {shift} AS bin FROM ({numbers}) n) b
      WHERE b.bin IN (SELECT pg_catalog.unnest(%s::bigint[]))) p
JOIN ROWS FROM (pg_catalog.unnest(%s::bigint[]), pg_catalog.unnest(%s::bigint[])) AS w (bin, place) ON w.bin = p.bin AND w.place = p.place

-- name: fill
-- No row may be moved after it was packed: it would be packed in a process that ends with the statement.
INSERT INTO {output} (__dist_key__, {names}, {shape_names}, buffer_id)
SELECT b.key, {parts}, {part_shapes}, a.buffer_id
FROM ({packed}) b
     CROSS JOIN LATERAL (SELECT (b.about ->> 'buffer_id')::integer AS buffer_id, b.about -> 'shapes' AS shapes) a
WHERE b.about IS NOT NULL

-- name: packed
-- A buffer is completed by the first call for the next one on its segment; its rows are sent in blocks. The number of a row within
-- its segment brings the rows of a segment together, by its key alone, and sorts them by buffer and block.
SELECT g.key, cerebro_internal.pack_block(
           pg_catalog.json_build_object('rows', count(g.place), 'seed', {seed}, 'buffer_id', g.block / {blocks}, 'arrays', %s::json),
           ARRAY[pg_catalog.string_agg(pg_catalog.int8send(g.number), ''::bytea), {aggregates}]) AS about
FROM (SELECT s.*, row_number() OVER (PARTITION BY s.key ORDER BY s.block) AS place
      FROM (SELECT ('{keys}'::integer[])[n.buffer_id::bigint * {segments} / {buffers} + 1] AS key,
                   n.buffer_id::bigint * {blocks} + (pg_catalog.hashint8(n.number) & ({blocks} - 1)) AS block, n.number, {carried}
            FROM (SELECT r.*, pg_catalog.width_bucket(r.number, '{bounds}'::bigint[]) AS buffer_id FROM ({numbers}) r) n {joins}) s) g
GROUP BY g.key, g.block

-- name: packed_last
SELECT k.key, cerebro_internal.pack_block(NULL, NULL) AS about FROM cerebro.segment_key k WHERE k.key = ANY ('{keys}'::integer[])

-- name: first
SELECT t.{column} AS image FROM {source} t LIMIT 1

-- name: image
SELECT cerebro_internal.pack_block(%s::json, ARRAY[pg_catalog.int8send(1), pg_catalog.array_send(ARRAY[%s]::bytea[])]) AS about
FROM cerebro.segment_key k WHERE k.key = {key}

-- name: image_packed
SELECT cerebro_internal.pack_block(NULL, NULL) AS about FROM cerebro.segment_key k WHERE k.key = {key}
