-- Training one model: each segment trains from the same weights, and what they reach is averaged after each iteration.

CREATE OR REPLACE FUNCTION madlib_keras_fit(
    source_table varchar,
    -- Name of the model table to create. The table `<model>_summary` is created with it.
    model varchar,
    -- The architecture table.
    model_arch_table varchar,
    -- The architecture to train.
    model_id integer,
    -- Compile parameters, a [parameter string](#parameter-strings).
    compile_params varchar,
    -- Fit parameters, a [parameter string](#parameter-strings).
    fit_params varchar,
    -- Number of iterations. In an iteration each segment trains a copy of the model; then the
    -- copies are averaged.
    num_iterations integer,
    use_gpus boolean DEFAULT FALSE,
    validation_table varchar DEFAULT NULL,
    metrics_compute_frequency integer DEFAULT NULL,
    -- Continue the model of the existing output tables, as in `madlib_fit_multiple_model`.
    warm_start boolean DEFAULT NULL,
    name varchar DEFAULT NULL,
    description varchar DEFAULT NULL,
    -- Table of the [custom functions](#load_custom_function) that compile parameters may name.
    object_table varchar DEFAULT NULL,
    seed bigint DEFAULT NULL,
    -- Number of worker sessions, which share the cores. NULL: one per segment, as far as cores and
    -- memory allow.
    workers integer DEFAULT NULL,
    training_metrics boolean DEFAULT TRUE,
    dtype_policy text DEFAULT NULL,
    backend text DEFAULT 'tensorflow',
    max_attempts integer DEFAULT 3,
    -- Time after which no further iteration begins. One that has begun is completed. NULL: no
    -- limit.
    max_runtime interval DEFAULT NULL,
    keep_states boolean DEFAULT TRUE
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import training_one
return training_one.fit_one_model(plpy, GD, *args)
$$;
COMMENT ON FUNCTION madlib_keras_fit IS 'Train one model over a packed table: all segments at once from the same weights, which are averaged after each iteration; seed, workers, training_metrics, dtype_policy, backend, max_attempts, max_runtime and keep_states are additions to MADlib';
-- Alias: madlib_fit
-- Arguments without a comment are those of madlib_keras_fit_multiple_model.
