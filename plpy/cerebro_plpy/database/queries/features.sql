-- name: columns
-- With the types that domains stand for, whether they have a cast to real[] that only a superuser can have made, the columns of
-- the primary key, the types that values are compared as, which mean the same on any path, whether the current user may read
-- them, whether one is a primary key alone, and whether its collation takes different texts for equal.
SELECT a.attname::text AS name, pg_catalog.format_type(a.atttypid, a.atttypmod) AS type, b.typname::text AS base,
       b.typtype::text AS kind, b.typcategory::text AS category,
       EXISTS (SELECT FROM pg_catalog.pg_cast c LEFT JOIN pg_catalog.pg_proc p ON p.oid = c.castfunc
                                                LEFT JOIN pg_catalog.pg_language l ON l.oid = p.prolang
               WHERE c.castsource = b.oid AND c.casttarget = 'pg_catalog.float4[]'::pg_catalog.regtype
                 AND (c.castmethod <> 'f' OR l.lanname IN ('c', 'internal'))) AS castable,
       EXISTS (SELECT FROM pg_catalog.pg_index i
               WHERE i.indrelid = a.attrelid AND i.indisprimary AND a.attnum = ANY (i.indkey)) AS key,
       CASE WHEN b.typcategory = 'S' THEN 'text'
            WHEN b.typnamespace = 'pg_catalog'::pg_catalog.regnamespace THEN pg_catalog.format_type(b.oid, -1)
            ELSE pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(b.typname) END AS compared,
       pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT') AS readable,
       EXISTS (SELECT FROM pg_catalog.pg_index i
               WHERE i.indrelid = a.attrelid AND i.indisprimary AND i.indnkeyatts = 1 AND a.attnum = i.indkey[0]) AS alone,
       EXISTS (SELECT FROM pg_catalog.pg_collation c WHERE c.oid = a.attcollation AND NOT c.collisdeterministic) AS folded
FROM pg_catalog.pg_attribute a CROSS JOIN LATERAL (
    WITH RECURSIVE d AS (
        SELECT t.oid, t.typname, t.typtype, t.typcategory, t.typnamespace, t.typbasetype FROM pg_catalog.pg_type t WHERE t.oid = a.atttypid
        UNION ALL
        SELECT t.oid, t.typname, t.typtype, t.typcategory, t.typnamespace, t.typbasetype FROM pg_catalog.pg_type t JOIN d ON t.oid = d.typbasetype
    )
    SELECT d.oid, d.typname, d.typtype, d.typcategory, d.typnamespace FROM d WHERE d.typtype <> 'd') b
JOIN pg_catalog.pg_namespace n ON n.oid = b.typnamespace
WHERE a.attrelid = %s::oid AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum

-- name: result_columns
-- The same of columns of a query, which have no table: their names, types and modifiers are known.
SELECT c.name, pg_catalog.format_type(c.type::oid, c.modifier::integer) AS type, b.typname::text AS base,
       b.typtype::text AS kind, b.typcategory::text AS category,
       EXISTS (SELECT FROM pg_catalog.pg_cast k LEFT JOIN pg_catalog.pg_proc p ON p.oid = k.castfunc
                                                LEFT JOIN pg_catalog.pg_language l ON l.oid = p.prolang
               WHERE k.castsource = b.oid AND k.casttarget = 'pg_catalog.float4[]'::pg_catalog.regtype
                 AND (k.castmethod <> 'f' OR l.lanname IN ('c', 'internal'))) AS castable,
       false AS key,
       CASE WHEN b.typcategory = 'S' THEN 'text'
            WHEN b.typnamespace = 'pg_catalog'::pg_catalog.regnamespace THEN pg_catalog.format_type(b.oid, -1)
            ELSE pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(b.typname) END AS compared,
       true AS readable, false AS alone,
       EXISTS (SELECT FROM pg_catalog.pg_type t JOIN pg_catalog.pg_collation k ON k.oid = t.typcollation
               WHERE t.oid = c.type::oid AND NOT k.collisdeterministic) AS folded
FROM ROWS FROM (pg_catalog.unnest(%s::text[]), pg_catalog.unnest(%s::bigint[]), pg_catalog.unnest(%s::bigint[]))
     WITH ORDINALITY AS c (name, type, modifier, place) CROSS JOIN LATERAL (
    WITH RECURSIVE d AS (
        SELECT t.oid, t.typname, t.typtype, t.typcategory, t.typnamespace, t.typbasetype FROM pg_catalog.pg_type t WHERE t.oid = c.type::oid
        UNION ALL
        SELECT t.oid, t.typname, t.typtype, t.typcategory, t.typnamespace, t.typbasetype FROM pg_catalog.pg_type t JOIN d ON t.oid = d.typbasetype
    )
    SELECT d.oid, d.typname, d.typtype, d.typcategory, d.typnamespace FROM d WHERE d.typtype <> 'd') b
JOIN pg_catalog.pg_namespace n ON n.oid = b.typnamespace
ORDER BY c.place

-- name: rows
SELECT pg_catalog.count(*) AS rows FROM {source} t WHERE {side}

-- name: total
-- All rows, and those that have a target; and the largest values of columns that grow.
SELECT pg_catalog.count(*) AS rows, pg_catalog.count({value}) AS present, ARRAY[{newest}]::text[] AS newest FROM {source} t

-- name: unknown
-- Rows whose label is not known, by label: those without one first, then the most frequent ones; and all rows that have one.
SELECT r.label, r.rows, (pg_catalog.sum(r.rows) FILTER (WHERE r.label IS NOT NULL) OVER ())::bigint AS labelled
FROM (SELECT {label}::text AS label, pg_catalog.count(*) AS rows FROM {source} t WHERE ({known}) IS NOT TRUE AND ({side}) GROUP BY 1) r
ORDER BY r.label IS NOT NULL, r.rows DESC, r.label COLLATE "C" LIMIT %s::bigint

-- name: different
-- Whether among so many rows there are more than so many values.
SELECT pg_catalog.count(DISTINCT r.value) > %s::bigint AS many FROM (SELECT {value} AS value FROM {source} t WHERE {value} IS NOT NULL LIMIT %s::bigint) r

-- name: has_digits
-- Whether all of so many texts have digits, and there are some.
SELECT coalesce(pg_catalog.bool_and(r.value ~ '[0-9]'::text), false) AS digits
FROM (SELECT {value} COLLATE "C" AS value FROM {source} t WHERE {value} IS NOT NULL LIMIT %s::bigint) r

-- name: has_value
-- Whether any row has a value.
SELECT EXISTS (SELECT FROM {source} t WHERE {value} IS NOT NULL) AS has_value

-- name: extremes
-- {aggregates} say something about columns over all rows: so simple that several processes may share them. {found} are
-- expressions of what they come to.
SELECT {found} FROM (SELECT pg_catalog.count(*) AS rows{aggregates} FROM {source} t WHERE {side}) t

-- name: scalars
-- {others} say of columns of JSON whether there are others than numbers.
SELECT {others} FROM {source} t WHERE {side}

-- name: keys
-- The keys of the objects of JSON in the sample, the most frequent first.
SELECT k.key FROM (SELECT {value} AS value FROM {source} t WHERE {side} OFFSET 0) r
CROSS JOIN LATERAL pg_catalog.json_object_keys(CASE WHEN pg_catalog.json_typeof(r.value) = 'object' THEN r.value END) AS k (key)
GROUP BY k.key ORDER BY pg_catalog.count(*) DESC, k.key COLLATE pg_catalog."C" LIMIT %s::bigint

-- name: spread
-- {aggregates} say something about the expressions of columns, over all rows.
SELECT {aggregates} FROM {source} t WHERE {side}

-- name: sample
-- {columns} are expressions, each of them named; {aggregates} say something about each. A row is of the sample by its hash,
-- so that it is the same whatever order the rows come in: {side} says it.
SELECT {aggregates}
FROM (SELECT {columns} FROM {source} t WHERE {side} OFFSET 0) r

-- name: keep_sample
-- The transaction that makes it drops it: nobody else sees it.
CREATE UNLOGGED TABLE {output} AS SELECT {columns} FROM {source} t WHERE {side}

-- name: range
-- Of a column of numbers {c}; infinite ones are none of the range.
pg_catalog.count({c}) AS {n}_rows,
pg_catalog.min({c}) FILTER (WHERE {c} > '-Infinity' AND {c} < 'Infinity') AS {n}_low,
pg_catalog.max({c}) FILTER (WHERE {c} > '-Infinity' AND {c} < 'Infinity') AS {n}_high

-- name: rows_ahead
-- The rows with a number, and those of them with one beyond two bounds; a bound that is NULL bounds nothing.
pg_catalog.count({number}) AS {n}_rows,
pg_catalog.count(*) FILTER (WHERE {number} < %s::double precision OR {number} > %s::double precision) AS {n}_ahead

-- name: sampled_numbers
-- What is asked of a column of numbers {c} of the sample.
pg_catalog.percentile_disc('{shares}'::double precision[]) WITHIN GROUP (ORDER BY {c})
    FILTER (WHERE {c} > '-Infinity' AND {c} < 'Infinity') AS {c}_quantiles,
pg_catalog.count({c}) AS {c}_sampled, {different} AS {c}_different,
pg_catalog.min({c}) FILTER (WHERE {c} > '-Infinity' AND {c} < 'Infinity') AS {c}_low,
pg_catalog.max({c}) FILTER (WHERE {c} > '-Infinity' AND {c} < 'Infinity') AS {c}_high

-- name: different_numbers
-- How many numbers of a column there are.
pg_catalog.count(DISTINCT {c})

-- name: several_numbers
-- Whether there are several, as 2, 1 or 0: they need not be sorted for that.
(CASE WHEN pg_catalog.min({c}) < pg_catalog.max({c}) THEN 2 ELSE least(pg_catalog.count({c}), 1) END)

-- name: sampled_texts
-- And of those of the sample.
pg_catalog.count({c}) AS {c}_sampled, pg_catalog.count(DISTINCT {c} COLLATE pg_catalog."C") AS {c}_different,
pg_catalog.avg(pg_catalog.length({c}) - pg_catalog.length(pg_catalog.replace({c}, ' ', '')) + 1)::double precision AS {c}_words

-- name: sampled_shapes
-- And of the shapes {s} of texts: see preprocessing/values/text_shapes.py.
pg_catalog.count({c}) FILTER (WHERE NOT ({empty})) AS {c}_filled,
coalesce(pg_catalog.array_agg({s}) FILTER (WHERE {s} IS NOT NULL), ARRAY[]::text[]) AS {s}_shapes

-- name: wording
-- Of the texts of the sample: a quantile of how many words they have, at most {most} of each, and how many words there are more
-- than once; and in how many texts each number of a word is.
-- What a WITH query has made is joined: where a subselect reads it beside others, Greenplum waits for ever.
WITH s AS MATERIALIZED (
    SELECT ARRAY(SELECT w.word FROM {words} AS w (word) WHERE w.word <> '' LIMIT {most}) AS words
    FROM {source} t WHERE {side} AND {text} IS NOT NULL
)
SELECT l.length, l.texts, r.repeated, n.numbers, n.frequencies
FROM (SELECT pg_catalog.count(*) AS texts,
             pg_catalog.percentile_disc(%s::double precision) WITHIN GROUP (ORDER BY pg_catalog.cardinality(s.words)) AS length
      FROM s) l
CROSS JOIN (SELECT pg_catalog.count(*) AS repeated
            FROM (SELECT FROM s CROSS JOIN LATERAL pg_catalog.unnest(s.words) AS w (word) GROUP BY w.word COLLATE pg_catalog."C" HAVING pg_catalog.count(*) > 1) r) r
CROSS JOIN (SELECT pg_catalog.array_agg(g.number ORDER BY g.number) AS numbers,
                   pg_catalog.array_agg(g.texts ORDER BY g.number) AS frequencies
            FROM (SELECT d.number, pg_catalog.count(*) AS texts
                  FROM s CROSS JOIN LATERAL (SELECT DISTINCT {number} AS number FROM pg_catalog.unnest(s.words) AS w (word)) d
                  GROUP BY d.number) g) n

-- name: categories
-- The values of columns that are there more than once, the most frequent first; {place} is a bit for each column but its own.
SELECT f.place, f.value, f.rows
FROM (SELECT g.place, g.value, g.rows, pg_catalog.row_number() OVER (PARTITION BY g.place ORDER BY g.rows DESC, g.value COLLATE pg_catalog."C") AS n
      FROM (SELECT GROUPING({names}) AS place, coalesce({names}) AS value, pg_catalog.count(*) AS rows
            FROM (SELECT {columns} FROM {source} t WHERE {side} OFFSET 0) r
            GROUP BY GROUPING SETS ({sets}) HAVING pg_catalog.count(*) > 1) g
      WHERE g.value IS NOT NULL) f
WHERE f.n <= %s::bigint
ORDER BY f.place, f.n

-- name: unknown_values
-- Values of columns that a model does not know: {columns} are NULL for all others.
SELECT {aggregates} FROM (SELECT {columns} FROM {source} t WHERE {side} OFFSET 0) r

-- name: unknown_value
-- Their number in one column, and two of them.
pg_catalog.count(r.{u}) AS {u}_rows, pg_catalog.min(r.{u} COLLATE pg_catalog."C") AS {u}_low, pg_catalog.max(r.{u} COLLATE pg_catalog."C") AS {u}_high

-- name: target
-- Statistics of the finite numbers, added in their order, on which a sum of fractions depends. The mean and the deviation are those
-- of the distances from the smallest number: a constant that is added to all numbers changes no bit of them. Both are of numbers
-- within 1e100, whose squares are numbers, so the caller checks the range first.
SELECT pg_catalog.count(*) AS finite, pg_catalog.min(n.number) AS low, pg_catalog.max(n.number) AS high,
       pg_catalog.avg(v.above ORDER BY n.number) AS mean_above, coalesce(pg_catalog.stddev_pop(v.above ORDER BY n.number), 0) AS deviation
FROM (SELECT f.number, pg_catalog.min(f.number) OVER () AS low
      FROM (SELECT {number} AS number FROM {source} t WHERE {side} OFFSET 0) f
      WHERE f.number > '-Infinity' AND f.number < 'Infinity') n
CROSS JOIN LATERAL (SELECT least(greatest(n.number, -1e100), 1e100) - least(greatest(n.low, -1e100), 1e100) AS above) v

-- name: rounded
-- How many different numbers a target has, how many of them double precision distinguishes, and the smallest one.
SELECT pg_catalog.count(DISTINCT {column}::numeric) AS exact, pg_catalog.count(DISTINCT {number}) AS rounded,
       pg_catalog.min({column}::numeric)::text AS lowest
FROM {source} t WHERE {side}

-- name: copies
-- How many rows there are, and how many of them differ, by {values}, a hash of all of a row: of every {parts}th of the hashes.
SELECT pg_catalog.count(*) AS rows, pg_catalog.count(DISTINCT v.hash) AS different
FROM (SELECT {values} AS hash FROM {source} t OFFSET 0) v WHERE (v.hash >> 32 & 2147483647::bigint) % {parts}::bigint = 0

-- name: split_words
-- The values of a column that has the side of each row, the most frequent first.
SELECT v.text, v.word, pg_catalog.count(*) AS rows
FROM (SELECT {text} AS text, {word} AS word FROM {source} t OFFSET 0) v
WHERE v.text IS NOT NULL GROUP BY 1, 2 ORDER BY 3 DESC, 1 LIMIT %s::bigint

-- name: sides
-- How many rows of each value are on either side.
SELECT v.value, v.training, v.validation
FROM (SELECT {value} AS value, {training} AS training, {validation} AS validation
      FROM {source} t WHERE {target} IS NOT NULL GROUP BY 1 LIMIT %s::bigint) v

-- name: groups
-- How many rows of a side each group has, by {label}.
SELECT {value} AS value, {label} AS label, pg_catalog.count(*) AS rows FROM {source} t WHERE {side} GROUP BY 1, 2

-- name: weights
-- How many training rows there are, how many have a weight that can be one, and their mean.
SELECT pg_catalog.count(*) AS rows, pg_catalog.count(*) FILTER (WHERE w.weight >= '0'::double precision AND w.weight < 'Infinity') AS usable,
       pg_catalog.avg(w.weight ORDER BY w.weight) FILTER (WHERE w.weight >= '0'::double precision AND w.weight < 'Infinity') AS mean
FROM (SELECT {weight} AS weight FROM {source} t WHERE {side} OFFSET 0) w

-- name: labels
-- The classes of the rows of a side.
SELECT DISTINCT {label} AS label FROM {source} t WHERE {side}

-- name: label_range
-- How many rows a side has, the least and the largest of their labels, and how many labels are 0.
SELECT pg_catalog.count(*) AS rows, pg_catalog.min({value})::text AS low, pg_catalog.max({value})::text AS high,
       pg_catalog.count(*) FILTER (WHERE {zero}) AS zeros
FROM (SELECT {label} AS label FROM {source} t WHERE {side} OFFSET 0) r

-- name: bound
-- The value from which on a share of the rows is held back that is the nearest to the requested one, and less than all: how many rows
-- have it or a larger one, how many have a value, and how many have none. Of two that are as near, the one that holds back more.
SELECT {written} AS bound, b.held_back::bigint, coalesce(b.rows, 0)::bigint AS rows, coalesce(b.missing, 0)::bigint AS missing
FROM (SELECT v.value, pg_catalog.sum(v.rows) OVER (ORDER BY v.value DESC NULLS LAST) AS held_back,
             pg_catalog.sum(v.rows) FILTER (WHERE v.value IS NOT NULL) OVER () AS rows,
             pg_catalog.sum(v.rows) FILTER (WHERE v.value IS NULL) OVER () AS missing
      FROM (SELECT {column} AS value, pg_catalog.count(*) AS rows FROM {source} t WHERE {usable} GROUP BY 1) v) b
ORDER BY b.value IS NULL, b.held_back = b.rows, pg_catalog.abs(b.held_back - %s::double precision::numeric * b.rows), b.held_back DESC
LIMIT 1

-- name: marks
-- The hashes of values, as they are made of a column: see preprocessing/recipe/split_encoding.py.
SELECT pg_catalog.array_agg(pg_catalog.hashtextextended(v.value COLLATE pg_catalog."C", 0) ORDER BY v.n) AS first,
       pg_catalog.array_agg(pg_catalog.hashtextextended(v.value COLLATE pg_catalog."C", 1) ORDER BY v.n) AS second
FROM pg_catalog.unnest(%s::text[]) WITH ORDINALITY AS v (value, n)

-- name: raw_rows
-- The transaction that makes it drops it: nobody else sees it.
CREATE UNLOGGED TABLE {output} AS
SELECT {columns} FROM {source} t WHERE {side} ORDER BY {order}

-- name: digest
-- How many rows a side has, by {label}, and the sum of their hashes, for which their order is all one; {hash} is one of a row.
SELECT {label} AS label, pg_catalog.count(*) AS rows, pg_catalog.sum({hash})::text AS hashes FROM {table} t GROUP BY 1

-- name: pack_training
SELECT cerebro_internal.pack_mixed(%s, %s, 'label', %s, %s, %s, %s::bigint, %s::text[], %s::json, %s::json, %s::integer)

-- name: pack_validation
SELECT cerebro_internal.pack_beside(%s, %s, 'label', %s, %s, %s::json, %s::json)

-- name: before_compared
SAVEPOINT cerebro_compared

-- name: without_compared
ROLLBACK TO SAVEPOINT cerebro_compared

-- name: pack_compared
SELECT cerebro_internal.pack_mixed(%s, %s, 'label', %s, %s, NULL, %s::bigint, %s::text[], %s::json, NULL, NULL)

-- name: copy_packed
CREATE TABLE {output} (LIKE {source} INCLUDING ALL); INSERT INTO {output} SELECT * FROM {source};
SELECT cerebro_internal.keep_private({literal}::pg_catalog.regclass)

-- name: add_packed
-- The buffers of a table follow those of another one, on its segments in turn.
INSERT INTO {output} (__dist_key__, {columns}, buffer_id)
SELECT (%s::integer[])[1 + t.buffer_id % {segments}], {columns}, t.buffer_id + o.next
FROM {source} t, (SELECT pg_catalog.max(p.buffer_id) + 1 AS next FROM {output} p) o

-- name: cut_packed
-- Each buffer is cut into {parts} of neighbouring rows: part p of buffer b becomes buffer {parts} * b + p. {cuts} cut its columns.
-- Negative numbers tell whole buffers from parts meanwhile.
UPDATE {output} t SET buffer_id = -1 - t.buffer_id;
INSERT INTO {output} (__dist_key__, {columns}, buffer_id)
SELECT b.__dist_key__, {cuts}, (-1 - b.buffer_id) * {parts} + p.number
FROM {output} b CROSS JOIN LATERAL (
    SELECT n.number, n.number * b.{shape}[1] / {parts} AS start, (n.number + 1) * b.{shape}[1] / {parts} - n.number * b.{shape}[1] / {parts} AS rows
    FROM pg_catalog.generate_series(0, {parts} - 1) n (number)) p
WHERE b.buffer_id < 0 AND p.rows > 0;
DELETE FROM {output} t WHERE t.buffer_id < 0

-- name: buffers
-- The buffers of a packed table, with the key of their segment and the number of their rows.
SELECT {key} AS segment, t.buffer_id, t.{shape}[1] AS rows FROM {table} t ORDER BY t.buffer_id

-- name: data_tables
-- Those of these tables that there are, and that are the current user's.
SELECT n.name, pg_catalog.pg_total_relation_size(t.oid) AS bytes
FROM pg_catalog.pg_class t CROSS JOIN LATERAL (SELECT 'cerebro_state."' || t.relname || '"' AS name) n
WHERE t.relnamespace = 'cerebro_state'::pg_catalog.regnamespace AND t.relkind = 'r' AND n.name = ANY (%s::text[])
  AND t.relowner = (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = current_user)

-- name: giveaways
-- How often rows differ from the one before, in the order of each input of a network: a few rows are looked at, chosen by a hash.
-- An input is a category, or it has the place of what says that it is missing; 0 where it does not count. See wording for the join.
WITH s AS MATERIALIZED (
    SELECT {numbers} AS numbers, {codes} AS codes, {label} AS label, {order} AS hash
    FROM {source} t WHERE {side}
), p AS (
    SELECT a.category, a.missing, a.place FROM ROWS FROM (pg_catalog.unnest(%s::boolean[]), pg_catalog.unnest(%s::integer[]))
         WITH ORDINALITY a (category, missing, place)
), v AS (
    SELECT u.place, p.category, u.value, r.label, pg_catalog.lag(u.value) OVER w AS before, pg_catalog.lag(r.label) OVER w AS label_before
    FROM s r CROSS JOIN LATERAL pg_catalog.unnest(r.numbers OPERATOR(pg_catalog.||) r.codes::real[]) WITH ORDINALITY u (value, place) JOIN p USING (place)
    WHERE p.missing IS NULL OR p.missing > 0 AND r.numbers[p.missing] = '0'::real
    WINDOW w AS (PARTITION BY u.place ORDER BY u.value, r.hash)
)
SELECT a.rows, a.expected, v.place, pg_catalog.count(v.label_before) AS pairs, {compared} AS left, {correlation} AS correlation
FROM v CROSS JOIN ({expected}) a WHERE NOT v.category OR v.value = v.before GROUP BY v.place, a.rows, a.expected

-- name: compared_classes
pg_catalog.avg((v.label <> v.label_before)::integer)::double precision

-- name: expected_classes
SELECT pg_catalog.sum(c.rows)::bigint AS rows, (1::numeric - pg_catalog.sum(c.rows * c.rows) / pg_catalog.power(pg_catalog.sum(c.rows), 2))::double precision AS expected
FROM (SELECT pg_catalog.count(*) AS rows FROM s GROUP BY s.label) c

-- name: compared_numbers
-- The order of rows decides the sum of fractions, and there are few.
pg_catalog.avg(pg_catalog.power(v.label::double precision - v.label_before::double precision, 2) / '2'::double precision)

-- name: expected_numbers
SELECT pg_catalog.count(*) AS rows, pg_catalog.var_samp(s.label::double precision) AS expected FROM s
