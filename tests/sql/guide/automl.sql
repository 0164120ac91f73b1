-- AutoML: a search for a good configuration, by Hyperband and by Hyperopt.
--
-- Hyperband tries many configurations for few iterations and gives more of them only to those that do well; Hyperopt
-- learns from the configurations that it has tried which ones to try next (it needs Optuna, extra automl). Both
-- leave one model, the best. An ordinary role that may use the extension can run this; blocks that begin with DO check
-- what the statements above them made.
DROP SCHEMA IF EXISTS guide_automl CASCADE;
CREATE SCHEMA guide_automl;
SET search_path = guide_automl;
\ir ../iris_data.sql
CREATE TABLE iris_train AS SELECT * FROM iris WHERE id % 5 <> 0;
CREATE TABLE iris_test AS SELECT * FROM iris WHERE id % 5 = 0;
SELECT madlib.training_preprocessor_dl('iris_train', 'iris_train_packed', 'species', 'attributes',
    n_segments => 2, seed => 1);
SELECT madlib.validation_preprocessor_dl('iris_test', 'iris_test_packed', 'species', 'attributes', 'iris_train_packed');
SELECT madlib.load_keras_model('iris_models', $$
    {"class_name": "Sequential", "config": {"name": "narrow", "layers": [
        {"class_name": "InputLayer", "config": {"batch_shape": [null, 4]}},
        {"class_name": "Dense", "config": {"units": 8, "activation": "relu"}},
        {"class_name": "Dense", "config": {"units": 3, "activation": "softmax"}}]}} $$::json, NULL, 'narrow');
SELECT madlib.load_keras_model('iris_models', $$
    {"class_name": "Sequential", "config": {"name": "wide", "layers": [
        {"class_name": "InputLayer", "config": {"batch_shape": [null, 4]}},
        {"class_name": "Dense", "config": {"units": 32, "activation": "relu"}},
        {"class_name": "Dense", "config": {"units": 3, "activation": "softmax"}}]}} $$::json, NULL, 'wide');

-- 1. What Hyperband would do: in round i of bracket s, n_i configurations are trained for r_i iterations.
SELECT madlib.hyperband_schedule('rounds', 4, 2);
SELECT * FROM rounds ORDER BY s DESC, i;

DO $$ BEGIN
    ASSERT (SELECT array_agg(ARRAY[s, i, n_i, r_i] ORDER BY s DESC, i) FROM rounds)
        = '{{2,0,4,1},{2,1,2,2},{2,2,1,4},{1,0,2,2},{1,1,1,4},{0,0,3,4}}', 'half of a round goes on, for twice as long';
END $$;

-- 2. Hyperband. Learning rates are drawn from 0.001 to 0.1, as many below 0.01 as above it.
DROP TABLE IF EXISTS band_model, band_model_info, band_model_summary, band_best, band_best_summary;
SELECT madlib.madlib_keras_automl('iris_train_packed', 'band_model', 'iris_models', 'band_best', ARRAY[1, 2],
    $$ {'loss': ['categorical_crossentropy'], 'metrics': [['accuracy']],
        'optimizer_params_list': [{'optimizer': ['Adam', 'RMSprop'], 'lr': [0.001, 0.1, 'log']}]} $$,
    $$ {'batch_size': [8, 16], 'epochs': [1]} $$,
    'hyperband', 'R=4, eta=2', 1, NULL, FALSE, 'iris_test_packed');
SELECT mst_key, s, i, compile_params, fit_params, validation_loss_final
FROM band_model_info ORDER BY validation_loss_final;
SELECT * FROM band_best;

DO $$ BEGIN
    ASSERT (SELECT count(*) FROM band_model_info) = (SELECT sum(n_i) FROM rounds WHERE i = 0), 'all that began';
    ASSERT (SELECT count(*) FROM band_best) = 1, 'one is left';
    ASSERT (SELECT count(*) FROM band_model JOIN band_best USING (mst_key) WHERE model_weights IS NOT NULL) = 1
        AND (SELECT bool_and(model_weights IS NOT NULL) FROM band_model JOIN band_model_info USING (mst_key) WHERE s = i),
        'it has weights, and so have all that were in the last round of their bracket';
    ASSERT (SELECT validation_loss_final FROM band_model_info JOIN band_best USING (mst_key))
        <= (SELECT min(validation_loss_final) FROM band_model_info), 'none ended with a lower loss';
END $$;

-- 3. Hyperopt, over the same space.
DROP TABLE IF EXISTS opt_model, opt_model_info, opt_model_summary, opt_best, opt_best_summary;
SELECT madlib.madlib_keras_automl('iris_train_packed', 'opt_model', 'iris_models', 'opt_best', ARRAY[1, 2],
    $$ {'loss': ['categorical_crossentropy'], 'metrics': [['accuracy']],
        'optimizer_params_list': [{'optimizer': ['Adam', 'RMSprop'], 'lr': [0.001, 0.1, 'log']}]} $$,
    $$ {'batch_size': [8, 16], 'epochs': [1]} $$,
    'hyperopt', 'num_configs=6, num_iterations=3, algorithm=tpe', 1, NULL, FALSE, 'iris_test_packed');
SELECT mst_key, compile_params, fit_params, validation_loss_final FROM opt_model_info ORDER BY validation_loss_final;

DO $$ BEGIN
    ASSERT (SELECT count(*) FROM opt_model_info) = 6 AND (SELECT count(*) FROM opt_best) = 1, 'one of six is left';
    ASSERT (SELECT automl_method FROM opt_model_summary) = 'hyperopt', 'the summary tells';
END $$;

-- 4. The best model predicts like any other; its mst_key is that of the only row of the model selection table.
SELECT mst_key AS best FROM band_best \gset
SELECT madlib.madlib_keras_predict('band_model', 'iris_test', 'id', 'attributes', 'iris_predicted', 'response', FALSE,
    :best);

DO $$ BEGIN
    ASSERT (SELECT count(*) FROM iris_predicted) = 30, 'one class for each row';
    ASSERT (SELECT abs(avg((class_value = species)::int) - (SELECT validation_metrics_final FROM band_model_info
                JOIN band_best USING (mst_key))) < 1e-5 FROM iris_predicted JOIN iris_test USING (id)),
        'as often right as the search found';
END $$;
