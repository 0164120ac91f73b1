-- The series of an accelerometer worn at the hip: who sits when, and how long without a break?
--
-- From 30 samples a second on three axes to bouts of sitting: 10 samples a second, windows of 50 seconds, networks of a convolution and a
-- bidirectional LSTM, subjects that no network was trained on. The signals are made up here. While somebody sits the device is tilted and
-- hardly moves; else it is upright, and moves with each step. Now and then it lies on a table, which is neither.
CREATE TABLE raw_samples AS
SELECT subject, tick / 30.0 AS second, posture,
       CASE posture WHEN 'sitting' THEN 0.4 ELSE 0.1 END + size * (tick * 31 % 17 - 8) + swing AS x,
       CASE posture WHEN 'sitting' THEN -0.5 - 0.04 * subject ELSE -0.95 END + size * (tick * 53 % 19 - 9) + 2 * swing AS y,
       CASE posture WHEN 'sitting' THEN 0.8 WHEN 'not sitting' THEN 0.1 ELSE 1 END + size * (tick * 71 % 23 - 11) AS z
FROM generate_series(1, 6) AS subject, generate_series(0, 30 * 900 - 1) AS tick,
     LATERAL (SELECT CASE WHEN (tick / 30 + 70 * subject) % 420 < 60 THEN 'not worn'
                          WHEN (tick / 30 + 40 * subject) % (200 + 20 * subject) < 100 THEN 'sitting' ELSE 'not sitting' END AS posture) AS p,
     LATERAL (SELECT CASE posture WHEN 'sitting' THEN 0.002 WHEN 'not sitting' THEN 0.02 ELSE 0 END AS size,
                     CASE posture WHEN 'not sitting' THEN 0.3 * sin(tick * (0.35 + 0.02 * subject)) ELSE 0 END AS swing) AS s;

-- 1. Ten samples a second, each the mean of three.
CREATE TABLE samples AS
SELECT subject, (floor(second * 10) / 10)::numeric(8, 1) AS second, avg(x) AS x, avg(y) AS y, avg(z) AS z, min(posture) AS posture
FROM raw_samples GROUP BY 1, 2;

-- 2. Where the device does not move at all for ten seconds (of real days: for an hour) nobody wears it. There is no label then, and so no window.
CREATE VIEW worn AS
SELECT subject, second, x, y, z,
       CASE WHEN stddev(z) OVER (PARTITION BY subject, floor(second / 10)) > 1e-6 THEN posture END AS posture
FROM samples;

-- 3. Windows of 500 samples by 3 axes, one each 10 seconds; the label is that of the last sample. None of them crosses what was not worn.
SELECT cerebro.window_series('worn', 'windows', 'subject', 'second', 'x, y, z', 500, 100, 'posture', 'last');
SELECT subject, count(*) AS windows, array_dims(min(x)) AS shape FROM windows GROUP BY subject ORDER BY subject;

-- 4. Subjects 1 to 4 are trained on, 5 and 6 validate: windows overlap, and people differ, so a random share would tell nothing.
CREATE VIEW windows_of_training AS SELECT * FROM windows WHERE subject <= 4;
CREATE VIEW windows_of_validation AS SELECT * FROM windows WHERE subject > 4;
SELECT training_preprocessor_dl('windows_of_training', 'training', 'posture', 'x', n_segments => 2, seed => 1);
SELECT validation_preprocessor_dl('windows_of_validation', 'validation', 'posture', 'x', 'training');

-- 5. A convolution over each second, the most of each ten seconds, and an LSTM over these in both directions. Two of them, and a grid.
SELECT load_keras_model('networks', format('{"class_name": "Sequential", "config": {"name": "cnn_bilstm", "layers": [
    {"class_name": "InputLayer", "config": {"batch_shape": [null, 500, 3]}},
    {"class_name": "Conv1D", "config": {"filters": %1$s, "kernel_size": 10, "strides": 10, "activation": "relu"}},
    {"class_name": "MaxPooling1D", "config": {"pool_size": 10}},
    {"class_name": "Bidirectional", "config": {"layer": {"class_name": "LSTM", "config": {"units": %1$s}}}},
    {"class_name": "Dense", "config": {"units": 2, "activation": "softmax"}}]}}', width), name => format('width %s', width))
FROM unnest('{4, 8}'::integer[]) AS width;
SELECT generate_model_configs('networks', 'grid', ARRAY[1, 2],
    $$ {'optimizer_params_list': [{'optimizer': ['Adam'], 'lr': [0.03, 0.003]}],
        'loss': ['categorical_crossentropy'], 'metrics': [['accuracy']]} $$, $$ {'batch_size': [16]} $$);
SELECT madlib_fit_multiple_model('training', 'model', 'grid', 6, validation_table => 'validation', seed => 1, schedule => 'rotation');
SELECT count(*) AS configurations, max(validation_metrics_final) > 0.9 AS "best accuracy > 0.9" FROM model_info;
SELECT mst_key AS best FROM model_info ORDER BY validation_loss_final LIMIT 1 \gset

-- 6. What the best one says of the subjects that it has not seen.
SELECT madlib_predict('model', 'windows_of_validation', 'window_id', 'x', 'said', 'response', mst_key => :best);

-- 7. Into bouts, by gaps and islands: as long as windows of one posture follow each other, their time in tens of seconds and their number
-- among those of the posture both go on by one. So a bout is all that have the same difference. A pause in wearing ends one, too.
CREATE VIEW bouts AS
SELECT subject, posture, min(last) - 9.9 AS begins, max(last) + 0.1 AS ends
FROM (SELECT w.subject, s.posture, w.last,
             w.last / 10 - row_number() OVER (PARTITION BY w.subject, s.posture ORDER BY w.last) AS island
      FROM windows w JOIN (SELECT window_id, class_value AS posture FROM said) AS s USING (window_id)) AS numbered
GROUP BY subject, posture, island;
SELECT subject, count(*) AS bouts, max(ends - begins) > 60 AS "one is longer than a minute",
       abs(sum(ends - begins) - (SELECT 10 * count(*) FROM windows w WHERE w.subject = b.subject AND w.posture = 'sitting')) < 60
           AS "the sum is right within a minute"
FROM bouts b WHERE posture = 'sitting' GROUP BY subject ORDER BY subject;

-- 8. The quick way: networks for series are chosen, and subjects held back, by one statement.
SELECT rank, template, validation > 0.9 AS "accuracy > 0.9"
FROM cerebro.train('windows', 'posture', 'posture', columns => 'x', split => 'group subject', configs => 1, epochs => 3, seed => 1);
