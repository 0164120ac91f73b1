-- name: usual_gap
-- One and a half of the usual step between samples; NULL where each series has one sample.
SELECT (1.5 OPERATOR(pg_catalog.*) pg_catalog.percentile_disc(0.5) WITHIN GROUP (ORDER BY s.step))::text
FROM (SELECT {time} - pg_catalog.lag({time}) OVER (PARTITION BY t.{id} ORDER BY t.{ts}) AS step FROM {source} t WHERE {placed}) s
WHERE s.step > '0'::{step}

-- name: is_gap
-- Whether it is one: it is compared with steps.
SELECT %s::{step} >= '0'::{step}

-- name: windows
-- Samples are numbered within their series. A stretch is a part of it in which each sample follows the one before; `since` is the
-- number of its first sample. From there on a window begins at each stride, and a sample is in all that it is less than a width behind.
-- Samples of one time, whose order nobody knows, are not usable. There are two sorts, by series and time and by windows; else rows pass by.
CREATE TABLE {output} AS
SELECT pg_catalog.row_number() OVER (ORDER BY w.id, w.number) AS window_id, w.id AS {id}, w.first, w.last, w.x{label_column}
FROM (SELECT p.id, p.since + b.multiple * {stride} AS number, pg_catalog.min(p.ts) AS first, pg_catalog.max(p.ts) AS last, pg_catalog.array_agg(p.x ORDER BY p.number) AS x{label_of_window}
      FROM (SELECT j.*, pg_catalog.max(CASE WHEN NOT j.follows THEN j.number END)
                            OVER (PARTITION BY j.id ORDER BY j.ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS since
            FROM (SELECT u.*, u.step <= %s::{step} AND pg_catalog.lag(u.usable) OVER (PARTITION BY u.id ORDER BY u.ts) IS TRUE AS follows
                  FROM (SELECT n.*, n.whole AND n.before IS DISTINCT FROM n.moment AND n.after IS DISTINCT FROM n.moment AS usable
                        FROM (SELECT t.{id} AS id, t.{ts} AS ts, {time} AS moment, {x} AS x{label_of_sample}, {whole} AS whole,
                                     {time} - pg_catalog.lag({time}) OVER own AS step,
                                     pg_catalog.lag({time}) OVER own AS before, pg_catalog.lead({time}) OVER own AS after,
                                     pg_catalog.row_number() OVER own AS number
                              FROM {source} t WHERE {placed}
                              WINDOW own AS (PARTITION BY t.{id} ORDER BY t.{ts})) n) u) j) p
           CROSS JOIN LATERAL pg_catalog.generate_series(
               greatest(0, (p.number - p.since - {width} + {stride}) / {stride}), (p.number - p.since) / {stride}) AS b (multiple)
      WHERE p.usable
      GROUP BY 1, 2
      HAVING pg_catalog.count(*) = {width} {same_label}) w
{distributed_by_window_id}

-- name: key
ALTER TABLE {output} ADD PRIMARY KEY (window_id)

-- name: last_label
pg_catalog.mode() WITHIN GROUP (ORDER BY p.label) FILTER (WHERE p.number = p.since + b.multiple * {stride} + {width} - 1)

-- name: usual_label
-- The most frequent one, the least of several.
pg_catalog.mode() WITHIN GROUP (ORDER BY p.label)

-- name: one_label
AND pg_catalog.count(DISTINCT p.label) = 1
