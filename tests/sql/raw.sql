-- The example of README.md. A test compares what it prints with raw.out, and README.md with both.
\set QUIET on
\set ON_ERROR_STOP on
\set SHOW_CONTEXT never
\pset footer off
\pset null ''
SELECT cerebro.load_example('flowers');
SELECT rank, template, metric, round(validation::numeric, 2) AS validation
FROM cerebro.train('flowers', 'species', models => '{realmlp,linear}', configs => 2, epochs => 40, seed => 1);
SELECT f.id, f.species, p.prediction, round(p.probability::numeric, 2) AS probability
FROM flowers f JOIN cerebro.predict('flowers_species', 'flowers') p ON p.id = f.id::text
WHERE f.id IN (1, 51, 101) ORDER BY f.id;
