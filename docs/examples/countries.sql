-- A model for each country, in one run: the price of a dwelling grows with its size, but not alike everywhere.
CREATE TABLE dwellings AS
SELECT n AS id, c.country, s.size, n * 31 % 6 AS floor,
       (c.per_metre * s.size + 10 * (n * 31 % 6) + n * 53 % 11)::real AS price
FROM generate_series(1, 1200) AS n,
     LATERAL (SELECT 20 + n * 7919 % 101 AS size) AS s,
     LATERAL (SELECT (ARRAY['de', 'fr', 'it', 'de', 'fr', 'it', 'lu'])[n % 7 + 1] AS country) AS name,
     LATERAL (SELECT name.country, CASE name.country WHEN 'de' THEN 4 WHEN 'fr' THEN 7 WHEN 'it' THEN 2 ELSE 12 END AS per_metre) AS c;
ALTER TABLE dwellings ADD PRIMARY KEY (id);

-- 1. group_by: every configuration is tried over all rows, and over those of each country that has 200 rows to train on.
SELECT group_value AS country, template
FROM cerebro.train('dwellings', 'price', 'price_by_country', columns => 'size, floor', models => '{realmlp_simple}',
                   configs => 1, epochs => 12, seed => 1, group_by => 'country', min_group_rows => 200)
WHERE rank = 1 ORDER BY group_value;

-- 2. The models that came of it. Luxembourg has too few rows, and is predicted by the model of all.
SELECT group_value AS country, training_rows > 200 AS "enough rows" FROM cerebro.model_group
WHERE model = 'price_by_country' AND deployed ORDER BY group_value;

-- 3. Is that better than one model that knows nothing of countries? Ask both, for each country.
SELECT count(*) AS configurations
FROM cerebro.train('dwellings', 'price', 'price_for_all', columns => 'size, floor', models => '{realmlp_simple}',
                   configs => 1, epochs => 12, seed => 1);
SELECT own.group_values ->> 'country' AS country, own.value < 0.5 * of_all.value AS "error less than half"
FROM cerebro.evaluate('price_by_country', 'dwellings', 'country') AS own
     JOIN cerebro.evaluate('price_for_all', 'dwellings', 'country') AS of_all USING (group_values, metric)
WHERE metric = 'mae' AND own.group_values ->> 'country' <> 'lu' ORDER BY 1;

-- 4. Each row is predicted by the model of its own country, also within one query over all.
SELECT t.country, count(*) = (SELECT count(*) FROM dwellings d WHERE d.country = t.country) AS "all predicted"
FROM dwellings t JOIN cerebro.predict('price_by_country', 'dwellings') p ON p.id = t.id::text
GROUP BY t.country ORDER BY t.country;
