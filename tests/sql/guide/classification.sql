-- Classification of rows of a table, from architectures to predictions.
--
-- The task: tell the species of an iris from four measures of its flower. Two architectures, each with several
-- optimizers and batch sizes, train side by side by model hopping; the best of them predicts flowers that were held
-- back. Beside it one model is trained by averaging, with madlib_keras_fit. An ordinary role that may use the
-- extension (cerebro.grant_usage) can run this; blocks that begin with DO check what the statements above them made.
DROP SCHEMA IF EXISTS guide_classification CASCADE;
CREATE SCHEMA guide_classification;
SET search_path = guide_classification;
\ir ../iris_data.sql

-- Every fifth flower is held back.
CREATE TABLE iris_train AS SELECT * FROM iris WHERE id % 5 <> 0;
CREATE TABLE iris_test AS SELECT * FROM iris WHERE id % 5 = 0;

-- 1. Architectures. Each is the text that model.to_json() gives in Keras, here without what has its default value.
SELECT madlib.load_keras_model('iris_models', $$
    {"class_name": "Sequential", "config": {"name": "one_layer", "layers": [
        {"class_name": "InputLayer", "config": {"batch_shape": [null, 4]}},
        {"class_name": "Dense", "config": {"units": 16, "activation": "relu"}},
        {"class_name": "Dense", "config": {"units": 3, "activation": "softmax"}}]}} $$::json,
    NULL, 'one layer', 'one hidden layer of 16 units');
SELECT madlib.load_keras_model('iris_models', $$
    {"class_name": "Sequential", "config": {"name": "two_layers", "layers": [
        {"class_name": "InputLayer", "config": {"batch_shape": [null, 4]}},
        {"class_name": "Dense", "config": {"units": 8, "activation": "relu"}},
        {"class_name": "Dense", "config": {"units": 8, "activation": "relu"}},
        {"class_name": "Dense", "config": {"units": 3, "activation": "softmax"}}]}} $$::json,
    NULL, 'two layers', 'two hidden layers of 8 units');
SELECT model_id, name, description FROM iris_models ORDER BY model_id;

-- 2. Packing. The rows to test on are packed as those to train on were: the same classes, the same segments.
SELECT madlib.training_preprocessor_dl('iris_train', 'iris_train_packed', 'species', 'attributes',
    n_segments => 2, seed => 1);
SELECT madlib.validation_preprocessor_dl('iris_test', 'iris_test_packed', 'species', 'attributes', 'iris_train_packed');
SELECT dependent_varname, independent_varname, species_class_values, num_classes FROM iris_train_packed_summary;

DO $$ BEGIN
    ASSERT (SELECT sum(attributes_shape[1]) FROM iris_train_packed) = 120, 'all rows are packed';
    ASSERT (SELECT species_class_values FROM iris_test_packed_summary) = '{setosa,versicolor,virginica}', 'classes';
END $$;

-- 3. Configurations: every combination of what is listed, of both architectures.
SELECT madlib.generate_model_configs('iris_models', 'iris_configs', ARRAY[1, 2],
    $$ {'loss': ['categorical_crossentropy'],
        'optimizer_params_list': [{'optimizer': ['Adam'], 'lr': [0.01, 0.001]}, {'optimizer': ['SGD'], 'lr': [0.05]}],
        'metrics': [['accuracy']]} $$,
    $$ {'batch_size': [8, 16], 'epochs': [1]} $$);
SELECT * FROM iris_configs ORDER BY mst_key;

DO $$ BEGIN
    ASSERT (SELECT count(*) FROM iris_configs) = 2 * 3 * 2, 'one row for each combination';
END $$;

-- 4. Training: 10 iterations over all segments, metrics after every fifth.
DROP TABLE IF EXISTS iris_model, iris_model_info, iris_model_summary;
SELECT madlib.madlib_keras_fit_multiple_model('iris_train_packed', 'iris_model', 'iris_configs', 10, FALSE,
    'iris_test_packed', 5, FALSE, 'irises', 'a grid of twelve', seed => 1);

-- 5. What came of it: one row of the info table for each configuration.
SELECT mst_key, model_id, compile_params, fit_params, training_loss_final, validation_loss_final,
       validation_metrics_final
FROM iris_model_info ORDER BY validation_loss_final, mst_key;
SELECT name, num_iterations, metrics_iters, num_classes, start_training_time FROM iris_model_summary;

DO $$ BEGIN
    ASSERT (SELECT count(*) FROM iris_model_info) = 12 AND (SELECT count(model_weights) FROM iris_model) = 12,
        'every configuration is trained';
    ASSERT (SELECT metrics_iters FROM iris_model_summary) = '{5,10}', 'metrics after iterations 5 and 10';
    ASSERT (SELECT bool_and(array_length(validation_loss, 1) = 2) FROM iris_model_info), 'two values for each';
    ASSERT (SELECT min(training_loss_final) FROM iris_model_info) < ln(3), 'the best is better than guessing';
    ASSERT (SELECT max(validation_metrics_final) FROM iris_model_info) > 0.8, 'and tells most flowers';
END $$;

-- 6. Evaluation of the best, on a packed table.
SELECT mst_key AS best FROM iris_model_info ORDER BY validation_loss_final, mst_key LIMIT 1 \gset
SELECT madlib.madlib_keras_evaluate('iris_model', 'iris_test_packed', 'iris_evaluation', FALSE, :best);
SELECT * FROM iris_evaluation;

DO $$ BEGIN
    ASSERT (SELECT abs(loss - (SELECT min(validation_loss_final) FROM iris_model_info)) < 1e-5 FROM iris_evaluation),
        'it is the loss of the info table';
END $$;

-- 7. Prediction, of the rows as they are. All classes with their probabilities:
SELECT madlib.madlib_keras_predict('iris_model', 'iris_test', 'id', 'attributes', 'iris_prob', 'prob', FALSE, :best);
SELECT * FROM iris_prob WHERE id <= 10 ORDER BY id, rank;

-- the most probable class:
SELECT madlib.madlib_keras_predict('iris_model', 'iris_test', 'id', 'attributes', 'iris_response', 'response', FALSE,
    :best);
SELECT id, class_value, prob, species FROM iris_response JOIN iris_test USING (id) ORDER BY id LIMIT 5;

-- the two most probable:
SELECT madlib.madlib_keras_predict('iris_model', 'iris_test', 'id', 'attributes', 'iris_first_two', 2, FALSE, :best);

-- and those more probable than 0.3:
SELECT madlib.madlib_keras_predict('iris_model', 'iris_test', 'id', 'attributes', 'iris_likely', 0.3::double precision,
    FALSE, :best);

DO $$ BEGIN
    ASSERT (SELECT count(*) FROM iris_prob) = 30 * 3, 'three classes for each row';
    ASSERT (SELECT bool_and(total BETWEEN 0.9999 AND 1.0001)
            FROM (SELECT sum(prob) AS total FROM iris_prob GROUP BY id) t), 'probabilities sum to one';
    ASSERT (SELECT bool_and(class_name = 'species') FROM iris_prob), 'classes of the dependent column';
    ASSERT (SELECT count(*) FROM iris_response JOIN iris_prob USING (id, class_value) WHERE rank = 1) = 30,
        'the response is the class of the first rank';
    ASSERT (SELECT count(*) FROM iris_first_two) = 30 * 2 AND (SELECT max(rank) FROM iris_first_two) = 2, 'two ranks';
    ASSERT (SELECT count(*) FROM iris_likely) = (SELECT count(*) FROM iris_prob WHERE prob > 0.3), 'a threshold';
    ASSERT (SELECT avg((class_value = species)::int)::numeric(6, 5) FROM iris_response JOIN iris_test USING (id))
        = (SELECT metric::numeric(6, 5) FROM iris_evaluation), 'predictions and evaluation agree';
END $$;

-- 8. One model, trained on all segments at once and averaged after each iteration.
DROP TABLE IF EXISTS iris_single, iris_single_summary;
SELECT madlib.madlib_keras_fit('iris_train_packed', 'iris_single', 'iris_models', 1,
    $$ optimizer='Adam(lr=0.02)', loss='categorical_crossentropy', metrics=['accuracy'] $$,
    $$ batch_size=8, epochs=1 $$, 10, FALSE, 'iris_test_packed', 1, seed => 1);
SELECT training_loss, validation_metrics_final FROM iris_single_summary;

DO $$ BEGIN
    ASSERT (SELECT count(model_weights) FROM iris_single) = 1, 'one row with the model';
    ASSERT (SELECT array_length(training_loss, 1) FROM iris_single_summary) = 10, 'metrics after each iteration';
    ASSERT (SELECT training_loss_final < training_loss[1] FROM iris_single_summary), 'it learns';
END $$;

SELECT madlib.madlib_keras_evaluate('iris_single', 'iris_test_packed', 'iris_single_evaluation');
SELECT * FROM iris_single_evaluation;
SELECT madlib.madlib_keras_predict('iris_single', 'iris_test', 'id', 'attributes', 'iris_single_response', 'response');

DO $$ BEGIN
    ASSERT (SELECT abs(e.loss - s.validation_loss_final) < 1e-5 FROM iris_single_evaluation e, iris_single_summary s),
        'it is the loss of the summary';
    ASSERT (SELECT avg((class_value = species)::int)::numeric(6, 5) FROM iris_single_response JOIN iris_test USING (id))
        = (SELECT metric::numeric(6, 5) FROM iris_single_evaluation), 'predictions and evaluation agree';
END $$;
