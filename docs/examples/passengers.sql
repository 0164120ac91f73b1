-- A table of passengers, with columns of all kinds and holes: who survived?
--
-- The rows are made up here, so that nothing has to be fetched; put a table of your own in their place.
CREATE TABLE passengers AS
SELECT n AS id,
       n * 7 % 3 + 1 AS class,
       CASE WHEN n * 13 % 5 < 3 THEN 'male' ELSE 'female' END AS sex,
       CASE WHEN n % 6 > 0 THEN n * 7919 % 71 + 1 END AS age,
       round((80 - 20 * (n * 7 % 3) + n * 331 % 37) / 4.0, 2) AS fare,
       (ARRAY['Cherbourg', 'Queenstown', 'Southampton', NULL])[n * 17 % 4 + 1] AS embarked,
       CASE WHEN n % 11 = 0 THEN n % 2 = 0
            ELSE n * 13 % 5 >= 3 AND n * 7 % 3 < 2 OR n * 7919 % 71 < 12 END AS survived
FROM generate_series(1, 1500) AS n;
ALTER TABLE passengers ADD PRIMARY KEY (id);
CREATE VIEW passengers_known AS SELECT * FROM passengers WHERE id <= 1200;
CREATE VIEW passengers_new AS SELECT * FROM passengers WHERE id > 1200;

-- 1. What each column is taken for. Nothing is trained yet.
SELECT name, what FROM cerebro.plan('passengers_known', 'survived', 'survival') WHERE section = 'column';

-- 2. Train. Without configs and epochs, as many are tried as there is time for (budget => '5 minutes').
SELECT rank, template, validation > 0.85 AS "accuracy > 0.85"
FROM cerebro.train('passengers_known', 'survived', 'survival', columns => '* except id',
                   models => '{realmlp_simple, linear}', configs => 2, epochs => 12, seed => 1);

-- 3. How good it is for passengers that it has never seen.
SELECT metric, value > 0.85 AS "> 0.85"
FROM cerebro.evaluate('survival', 'passengers_new') WHERE class IS NULL AND metric IN ('accuracy', 'auc');

-- 4. Which columns it owes that to: the three that matter most.
SELECT column_name FROM (
    SELECT column_name FROM cerebro.importance('survival', 'passengers_known') ORDER BY importance DESC LIMIT 3) AS best
ORDER BY column_name;

-- 5. Predictions, as a table that other queries join; and of one passenger who is in no table.
SELECT t.sex, count(*) AS passengers, count(*) FILTER (WHERE p.prediction::boolean) > count(*) / 2 AS "most survive"
FROM passengers_new t JOIN cerebro.predict('survival', 'passengers_new', 'id') p ON p.id = t.id::text
WHERE t.class < 3 AND t.age >= 12 GROUP BY t.sex ORDER BY t.sex;
SELECT cerebro.predict_row('survival', '{"class": 3, "sex": "male", "age": 5, "fare": 10}') ->> 'prediction' AS "a boy of five";
