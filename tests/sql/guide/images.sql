-- Classification of images, from PNG files and from arrays.
--
-- The task: tell which of four shapes a drawing of 8 by 8 grey points shows. A column of PNG or JPEG files (bytea) is
-- packed and predicted as it is; so are arrays of numbers, which is how images stand in tables made for MADlib. Small
-- convolutional networks train on either. An ordinary role that may use the extension can run this; blocks that begin
-- with DO check what the statements above them made.
DROP SCHEMA IF EXISTS guide_images CASCADE;
CREATE SCHEMA guide_images;
SET search_path = guide_images;
\ir shapes_data.sql
CREATE TABLE shapes_train AS SELECT * FROM shapes WHERE id <= 64;
CREATE TABLE shapes_test AS SELECT * FROM shapes WHERE id > 64;

-- 1. Two convolutional networks. Their input is (height, width, channels); grey files have one channel.
SELECT madlib.load_keras_model('shape_models', $$
    {"class_name": "Sequential", "config": {"name": "convolution", "layers": [
        {"class_name": "InputLayer", "config": {"batch_shape": [null, 8, 8, 1]}},
        {"class_name": "Conv2D", "config": {"filters": 8, "kernel_size": [3, 3], "activation": "relu"}},
        {"class_name": "MaxPooling2D", "config": {"pool_size": [2, 2]}},
        {"class_name": "Flatten", "config": {}},
        {"class_name": "Dense", "config": {"units": 4, "activation": "softmax"}}]}} $$::json, NULL, 'pooled');
SELECT madlib.load_keras_model('shape_models', $$
    {"class_name": "Sequential", "config": {"name": "convolution", "layers": [
        {"class_name": "InputLayer", "config": {"batch_shape": [null, 8, 8, 1]}},
        {"class_name": "Conv2D", "config": {"filters": 8, "kernel_size": [5, 5], "activation": "relu"}},
        {"class_name": "GlobalMaxPooling2D", "config": {}},
        {"class_name": "Dense", "config": {"units": 4, "activation": "softmax"}}]}} $$::json, NULL, 'anywhere');

-- 2. Packing decodes the files. A point is 0 to 255: dividing by 255 makes it 0 to 1, in training and in prediction.
SELECT madlib.training_preprocessor_dl('shapes_train', 'shapes_train_packed', 'shape', 'picture', 16, 255,
    n_segments => 2, seed => 1);
SELECT madlib.validation_preprocessor_dl('shapes_test', 'shapes_test_packed', 'shape', 'picture',
    'shapes_train_packed');
SELECT buffer_id, picture_shape, shape_shape FROM shapes_train_packed ORDER BY buffer_id;

DO $$ BEGIN
    ASSERT (SELECT bool_and(picture_shape[2:4] = '{8,8,1}') FROM shapes_train_packed), 'height, width, channels';
    ASSERT (SELECT normalizing_const FROM shapes_test_packed_summary) = 255, 'validated as trained';
END $$;

-- 3. Training.
SELECT madlib.load_model_selection_table('shape_models', 'shape_configs', ARRAY[1, 2],
    ARRAY[$$optimizer='Adam(lr=0.02)',loss='categorical_crossentropy',metrics=['accuracy']$$],
    ARRAY[$$batch_size=8,epochs=1$$]);
DROP TABLE IF EXISTS shape_model, shape_model_info, shape_model_summary;
SELECT madlib.madlib_keras_fit_multiple_model('shapes_train_packed', 'shape_model', 'shape_configs', 8, FALSE,
    'shapes_test_packed', 1, seed => 1);
SELECT i.mst_key, m.name, i.training_loss, i.validation_metrics_final
FROM shape_model_info i JOIN shape_models m USING (model_id) ORDER BY i.validation_loss_final;

DO $$ BEGIN
    ASSERT (SELECT bool_and(training_loss_final < training_loss[1]) FROM shape_model_info), 'both learn';
    ASSERT (SELECT min(training_loss_final) FROM shape_model_info) < ln(4), 'the better one does not guess';
END $$;

-- 4. Prediction, straight from the files.
SELECT mst_key AS best FROM shape_model_info ORDER BY validation_loss_final, mst_key LIMIT 1 \gset
SELECT madlib.madlib_keras_predict('shape_model', 'shapes_test', 'id', 'picture', 'shapes_predicted', 'prob', FALSE,
    :best);
SELECT id, shape, class_value, prob FROM shapes_predicted JOIN shapes_test USING (id) WHERE rank = 1 ORDER BY id;

DO $$ BEGIN
    ASSERT (SELECT count(*) FROM shapes_predicted) = 16 * 4, 'four classes for each picture';
    ASSERT (SELECT bool_and(total BETWEEN 0.9999 AND 1.0001)
            FROM (SELECT sum(prob) AS total FROM shapes_predicted GROUP BY id) t), 'probabilities sum to one';
END $$;

-- 5. The same with arrays: three-dimensional ones of integers, here drawn by SQL. A line of ten points is upright
-- where the id is even, and lies flat where it is odd.
CREATE TABLE lines AS
SELECT id, CASE id % 2 WHEN 0 THEN 'upright' ELSE 'flat' END AS direction,
       (SELECT array_agg(line ORDER BY y)
        FROM (SELECT y, array_agg(ARRAY[CASE WHEN CASE id % 2 WHEN 0 THEN x ELSE y END = id % 10 THEN 255
                                             ELSE (id * 7 + x * 13 + y * 5) % 30 END] ORDER BY x) AS line
              FROM generate_series(0, 9) x, generate_series(0, 9) y GROUP BY y) drawn) AS points
FROM generate_series(1, 60) id;
SELECT madlib.training_preprocessor_dl('lines', 'lines_packed', 'direction', 'points', NULL, 255,
    n_segments => 2, seed => 1);
SELECT madlib.load_keras_model('line_models', $$
    {"class_name": "Sequential", "config": {"name": "lines", "layers": [
        {"class_name": "InputLayer", "config": {"batch_shape": [null, 10, 10, 1]}},
        {"class_name": "Conv2D", "config": {"filters": 4, "kernel_size": [3, 3], "activation": "relu"}},
        {"class_name": "GlobalMaxPooling2D", "config": {}},
        {"class_name": "Dense", "config": {"units": 2, "activation": "softmax"}}]}} $$::json);
DROP TABLE IF EXISTS line_model, line_model_summary;
SELECT madlib.madlib_keras_fit('lines_packed', 'line_model', 'line_models', 1,
    $$ optimizer='Adam(lr=0.03)', loss='categorical_crossentropy', metrics=['accuracy'] $$,
    $$ batch_size=8, epochs=1 $$, 6, metrics_compute_frequency => 1, seed => 1);
SELECT training_loss, training_metrics_final FROM line_model_summary;

DO $$ BEGIN
    ASSERT (SELECT bool_and(points_shape[2:4] = '{10,10,1}') FROM lines_packed), 'the shape of the arrays';
    ASSERT (SELECT training_loss_final < training_loss[1] FROM line_model_summary), 'it learns';
END $$;
