-- name: columns
-- With the types that domains stand for, and the columns that name a row: those of the primary key.
SELECT a.attname::text AS name, pg_catalog.format_type(a.atttypid, a.atttypmod) AS type, b.typname::text AS base,
       b.typtype::text AS kind, b.typcategory::text AS category,
       EXISTS (SELECT FROM pg_catalog.pg_index i
               WHERE i.indrelid = a.attrelid AND i.indisprimary AND a.attnum = ANY (i.indkey)) AS key
FROM pg_catalog.pg_attribute a CROSS JOIN LATERAL (
    WITH RECURSIVE d AS (
        SELECT t.oid, t.typname, t.typtype, t.typcategory, t.typbasetype FROM pg_catalog.pg_type t WHERE t.oid = a.atttypid
        UNION ALL
        SELECT t.oid, t.typname, t.typtype, t.typcategory, t.typbasetype FROM pg_catalog.pg_type t JOIN d ON t.oid = d.typbasetype
    )
    SELECT d.typname, d.typtype, d.typcategory FROM d WHERE d.typtype <> 'd') b
WHERE a.attrelid = %s::oid AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum

-- name: rows
-- Of the training side, and how many of them may be looked at more closely.
SELECT count(*) AS rows FROM {source} t WHERE {side}

-- name: spread
-- {aggregates} say something about the expressions of columns, over all rows: so simple that several processes may share them.
SELECT {aggregates} FROM {source} t WHERE {side}

-- name: sample
-- {columns} are expressions, each of them named; {aggregates} say something about each. A row is of the sample by its hash,
-- so that it is the same whatever order the rows come in.
SELECT {aggregates}
FROM (SELECT {columns} FROM {source} t WHERE {sampled} AND {side} OFFSET 0) r

-- name: numbers
-- What is asked of a column of numbers {c} of all rows. Infinite ones are none of the range.
count({c}) AS {n}_rows,
min({c}) FILTER (WHERE {c} > '-Infinity' AND {c} < 'Infinity') AS {n}_low,
max({c}) FILTER (WHERE {c} > '-Infinity' AND {c} < 'Infinity') AS {n}_high

-- name: sampled_numbers
-- And of those of the sample.
pg_catalog.percentile_disc('{{0.25,0.5,0.75}}'::double precision[]) WITHIN GROUP (ORDER BY {c})
    FILTER (WHERE {c} > '-Infinity' AND {c} < 'Infinity') AS {c}_quartiles,
count({c}) AS {c}_sampled, count(DISTINCT {c}) AS {c}_different

-- name: texts
-- What is asked of a column of texts {c} of all rows.
count({c}) AS {n}_rows

-- name: sampled_texts
-- And of those of the sample.
count({c}) AS {c}_sampled, count(DISTINCT {c}) AS {c}_different,
pg_catalog.avg(pg_catalog.length({c}) - pg_catalog.length(pg_catalog.replace({c}, ' ', '')) + 1)::double precision AS {c}_words

-- name: categories
-- The values of columns that are there more than once, the most frequent first; {place} is a bit for each column but its own.
SELECT f.place, f.value, f.rows
FROM (SELECT g.place, g.value, g.rows, pg_catalog.row_number() OVER (PARTITION BY g.place ORDER BY g.rows DESC, g.value COLLATE "C") AS n
      FROM (SELECT GROUPING({names}) AS place, coalesce({names}) AS value, count(*) AS rows
            FROM (SELECT {columns} FROM {source} t WHERE {side} OFFSET 0) r
            GROUP BY GROUPING SETS ({sets}) HAVING count(*) > 1) g
      WHERE g.value IS NOT NULL) f
WHERE f.n <= %s::bigint
ORDER BY f.place, f.n

-- name: target
-- How many rows there are, and have a value; of finite numbers what they are about.
SELECT count(*) AS rows, count(n.value) AS present, count(n.number) FILTER (WHERE n.finite) AS finite,
       coalesce(bool_and(n.number = pg_catalog.floor(n.number)) FILTER (WHERE n.finite), false) AS whole,
       pg_catalog.avg(n.number) FILTER (WHERE n.finite) AS mean,
       coalesce(pg_catalog.stddev_pop(n.number) FILTER (WHERE n.finite), 0) AS deviation,
       min(n.number) FILTER (WHERE n.finite) AS low, max(n.number) FILTER (WHERE n.finite) AS high
FROM (SELECT r.value, r.number, r.number > '-Infinity' AND r.number < 'Infinity' AS finite
      FROM (SELECT {value} AS value, {number} AS number FROM {source} t WHERE {side} OFFSET 0) r) n

-- name: target_values
-- The different texts of a column, at most so many, in the order that packing gives to classes which are texts.
SELECT v.value
FROM (SELECT DISTINCT {value}::text AS value FROM {source} t WHERE {side} AND {value} IS NOT NULL LIMIT %s::bigint) v ORDER BY v.value COLLATE "C"

-- name: sides
-- How many rows of each value are on either side.
SELECT v.value, v.training, v.validation
FROM (SELECT {value} AS value, count(*) FILTER (WHERE {training}) AS training, count(*) FILTER (WHERE {validation}) AS validation
      FROM {source} t WHERE {usable} GROUP BY 1 LIMIT %s::bigint) v

-- name: weights
-- How many training rows there are, how many have a weight that can be one, and their mean.
SELECT count(*) AS rows, count(*) FILTER (WHERE w.weight >= 0 AND w.weight < 'Infinity') AS usable,
       pg_catalog.avg(w.weight) FILTER (WHERE w.weight >= 0 AND w.weight < 'Infinity') AS mean
FROM (SELECT {weight} AS weight FROM {source} t WHERE {side} OFFSET 0) w

-- name: bound
-- Where the last share of all rows begins, by a column.
SELECT pg_catalog.percentile_disc(1 - %s::double precision) WITHIN GROUP (ORDER BY {column})::text AS bound FROM {source} t WHERE {usable}

-- name: encoded
-- In an order that rows themselves decide, so that it does not matter how they lie in the table.
CREATE TEMPORARY TABLE {output} ON COMMIT DROP AS
SELECT {columns} FROM {source} t WHERE {side} ORDER BY {order}

-- name: fingerprint
-- Of the rows of both sides, in whatever order they come; {hash} is one of a row.
SELECT pg_catalog.md5(pg_catalog.concat_ws('/',
    (SELECT sum({hash}) FROM pg_temp.cerebro_training t), (SELECT sum({hash}) FROM pg_temp.cerebro_validation t))) AS fingerprint

-- name: pack_training
SELECT {schema}.training_preprocessor_dl('pg_temp.cerebro_training', %s, 'label', %s, n_segments => %s::integer, seed => %s::bigint, dependent_type => %s,
                                         sample_weight_varname => %s)

-- name: pack_validation
SELECT {schema}.validation_preprocessor_dl('pg_temp.cerebro_validation', %s, 'label', %s, %s)

-- name: data_tables
-- Those of these tables that there are, and that are the current user's.
SELECT n.name, pg_catalog.pg_total_relation_size(t.oid) AS bytes
FROM pg_catalog.pg_class t CROSS JOIN LATERAL (SELECT 'cerebro_state."' || t.relname || '"' AS name) n
WHERE t.relnamespace = 'cerebro_state'::pg_catalog.regnamespace AND t.relkind = 'r' AND n.name = ANY (%s::text[])
  AND t.relowner = (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = current_user)
