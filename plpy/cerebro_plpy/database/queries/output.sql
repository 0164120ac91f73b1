-- name: models
-- Trained weights are not compressed: they hardly can be, and the attempt can take longer than all other work for a row.
CREATE TABLE {output} (mst_key integer, model_weights bytea, model_arch json, __dist_key__ integer)
{distributed_by_mst_key};
ALTER TABLE {output} ALTER COLUMN model_weights SET STORAGE EXTERNAL

-- name: add_model
INSERT INTO {output} (mst_key, model_weights, model_arch, __dist_key__) VALUES (%s::integer, %s::bytea, %s::json, %s::integer)

-- name: info
CREATE TABLE {output} (
    mst_key integer PRIMARY KEY, model_id integer, compile_params text, fit_params text, model_type text, model_size double precision,
    metrics_elapsed_time double precision[], metrics_type text[], loss_type text,
    training_metrics_final double precision, training_loss_final double precision,
    training_metrics double precision[], training_loss double precision[],
    validation_metrics_final double precision, validation_loss_final double precision,
    validation_metrics double precision[], validation_loss double precision[]{more}, backend text)
{distributed_by_mst_key}

-- name: add_info
INSERT INTO {output} VALUES (
    %s::integer, %s::integer, %s::text, %s::text, 'madlib_keras', %s::double precision,
    %s::double precision[], %s::text[], %s::text,
    %s::double precision, %s::double precision, %s::double precision[], %s::double precision[],
    %s::double precision, %s::double precision, %s::double precision[], %s::double precision[]{more}, %s::text)

-- name: remove
DELETE FROM {table} t WHERE t.mst_key = %s::integer

-- name: summary
CREATE TABLE {output} (
    source_table text, validation_table text, model text, model_info text, dependent_varname text[], independent_varname text[],
    model_arch_table text, model_selection_table text, object_table text, num_iterations integer, metrics_compute_frequency integer,
    warm_start boolean, name text, description text, start_training_time timestamp, end_training_time timestamp, madlib_version text,
    num_classes integer[], {class_columns}, dependent_vartype text[], normalizing_const real, metrics_iters integer[],
    run_id bigint, dtype_policy text)
{distributed_replicated}

-- name: add_summary
INSERT INTO {output} VALUES (
    %s::text, %s::text, %s::text, %s::text, %s::text[], %s::text[],
    %s::text, %s::text, %s::text, %s::integer, %s::integer,
    %s::boolean, %s::text, %s::text, %s::timestamptz::timestamp, %s::timestamptz::timestamp, %s::text,
    %s::integer[], {class_values}, %s::text[], %s::real, %s::integer[],
    %s::bigint, %s::text)

-- name: run
-- The epochs of an incomplete run are those that every configuration with a state has completed.
SELECT r.run_id, r.name, r.status, r.spec::text AS spec, r.started_at::text AS started_at, r.ended_at::text AS ended_at,
       CASE WHEN r.status = 'completed' THEN r.epochs
            ELSE (SELECT min(c.epochs) FROM cerebro.config c WHERE c.run_id = r.run_id AND c.status <> 'failed' AND c.epochs > 0)
       END AS epochs,
       (SELECT max(m.epoch) FROM cerebro.metric m WHERE m.run_id = r.run_id) AS evaluated
FROM cerebro.run_log r WHERE r.run_id = %s::bigint AND r.owner = current_user

-- name: types
-- Types by their names in the log, as they are written in a statement. The texts are compared, not parsed.
SELECT pg_catalog.format_type(t.oid, -1) AS type
FROM pg_catalog.unnest(%s::text[]) WITH ORDINALITY AS l (name, n)
     JOIN pg_catalog.pg_type t ON pg_catalog.format_type(t.oid, NULL) = pg_catalog.regexp_replace(l.name, '[(][0-9, ]+[)]', '')
ORDER BY l.n

-- name: configs
-- The state of each configuration that has one: the newest, or the retained best. A failed configuration has none, nor one whose state
-- was dropped. Replicas of averaging are left out.
SELECT c.mst_key, c.status, c.model_id, c.compile_params, c.fit_params, c.backend, c.best_epoch, c.released, v.state_table, v.segment_id, v.base_table,
       cerebro_internal.is_state(c.run_id, v.state_table) AND cerebro_internal.is_state(c.run_id, v.base_table) IS NOT FALSE AS kept
FROM cerebro.config_log c
LEFT JOIN (
    SELECT DISTINCT ON (v.mst_key) v.mst_key, v.segment_id, v.base_table,
           CASE WHEN k.best_epoch IS NULL THEN v.state_table
                ELSE 'cerebro_state."r' || v.run_id || '_c' || v.mst_key || '_b_' || k.best_epoch || '"' END AS state_table
    FROM cerebro.visit v JOIN cerebro.run_log r USING (run_id) JOIN cerebro.config_log k USING (run_id, mst_key)
    WHERE v.run_id = %s::bigint AND v.status = 'completed' AND (v.kind = 'average' OR r.spec ->> 'schedule' <> %s::text)
      AND (v.epoch <= k.best_epoch OR k.best_epoch IS NULL){visits}
    ORDER BY v.mst_key, v.visit_no DESC) v
    ON v.mst_key = c.mst_key AND c.status <> 'failed' AND NOT c.released
WHERE c.run_id = %s::bigint{configs} ORDER BY c.mst_key

-- name: architecture
SELECT c.architecture::text FROM cerebro.config_log c WHERE c.run_id = %s::bigint AND c.mst_key = %s::integer

-- name: metrics
-- A row of NULLs if there are no metrics: no row means that the run cannot be seen.
SELECT m.epoch, m.dataset, m.name, m.value, extract(epoch FROM m.time - r.started_at)::double precision AS elapsed
FROM cerebro.run_log r LEFT JOIN cerebro.metric m ON m.run_id = r.run_id AND m.mst_key = %s::integer
WHERE r.run_id = %s::bigint ORDER BY m.epoch
