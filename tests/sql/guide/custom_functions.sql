-- Custom metrics and losses, what any role does that may use the extension.
--
-- custom_functions_superuser.sql, which a superuser runs, has registered a metric, a loss and the accuracy of the first
-- two. Compile parameters name them like Keras' own; the model selection table names the table that they stand in.
-- Blocks that begin with DO check what the statements above them made.
DROP SCHEMA IF EXISTS guide_custom CASCADE;
CREATE SCHEMA guide_custom;
SET search_path = guide_custom;
\ir ../iris_data.sql
SELECT madlib.training_preprocessor_dl('iris', 'iris_packed', 'species', 'attributes', n_segments => 2, seed => 1);
SELECT madlib.load_keras_model('iris_models', $$
    {"class_name": "Sequential", "config": {"name": "iris", "layers": [
        {"class_name": "InputLayer", "config": {"batch_shape": [null, 4]}},
        {"class_name": "Dense", "config": {"units": 16, "activation": "relu"}},
        {"class_name": "Dense", "config": {"units": 3, "activation": "softmax"}}]}} $$::json);

-- 1. What there is, and the source of one of them.
SELECT name, description FROM madlib.guide_functions ORDER BY id;
SELECT convert_from(object, 'UTF8') FROM madlib.guide_functions WHERE name = 'trust';

-- 2. A grid with Keras' loss and the custom one, and with one metric and another.
SELECT madlib.generate_model_configs('iris_models', 'iris_configs', ARRAY[1],
    $$ {'loss': ['categorical_crossentropy', 'hard_examples'],
        'optimizer_params_list': [{'optimizer': ['Adam'], 'lr': [0.01]}],
        'metrics': [['trust'], ['top_2_accuracy']]} $$,
    $$ {'batch_size': [8], 'epochs': [1]} $$, 'grid', NULL, NULL, 'guide_functions');
DROP TABLE IF EXISTS iris_model, iris_model_info, iris_model_summary;
SELECT madlib.madlib_keras_fit_multiple_model('iris_packed', 'iris_model', 'iris_configs', 5,
    metrics_compute_frequency => 1, seed => 1);
SELECT mst_key, loss_type, metrics_type, training_loss, training_metrics FROM iris_model_info ORDER BY mst_key;

DO $$ BEGIN
    ASSERT (SELECT count(DISTINCT (loss_type, metrics_type)) FROM iris_model_info) = 4, 'two losses, two metrics';
    ASSERT (SELECT bool_and(training_loss_final < training_loss[1]) FROM iris_model_info), 'each loss falls';
    ASSERT (SELECT bool_and(training_metrics_final BETWEEN 0 AND 1) FROM iris_model_info), 'metrics are shares';
END $$;

-- 3. The metrics are what predictions say.
SELECT mst_key AS trusted FROM iris_model_info
WHERE loss_type = 'categorical_crossentropy' AND metrics_type = '{trust}' \gset
SELECT mst_key AS ranked FROM iris_model_info
WHERE loss_type = 'hard_examples' AND metrics_type = '{top_2_accuracy}' \gset
SELECT madlib.madlib_keras_predict('iris_model', 'iris', 'id', 'attributes', 'trusted', 'prob', FALSE, :trusted);
SELECT madlib.madlib_keras_predict('iris_model', 'iris', 'id', 'attributes', 'ranked', 2, FALSE, :ranked);

DO $$ BEGIN
    ASSERT (SELECT abs(avg(prob) - (SELECT training_metrics_final FROM iris_model_info
                WHERE loss_type = 'categorical_crossentropy' AND metrics_type = '{trust}')) < 1e-4
            FROM trusted JOIN iris USING (id) WHERE class_value = species), 'the mean probability of the right class';
    ASSERT (SELECT abs(count(*) / 150.0 - (SELECT training_metrics_final FROM iris_model_info
                WHERE loss_type = 'hard_examples' AND metrics_type = '{top_2_accuracy}')) < 1e-4
            FROM ranked JOIN iris USING (id) WHERE class_value = species), 'the right class among the first two';
END $$;

-- 4. One model; the object table is an argument there.
DROP TABLE IF EXISTS iris_single, iris_single_summary;
SELECT madlib.madlib_keras_fit('iris_packed', 'iris_single', 'iris_models', 1,
    $$ optimizer='Adam(lr=0.01)', loss='hard_examples', metrics=['trust'] $$, $$ batch_size=8, epochs=1 $$, 3,
    metrics_compute_frequency => 1, object_table => 'guide_functions', seed => 1);
SELECT object_table, loss_type, metrics_type, training_loss FROM iris_single_summary;

DO $$ BEGIN
    ASSERT (SELECT training_loss_final < training_loss[1] FROM iris_single_summary), 'its loss falls';
END $$;
