-- A MADlib user's classification workflow, with MADlib's own names and positional arguments.
\set ON_ERROR_STOP on
\set SHOW_CONTEXT never
\ir iris_data.sql
CREATE TABLE iris_train AS SELECT * FROM iris WHERE id % 5 <> 0;
CREATE TABLE iris_test AS SELECT * FROM iris WHERE id % 5 = 0;

SELECT madlib.training_preprocessor_dl('iris_train', 'iris_train_packed', 'species', 'attributes');
SELECT madlib.validation_preprocessor_dl('iris_test', 'iris_test_packed', 'species', 'attributes', 'iris_train_packed');

-- Two architectures: one as Keras 3 writes it, one as Keras 2 wrote it.
SELECT madlib.load_keras_model('iris_models', $${
  "module": "keras", "class_name": "Sequential", "registered_name": null, "config": {"name": "narrow", "layers": [
    {"module": "keras.layers", "class_name": "InputLayer", "config": {"batch_shape": [null, 4], "dtype": "float32"}, "registered_name": null},
    {"module": "keras.layers", "class_name": "Dense", "config": {"units": 10, "activation": "relu"}, "registered_name": null},
    {"module": "keras.layers", "class_name": "Dense", "config": {"units": 10, "activation": "relu"}, "registered_name": null},
    {"module": "keras.layers", "class_name": "Dense", "config": {"units": 3, "activation": "softmax"}, "registered_name": null}]}}$$::json,
  NULL, 'narrow', 'two hidden layers of 10');
SELECT madlib.load_keras_model('iris_models', $${
  "class_name": "Sequential", "keras_version": "2.1.6", "backend": "tensorflow", "config": [
    {"class_name": "Dense", "config": {"name": "dense_1", "trainable": true, "batch_input_shape": [null, 4], "dtype": "float32", "units": 32, "activation": "relu", "use_bias": true}},
    {"class_name": "Dense", "config": {"name": "dense_2", "trainable": true, "units": 3, "activation": "softmax", "use_bias": true}}]}$$::json,
  NULL, 'wide', 'one hidden layer of 32');

SELECT madlib.generate_model_configs('iris_models', 'iris_configs', ARRAY[1, 2],
  $$ {'loss': ['categorical_crossentropy'],
      'optimizer_params_list': [{'optimizer': ['Adam'], 'lr': [0.003, 0.01, 0.03]}],
      'metrics': [['accuracy']]} $$,
  $$ {'batch_size': [8, 16], 'epochs': [1]} $$);

SELECT madlib.madlib_keras_fit_multiple_model('iris_train_packed', 'iris_model', 'iris_configs', 10, FALSE, 'iris_test_packed', 5);

SELECT mst_key AS best FROM iris_model_info ORDER BY validation_loss_final, mst_key LIMIT 1 \gset
SELECT madlib.madlib_keras_evaluate('iris_model', 'iris_test_packed', 'iris_evaluation', FALSE, :best);
SELECT madlib.madlib_keras_predict('iris_model', 'iris_test', 'id', 'attributes', 'iris_prediction', 'response', FALSE, :best);
