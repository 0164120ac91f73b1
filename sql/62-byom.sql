-- Predictions with a model that was not trained here. Three functions told apart by the type of pred_type, as in
-- 60-evaluation-prediction.sql.

CREATE OR REPLACE FUNCTION madlib_keras_predict_byom(
    -- The architecture table.
    model_arch_table varchar,
    -- The model, which was loaded with its weights.
    model_id integer,
    test_table varchar,
    id_col varchar,
    independent_varname varchar,
    output_table varchar,
    -- `'prob'`: all classes. `'response'`: the most probable one.
    pred_type varchar DEFAULT 'prob',
    use_gpus boolean DEFAULT NULL,
    -- The classes, in the order of the units of the last layer: see [Classes](#classes).
    class_values text[] DEFAULT NULL,
    -- The inputs are divided by it. NULL: 1.
    normalizing_const double precision DEFAULT NULL,
    -- Number of outputs of the model; another one is refused (22023). NULL: not checked.
    dependent_count integer DEFAULT 1,
    -- `'tensorflow'`, `'jax'` or `'torch'`.
    backend text DEFAULT 'tensorflow'
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import byom
return byom.predict_byom(plpy, GD, *args)
$$;
COMMENT ON FUNCTION madlib_keras_predict_byom IS 'Predictions for raw rows with a model of an architecture table that was loaded with its weights: pred_type prob gives all classes with rank, response the best class';
-- Alias: madlib_predict_byom
-- Arguments without a comment are those of madlib_keras_predict.

CREATE OR REPLACE FUNCTION madlib_keras_predict_byom(
    model_arch_table varchar,
    model_id integer,
    test_table varchar,
    id_col varchar,
    independent_varname varchar,
    output_table varchar,
    -- n: the n most probable classes.
    pred_type integer,
    use_gpus boolean DEFAULT NULL,
    class_values text[] DEFAULT NULL,
    normalizing_const double precision DEFAULT NULL,
    dependent_count integer DEFAULT 1,
    backend text DEFAULT 'tensorflow'
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import byom
return byom.predict_byom(plpy, GD, *args)
$$;
COMMENT ON FUNCTION madlib_keras_predict_byom IS 'Predictions for raw rows with a model of an architecture table that was loaded with its weights: the pred_type best classes of each';
-- Alias: madlib_predict_byom

CREATE OR REPLACE FUNCTION madlib_keras_predict_byom(
    model_arch_table varchar,
    model_id integer,
    test_table varchar,
    id_col varchar,
    independent_varname varchar,
    output_table varchar,
    -- t, 0 ≤ t < 1: the classes more probable than t.
    pred_type double precision,
    use_gpus boolean DEFAULT NULL,
    class_values text[] DEFAULT NULL,
    normalizing_const double precision DEFAULT NULL,
    dependent_count integer DEFAULT 1,
    backend text DEFAULT 'tensorflow'
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import byom
return byom.predict_byom(plpy, GD, *args)
$$;
COMMENT ON FUNCTION madlib_keras_predict_byom IS 'Predictions for raw rows with a model of an architecture table that was loaded with its weights: the classes with a probability above pred_type';
-- Alias: madlib_predict_byom
