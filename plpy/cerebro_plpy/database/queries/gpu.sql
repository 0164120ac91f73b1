-- name: table
CREATE TABLE {output} (hostname text, gpu_descr text)
{distributed_replicated}

-- name: add
INSERT INTO {output}
SELECT f.hostname, f.gpu_descr FROM ROWS FROM (pg_catalog.unnest(%s::text[]), pg_catalog.unnest(%s::text[])) AS f (hostname, gpu_descr)
