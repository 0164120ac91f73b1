-- name: tables
-- Stored outputs of frozen layers from earlier runs of the caller, last stored first; the comment of a table, which only its owner can
-- write, identifies its content. Numbers of transactions are reused, long after their marks have lost their effect.
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
-- True if the versions of a table's rows can show that the rows are unchanged.
SELECT c.relkind = 'r' AND a.amname = 'heap' AND NOT c.relhassubclass FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_am a ON a.oid = c.relam WHERE c.oid = %s::bigint

-- name: columns
SELECT a.attname, a.attnum::integer FROM pg_catalog.pg_attribute a WHERE a.attrelid = %s::bigint AND a.attname = ANY (%s::text[]) ORDER BY a.attname

-- name: rows
-- The versions of rows that the caller sees: a version never changes, and its location and transaction distinguish it from all others.
-- The numbers in the result are read first, so that a later change of a row has a greater number.
SELECT pg_catalog.txid_snapshot_xmax(pg_catalog.txid_current_snapshot())::text, count(*),
       pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(pg_catalog.string_agg(
           pg_catalog.concat_ws(',', t.ctid, t.xmin, {key}, t.buffer_id), ';' ORDER BY t.ctid), 'UTF8')), 'hex')
FROM {table} t

-- name: count
SELECT count(*) FROM {table} t

-- name: take
-- An existing one is of an earlier attempt.
SELECT pg_catalog.set_config('cerebro_db.lock_timeout', pg_catalog.current_setting('lock_timeout'), true),
       pg_catalog.set_config('lock_timeout', '2s', true);
DROP TABLE IF EXISTS {features};
ALTER TABLE {kept} RENAME TO {renamed};
COMMENT ON TABLE {features} IS NULL;
SELECT pg_catalog.set_config('lock_timeout', pg_catalog.current_setting('cerebro_db.lock_timeout'), true);
SELECT {literal}::pg_catalog.regclass::pg_catalog.oid::bigint

-- name: index
-- Rename the index of a table: a name that begins with that of a run is taken for the run's.
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
