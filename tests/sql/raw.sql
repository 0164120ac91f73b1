-- The example of README.md. A test compares what it prints with raw.out, and README.md with both.
\set QUIET on
\set ON_ERROR_STOP on
\set SHOW_CONTEXT never
\pset footer off
\pset null ''
\pset tuples_only on
\pset format unaligned
\set ECHO queries
SELECT cerebro.load_example('flowers');
\pset tuples_only off
\pset format aligned
SELECT rank, template, metric, round(validation::numeric, 2) AS validation
FROM cerebro.train('flowers', 'species', models => '{realmlp,linear}', configs => 2, epochs => 40, seed => 1);
SELECT f.id, f.species, p.prediction, round(p.probability::numeric, 2) AS probability
FROM flowers f JOIN cerebro.predict('flowers_species', 'flowers') p ON p.id = f.id::text
WHERE f.id IN (1, 51, 101) ORDER BY f.id;
SELECT column_name, round(importance::numeric, 2) AS importance
FROM cerebro.importance('flowers_species', 'flowers') ORDER BY importance DESC LIMIT 2;
