-- name: at
-- Send a statement to the session's process on the segment of rows with this key: the table has a row for every key.
 FROM cerebro.segment_key k WHERE k.key = {key}

-- name: hosts
-- The hosts that store rows with these keys.
SELECT k.key, c.hostname::text FROM cerebro.segment_key k
JOIN pg_catalog.gp_segment_configuration c ON c.content = k.gp_segment_id AND c.role = 'p'
WHERE k.key = ANY (%s::integer[])

-- name: distributed_by
-- The only column that decides the segment of a table's rows; no row if there is none, or several.
SELECT a.attname::text AS name FROM pg_catalog.gp_distribution_policy p JOIN pg_catalog.pg_attribute a ON a.attrelid = p.localoid
WHERE p.localoid = %s::oid AND p.policytype = 'p' AND p.distkey::text = a.attnum::text

-- name: unknown_keys
SELECT u.key FROM pg_catalog.unnest(%s::integer[]) AS u (key)
WHERE NOT EXISTS (SELECT FROM cerebro.segment_key k WHERE k.key = u.key) ORDER BY 1

-- name: hop_table
-- The table through which states reach a trainer, in chunks that fill a page. Each transaction empties it at its end, without the new
-- catalog rows of a TRUNCATE, and fast, because it has no TOAST table whose index would be rebuilt.
CREATE TEMPORARY TABLE IF NOT EXISTS cerebro_chunks (__dist_key__ integer, part integer) ON COMMIT DELETE ROWS DISTRIBUTED BY (__dist_key__);
ALTER TABLE pg_temp.cerebro_chunks ADD COLUMN IF NOT EXISTS chunk bytea, ALTER COLUMN chunk SET STORAGE PLAIN

-- name: hop
-- A state moves to the segment that trains with it next.
INSERT INTO pg_temp.cerebro_chunks SELECT {key}, s.part, s.chunk FROM ({source}) s

-- name: hop_weights
-- The weights are one value, which is read completely before it is cut: otherwise each cut might decompress it again.
INSERT INTO pg_temp.cerebro_chunks SELECT {key}, n, pg_catalog.substring(w.flat, (n - 1) * 8120 + 1, 8120)
FROM (SELECT s.chunk || ''::bytea AS flat FROM ({source}) s OFFSET 0) w, pg_catalog.generate_series(1, pg_catalog.octet_length(w.flat) / 8120 + 1) n

-- name: empty
TRUNCATE pg_temp.cerebro_chunks

-- name: hopped
SELECT t.part, t.chunk FROM pg_temp.cerebro_chunks t WHERE t.__dist_key__ = {key}

-- name: buffers_table
-- The table through which buffers of another segment reach a trainer, in one transaction.
CREATE TEMPORARY TABLE {table} (__dist_key__ integer, buffer_id integer, {columns}, {shapes}) ON COMMIT DROP DISTRIBUTED BY (__dist_key__)

-- name: bring_buffers
INSERT INTO {copy} SELECT {key}, t.buffer_id, {columns} FROM {table} t WHERE {segment} = %s::integer {some}

-- name: state_table
-- See run.new_state_table.
DROP TABLE IF EXISTS {state};
CREATE TABLE {state} (__dist_key__ integer NOT NULL, part integer NOT NULL) WITH (autovacuum_enabled = false) DISTRIBUTED BY (__dist_key__);
ALTER TABLE {state} ADD COLUMN chunk bytea NOT NULL, ALTER COLUMN chunk SET STORAGE PLAIN;
SELECT cerebro_internal.keep_private({literal}::pg_catalog.regclass)

-- name: state_rows
-- See visit.state_rows.
SELECT t.part, t.chunk FROM {state} t WHERE t.__dist_key__ = {key}

-- name: only_state_rows
-- All rows are stored on one segment.
SELECT t.part, t.chunk FROM {state} t ORDER BY t.part

-- name: only_state_copy
INSERT INTO {copy} (__dist_key__, part, chunk) SELECT t.__dist_key__, t.part, t.chunk FROM {state} t

-- name: state_copy
INSERT INTO {copy} (__dist_key__, part, chunk) SELECT t.__dist_key__, t.part, t.chunk FROM {state} t WHERE t.__dist_key__ = {key}

-- name: state_of_rows
INSERT INTO {state} (__dist_key__, part, chunk) SELECT 0, s.part, s.chunk FROM ({rows}) s (part, chunk)

-- name: empty_state
SELECT pg_catalog.set_config('cerebro_db.lock_timeout', pg_catalog.current_setting('lock_timeout'), true),
       pg_catalog.set_config('lock_timeout', '2s', true);
TRUNCATE {state};
SELECT pg_catalog.set_config('lock_timeout', pg_catalog.current_setting('cerebro_db.lock_timeout'), true)

-- name: visit_end
-- See visit.visit_end. The state stays on its segment: a row for another segment would be computed in another process. So does the
-- log row, and the grouping tells the planner that the size is known there. The log comes last, because a change of any of its
-- rows locks them all.
INSERT INTO {state} (__dist_key__, part, chunk)
SELECT c.key, row_number() OVER (PARTITION BY c.key), c.chunk
FROM (SELECT k.key, cerebro_internal.state_chunks(8120, %s::text) AS chunk FROM cerebro.segment_key k WHERE k.key = {key}) c
WHERE c.key = {key};
UPDATE cerebro.visit v
SET status = 'completed', ended_at = coalesce(pg_catalog.to_timestamp(%s::double precision), pg_catalog.clock_timestamp()),
    rows = %s::bigint, form = %s::text, threads = %s::integer, loss = %s::double precision,
    training_seconds = %s::double precision,
    trainer_seconds = %s::double precision, backend_seconds = %s::double precision, gpu_seconds = %s::double precision,
    read_bytes = %s::bigint, peak_memory_bytes = %s::bigint,
    state_table = %s::text, state_bytes = s.bytes,
    stored_at = pg_catalog.clock_timestamp()
FROM (SELECT t.__dist_key__ AS key, sum(pg_catalog.octet_length(t.chunk)) AS bytes
      FROM {state} t WHERE t.__dist_key__ = {key} GROUP BY t.__dist_key__) s
WHERE v.segment_id = s.key AND v.segment_id = {key}
  AND v.run_id = %s::bigint AND v.mst_key = %s::integer AND v.visit_no = %s::integer AND v.attempt = %s::integer

-- name: state_store
-- See visit.state_store and visit_end.
INSERT INTO {state} (__dist_key__, part, chunk)
SELECT c.key, row_number() OVER (PARTITION BY c.key), c.chunk
FROM (SELECT k.key, cerebro_internal.state_chunks(8120, %s::text) AS chunk FROM cerebro.segment_key k WHERE k.key = {key}) c
WHERE c.key = {key}

-- name: every_segment
SELECT count(*) FROM gp_dist_random('pg_catalog.gp_id')

-- name: interconnect
SELECT pg_catalog.current_setting('gp_interconnect_type', true)

-- name: rest
SELECT pg_catalog.set_config('application_name', 'cerebro_db idle', false),
       pg_catalog.set_config('idle_in_transaction_session_timeout', %s, false)

-- name: wait
-- The server ends this transaction with its session if no call comes. It holds no lock and no snapshot here, but it has a number in
-- the cluster, so that rows deleted after its begin are not removed.
BEGIN

-- name: wake
ROLLBACK

-- name: busy
SELECT pg_catalog.set_config('idle_in_transaction_session_timeout', '0', false), pg_catalog.set_config('application_name', %s, false)

-- name: lies_on_segments
-- True if each row of a table is stored on one segment, can be selected by its number, and is read there without other tables: a
-- system column requires the privilege on the whole table, and a policy may read other tables.
WITH RECURSIVE parts (oid) AS (
    SELECT %s::oid UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN parts p ON i.inhparent = p.oid
)
SELECT pg_catalog.bool_and(c.relkind IN ('r', 'p', 'm') AND d.policytype IS NOT DISTINCT FROM 'p'
                           AND pg_catalog.has_table_privilege(c.oid, 'SELECT') AND NOT pg_catalog.row_security_active(c.oid))
FROM parts p JOIN pg_catalog.pg_class c ON c.oid = p.oid LEFT JOIN pg_catalog.gp_distribution_policy d ON d.localoid = p.oid

-- name: blocks_tables
-- Tables for rows on their way to a trainer on another segment, and for the blocks of its predictions.
CREATE TEMPORARY TABLE IF NOT EXISTS cerebro_rows (__dist_key__ integer, id text, data bytea[]) DISTRIBUTED BY (__dist_key__);
ALTER TABLE pg_temp.cerebro_rows ALTER COLUMN id SET STORAGE EXTERNAL, ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE TEMPORARY TABLE IF NOT EXISTS cerebro_blocks (ids json, found json) DISTRIBUTED RANDOMLY;
ALTER TABLE pg_temp.cerebro_blocks ALTER COLUMN ids SET STORAGE EXTERNAL, ALTER COLUMN found SET STORAGE EXTERNAL

-- name: bring_rows
INSERT INTO pg_temp.cerebro_rows SELECT {key}, {id}, {data} FROM {table} t

-- name: lying_at
t.gp_segment_id = {number}

-- name: brought_to
t.__dist_key__ = {key}

-- name: some_row
SELECT 1 FROM {table} t WHERE {place} LIMIT 1

-- name: collect_blocks
-- Rows of a randomly distributed table stay where they are computed: in the process with the trainer.
INSERT INTO pg_temp.cerebro_blocks
SELECT (p.block).ids, (p.block).found
FROM (SELECT cerebro_internal.predict_add({id}, {data}) AS block FROM {table} t WHERE {place}) p
WHERE (p.block).ids IS NOT NULL

-- name: rest_blocks
INSERT INTO pg_temp.cerebro_blocks
SELECT (p.block).ids, (p.block).found FROM (SELECT cerebro_internal.predict_rest() AS block {at}) p WHERE (p.block).ids IS NOT NULL

-- name: declare
DECLARE cerebro_predict NO SCROLL CURSOR FOR SELECT b.ids::text, b.found::text FROM pg_temp.cerebro_blocks b

-- name: empty_blocks
TRUNCATE pg_temp.cerebro_rows, pg_temp.cerebro_blocks

-- name: gpu_hosts
-- One segment of each host.
SELECT min(c.content)::integer AS content, c.hostname::text AS hostname
FROM pg_catalog.gp_segment_configuration c WHERE c.content >= 0 AND c.role = 'p' GROUP BY c.hostname ORDER BY 1

-- name: gpus
SELECT s.content, s.gpus::text AS gpus
FROM (SELECT g.gp_segment_id AS content, cerebro_internal.gpu_report(%s::text) AS gpus FROM gp_dist_random('pg_catalog.gp_id') g
      WHERE g.gp_segment_id = ANY (%s::integer[])) s
ORDER BY s.content
