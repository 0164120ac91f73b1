-- Two users share a table with row security. Each trains on own rows, and neither sees the run or the model of the other.
--
-- Run it as a superuser: it makes two roles, works as each of them (\connect), and removes them in the end.
\set administrator :USER
CREATE ROLE gallery_ann LOGIN;
CREATE ROLE gallery_ben LOGIN;
SELECT extnamespace::regnamespace AS extension_schema FROM pg_extension WHERE extname = 'cerebro_db' \gset
GRANT USAGE ON SCHEMA :extension_schema, public TO gallery_ann, gallery_ben;
SELECT count(cerebro.grant_usage(role)) AS "may train" FROM unnest('{gallery_ann, gallery_ben}'::regrole[]) AS role;

-- What each has measured: for ann a flower is tall when its stem is, for ben when it stands in the sun.
CREATE TABLE plants (id integer PRIMARY KEY, owner name, stem real, sun real, tall boolean);
INSERT INTO plants
SELECT n, CASE WHEN n % 2 = 0 THEN 'gallery_ann' ELSE 'gallery_ben' END, stem, sun, CASE WHEN n % 2 = 0 THEN stem ELSE sun END > 50
FROM generate_series(1, 1200) AS n, LATERAL (SELECT n * 7919 % 101 AS stem, n * 613 % 97 AS sun) AS v;
ALTER TABLE plants ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_plants ON plants USING (owner = current_user);
GRANT SELECT ON plants TO gallery_ann, gallery_ben;

\connect - gallery_ann
SELECT rank, validation > 0.9 AS "accuracy > 0.9"
FROM cerebro.train('plants', 'tall', 'tall', columns => 'stem, sun', models => '{realmlp_simple}', configs => 1, epochs => 20, seed => 1);

\connect - gallery_ben
SELECT rank, validation > 0.9 AS "accuracy > 0.9"
FROM cerebro.train('plants', 'tall', 'tall', columns => 'stem, sun', models => '{realmlp_simple}', configs => 1, epochs => 20, seed => 1);

-- There are two runs and two models of that name now, and a user sees one of each. What is asked is the own one.
SELECT (SELECT count(*) FROM plants) AS "ben's plants", (SELECT count(*) FROM cerebro.run r WHERE r.name = m.model) AS runs, m.owner, m.model FROM cerebro.model m;
SELECT cerebro.predict_row('tall', '{"stem": 5, "sun": 90}') ->> 'prediction' AS "in the sun, ben says";
\connect - gallery_ann
SELECT (SELECT count(*) FROM plants) AS "ann's plants", (SELECT count(*) FROM cerebro.run r WHERE r.name = m.model) AS runs, m.owner, m.model FROM cerebro.model m;
SELECT cerebro.predict_row('tall', '{"stem": 5, "sun": 90}') ->> 'prediction' AS "a short stem, ann says";

-- A model can be lent without its rows: ben predicts with ann's model then, if he says whose.
SELECT cerebro.grant_predict('tall', 'gallery_ben');
\connect - gallery_ben
SELECT cerebro.predict_row('tall', '{"stem": 5, "sun": 90}', owner => 'gallery_ann') ->> 'prediction' AS "ben asks ann's";

\connect - :administrator
DROP OWNED BY gallery_ann, gallery_ben CASCADE;
DROP ROLE gallery_ann, gallery_ben;
