-- A model that is kept fresh: new rows come, it learns of them, and each version can be proved.
CREATE TABLE readings (id serial PRIMARY KEY, temperature real, load real, alarm boolean);
INSERT INTO readings (temperature, load, alarm)
SELECT v.t, v.l, v.t + 0.3 * v.l > 75
FROM generate_series(1, 2000) AS n, LATERAL (SELECT 40 + n * 7919 % 401 / 10.0 AS t, n * 613 % 101 AS l) AS v;

SELECT rank, validation > 0.9 AS "accuracy > 0.9"
FROM cerebro.train('readings', 'alarm', 'alarms', columns => '* except id', models => '{realmlp_simple}',
                   configs => 1, epochs => 20, ensemble => 1, seed => 1);

-- 1. Nothing new: nothing is done, and no row comes back. So this can be called every hour (with pg_cron, say):
SELECT * FROM cerebro.refresh('alarms', since => 'id');

-- 2. Summer comes. The rows of now are not like those of training: 0.25 is a large change.
INSERT INTO readings (temperature, load, alarm)
SELECT v.t, v.l, v.t + 0.3 * v.l > 75
FROM generate_series(1, 600) AS n, LATERAL (SELECT 60 + n * 7919 % 301 / 10.0 AS t, n * 613 % 101 AS l) AS v;
CREATE VIEW readings_of_summer AS SELECT * FROM readings WHERE id > 2000;
SELECT column_name, psi > 0.25 AS "large change" FROM cerebro.drift('alarms', 'readings_of_summer') ORDER BY 1;

-- 3. Now there is something to learn. The version goes on from its weights; what comes out predicts if it is better.
SELECT version, metric, value > 0.9 AS "accuracy > 0.9" FROM cerebro.refresh('alarms', since => 'id');
SELECT version, training_rows > 2000 AS "with rows of summer" FROM cerebro.model_version WHERE model = 'alarms' ORDER BY version;

-- 4. Prove both: each is trained once more from what was kept, and the bits are compared.
SELECT what, ok FROM cerebro.verify('alarms', '1') WHERE what = 'state';
SELECT what, ok FROM cerebro.verify('alarms', '2') WHERE what = 'state';

-- 5. The older version is there as long as it is wanted.
SELECT cerebro.deploy('alarms', '1') AS "predicts now";
