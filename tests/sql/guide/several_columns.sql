-- Models with several inputs and several outputs.
--
-- A model may take several columns and tell several. Here it takes two measures of a flower's sepal and two of its
-- petal, and tells the species and whether the petal is long. Lists of columns, separated by commas, are in the order
-- of the model's inputs and outputs. An ordinary role that may use the extension can run this; blocks that begin with
-- DO check what the statements above them made.
DROP SCHEMA IF EXISTS guide_several CASCADE;
CREATE SCHEMA guide_several;
SET search_path = guide_several;
\ir ../iris_data.sql
CREATE TABLE flowers AS
SELECT id, attributes[1:2] AS sepal, attributes[3:4] AS petal, species,
       CASE WHEN attributes[3] > 4 THEN 'long' ELSE 'short' END AS size
FROM iris;
CREATE TABLE flowers_train AS SELECT * FROM flowers WHERE id % 5 <> 0;
CREATE TABLE flowers_test AS SELECT * FROM flowers WHERE id % 5 = 0;

-- 1. A functional model, as Keras 2 writes it: each layer names those whose outputs it takes.
SELECT madlib.load_keras_model('flower_models', $$
    {"class_name": "Functional", "keras_version": "2.10.0", "backend": "tensorflow", "config": {
        "name": "flowers",
        "layers": [
            {"class_name": "InputLayer", "name": "sepal", "inbound_nodes": [],
             "config": {"name": "sepal", "batch_input_shape": [null, 2], "dtype": "float32"}},
            {"class_name": "InputLayer", "name": "petal", "inbound_nodes": [],
             "config": {"name": "petal", "batch_input_shape": [null, 2], "dtype": "float32"}},
            {"class_name": "Concatenate", "name": "both", "config": {"name": "both", "axis": -1},
             "inbound_nodes": [[["sepal", 0, 0, {}], ["petal", 0, 0, {}]]]},
            {"class_name": "Dense", "name": "hidden", "config": {"name": "hidden", "units": 16, "activation": "relu"},
             "inbound_nodes": [[["both", 0, 0, {}]]]},
            {"class_name": "Dense", "name": "species",
             "config": {"name": "species", "units": 3, "activation": "softmax"},
             "inbound_nodes": [[["hidden", 0, 0, {}]]]},
            {"class_name": "Dense", "name": "size",
             "config": {"name": "size", "units": 2, "activation": "softmax"},
             "inbound_nodes": [[["hidden", 0, 0, {}]]]}],
        "input_layers": [["sepal", 0, 0], ["petal", 0, 0]],
        "output_layers": [["species", 0, 0], ["size", 0, 0]]}} $$::json);

-- 2. Packing: two dependent columns, two independent ones.
SELECT madlib.training_preprocessor_dl('flowers_train', 'flowers_packed', 'species, size', 'sepal, petal',
    n_segments => 2, seed => 1);
SELECT madlib.validation_preprocessor_dl('flowers_test', 'flowers_test_packed', 'species, size', 'sepal, petal',
    'flowers_packed');
SELECT dependent_varname, independent_varname, species_class_values, size_class_values FROM flowers_packed_summary;

DO $$ BEGIN
    ASSERT (SELECT num_classes FROM flowers_packed_summary) = '{3,2}', 'classes of both columns';
    ASSERT (SELECT sum(sepal_shape[1]) = 120 AND sum(size_shape[1]) = 120 FROM flowers_packed), 'all rows of both';
END $$;

-- 3. Several configurations by model hopping. One loss for both outputs, or one for each and how much it counts.
SELECT madlib.load_model_selection_table('flower_models', 'flower_configs', ARRAY[1],
    ARRAY[$$optimizer='Adam(lr=0.01)',loss='categorical_crossentropy',metrics=['accuracy']$$,
          $$optimizer='Adam(lr=0.01)',loss=['categorical_crossentropy', 'mse'],loss_weights=[1.0, 0.5],
            metrics=['accuracy']$$],
    ARRAY[$$batch_size=8,epochs=1$$]);
DROP TABLE IF EXISTS flower_model, flower_model_info, flower_model_summary;
SELECT madlib.madlib_keras_fit_multiple_model('flowers_packed', 'flower_model', 'flower_configs', 5, FALSE,
    'flowers_test_packed', 1, seed => 1);
SELECT mst_key, loss_type, training_loss, validation_loss_final, metrics_type, validation_metrics_final
FROM flower_model_info ORDER BY mst_key;

DO $$ BEGIN
    ASSERT (SELECT bool_and(training_loss_final < training_loss[1]) FROM flower_model_info), 'both learn';
    ASSERT (SELECT num_classes FROM flower_model_summary) = '{3,2}', 'the summary tells of both columns';
END $$;

-- 4. Evaluation and prediction. Each output has its own lines, told apart by class_name, and ranked among themselves.
SELECT madlib.madlib_keras_evaluate('flower_model', 'flowers_test_packed', 'flower_evaluation', FALSE, 1);
SELECT * FROM flower_evaluation;
SELECT madlib.madlib_keras_predict('flower_model', 'flowers_test', 'id', 'sepal, petal', 'flower_prob', 'prob', FALSE,
    1);
SELECT * FROM flower_prob WHERE id = 5 ORDER BY class_name, rank;
SELECT madlib.madlib_keras_predict('flower_model', 'flowers_test', 'id', 'sepal, petal', 'flower_response', 'response',
    FALSE, 1);

DO $$ BEGIN
    ASSERT (SELECT abs(loss - (SELECT validation_loss_final FROM flower_model_info WHERE mst_key = 1)) < 1e-5
            FROM flower_evaluation), 'the loss of the info table';
    ASSERT (SELECT count(*) FROM flower_prob) = 30 * (3 + 2), 'classes of both outputs';
    ASSERT (SELECT bool_and(total BETWEEN 0.9999 AND 1.0001)
            FROM (SELECT sum(prob) AS total FROM flower_prob GROUP BY id, class_name) t),
        'probabilities of each output sum to one';
    ASSERT (SELECT array_agg(DISTINCT class_name ORDER BY class_name) FROM flower_response) = '{size,species}'
        AND (SELECT count(*) FROM flower_response) = 30 * 2, 'one response for each output';
END $$;

-- 5. One model, averaged.
DROP TABLE IF EXISTS flower_single, flower_single_summary;
SELECT madlib.madlib_keras_fit('flowers_packed', 'flower_single', 'flower_models', 1,
    $$ optimizer='Adam(lr=0.02)', loss={'species': 'categorical_crossentropy', 'size': 'categorical_crossentropy'},
       metrics={'species': ['accuracy']} $$,
    $$ batch_size=8, epochs=1 $$, 5, FALSE, 'flowers_test_packed', 1, seed => 1);
SELECT training_loss, metrics_type, validation_metrics FROM flower_single_summary;

DO $$ BEGIN
    ASSERT (SELECT training_loss_final < training_loss[1] FROM flower_single_summary), 'it learns';
END $$;
