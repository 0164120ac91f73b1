-- name: tables
-- What frozen layers gave in earlier runs of the caller's, what was kept last first: of what, as its comment says, which only
-- the owner of a table can write. Numbers of transactions come again; long before that nothing counts that one has marked.
SELECT k.relname, k.bytes, k.told[1] AS fingerprint,
       s.oid IS NOT NULL AND pg_catalog.txid_snapshot_xmax(pg_catalog.txid_current_snapshot())::text::numeric - k.told[3]::numeric BETWEEN 0 AND 1000000000 AS valid,
       k.told[2]::bigint AS source
FROM (SELECT c.relname, pg_catalog.pg_total_relation_size(c.oid) AS bytes,
             pg_catalog.regexp_match(d.description, '^features ([0-9a-f]{64}) of ([0-9]{1,10}) at ([0-9]{1,20})$') AS told
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_description d ON d.objoid = c.oid AND d.classoid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objsubid = 0
      JOIN pg_catalog.pg_roles o ON o.oid = c.relowner AND o.rolname = current_user
      WHERE c.relnamespace = 'cerebro_state'::pg_catalog.regnamespace AND c.relkind = 'r' AND pg_catalog.starts_with(c.relname::text, 'kept_')) k
LEFT JOIN pg_catalog.pg_class s ON s.oid::bigint = k.told[2]::bigint
WHERE k.told IS NOT NULL ORDER BY k.told[3]::numeric DESC, k.relname

-- name: plain
-- Whether the versions of a table's rows tell that they are the same.
SELECT c.relkind = 'r' AND a.amname = 'heap' AND NOT c.relhassubclass FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_am a ON a.oid = c.relam WHERE c.oid = %s::bigint

-- name: columns
SELECT a.attname, a.attnum::integer FROM pg_catalog.pg_attribute a WHERE a.attrelid = %s::bigint AND a.attname = ANY (%s::text[]) ORDER BY a.attname

-- name: rows
-- Which versions of which rows there are for the caller: a version is never changed, and its place and its transaction tell
-- it from all others. What is told with them comes first: whoever changes a row later has a greater number.
SELECT pg_catalog.txid_snapshot_xmax(pg_catalog.txid_current_snapshot())::text, count(*),
       pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(pg_catalog.string_agg(
           pg_catalog.concat_ws(',', t.ctid, t.xmin, {key}, t.buffer_id), ';' ORDER BY t.ctid), 'UTF8')), 'hex')
FROM {table} t

-- name: count
SELECT count(*) FROM {table} t

-- name: take
-- One that is there already is of an earlier attempt.
SELECT pg_catalog.set_config('cerebro_db.lock_timeout', pg_catalog.current_setting('lock_timeout'), true),
       pg_catalog.set_config('lock_timeout', '2s', true);
DROP TABLE IF EXISTS {features};
ALTER TABLE {kept} RENAME TO {renamed};
COMMENT ON TABLE {features} IS NULL;
SELECT pg_catalog.set_config('lock_timeout', pg_catalog.current_setting('cerebro_db.lock_timeout'), true);
SELECT {literal}::pg_catalog.regclass::pg_catalog.oid::bigint

-- name: index
-- The index of a table, where it has another name: what begins with that of a run is taken for the run's.
SELECT 'cerebro_state.' || pg_catalog.quote_ident(c.relname) FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = %s::bigint AND c.relname <> %s::text

-- name: rename_index
ALTER INDEX {index} RENAME TO {renamed}

-- name: keep
SELECT pg_catalog.set_config('cerebro_db.lock_timeout', pg_catalog.current_setting('lock_timeout'), true),
       pg_catalog.set_config('lock_timeout', '2s', true);
ALTER TABLE {features} RENAME TO {renamed};
COMMENT ON TABLE {kept} IS {comment};
SELECT pg_catalog.set_config('lock_timeout', pg_catalog.current_setting('cerebro_db.lock_timeout'), true)
