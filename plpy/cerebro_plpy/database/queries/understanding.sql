-- name: classification
-- Two tables are small enough for whatever is computed of them: how often each class was predicted for each, and how often
-- each probability of a class was that of a row of it. A group is the text of an object, '' for that of all rows. Where no
-- probabilities are told they count as the least. The area under a curve is that of ranks, in which equal numbers
-- share their places; a class that the model does not know has no probability in any row, so that half of its area is below, and
-- its precision is its share of the rows.
WITH model AS (SELECT %s::text[] AS classes, %s::jsonb AS costs),
told AS MATERIALIZED (
    SELECT r.id[1] AS label, r.id[2] AS "group", r.prediction, r.probabilities
    FROM (SELECT pg_catalog.unnest((b.told).ids)::text[] AS id,
                 pg_catalog.unnest(pg_catalog.convert_from((b.told).prediction, 'UTF8')::text[]) AS prediction,
                 pg_catalog.unnest(pg_catalog.convert_from((b.told).probabilities, 'UTF8')::text[])::jsonb AS probabilities
          FROM (SELECT cerebro_internal.evaluation_blocks(%s::text, %s::text, %s::text, %s::text, %s::double precision, %s::json) AS told OFFSET 0) b OFFSET 0) r),
pairs AS MATERIALIZED (
    SELECT coalesce(t."group", '') AS "group", t.label, t.prediction, count(*)::float8 AS n
    FROM told t GROUP BY GROUPING SETS ({of_pair}(t."group", t.label, t.prediction))),
shares AS MATERIALIZED (
    SELECT coalesce(t."group", '') AS "group", c.key AS class, c.value::float8 AS p,
           (count(*) FILTER (WHERE t.label = c.key))::float8 AS hits, (count(*) FILTER (WHERE t.label <> c.key))::float8 AS misses
    FROM told t CROSS JOIN LATERAL pg_catalog.jsonb_each_text(t.probabilities) c
    GROUP BY GROUPING SETS ({of_class}(t."group", c.key, c.value::float8))),
totals AS (
    SELECT p."group", sum(p.n) AS n, coalesce(sum(p.n) FILTER (WHERE p.label = p.prediction), 0) AS hits,
           sum(p.n * coalesce((m.costs -> p.label ->> p.prediction)::float8, (p.label IS DISTINCT FROM p.prediction)::integer)) AS cost
    FROM pairs p CROSS JOIN model m GROUP BY p."group"),
classes AS (
    SELECT c."group", c.class, sum(c.actual) AS actual, sum(c.predicted) AS predicted, sum(c.hits) AS hits
    FROM (SELECT p."group", p.label AS class, p.n AS actual, 0 AS predicted, CASE WHEN p.label = p.prediction THEN p.n ELSE 0 END AS hits
          FROM pairs p
          UNION ALL SELECT p."group", p.prediction, 0, p.n, 0 FROM pairs p WHERE p.prediction IS NOT NULL) c
    GROUP BY c."group", c.class),
areas AS (
    SELECT s."group", s.class, sum(s.hits) AS hits, sum(s.hits * (s.below + s.misses / 2)) / nullif(sum(s.hits) * sum(s.misses), 0) AS auc,
           CASE WHEN sum(s.misses) > 0 THEN sum(s.hits * s.hits_from / (s.hits_from + s.misses_from)) / nullif(sum(s.hits), 0) END AS ap,
           sum(s.hits * (1 - s.p) ^ 2 + s.misses * s.p ^ 2) AS squares, sum(s.hits * -ln(greatest(s.p, 1e-7))) AS loss
    FROM (SELECT s.*, sum(s.misses) OVER (PARTITION BY s."group", s.class ORDER BY s.p ROWS UNBOUNDED PRECEDING) - s.misses AS below,
                 sum(s.hits) OVER (PARTITION BY s."group", s.class ORDER BY s.p DESC ROWS UNBOUNDED PRECEDING) AS hits_from,
                 sum(s.misses) OVER (PARTITION BY s."group", s.class ORDER BY s.p DESC ROWS UNBOUNDED PRECEDING) AS misses_from
          FROM shares s) s
    GROUP BY s."group", s.class
    UNION ALL
    SELECT c."group", c.class, 0, CASE WHEN c.actual < t.n THEN 0.5 END, CASE WHEN c.actual < t.n THEN c.actual / t.n END, 0, 0
    FROM classes c JOIN totals t ON t."group" = c."group" CROSS JOIN model m WHERE c.class <> ALL (m.classes)),
tenths AS (
    SELECT s."group", s.class, least(floor(s.p * 10), 9) AS tenth, sum(s.hits + s.misses) AS n, sum(s.hits) AS hits,
           sum(s.p * (s.hits + s.misses)) AS p
    FROM shares s GROUP BY s."group", s.class, least(floor(s.p * 10), 9)),
confidences AS (
    SELECT coalesce(c."group", '') AS "group", c.bin, count(*) AS n, sum(c.p) AS p, count(*) FILTER (WHERE c.label_p = c.p) AS hits
    FROM (SELECT t."group", m.p, m.label_p, least(floor(m.p * 15), 14) AS bin
          FROM told t CROSS JOIN LATERAL (
              SELECT max(c.value::float8) AS p, max(c.value::float8) FILTER (WHERE c.key = t.label) AS label_p
              FROM pg_catalog.jsonb_each_text(t.probabilities) c) m
          WHERE m.p IS NOT NULL) c
    GROUP BY GROUPING SETS ({of_bin}(c."group", c.bin))),
gaps AS (
    SELECT c."group", sum(abs(c.hits - c.p)) / sum(c.n) AS gap FROM confidences c GROUP BY c."group"),
errors AS (
    SELECT e."group", e.class, sum(abs(e.hits - e.p)) / sum(e.n) AS error FROM tenths e GROUP BY e."group", e.class),
found AS (
    SELECT c."group", c.class, c.actual, c.predicted, 2 * c.hits / (c.actual + c.predicted) AS f1,
           c.hits / nullif(c.actual, 0) AS recall, c.hits / nullif(c.predicted, 0) AS "precision"
    FROM classes c),
sums AS (
    SELECT a."group", avg(a.auc) AS auc, avg(a.ap) AS ap, sum(a.hits) AS known, sum(a.squares) AS squares, sum(a.loss) AS loss
    FROM areas a GROUP BY a."group"),
whole AS (
    SELECT t."group", t.n, t.hits / t.n AS accuracy, t.cost / t.n AS cost, s.auc, s.ap, f.recall, f.f1, e.error, g.gap,
           (coalesce(s.loss, 0) + (t.n - coalesce(s.known, 0)) * -ln(1e-7)) / t.n AS loss,
           (coalesce(s.squares, 0) + (t.n - coalesce(s.known, 0))) / t.n / 2 AS brier
    FROM totals t LEFT JOIN sums s ON s."group" = t."group"
    LEFT JOIN (SELECT f."group", avg(f.recall) AS recall, avg(f.f1) AS f1 FROM found f GROUP BY f."group") f
        ON f."group" = t."group"
    LEFT JOIN (SELECT e."group", avg(e.error) AS error FROM errors e GROUP BY e."group") e ON e."group" = t."group"
    LEFT JOIN gaps g ON g."group" = t."group"),
lines AS (
    SELECT w."group", 1 AS part, v.place, v.metric, NULL::text AS class, NULL::text AS predicted, v.value, w.n AS n
    FROM whole w CROSS JOIN LATERAL (VALUES
        (1, 'accuracy', w.accuracy), (2, 'balanced_accuracy', w.recall), (3, 'auc', w.auc), (4, 'average_precision', w.ap),
        (5, 'log_loss', w.loss), (6, 'f1', w.f1), (7, 'brier', w.brier), (8, 'calibration_error', w.error), (9, 'ece', w.gap), (10, 'cost', w.cost)) v (place, metric, value)
    WHERE v.metric <> 'cost' OR EXISTS (SELECT FROM model m WHERE m.costs IS NOT NULL)
    UNION ALL
    SELECT f."group", 2, v.place, v.metric, f.class, NULL, v.value, v.n
    FROM found f JOIN totals t ON t."group" = f."group"
    LEFT JOIN areas a ON a."group" = f."group" AND a.class = f.class
    LEFT JOIN errors e ON e."group" = f."group" AND e.class = f.class
    CROSS JOIN LATERAL (VALUES
        (1, 'precision', f."precision", f.predicted), (2, 'recall', f.recall, f.actual), (3, 'f1', f.f1, f.actual),
        (4, 'auc', a.auc, f.actual), (5, 'average_precision', a.ap, f.actual), (6, 'calibration_error', e.error, t.n)) v (place, metric, value, n)
    UNION ALL
    SELECT p."group", 3, 0, 'confusion', p.label, p.prediction, p.n / c.actual, p.n
    FROM pairs p JOIN classes c ON c."group" = p."group" AND c.class = p.label
    UNION ALL
    SELECT e."group", 4, e.tenth::integer, 'calibration', e.class, pg_catalog.round((e.p / e.n)::numeric, 4)::text, e.hits / e.n, e.n FROM tenths e)
SELECT nullif(l."group", '') AS group_values, l.metric, l.class, l.predicted, l.value, l.n::bigint AS rows
FROM lines l ORDER BY l."group" <> '', l."group", l.part, l.class, l.place, l.predicted

-- name: regression
WITH told AS (
    SELECT r.id[2] AS "group", r.id[1]::float8 AS target, coalesce(r.number, 'NaN') AS number, r.margin
    FROM (SELECT pg_catalog.unnest((b.told).ids)::text[] AS id, (b.told).margin AS margin,
                 pg_catalog.unnest(pg_catalog.convert_from((b.told).number, 'UTF8')::float8[]) AS number
          FROM (SELECT cerebro_internal.evaluation_blocks(%s::text, %s::text, %s::text, %s::text, %s::double precision, %s::json) AS told OFFSET 0) b OFFSET 0) r),
sums AS (
    SELECT t."group", count(*) AS n, avg((t.number - t.target) ^ 2) AS square, avg(abs(t.number - t.target)) AS distance,
           pg_catalog.var_pop(t.target) AS variance,
           CASE WHEN pg_catalog.bool_and(t.target <> 0) THEN avg(abs(t.number - t.target) / nullif(abs(t.target), 0)) END AS share,
           avg((abs(t.number - t.target) <= t.margin)::integer::float8) AS covered
    FROM told t GROUP BY GROUPING SETS ({of_all}(t."group")))
SELECT s."group" AS group_values, v.metric, NULL::text AS class, NULL::text AS predicted, v.value, s.n AS rows
FROM sums s CROSS JOIN LATERAL (VALUES
    (1, 'rmse', sqrt(s.square)), (2, 'mae', s.distance), (3, 'mape', s.share),
    (4, 'r2', 1 - s.square / nullif(s.variance, 0)), (5, 'coverage', s.covered)) v (place, metric, value)
WHERE s.n > 0 ORDER BY s."group" NULLS FIRST, v.place

-- name: sample
-- Rows whose hashes are the least: the same ones, in the same order, however they lie in the table.
SELECT {inputs} FROM (SELECT {columns} FROM {table} t WHERE {target} IS NOT NULL ORDER BY {order} LIMIT %s::bigint) t

-- name: packed_sample
-- A share of the rows of each buffer, from its beginning on. References to the data are sorted, not the data.
SELECT b.rows, {parts}
FROM (SELECT t.buffer_id, {columns}, t.{rows}[1] AS total, pg_catalog.ceil(t.{rows}[1] * %s::double precision)::integer AS rows
      FROM {table} t OFFSET 0) b
ORDER BY b.buffer_id

-- name: version_importance
-- What the columns of a version are worth, as far as there is time to compute it: alone, for on Greenplum it cannot be asked
-- where segments are at work for the statement.
SELECT i.importance, i.importance_error FROM cerebro_internal.version_importance(%s::text, %s::integer, %s::double precision) i

-- name: add_importance
UPDATE cerebro.version_log v SET importance = %s::double precision[], importance_error = %s::double precision[]
WHERE v.owner = current_user AND v.model = %s::text AND v.version = %s::integer
