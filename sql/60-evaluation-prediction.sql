-- Evaluation and prediction. pred_type may be a name, a number of classes or a threshold: three functions
-- told apart by its type, of which only the first has a default for it.

CREATE OR REPLACE FUNCTION madlib_keras_evaluate(
    -- The model table.
    model_table varchar,
    -- The packed table to evaluate on.
    test_table varchar,
    -- The table to create, with one row.
    output_table varchar,
    -- Use a GPU ([GPUs](../../how-to/gpus.md)).
    use_gpus boolean DEFAULT FALSE,
    -- The configuration. A table of `madlib_fit` has none (22023). NULL for a table of
    -- `madlib_automl`: the best one.
    mst_key integer DEFAULT NULL
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import evaluation_prediction
return evaluation_prediction.evaluate(plpy, GD, *args)
$$;
COMMENT ON FUNCTION madlib_keras_evaluate IS 'Loss and metric of a trained model over a packed table, as a table of one row';
-- Alias: madlib_evaluate

CREATE OR REPLACE FUNCTION madlib_keras_predict(
    model_table varchar,
    -- The table with the rows, which are not packed.
    test_table varchar,
    -- The column that identifies rows.
    id_col varchar,
    -- The column with the inputs. For a model with several inputs, a list of columns, in their
    -- order in training.
    independent_varname varchar,
    -- The table to create.
    output_table varchar,
    -- `'prob'`: all classes. `'response'`: the most probable one.
    pred_type varchar DEFAULT 'prob',
    use_gpus boolean DEFAULT FALSE,
    mst_key integer DEFAULT NULL
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import evaluation_prediction
return evaluation_prediction.predict(plpy, GD, *args)
$$;
COMMENT ON FUNCTION madlib_keras_predict IS 'Predictions for raw rows: pred_type prob gives all classes with rank, response the best class';
-- Alias: madlib_predict
-- Arguments without a comment are those of madlib_keras_evaluate.

CREATE OR REPLACE FUNCTION madlib_keras_predict(
    model_table varchar,
    test_table varchar,
    id_col varchar,
    independent_varname varchar,
    output_table varchar,
    -- n: the n most probable classes.
    pred_type integer,
    use_gpus boolean DEFAULT FALSE,
    mst_key integer DEFAULT NULL
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import evaluation_prediction
return evaluation_prediction.predict(plpy, GD, *args)
$$;
COMMENT ON FUNCTION madlib_keras_predict IS 'Predictions for raw rows: the pred_type best classes of each';
-- Alias: madlib_predict

CREATE OR REPLACE FUNCTION madlib_keras_predict(
    model_table varchar,
    test_table varchar,
    id_col varchar,
    independent_varname varchar,
    output_table varchar,
    -- t, 0 ≤ t < 1: the classes more probable than t.
    pred_type double precision,
    use_gpus boolean DEFAULT FALSE,
    mst_key integer DEFAULT NULL
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import evaluation_prediction
return evaluation_prediction.predict(plpy, GD, *args)
$$;
COMMENT ON FUNCTION madlib_keras_predict IS 'Predictions for raw rows: the classes with a probability above pred_type';
-- Alias: madlib_predict

CREATE OR REPLACE FUNCTION cerebro.grant_predict(
    -- Name of a model, as exact text, or of a model table of MADlib's functions.
    model text,
    -- The role that gets or loses the right to predict.
    role regrole
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import evaluation_prediction
return evaluation_prediction.grant_predict(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.grant_predict IS 'Let a role predict with an own model by name, or with the models of an own model table, without reading weights or training rows';

CREATE OR REPLACE FUNCTION cerebro.revoke_predict(
    model text,
    role regrole
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import evaluation_prediction
return evaluation_prediction.revoke_predict(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.revoke_predict IS 'Revoke from a role a grant of cerebro.grant_predict';
-- Arguments without a comment are those of cerebro.grant_predict.
