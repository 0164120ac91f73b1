-- Training. Each function stands under MADlib's name and under a short one.

CREATE OR REPLACE FUNCTION madlib_keras_fit_multiple_model(
    source_table varchar, model_output_table varchar, model_selection_table varchar, num_iterations integer,
    use_gpus boolean DEFAULT FALSE, validation_table varchar DEFAULT NULL, metrics_compute_frequency integer DEFAULT NULL,
    warm_start boolean DEFAULT FALSE, name varchar DEFAULT NULL, description varchar DEFAULT NULL,
    use_caching boolean DEFAULT FALSE, seed bigint DEFAULT NULL, schedule text DEFAULT 'longest',
    workers integer DEFAULT NULL, replay_run bigint DEFAULT NULL,
    training_metrics boolean DEFAULT TRUE, dtype_policy text DEFAULT NULL, backend text DEFAULT 'tensorflow',
    max_attempts integer DEFAULT 3, max_runtime interval DEFAULT NULL, keep_states boolean DEFAULT TRUE,
    search text DEFAULT NULL, search_params jsonb DEFAULT NULL, feature_budget integer DEFAULT NULL,
    strategy text DEFAULT 'auto') RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import training
return training.fit_multiple_model(plpy, GD, *args)
$$;
COMMENT ON FUNCTION madlib_keras_fit_multiple_model IS 'Train all configurations of a model selection table over a packed table; use_caching is accepted, memory decides; seed, schedule (longest, rotation, or replay of replay_run), workers, training_metrics, dtype_policy (float32, mixed_bfloat16 or mixed_float16), backend, max_attempts, max_runtime, keep_states, search (grid, halving, hyperband, asha or median: which configurations go on, decided while they train), search_params, feature_budget (MB for what frozen layers give, which is then computed once) and strategy (auto, mop, task, average or late_average: how the work is divided among workers; the last two change what is learned) are additions to MADlib';
-- Alias: madlib_fit_multiple_model
