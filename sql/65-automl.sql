-- AutoML: searches that decide by themselves what is trained next, and for how long.

CREATE OR REPLACE FUNCTION madlib_keras_automl(
    source_table varchar,
    -- Name of the model table to create. The tables `<model_output_table>_info` and
    -- `<model_output_table>_summary` are created with it.
    model_output_table varchar,
    model_arch_table varchar,
    -- The model selection table to create, with the best configuration alone.
    model_selection_table varchar,
    model_id_list integer[],
    compile_params_grid varchar,
    fit_params_grid varchar,
    -- `'hyperband'` or `'hyperopt'`, or a prefix of either.
    automl_method varchar DEFAULT 'hyperband',
    -- Parameters of the method, as `'name=value, …'`: see [Methods](#methods).
    automl_params varchar DEFAULT NULL,
    -- Makes the draws of Hyperband repeatable and, for equal losses, the suggestions of Hyperopt.
    -- It also fixes seeds and the order of visits. 0 is a state like any other.
    random_state integer DEFAULT NULL,
    -- Table of the [custom functions](#load_custom_function) that compile parameters may name.
    object_table varchar DEFAULT NULL,
    use_gpus boolean DEFAULT FALSE,
    validation_table varchar DEFAULT NULL,
    -- Evaluate after every so many epochs, and after the last one. Hyperband also evaluates at the
    -- ends of rounds. A number above that of the iterations is ignored by Hyperband, with a NOTICE,
    -- and refused by Hyperopt (22023).
    metrics_compute_frequency integer DEFAULT NULL,
    name varchar DEFAULT NULL,
    description varchar DEFAULT NULL,
    use_caching boolean DEFAULT FALSE
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import automl
return automl.automl(plpy, GD, *args)
$$;
COMMENT ON FUNCTION madlib_keras_automl IS 'Search for the configuration with the lowest loss, by hyperband or hyperopt, and keep the model that it gave; use_caching is accepted, memory decides';
-- Alias: madlib_automl
-- Arguments without a comment are those of madlib_keras_fit_multiple_model, generate_model_configs.

CREATE OR REPLACE FUNCTION hyperband_schedule(
    -- The table to create.
    schedule_table varchar,
    -- Most iterations of a configuration.
    r integer,
    -- One in `eta` configurations goes on to the next round, with `eta` times as many iterations.
    eta integer DEFAULT 3,
    -- Number of last rounds that are left out of each bracket.
    skip_last integer DEFAULT 0
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import automl
return automl.hyperband_schedule(plpy, GD, *args)
$$;
COMMENT ON FUNCTION hyperband_schedule IS 'Make a table of the rounds that Hyperband makes: for bracket s and round i the number of configurations and of iterations';
