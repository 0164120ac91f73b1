-- Packing on Greenplum: rows go straight to the segments where their buffers will lie, and are packed there.

-- name: segments
-- A key, the database id and the machine of each segment, machines by turns.
SELECT k.key, c.content::integer AS content, c.dbid::integer AS dbid
FROM (SELECT s.gp_segment_id AS content, min(s.key) AS key FROM cerebro.segment_key s GROUP BY 1) k
JOIN pg_catalog.gp_segment_configuration c ON c.content = k.content AND c.role = 'p'
ORDER BY row_number() OVER (PARTITION BY c.hostname ORDER BY c.content), c.content

-- name: segments_of
-- Those where rows with these keys lie, in the order in which rows that stay in order lie on them.
SELECT s.key, c.content::integer AS content, c.dbid::integer AS dbid
FROM cerebro.segment_key s JOIN pg_catalog.gp_segment_configuration c ON c.content = s.gp_segment_id AND c.role = 'p'
WHERE s.key = ANY (%s::integer[]) ORDER BY c.content, s.key

-- name: gpu_segments
-- Segments on machines with GPUs that trainers may use.
SELECT s.gp_segment_id AS content FROM (SELECT g.gp_segment_id, cerebro.gpu_count() AS gpus FROM gp_dist_random('pg_catalog.gp_id') g) s
WHERE s.gpus > 0

-- name: named_segments
SELECT t.dbid::integer AS dbid FROM {table} t

-- name: stop_packers
SELECT cerebro.trainer_stop() FROM gp_dist_random('pg_catalog.gp_id')

-- name: has_places
-- Whether each row has a place of its own that can be asked for: not those of views, of foreign tables, and of tables that
-- have all rows everywhere or that lie on the coordinator; and whether it is a place in one table.
WITH RECURSIVE part (oid) AS (
    SELECT %s::oid
    UNION ALL SELECT i.inhrelid FROM part p JOIN pg_catalog.pg_inherits i ON i.inhparent = p.oid
)
SELECT pg_catalog.bool_and(c.relkind IN ('r', 'm', 'p') AND p.policytype IS NOT DISTINCT FROM 'p')
       AND pg_catalog.bool_and(pg_catalog.has_table_privilege(%s::oid, 'SELECT')) AS direct, count(*) = 1 AS single
FROM part t JOIN pg_catalog.pg_class c ON c.oid = t.oid LEFT JOIN pg_catalog.gp_distribution_policy p ON p.localoid = t.oid

-- name: copy
-- Rows that have no place get one: equal rows may change theirs, and nobody would notice.
CREATE TEMPORARY TABLE cerebro_rows AS
SELECT c.*, row_number() OVER (PARTITION BY c.__row_hash__) AS __row_number__
FROM (SELECT pg_catalog.hashtextextended(ROW({columns})::text, 0) AS __row_hash__, {columns} FROM {source} t) c
DISTRIBUTED BY (__row_hash__)

-- name: drop_copy
DROP TABLE pg_temp.cerebro_rows

-- name: ordered
-- An ORDER BY of the whole would bring all rows to one process, which would send them on as it comes. The window sorts those of
-- each segment, and they are written as they come out of it. The transaction that makes the table drops it.
CREATE UNLOGGED TABLE {output} AS
SELECT r.*, row_number() OVER (PARTITION BY r.__place__) AS __number__
FROM (SELECT {columns}, {order} AS __place__ FROM {source} t WHERE {side}) r
DISTRIBUTED BY (__place__)

-- name: numbers
-- What tells the rows of a source apart, by which they are dealt.
SELECT {number} AS number{columns} FROM {source} t OFFSET 0

-- name: number_of_copy
pg_catalog.hashtextextended(t.__row_hash__ || ',' || t.__row_number__, {seed})

-- name: number_of_row
pg_catalog.hashtextextended(t.gp_segment_id || t.ctid::text, {seed})

-- name: number_of_part_row
pg_catalog.hashtextextended(t.tableoid || ',' || t.gp_segment_id || t.ctid::text, {seed})

-- name: number_in_order
-- As rows lie: those of a segment one after another, so that most stay where they are.
(t.gp_segment_id::bigint << 48 | ('x' || pg_catalog.encode(pg_catalog.tidsend(t.ctid), 'hex'))::bit(48)::bigint)

-- name: histogram
-- How many numbers have the same leading bits.
SELECT pg_catalog.array_agg(h.bin ORDER BY h.bin) AS bins, pg_catalog.array_agg(h.rows ORDER BY h.bin) AS counts
FROM (SELECT n.number >> {shift} AS bin, count(*) AS rows FROM ({numbers}) n GROUP BY 1) h

-- name: bounds
-- The numbers at these places among those with the same leading bits.
SELECT pg_catalog.array_agg(p.number ORDER BY p.number)::text AS bounds
FROM (SELECT b.number, b.bin, row_number() OVER (PARTITION BY b.bin ORDER BY b.number) AS place
      FROM (SELECT n.number, n.number >> {shift} AS bin FROM ({numbers}) n) b
      WHERE b.bin IN (SELECT pg_catalog.unnest(%s::bigint[]))) p
JOIN ROWS FROM (pg_catalog.unnest(%s::bigint[]), pg_catalog.unnest(%s::bigint[])) AS w (bin, place) ON w.bin = p.bin AND w.place = p.place

-- name: fill
-- No row is moved after it was packed: it would be packed in a process that ends with the statement.
INSERT INTO {output} (__dist_key__, {names}, {shape_names}, buffer_id)
SELECT b.key, {parts}, {part_shapes}, a.buffer_id
FROM ({packed}) b
     CROSS JOIN LATERAL (SELECT (b.about ->> 'buffer_id')::integer AS buffer_id, b.about -> 'shapes' AS shapes) a
WHERE b.about IS NOT NULL

-- name: packed
-- A buffer is done with the first call for the one that follows it on its segment; its rows are sent in so many blocks. The
-- number of a row within its segment is what brings the rows of one segment together, by that key alone, and sorts them by
-- buffer and block.
SELECT g.key, cerebro.pack_block(
           pg_catalog.json_build_object('rows', count(g.place), 'seed', {seed}, 'buffer_id', g.block / {blocks}, 'arrays', %s::json),
           ARRAY[pg_catalog.string_agg(pg_catalog.int8send(g.number), ''::bytea), {aggregates}]) AS about
FROM (SELECT s.*, row_number() OVER (PARTITION BY s.key ORDER BY s.block) AS place
      FROM (SELECT ('{keys}'::integer[])[n.buffer_id::bigint * {segments} / {buffers} + 1] AS key,
                   n.buffer_id::bigint * {blocks} + (pg_catalog.hashint8(n.number) & ({blocks} - 1)) AS block, n.number, {carried}
            FROM (SELECT r.*, pg_catalog.width_bucket(r.number, '{bounds}'::bigint[]) AS buffer_id FROM ({numbers}) r) n {joins}) s) g
GROUP BY g.key, g.block

-- name: packed_last
SELECT k.key, cerebro.pack_block(NULL, NULL) AS about FROM cerebro.segment_key k WHERE k.key = ANY ('{keys}'::integer[])

-- name: first
SELECT t.{column} AS image FROM {source} t LIMIT 1

-- name: image
SELECT cerebro.pack_block(%s::json, ARRAY[pg_catalog.int8send(1), pg_catalog.array_send(ARRAY[%s]::bytea[])]) AS about
FROM cerebro.segment_key k WHERE k.key = {key}

-- name: image_packed
SELECT cerebro.pack_block(NULL, NULL) AS about FROM cerebro.segment_key k WHERE k.key = {key}
