-- Training one model: each segment trains from the same weights, and what they reach is averaged after each iteration.

CREATE OR REPLACE FUNCTION madlib_keras_fit(
    source_table varchar, model varchar, model_arch_table varchar, model_id integer, compile_params varchar,
    fit_params varchar, num_iterations integer, use_gpus boolean DEFAULT FALSE, validation_table varchar DEFAULT NULL,
    metrics_compute_frequency integer DEFAULT NULL, warm_start boolean DEFAULT NULL, name varchar DEFAULT NULL,
    description varchar DEFAULT NULL, object_table varchar DEFAULT NULL, seed bigint DEFAULT NULL,
    workers integer DEFAULT NULL, training_metrics boolean DEFAULT TRUE, dtype_policy text DEFAULT NULL,
    backend text DEFAULT 'tensorflow', max_attempts integer DEFAULT 3, max_runtime interval DEFAULT NULL,
    keep_states boolean DEFAULT TRUE) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import training_one
return training_one.fit_one_model(plpy, GD, *args)
$$;
COMMENT ON FUNCTION madlib_keras_fit IS 'Train one model over a packed table: all segments at once from the same weights, which are averaged after each iteration; seed, workers, training_metrics, dtype_policy, backend, max_attempts, max_runtime and keep_states are additions to MADlib';
-- Alias: madlib_fit
