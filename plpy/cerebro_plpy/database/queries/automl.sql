-- name: schedule
CREATE TABLE {output} (s integer, i integer, n_i integer, r_i integer, UNIQUE (s, i))
{distributed_replicated}

-- name: add_schedule
INSERT INTO {output} VALUES (%s::integer, %s::integer, %s::integer, %s::integer)

-- name: models
-- See output.models.
CREATE TABLE {output} (mst_key integer PRIMARY KEY, model_weights bytea, model_arch json, __dist_key__ integer)
{distributed_by_mst_key};
ALTER TABLE {output} ALTER COLUMN model_weights SET STORAGE EXTERNAL

-- name: info_columns
-- Columns that the table of a search has in addition to those of output.info.
, metrics_iters integer[]{places}

-- name: places
, s integer, i integer

-- name: add_info_columns
, %s::integer[]{places}

-- name: add_places
, %s::integer, %s::integer

-- name: summary
CREATE TABLE {output} (
    source_table text, validation_table text, model text, model_info text, dependent_varname text[], independent_varname text[],
    model_arch_table text, model_selection_table text, automl_method text, automl_params text, random_state text, object_table text,
    use_gpus boolean, metrics_compute_frequency integer, name text, description text, start_training_time timestamp,
    end_training_time timestamp, madlib_version text, num_classes integer[], {class_columns}, dependent_vartype text[],
    normalizing_const real, run_id bigint)
{distributed_replicated}

-- name: add_summary
INSERT INTO {output} VALUES (
    %s::text, %s::text, %s::text, %s::text, %s::text[], %s::text[],
    %s::text, %s::text, %s::text, %s::text, %s::text, %s::text,
    %s::boolean, %s::integer, %s::text, %s::text, %s::timestamptz::timestamp,
    %s::timestamptz::timestamp, %s::text, %s::integer[], {class_values}, %s::text[],
    %s::real, %s::bigint)

-- name: add_best
INSERT INTO {output} (mst_key, model_id, compile_params, fit_params) VALUES (%s::integer, %s::integer, %s::text, %s::text)

-- name: keys_from
-- Configurations that are appended later take keys that no configuration of the search had.
SELECT pg_catalog.setval(pg_catalog.pg_get_serial_sequence(%s, 'mst_key')::pg_catalog.regclass, %s::bigint)
