-- Transfer learning: a network learns a second task with what it has learned in the first one.
--
-- Here the first task is to tell bars from boxes, in small drawings; the second to tell posts from slopes, of which
-- there are few examples. The weights that the first task left go into the architecture table, beside an architecture
-- whose first layers are frozen ("trainable": false), and only its last layer is trained. An ordinary role that may use
-- the extension can run this; blocks that begin with DO check what the statements above them made.
DROP SCHEMA IF EXISTS guide_transfer CASCADE;
CREATE SCHEMA guide_transfer;
SET search_path = guide_transfer;
\ir shapes_data.sql
CREATE TABLE first_task AS SELECT * FROM shapes WHERE shape IN ('bar', 'box');
CREATE TABLE second_task AS SELECT * FROM shapes WHERE shape IN ('post', 'slope') AND id <= 40;
SELECT madlib.training_preprocessor_dl('first_task', 'first_packed', 'shape', 'picture', NULL, 255,
    n_segments => 2, seed => 1);
SELECT madlib.training_preprocessor_dl('second_task', 'second_packed', 'shape', 'picture', NULL, 255,
    n_segments => 2, seed => 1);

-- 1. The first task: all layers are trained, from weights that Keras draws.
SELECT madlib.load_keras_model('shape_models', $$
    {"class_name": "Sequential", "config": {"name": "shapes", "layers": [
        {"class_name": "InputLayer", "config": {"batch_shape": [null, 8, 8, 1]}},
        {"class_name": "Conv2D", "config": {"name": "features", "filters": 8, "kernel_size": [3, 3],
                                            "activation": "relu"}},
        {"class_name": "Flatten", "config": {"name": "flat"}},
        {"class_name": "Dense", "config": {"name": "answer", "units": 2, "activation": "softmax"}}]}} $$::json,
    NULL, 'all layers learn');
SELECT madlib.load_model_selection_table('shape_models', 'first_configs', ARRAY[1],
    ARRAY[$$optimizer='Adam(lr=0.01)',loss='categorical_crossentropy',metrics=['accuracy']$$,
          $$optimizer='Adam(lr=0.002)',loss='categorical_crossentropy',metrics=['accuracy']$$],
    ARRAY[$$batch_size=8,epochs=1$$]);
DROP TABLE IF EXISTS first_model, first_model_info, first_model_summary;
SELECT madlib.madlib_keras_fit_multiple_model('first_packed', 'first_model', 'first_configs', 5, seed => 1);
SELECT mst_key AS best FROM first_model_info ORDER BY training_loss_final, mst_key LIMIT 1 \gset

-- 2. The same architecture with its features frozen, and the weights of the best model of the first task. Weights are
-- all arrays of model.get_weights() in order, as float32: they fit any architecture with the same layers.
SELECT madlib.load_keras_model('shape_models', $$
    {"class_name": "Sequential", "config": {"name": "shapes", "layers": [
        {"class_name": "InputLayer", "config": {"batch_shape": [null, 8, 8, 1]}},
        {"class_name": "Conv2D", "config": {"name": "features", "filters": 8, "kernel_size": [3, 3],
                                            "activation": "relu", "trainable": false}},
        {"class_name": "Flatten", "config": {"name": "flat"}},
        {"class_name": "Dense", "config": {"name": "answer", "units": 2, "activation": "softmax"}}]}} $$::json,
    (SELECT model_weights FROM first_model WHERE mst_key = :best), 'features of the first task');
SELECT model_id, name, length(model_weights) AS bytes FROM shape_models ORDER BY model_id;

-- 3. The second task, from those weights. There is no warm_start here: that is for more of the same task.
SELECT madlib.load_model_selection_table('shape_models', 'second_configs', ARRAY[2],
    ARRAY[$$optimizer='Adam(lr=0.01)',loss='categorical_crossentropy',metrics=['accuracy']$$,
          $$optimizer='Adam(lr=0.003)',loss='categorical_crossentropy',metrics=['accuracy']$$],
    ARRAY[$$batch_size=4,epochs=1$$]);
DROP TABLE IF EXISTS second_model, second_model_info, second_model_summary;
SELECT madlib.madlib_keras_fit_multiple_model('second_packed', 'second_model', 'second_configs', 5,
    metrics_compute_frequency => 1, seed => 1);
SELECT mst_key, compile_params, training_loss, training_metrics_final FROM second_model_info ORDER BY mst_key;

-- The frozen layer has 3 * 3 * 1 * 8 weights and 8 biases, of 4 bytes each; they come first.
DO $$ BEGIN
    ASSERT (SELECT count(*) FROM second_model s, shape_models m WHERE m.model_id = 2
            AND substring(s.model_weights FROM 1 FOR 4 * 80) = substring(m.model_weights FROM 1 FOR 4 * 80)) = 2,
        'frozen weights are those of the first task';
    ASSERT (SELECT count(*) FROM second_model s, shape_models m WHERE m.model_id = 2
            AND substring(s.model_weights FROM 4 * 80 + 1) <> substring(m.model_weights FROM 4 * 80 + 1)) = 2,
        'the last layer has learned';
    ASSERT (SELECT bool_and(training_loss_final < training_loss[1]) FROM second_model_info), 'and its loss fell';
END $$;

-- 4. madlib_keras_fit begins with the weights of the architecture table, too.
DROP TABLE IF EXISTS second_single, second_single_summary;
SELECT madlib.madlib_keras_fit('second_packed', 'second_single', 'shape_models', 2,
    $$ optimizer='Adam(lr=0.01)', loss='categorical_crossentropy', metrics=['accuracy'] $$,
    $$ batch_size=4, epochs=1 $$, 2, seed => 1);

DO $$ BEGIN
    ASSERT (SELECT substring(s.model_weights FROM 1 FOR 4 * 80) = substring(m.model_weights FROM 1 FOR 4 * 80)
            FROM second_single s, shape_models m WHERE m.model_id = 2), 'here, too, they stay';
END $$;
