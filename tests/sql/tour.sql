-- The tour of README.md. A test compares what it prints with tour.out, and README.md with both.
\set QUIET on
\set ON_ERROR_STOP on
\set SHOW_CONTEXT never
\pset footer off
\pset null ''
\pset tuples_only on
\pset format unaligned
\ir iris_data.sql
\set ECHO queries
SELECT load_keras_model('iris_models', '{"class_name": "Sequential", "config": {"name": "iris", "layers": [
    {"class_name": "InputLayer", "config": {"batch_shape": [null, 4]}},
    {"class_name": "Dense", "config": {"units": 16, "activation": "relu"}},
    {"class_name": "Dense", "config": {"units": 3, "activation": "softmax"}}]}}');
SELECT training_preprocessor_dl('iris', 'iris_packed', 'species', 'attributes', n_segments => 2, seed => 1);
SELECT generate_model_configs('iris_models', 'iris_configs', ARRAY[1],
    $$ {'optimizer_params_list': [{'optimizer': ['Adam'], 'lr': [0.01, 0.001, 0.0001]}],
        'loss': ['categorical_crossentropy'], 'metrics': [['accuracy']]} $$,
    $$ {'batch_size': [16]} $$);
SELECT madlib_fit_multiple_model('iris_packed', 'iris_model', 'iris_configs', 10, seed => 1, schedule => 'rotation');
\pset tuples_only off
\pset format aligned
SELECT rank, mst_key, substring(params ->> 'compile_params', 'Adam[^'']*') AS optimizer, status, epochs,
       trunc(value::numeric, 1) AS "accuracy >="
FROM cerebro.leaderboard WHERE run_id = (SELECT max(run_id) FROM cerebro.run) ORDER BY rank;
