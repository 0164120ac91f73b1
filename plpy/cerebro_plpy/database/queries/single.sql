-- name: model
-- See output.models.
CREATE TABLE {output} (model_weights bytea, model_arch json)
{distributed_randomly};
ALTER TABLE {output} ALTER COLUMN model_weights SET STORAGE EXTERNAL

-- name: add_model
INSERT INTO {output} (model_weights, model_arch) VALUES (%s::bytea, %s::json)

-- name: summary
CREATE TABLE {output} (
    source_table text, model text, dependent_varname text[], independent_varname text[], model_arch_table text,
    model_id integer, compile_params text, fit_params text, num_iterations integer, validation_table text,
    object_table text, metrics_compute_frequency integer, name text, description text, model_type text, model_size double precision,
    start_training_time timestamp, end_training_time timestamp, metrics_elapsed_time double precision[], madlib_version text,
    num_classes integer[], dependent_vartype text[], normalizing_const real, metrics_type text[], loss_type text,
    training_metrics_final double precision, training_loss_final double precision,
    training_metrics double precision[], training_loss double precision[],
    validation_metrics_final double precision, validation_loss_final double precision,
    validation_metrics double precision[], validation_loss double precision[],
    metrics_iters integer[], {class_columns}, run_id bigint, dtype_policy text, backend text)
{distributed_replicated}

-- name: add_summary
INSERT INTO {output} VALUES (
    %s::text, %s::text, %s::text[], %s::text[], %s::text,
    %s::integer, %s::text, %s::text, %s::integer, %s::text,
    %s::text, %s::integer, %s::text, %s::text, 'madlib_keras', %s::double precision,
    %s::timestamptz::timestamp, %s::timestamptz::timestamp, %s::double precision[], %s::text,
    %s::integer[], %s::text[], %s::real, %s::text[], %s::text,
    %s::double precision, %s::double precision, %s::double precision[], %s::double precision[],
    %s::double precision, %s::double precision, %s::double precision[], %s::double precision[],
    %s::integer[], {class_values}, %s::bigint, %s::text, %s::text)
