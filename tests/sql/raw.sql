-- The first tour of README.md, from a raw table. A test compares what it prints with raw.out, and README.md with both.
\set QUIET on
\set ON_ERROR_STOP on
\set SHOW_CONTEXT never
\pset footer off
\pset null ''
\ir iris_data.sql
CREATE TABLE flowers AS
SELECT id, attributes[1] AS sepal_length, attributes[2] AS sepal_width, attributes[3] AS petal_length, attributes[4] AS petal_width, species
FROM iris;
\set ECHO queries
SELECT rank, metric, validation > 0.9 AS "accuracy > 0.9"
FROM cerebro.train('flowers', 'species', models => '{realmlp}', configs => 1, epochs => 40, seed => 1);
SELECT id, prediction, probability > 0.5 AS likely
FROM cerebro.predict('flowers_species', 'flowers', id_col => 'id') WHERE id IN ('1', '51', '101');
