-- AutoML: searches that decide by themselves what is trained next, and for how long.

CREATE OR REPLACE FUNCTION madlib_keras_automl(
    source_table varchar, model_output_table varchar, model_arch_table varchar, model_selection_table varchar,
    model_id_list integer[], compile_params_grid varchar, fit_params_grid varchar,
    automl_method varchar DEFAULT 'hyperband', automl_params varchar DEFAULT NULL, random_state integer DEFAULT NULL,
    object_table varchar DEFAULT NULL, use_gpus boolean DEFAULT FALSE, validation_table varchar DEFAULT NULL,
    metrics_compute_frequency integer DEFAULT NULL, name varchar DEFAULT NULL, description varchar DEFAULT NULL,
    use_caching boolean DEFAULT FALSE) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import automl
return automl.automl(plpy, GD, *args)
$$;
COMMENT ON FUNCTION madlib_keras_automl IS 'Search for the configuration with the lowest loss, by hyperband or hyperopt, and keep the model that it gave; use_caching is accepted, memory decides';
-- Alias: madlib_automl

CREATE OR REPLACE FUNCTION hyperband_schedule(
    schedule_table varchar, r integer, eta integer DEFAULT 3, skip_last integer DEFAULT 0) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import automl
return automl.hyperband_schedule(plpy, GD, *args)
$$;
COMMENT ON FUNCTION hyperband_schedule IS 'Make a table of the rounds that Hyperband makes: for bracket s and round i the number of configurations and of iterations';
