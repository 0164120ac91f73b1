-- Transfer learning: what a network has learned of many signals helps with a task that has few.
--
-- A signal is an array of 32 numbers, a wave with noise. Many signals of two shapes teach a network what waves are made of. Its first
-- layer is then frozen in another network, which tells two other shapes apart after a few epochs over 48 signals.
CREATE FUNCTION wave(shape text, n integer) RETURNS real[] LANGUAGE sql IMMUTABLE AS $$
    SELECT array_agg((CASE shape WHEN 'sine' THEN sin(phase * 2 * pi()) WHEN 'square' THEN sign(0.5 - phase)
                                 WHEN 'saw' THEN 2 * phase - 1 ELSE 4 * abs(phase - 0.5) - 1 END
                      + ((n * 31 + t * 17) % 13 - 6) / 40.0)::real ORDER BY t)
    FROM generate_series(0, 31) AS t, LATERAL (SELECT (t * (2 + n % 3) + n * 7 % 32) % 32 / 32.0 AS phase) AS p $$;
CREATE TABLE many AS
SELECT n AS id, shape, wave(shape, n) AS signal FROM generate_series(1, 300) AS n, unnest('{sine, square}'::text[]) AS shape;
CREATE TABLE few AS
SELECT n AS id, shape, wave(shape, n) AS signal FROM generate_series(1, 24) AS n, unnest('{saw, triangle}'::text[]) AS shape;
SELECT training_preprocessor_dl('many', 'many_packed', 'shape', 'signal', n_segments => 2, seed => 1),
       training_preprocessor_dl('few', 'few_packed', 'shape', 'signal', n_segments => 2, seed => 1);

-- 1. The first task. All layers learn.
SELECT load_keras_model('networks', '{"class_name": "Sequential", "config": {"name": "waves", "layers": [
    {"class_name": "InputLayer", "config": {"batch_shape": [null, 32]}},
    {"class_name": "Reshape", "config": {"target_shape": [32, 1]}},
    {"class_name": "Conv1D", "config": {"name": "features", "filters": 8, "kernel_size": 5, "activation": "relu"}},
    {"class_name": "GlobalAveragePooling1D", "config": {}},
    {"class_name": "Dense", "config": {"name": "answer", "units": 2, "activation": "softmax"}}]}}', name => 'all layers learn');
SELECT load_model_selection_table('networks', 'first_configs', ARRAY[1],
    ARRAY[$$optimizer='Adam(lr=0.02)',loss='categorical_crossentropy',metrics=['accuracy']$$], ARRAY['batch_size=16']);
SELECT madlib_fit_multiple_model('many_packed', 'first_model', 'first_configs', 8, seed => 1);
SELECT training_metrics_final > 0.9 AS "accuracy > 0.9" FROM first_model_info;

-- 2. The same network with its features frozen ("trainable": false), from the weights of the first model.
SELECT load_keras_model('networks', '{"class_name": "Sequential", "config": {"name": "waves", "layers": [
    {"class_name": "InputLayer", "config": {"batch_shape": [null, 32]}},
    {"class_name": "Reshape", "config": {"target_shape": [32, 1]}},
    {"class_name": "Conv1D", "config": {"name": "features", "filters": 8, "kernel_size": 5, "activation": "relu", "trainable": false}},
    {"class_name": "GlobalAveragePooling1D", "config": {}},
    {"class_name": "Dense", "config": {"name": "answer", "units": 2, "activation": "softmax"}}]}}',
    (SELECT model_weights FROM first_model), 'features of the first task');
SELECT load_model_selection_table('networks', 'second_configs', ARRAY[2],
    ARRAY[$$optimizer='Adam(lr=0.05)',loss='categorical_crossentropy',metrics=['accuracy']$$], ARRAY['batch_size=8']);
SELECT madlib_fit_multiple_model('few_packed', 'second_model', 'second_configs', 30, metrics_compute_frequency => 10, seed => 1);
SELECT training_loss_final < training_loss[1] AS "it learned", training_metrics_final > 0.8 AS "accuracy > 0.8" FROM second_model_info;

-- 3. Weights are all arrays in order, as float32. The frozen layer has 5 * 1 * 8 weights and 8 biases: its 192 bytes are the same.
SELECT substring(f.model_weights FROM 1 FOR 192) = substring(s.model_weights FROM 1 FOR 192) AS "features stayed",
       substring(f.model_weights FROM 193) <> substring(s.model_weights FROM 193) AS "the answer is new"
FROM first_model f, second_model s;
