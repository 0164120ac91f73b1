-- Warm start: training goes on where an earlier call ended.
--
-- Configurations are known again by their mst_key: those that were trained before go on, with the state of their
-- optimizers; new ones begin afresh; those that are taken out of the model selection table are in the output no more.
-- The output tables must exist, and are made anew. An ordinary role that may use the extension can run this; blocks
-- that begin with DO check what the statements above them made.
DROP SCHEMA IF EXISTS guide_warm_start CASCADE;
CREATE SCHEMA guide_warm_start;
SET search_path = guide_warm_start;
\ir ../iris_data.sql
SELECT madlib.training_preprocessor_dl('iris', 'iris_packed', 'species', 'attributes', n_segments => 2, seed => 1);
SELECT madlib.load_keras_model('iris_models', $$
    {"class_name": "Sequential", "config": {"name": "iris", "layers": [
        {"class_name": "InputLayer", "config": {"batch_shape": [null, 4]}},
        {"class_name": "Dense", "config": {"units": 16, "activation": "relu"}},
        {"class_name": "Dense", "config": {"units": 3, "activation": "softmax"}}]}} $$::json);
SELECT madlib.load_model_selection_table('iris_models', 'iris_configs', ARRAY[1],
    ARRAY[$$optimizer='Adam(lr=0.003)',loss='categorical_crossentropy',metrics=['accuracy']$$,
          $$optimizer='Adam(lr=0.001)',loss='categorical_crossentropy',metrics=['accuracy']$$],
    ARRAY[$$batch_size=8,epochs=1$$]);

-- 1. Three iterations.
DROP TABLE IF EXISTS iris_model, iris_model_info, iris_model_summary;
SELECT madlib.madlib_keras_fit_multiple_model('iris_packed', 'iris_model', 'iris_configs', 3, FALSE, NULL, 1,
    seed => 1);
CREATE TABLE before AS SELECT mst_key, compile_params, training_loss FROM iris_model_info;
SELECT * FROM before ORDER BY mst_key;

-- 2. One configuration goes, another comes; three more iterations, of which the first goes on from the last one.
DELETE FROM iris_configs WHERE compile_params LIKE '%0.001%';
SELECT madlib.generate_model_configs('iris_models', 'iris_configs', ARRAY[1],
    $$ {'loss': ['categorical_crossentropy'], 'optimizer_params_list': [{'optimizer': ['SGD'], 'lr': [0.01]}],
        'metrics': [['accuracy']]} $$,
    $$ {'batch_size': [8], 'epochs': [1]} $$);
SELECT madlib.madlib_keras_fit_multiple_model('iris_packed', 'iris_model', 'iris_configs', 3, FALSE, NULL, 1,
    TRUE, 'more of the same', seed => 1);
SELECT mst_key, compile_params, training_loss FROM iris_model_info ORDER BY mst_key;

DO $$ BEGIN
    ASSERT (SELECT array_agg(mst_key ORDER BY mst_key) FROM iris_model_info)
        = (SELECT array_agg(mst_key ORDER BY mst_key) FROM iris_configs), 'one went, one came';
    ASSERT (SELECT array_agg(mst_key ORDER BY mst_key) FROM iris_model) = '{1,3}', 'keys are kept, and not used again';
    ASSERT (SELECT i.training_loss[1] < b.training_loss[3] FROM iris_model_info i JOIN before b USING (mst_key)),
        'the one that stayed went on from where it was';
    ASSERT (SELECT warm_start FROM iris_model_summary), 'the summary tells';
END $$;

-- 3. One model, in the same way.
DROP TABLE IF EXISTS iris_single, iris_single_summary;
SELECT madlib.madlib_keras_fit('iris_packed', 'iris_single', 'iris_models', 1,
    $$ optimizer='Adam(lr=0.003)', loss='categorical_crossentropy', metrics=['accuracy'] $$,
    $$ batch_size=8, epochs=1 $$, 3, metrics_compute_frequency => 1, seed => 1);
CREATE TABLE single_before AS SELECT training_loss_final FROM iris_single_summary;
SELECT madlib.madlib_keras_fit('iris_packed', 'iris_single', 'iris_models', 1,
    $$ optimizer='Adam(lr=0.003)', loss='categorical_crossentropy', metrics=['accuracy'] $$,
    $$ batch_size=8, epochs=1 $$, 3, metrics_compute_frequency => 1, warm_start => TRUE, seed => 1);
SELECT training_loss FROM iris_single_summary;

DO $$ BEGIN
    ASSERT (SELECT s.training_loss[1] < b.training_loss_final FROM iris_single_summary s, single_before b),
        'it goes on';
END $$;
