-- name: present
-- The number of training rows, and of those with a file.
SELECT pg_catalog.count(*) AS rows, pg_catalog.count(*) FILTER (WHERE {size} > 0) AS present FROM {source} t WHERE {side}

-- name: files
-- The number of files of a sample that are PNG or JPEG with the same size and number of channels, as far as these are declared within
-- {most} bytes, and their length. A PNG declares them at its beginning. A JPEG consists of segments; each but the first begins with
-- FF, its kind and its length. Segments from C0 to CF, except three, declare the size.
WITH RECURSIVE few AS MATERIALIZED (
    SELECT pg_catalog.row_number() OVER () AS n, pg_catalog.substr(f.file, 1, {most}) AS head, pg_catalog.octet_length(f.file) AS bytes
    FROM (SELECT {file} AS file FROM {source} t WHERE {side} OFFSET 0) f WHERE pg_catalog.octet_length(f.file) > 0
), segments AS (
    SELECT f.n, 1 AS number, 3 AS place, pg_catalog.encode(pg_catalog.substr(f.head, 3, 10), 'hex') AS segment
    FROM few f WHERE pg_catalog.substr(f.head, 1, 3) = pg_catalog.decode('ffd8ff', 'hex')
    UNION ALL
    SELECT s.n, s.number + 1, p.place, pg_catalog.encode(pg_catalog.substr(f.head, p.place, 10), 'hex')
    FROM segments s
    CROSS JOIN LATERAL (SELECT s.place + 2 + ('x' || pg_catalog.substr(s.segment, 5, 4))::bit(16)::integer AS place) p
    JOIN few f ON f.n = s.n
    WHERE s.number < {segments} AND s.segment !~ '{declaring}' AND s.segment ~ '^ff(c[48c]|d[b-f]|e|f[0-9a-e])' AND p.place <= {most}
), sized AS (
    SELECT s.n, ('x' || pg_catalog.substr(s.segment, 11, 4))::bit(16)::integer AS height,
           ('x' || pg_catalog.substr(s.segment, 15, 4))::bit(16)::integer AS width,
           CASE WHEN pg_catalog.substr(s.segment, 19, 2) = '01' THEN 1 ELSE 3 END AS channels
    FROM segments s WHERE s.segment ~ '{declaring}'
    UNION ALL
    SELECT f.n, ('x' || pg_catalog.encode(pg_catalog.substr(f.head, 21, 4), 'hex'))::bit(32)::integer,
           ('x' || pg_catalog.encode(pg_catalog.substr(f.head, 17, 4), 'hex'))::bit(32)::integer,
           CASE WHEN pg_catalog.substr(f.head, 26, 1) IN (pg_catalog.decode('00', 'hex'), pg_catalog.decode('04', 'hex')) THEN 1 ELSE 3 END
    FROM few f WHERE pg_catalog.substr(f.head, 1, 8) = pg_catalog.decode('89504e470d0a1a0a', 'hex')
)
SELECT coalesce(s.height, 0) AS height, coalesce(s.width, 0) AS width, coalesce(s.channels, 0) AS channels,
       pg_catalog.substr(f.head, 1, 3) = pg_catalog.decode('ffd8ff', 'hex') OR pg_catalog.substr(f.head, 1, 8) = pg_catalog.decode('89504e470d0a1a0a', 'hex') AS image,
       pg_catalog.count(*) AS files, pg_catalog.max(f.bytes) AS bytes
FROM few f LEFT JOIN sized s ON s.n = f.n
GROUP BY 1, 2, 3, 4 ORDER BY files DESC, 1, 2, 3, 4
