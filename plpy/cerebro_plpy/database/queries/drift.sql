-- name: profile
-- The stored profile of the training rows of a version of the current user.
SELECT v.profile::text AS profile FROM cerebro.version_log v
WHERE v.owner = current_user AND v.model = %s::text AND v.version = %s::integer

-- name: sample
-- The transaction that creates the table drops it: nobody else sees it.
CREATE UNLOGGED TABLE {output} AS SELECT {columns} FROM {source} t WHERE {side}

-- name: edges
SELECT {quantiles} FROM (SELECT {columns} FROM {source} t OFFSET 0) r

-- name: quantiles
-- Infinite numbers are in no range.
pg_catalog.percentile_disc(%s::double precision[]) WITHIN GROUP (ORDER BY {c}) FILTER (WHERE {c} > '-Infinity' AND {c} < 'Infinity')

-- name: bins
-- The number of rows in each bin of each part, NULL for rows without a value; {place} has a bit for each part but its own.
SELECT GROUPING({names}) AS place, coalesce({names}) AS bin, pg_catalog.count(*) AS rows
FROM (SELECT {columns} FROM {source} t OFFSET 0) r
GROUP BY GROUPING SETS ({sets})

-- name: mean
-- Statistics of the elements of an array; NULL if none is a number. A mean also computes squares, which must not overflow.
SELECT pg_catalog.avg(CASE WHEN n.x IS NOT NULL THEN least(greatest(n.x, '-1e100'::double precision), '1e100'::double precision) END)
FROM (SELECT {number} AS x FROM pg_catalog.unnest({array}) AS e (x) OFFSET 0) n

-- name: range
SELECT CASE WHEN pg_catalog.count(n.x) > 0 THEN least(pg_catalog.max(n.x), '1e300'::double precision) - greatest(pg_catalog.min(n.x), '-1e300'::double precision) END
FROM (SELECT {number} AS x FROM pg_catalog.unnest({array}) AS e (x) OFFSET 0) n
