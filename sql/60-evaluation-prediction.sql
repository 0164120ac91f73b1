-- Evaluation and prediction. pred_type may be a name, a number of classes or a threshold: three functions
-- told apart by its type, of which only the first has a default for it.

CREATE OR REPLACE FUNCTION madlib_keras_evaluate(
    model_table varchar, test_table varchar, output_table varchar, use_gpus boolean DEFAULT FALSE,
    mst_key integer DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import evaluation_prediction
return evaluation_prediction.evaluate(plpy, GD, *args)
$$;
COMMENT ON FUNCTION madlib_keras_evaluate IS 'Loss and metric of a trained model over a packed table, as a table of one row';
-- Alias: madlib_evaluate

CREATE OR REPLACE FUNCTION madlib_keras_predict(
    model_table varchar, test_table varchar, id_col varchar, independent_varname varchar, output_table varchar,
    pred_type varchar DEFAULT 'prob', use_gpus boolean DEFAULT FALSE, mst_key integer DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import evaluation_prediction
return evaluation_prediction.predict(plpy, GD, *args)
$$;
COMMENT ON FUNCTION madlib_keras_predict IS 'Predictions for raw rows: pred_type prob gives all classes with rank, response the best class';
-- Alias: madlib_predict

CREATE OR REPLACE FUNCTION madlib_keras_predict(
    model_table varchar, test_table varchar, id_col varchar, independent_varname varchar, output_table varchar,
    pred_type integer, use_gpus boolean DEFAULT FALSE, mst_key integer DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import evaluation_prediction
return evaluation_prediction.predict(plpy, GD, *args)
$$;
COMMENT ON FUNCTION madlib_keras_predict IS 'Predictions for raw rows: the pred_type best classes of each';
-- Alias: madlib_predict

CREATE OR REPLACE FUNCTION madlib_keras_predict(
    model_table varchar, test_table varchar, id_col varchar, independent_varname varchar, output_table varchar,
    pred_type double precision, use_gpus boolean DEFAULT FALSE, mst_key integer DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import evaluation_prediction
return evaluation_prediction.predict(plpy, GD, *args)
$$;
COMMENT ON FUNCTION madlib_keras_predict IS 'Predictions for raw rows: the classes with a probability above pred_type';
-- Alias: madlib_predict

CREATE OR REPLACE FUNCTION cerebro.grant_predict(model_table text, role regrole) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import evaluation_prediction
return evaluation_prediction.grant_predict(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.grant_predict IS 'Let a role predict and evaluate with the models of an own table without reading their weights';

CREATE OR REPLACE FUNCTION cerebro.revoke_predict(model_table text, role regrole) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import evaluation_prediction
return evaluation_prediction.revoke_predict(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.revoke_predict IS 'Take back what cerebro.grant_predict gave to a role';
