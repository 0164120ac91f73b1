-- name: count
SELECT count(*) AS rows{nulls} FROM {source} t

-- name: classes
-- The classes of a target: NULL first, then by code point of their text, numbers by value.
SELECT pg_catalog.array_agg(d.v ORDER BY d.v IS NOT NULL, {order})::text[] AS classes
FROM (SELECT DISTINCT t.{column} AS v FROM {source} t LIMIT {most}) d

-- name: elements
SELECT pg_catalog.cardinality(t.{column}) AS elements FROM {source} t LIMIT 1

-- name: image
-- The shape of the first image.
SELECT (cerebro.pack_rows(%s::json, ARRAY[pg_catalog.array_send({image})])).shapes::text AS shapes FROM {source} t LIMIT 1

-- name: shapes
SELECT t.{shape}[2:] AS shape, sum(t.{shape}[1]) AS rows FROM {output} t GROUP BY 1 ORDER BY 2 DESC, 1

-- name: table
CREATE TABLE {output} (
    __dist_key__ integer NOT NULL, {columns}, {shapes}, buffer_id integer NOT NULL)

-- name: external
ALTER TABLE {output} ALTER COLUMN {column} SET STORAGE EXTERNAL

-- name: fill
-- Rows in the order of a hash of their number and the seed, cut into buffers whose sizes differ by at most one;
-- neighbouring buffers form a segment, so that segments are as even. Rows that came since they were counted go last.
INSERT INTO {output} (__dist_key__, {names}, {shape_names}, buffer_id)
SELECT (b.buffer_id * {segments}::bigint / {buffers})::integer, {parts}, {part_shapes}, b.buffer_id
FROM (SELECT g.buffer_id, cerebro.pack_rows(
          pg_catalog.json_build_object('rows', count(*), 'arrays', %s::json), ARRAY[{aggregates}]) AS packed
      FROM (SELECT least(o.position * {buffers} / {rows}, {buffers} - 1)::integer AS buffer_id, o.position, {carried}
            FROM (SELECT pg_catalog.row_number() OVER (ORDER BY {order}) - 1 AS position, {carried}
                  FROM (SELECT pg_catalog.row_number() OVER () AS number, {columns} FROM {source} t OFFSET 0) n) o
            ORDER BY 1, 2) g
      GROUP BY g.buffer_id) b

-- name: index
CREATE INDEX ON {output} (__dist_key__, buffer_id)

-- name: summary
CREATE TABLE {summary} (
    source_table text, output_table text, dependent_varname text[], independent_varname text[], dependent_vartype text[],
    {class_columns}, buffer_size integer, normalizing_const real, num_classes integer[], distribution_rules text,
    __internal_gpu_config__ text)

-- name: summarize
INSERT INTO {summary} VALUES (
    %s::text, %s::text, %s::text[], %s::text[], %s::text[], {class_values}, %s::integer, %s::real, %s::integer[], %s::text, %s::text)
