-- name: profile
-- What was kept of the training rows of a version of the current user's.
SELECT v.profile::text AS profile FROM cerebro.version_log v
WHERE v.owner = current_user AND v.model = %s::text AND v.version = %s::integer

-- name: sample
-- The transaction that makes it drops it: nobody else sees it.
CREATE UNLOGGED TABLE {output} AS SELECT {columns} FROM {source} t WHERE {side}

-- name: edges
SELECT {quantiles} FROM (SELECT {columns} FROM {source} t OFFSET 0) r

-- name: quantiles
-- Infinite ones are in no range.
pg_catalog.percentile_disc(%s::double precision[]) WITHIN GROUP (ORDER BY {c}) FILTER (WHERE {c} > '-Infinity' AND {c} < 'Infinity')

-- name: bins
-- The rows of each bin of each part, NULL for those without a value; {place} is a bit for each part but its own.
SELECT GROUPING({names}) AS place, coalesce({names}) AS bin, pg_catalog.count(*) AS rows
FROM (SELECT {columns} FROM {source} t OFFSET 0) r
GROUP BY GROUPING SETS ({sets})

-- name: mean
-- Of the elements of an array; NULL where none is a number. A mean computes squares, too, which must not be too large.
SELECT pg_catalog.avg(CASE WHEN n.x IS NOT NULL THEN least(greatest(n.x, '-1e100'::double precision), '1e100'::double precision) END)
FROM (SELECT {number} AS x FROM pg_catalog.unnest({array}) AS e (x) OFFSET 0) n

-- name: range
SELECT CASE WHEN pg_catalog.count(n.x) > 0 THEN least(pg_catalog.max(n.x), '1e300'::double precision) - greatest(pg_catalog.min(n.x), '-1e300'::double precision) END
FROM (SELECT {number} AS x FROM pg_catalog.unnest({array}) AS e (x) OFFSET 0) n
