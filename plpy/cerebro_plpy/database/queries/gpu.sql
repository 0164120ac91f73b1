-- name: table
CREATE TABLE {output} (hostname text, gpu_descr text)
-- on Greenplum: DISTRIBUTED REPLICATED

-- name: add
INSERT INTO {output}
SELECT f.hostname, f.gpu_descr FROM ROWS FROM (pg_catalog.unnest(%s::text[]), pg_catalog.unnest(%s::text[])) AS f (hostname, gpu_descr)

-- name: hosts
-- One segment of each host.
SELECT min(c.content)::integer AS content, c.hostname::text AS hostname
FROM pg_catalog.gp_segment_configuration c WHERE c.content >= 0 AND c.role = 'p' GROUP BY c.hostname ORDER BY 1

-- name: of_hosts
SELECT s.content, s.gpus::text AS gpus
FROM (SELECT g.gp_segment_id AS content, cerebro.gpu_report(%s::text) AS gpus FROM gp_dist_random('pg_catalog.gp_id') g
      WHERE g.gp_segment_id = ANY (%s::integer[])) s
ORDER BY s.content
