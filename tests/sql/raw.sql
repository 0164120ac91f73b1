-- The example of README.md. A test compares what it prints with raw.out, and README.md with both.
\set QUIET on
\set ON_ERROR_STOP on
\set SHOW_CONTEXT never
\pset footer off
\pset null ''
SELECT cerebro.load_example('flowers');
SELECT rank, template, metric, round(validation::numeric, 2) AS validation
FROM cerebro.train('flowers', 'species', models => '{realmlp,linear}', configs => 2, epochs => 40, seed => 1);
SELECT (p.row).id, (p.row).species, p.prediction, round(p.probability::numeric, 2) AS probability
FROM cerebro.predict_rows('flowers_species', NULL::flowers) p WHERE (p.row).id IN (1, 51, 101);
