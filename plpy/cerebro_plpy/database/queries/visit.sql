-- name: trainer_start
SELECT cerebro_internal.trainer_start(%s::json){at}

-- name: trainer_stop
SELECT cerebro_internal.trainer_stop(){at}

-- name: trainer_rest
SELECT cerebro_internal.trainer_rest(){at}

-- name: dataset_load
-- Load the whole partition of a segment, in order, into the trainer; the result contains whether it is cached.
SELECT cerebro_internal.dataset_open(%s::text, %s::bigint){at};
SELECT count(cerebro_internal.dataset_add(%s::text, 0, d.buffer_id, d.shapes, pg_catalog.substring(d.data, d.start, {part}))) FROM ({parts}) d;
SELECT cerebro_internal.dataset_close(%s::text){at}

-- name: dataset_stream
-- Send the same bytes into an open job, for a trainer that cannot cache them.
SELECT count(cerebro_internal.dataset_add(%s::text, %s::integer, d.buffer_id, d.shapes, pg_catalog.substring(d.data, d.start, {part}))) FROM ({parts}) d

-- name: dataset_parts
-- The begin of each part of a buffer, in order; only references to the data are sorted. The first part comes with the shapes of
-- all arrays. The statement scans one table once, so that Greenplum knows the only segment with the rows.
SELECT p.buffer_id, p.data, p.start,
       CASE WHEN p.number = 1 AND p.start = 1 THEN pg_catalog.json_build_object('inputs', {inputs}, 'weights', {weights},
           'shapes', pg_catalog.json_build_array({shapes}), 'sizes', pg_catalog.json_build_array({sizes})) END AS shapes
FROM (SELECT a.*, pg_catalog.generate_series(1, pg_catalog.octet_length(a.data), {part}) AS start
      FROM (SELECT n.*, CASE n.number {arrays} END AS data
            FROM (SELECT t.buffer_id, pg_catalog.generate_series(1, {count}) AS number, {columns}
                  FROM {table} t WHERE {key} = %s::integer {some}) n) a) p
ORDER BY p.buffer_id, p.number, p.start OFFSET 0

-- name: some_buffers
AND t.buffer_id = ANY (%s::integer[])

-- name: sampled_buffers
AND t.buffer_id % {period} = 0

-- name: features_store
-- Store the outputs of a layer for the rows of a partition, buffer by buffer, with unchanged targets and weights.
INSERT INTO {features} (__dist_key__, buffer_id, {names})
SELECT %s::integer, b.buffer_id,
       cerebro_internal.buffer_features(pg_catalog.json_build_object('layer', %s::text, 'buffer_id', b.buffer_id,
                                                            'shapes', pg_catalog.json_build_array({shapes})), ARRAY[{inputs}]),
       b.s1[1] || %s::integer[]{others}
FROM (SELECT t.buffer_id, {columns} FROM {table} t WHERE {key} = %s::integer ORDER BY t.buffer_id OFFSET 0) b

-- name: visit_begin
INSERT INTO cerebro.visit (run_id, epoch, mst_key, segment_id, visit_no, attempt, status, worker_pid, kind)
VALUES (%s::bigint, %s::integer, %s::integer, %s::integer, %s::integer, %s::integer, 'running', %s::integer, %s::text)

-- name: state_read
SELECT count(cerebro_internal.state_add(s.part, s.chunk)) FROM ({source}) s

-- name: state_rows
-- Chunks in their storage order, without a sort of the whole state: one statement wrote them into an empty table, and each but the
-- last fills its page. cerebro_internal.state_add checks the order.
SELECT t.part, t.chunk FROM {state} t WHERE t.ctid >= '(0,0)'

-- name: state_with_base
-- The same for a state whose frozen weights are stored in another table: they follow it.
SELECT t.part, t.chunk FROM {state} t WHERE t.ctid >= '(0,0)'
UNION ALL
SELECT b.part + (SELECT max(o.part) FROM {state} o), b.chunk FROM {base} b WHERE b.ctid >= '(0,0)'

-- name: state_between
-- The same from one block of the table on, up to another.
SELECT t.part, t.chunk FROM {state} t
WHERE t.ctid >= ('(' || %s::bigint || ',0)')::pg_catalog.tid AND t.ctid < ('(' || %s::bigint || ',0)')::pg_catalog.tid

-- name: state_copy
INSERT INTO {copy} (part, chunk) {rows}

-- name: weights_source
SELECT 1 AS part, t.model_weights AS chunk FROM {table} t WHERE t.model_id = %s::integer

-- name: job_begin
SELECT cerebro_internal.job_begin(%s::json){at}

-- name: job_start
SELECT cerebro_internal.job_start(){at}

-- name: job_finish
SELECT cerebro_internal.job_finish(){at}

-- name: job_cost
SELECT cerebro_internal.job_cost(){at}

-- name: empty_state
-- This frees the space of the older state immediately, whatever snapshots others hold.
TRUNCATE {state}

-- name: hold_state
-- For a table that is known to be empty: a transaction that has emptied one waits for the disk when it commits.
LOCK TABLE {state} IN ROW EXCLUSIVE MODE

-- name: visit_end
-- The new state and the log row, in one transaction.
SELECT pg_catalog.set_config('cerebro_db.lock_timeout', pg_catalog.current_setting('lock_timeout'), true),
       pg_catalog.set_config('lock_timeout', '2s', true);
{taken};
SELECT pg_catalog.set_config('lock_timeout', pg_catalog.current_setting('cerebro_db.lock_timeout'), true);
WITH stored AS (
    INSERT INTO {state} (part, chunk)
    SELECT row_number() OVER (), c.chunk FROM (SELECT cerebro_internal.state_chunks(8120, %s::text, '{part}') AS chunk) c
    RETURNING pg_catalog.octet_length(chunk) AS bytes
)
UPDATE cerebro.visit v
SET status = 'completed', ended_at = coalesce(pg_catalog.to_timestamp(%s::double precision), s.stored_at), rows = %s::bigint,
    form = %s::text, threads = %s::integer, loss = %s::double precision, training_seconds = %s::double precision,
    trainer_seconds = %s::double precision, backend_seconds = %s::double precision, gpu_seconds = %s::double precision,
    read_bytes = %s::bigint, peak_memory_bytes = %s::bigint,
    state_table = %s::text, state_bytes = s.bytes, stored_at = s.stored_at
FROM (SELECT sum(i.bytes) AS bytes, pg_catalog.clock_timestamp() AS stored_at FROM stored i) s
WHERE v.run_id = %s::bigint AND v.mst_key = %s::integer AND v.visit_no = %s::integer AND v.attempt = %s::integer

-- name: visit_owned
-- Raise an error if the run has another owner since the transaction began: what changed the log before may have found no row.
-- The row is there, and remains as it is; row-level security checks a new one all the same.
INSERT INTO cerebro.visit (run_id, epoch, mst_key, segment_id, visit_no, attempt, status)
VALUES (%s::bigint, %s::integer, %s::integer, %s::integer, %s::integer, %s::integer, 'completed') ON CONFLICT DO NOTHING

-- name: state_store
INSERT INTO {state} (part, chunk)
SELECT row_number() OVER (), c.chunk FROM (SELECT cerebro_internal.state_chunks(8120, %s::text, '{part}') AS chunk) c

-- name: base_known
SELECT cerebro_internal.is_state(%s::bigint, %s::text)

-- name: visits_with_base
-- The visits of a batch: a state that is retained as the best was created by one of them.
UPDATE cerebro.visit v SET base_table = %s::text
WHERE v.run_id = %s::bigint AND v.mst_key = %s::integer AND v.visit_no BETWEEN %s::integer AND %s::integer

-- name: visit_passed
-- A visit that others followed in one job: they started from its state, which is not stored.
UPDATE cerebro.visit v
SET status = 'completed', ended_at = pg_catalog.to_timestamp(%s::double precision), rows = %s::bigint, form = %s::text,
    threads = %s::integer, loss = %s::double precision, training_seconds = %s::double precision,
    trainer_seconds = %s::double precision, backend_seconds = %s::double precision, gpu_seconds = %s::double precision,
    read_bytes = %s::bigint, peak_memory_bytes = %s::bigint,
    stored_at = pg_catalog.clock_timestamp()
WHERE v.run_id = %s::bigint AND v.mst_key = %s::integer AND v.visit_no = %s::integer AND v.attempt = %s::integer

-- name: visits_following
-- The later visits, the last of which is completed with its state.
INSERT INTO cerebro.visit (run_id, epoch, mst_key, segment_id, visit_no, attempt, status, worker_pid, kind, started_at,
                           ended_at, rows, form, threads, loss, training_seconds, stored_at,
                           trainer_seconds, backend_seconds, gpu_seconds, read_bytes, peak_memory_bytes)
SELECT %s::bigint, n.epoch, %s::integer, n.segment_id, n.visit_no, n.attempt,
       CASE WHEN n.ended_at IS NULL THEN 'running' ELSE 'completed' END, %s::integer, 'train',
       pg_catalog.to_timestamp(n.started_at), pg_catalog.to_timestamp(n.ended_at), n.rows, n.form, n.threads, n.loss, n.training_seconds,
       CASE WHEN n.ended_at IS NOT NULL THEN pg_catalog.clock_timestamp() END,
       n.trainer_seconds, n.backend_seconds, n.gpu_seconds, n.read_bytes, n.peak_memory_bytes
FROM pg_catalog.json_to_recordset(%s::json)
     AS n (epoch integer, segment_id integer, visit_no integer, attempt integer, started_at double precision,
           ended_at double precision, rows bigint, form text, threads integer, loss double precision, training_seconds double precision,
           trainer_seconds double precision, backend_seconds double precision, gpu_seconds double precision,
           read_bytes bigint, peak_memory_bytes bigint)

-- name: visit_failed
UPDATE cerebro.visit v SET status = 'failed', ended_at = pg_catalog.clock_timestamp(), error = %s::text,
    trainer_seconds = %s::double precision, backend_seconds = %s::double precision, gpu_seconds = %s::double precision,
    read_bytes = %s::bigint, peak_memory_bytes = %s::bigint
WHERE v.run_id = %s::bigint AND v.mst_key = %s::integer AND v.visit_no = %s::integer AND v.attempt = %s::integer

-- name: evaluation_begin
INSERT INTO cerebro.evaluation (run_id, epoch, mst_key, segment_id, attempt, status)
VALUES (%s::bigint, %s::integer, %s::integer, %s::integer, %s::integer, 'running')

-- name: evaluation_end
UPDATE cerebro.evaluation e SET status = %s::text, error = %s::text, rows = %s::bigint,
    ended_at = coalesce(pg_catalog.to_timestamp(%s::double precision), pg_catalog.clock_timestamp()),
    trainer_seconds = %s::double precision, backend_seconds = %s::double precision, gpu_seconds = %s::double precision,
    read_bytes = %s::bigint, peak_memory_bytes = %s::bigint
WHERE e.run_id = %s::bigint AND e.epoch = %s::integer AND e.mst_key = %s::integer AND e.segment_id = %s::integer AND e.attempt = %s::integer

-- name: evaluations_following
-- The segments that were evaluated in the same job, one after another.
INSERT INTO cerebro.evaluation (run_id, epoch, mst_key, attempt, segment_id, status, started_at, ended_at, rows,
                                trainer_seconds, backend_seconds, gpu_seconds, read_bytes, peak_memory_bytes)
SELECT %s::bigint, %s::integer, %s::integer, %s::integer, n.segment_id, 'completed',
       pg_catalog.to_timestamp(n.started_at), pg_catalog.to_timestamp(n.ended_at), n.rows,
       n.trainer_seconds, n.backend_seconds, n.gpu_seconds, n.read_bytes, n.peak_memory_bytes
FROM pg_catalog.json_to_recordset(%s::json)
     AS n (segment_id integer, started_at double precision, ended_at double precision, rows bigint,
           trainer_seconds double precision, backend_seconds double precision, gpu_seconds double precision,
           read_bytes bigint, peak_memory_bytes bigint)

-- name: row_outputs
SELECT cerebro_internal.row_outputs(%s::integer, %s::integer){at}

-- name: job_series
SELECT cerebro_internal.job_series(%s::json){at}

-- name: metric_results
SELECT cerebro_internal.metric_results(%s::json){at}
