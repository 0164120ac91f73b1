-- name: present
-- The number of training rows; and for each column of arrays, the rows with an element and the number of elements.
SELECT pg_catalog.count(*) AS rows{aggregates} FROM {source} t WHERE {side}

-- name: counted
, pg_catalog.count(*) FILTER (WHERE pg_catalog.cardinality({array}) > 0) AS {n}_rows,
coalesce(pg_catalog.avg(pg_catalog.cardinality({array})), 0)::double precision AS {n}_elements

-- name: shapes
-- How often arrays of a sample have which sizes, and in how many of these no element is a number.
SELECT r.sizes, pg_catalog.count(*) AS rows, pg_catalog.count(*) FILTER (WHERE NOT r.known) AS unknown
FROM (SELECT ARRAY(SELECT pg_catalog.array_length(t.array, d) FROM pg_catalog.generate_series(1, pg_catalog.array_ndims(t.array)) d ORDER BY d) AS sizes,
             EXISTS (SELECT FROM pg_catalog.unnest(t.array) AS e (x) WHERE {number} IS NOT NULL) AS known
      FROM (SELECT {array} AS array FROM {source} t WHERE {side} OFFSET 0) t
      WHERE pg_catalog.cardinality(t.array) > 0 OFFSET 0) r
GROUP BY r.sizes ORDER BY rows DESC, r.sizes

-- name: elements
-- Statistics of the elements of a sample of arrays, by the group that each {place} belongs to.
SELECT n.place, {aggregates}
FROM (SELECT {place} AS place, {number} AS x
      FROM (SELECT {array} AS array FROM {source} t WHERE {side} OFFSET 0) t
      CROSS JOIN LATERAL pg_catalog.unnest(t.array) WITH ORDINALITY AS e (x, n) WHERE {within} OFFSET 0) n
GROUP BY n.place ORDER BY n.place

-- name: resemblance
-- The correlation of an element with the next one, over rows of a sample, as the mean over all places.
SELECT pg_catalog.abs(pg_catalog.avg(c.resemblance)) AS resemblance
FROM (SELECT pg_catalog.corr(v.x, v.next) AS resemblance
      FROM (SELECT b.n, b.x, pg_catalog.lead(b.x) OVER (PARTITION BY b.row ORDER BY b.n) AS next
            FROM (SELECT t.row, e.n, least(greatest({number}, '-1e100'::double precision), '1e100'::double precision) AS x
                  FROM (SELECT {array} AS array, pg_catalog.row_number() OVER () AS row
                        FROM {source} t WHERE {side} OFFSET 0) t
                  CROSS JOIN LATERAL pg_catalog.unnest(t.array) WITH ORDINALITY AS e (x, n) WHERE e.n <= {most} OFFSET 0) b) v
      GROUP BY v.n) c
