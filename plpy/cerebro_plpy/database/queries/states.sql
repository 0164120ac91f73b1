-- name: create
CREATE TABLE {states} (mst_key integer NOT NULL, part integer NOT NULL, PRIMARY KEY (mst_key, part))
{distributed_by_mst_key}

-- name: chunk
-- See run.new_state_table.
ALTER TABLE {states} ADD COLUMN chunk bytea NOT NULL, ALTER COLUMN chunk SET STORAGE PLAIN;
SELECT cerebro_internal.keep_private({literal}::pg_catalog.regclass)

-- name: tie
-- The constraint is always true. Because it is not valid yet, pg_dump writes it separately, after the tables: a summary that is
-- restored alone lacks only the constraint.
ALTER TABLE {summary} ADD CONSTRAINT cerebro_states CHECK ({literal}::pg_catalog.regclass IS NOT NULL) NOT VALID;
COMMENT ON CONSTRAINT cerebro_states ON {summary} IS 'Ties the table of whole states to the models: where no summary names it any more, it goes'

-- name: tied
-- The table of states that a summary table names.
SELECT t.oid
FROM pg_catalog.pg_constraint k
     JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass AND d.objid = k.oid
                                AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
     JOIN pg_catalog.pg_class t ON t.oid = d.refobjid
WHERE k.conrelid = %s::oid AND k.contype = 'c' AND t.relnamespace = 'cerebro_state'::pg_catalog.regnamespace AND t.relkind = 'r'

-- name: orphans
-- Tables of states of the current user that are not referenced any more, and that no session, such as a backup, uses.
SELECT t.oid::pg_catalog.regclass::text AS name, pg_catalog.pg_total_relation_size(t.oid) AS bytes
FROM pg_catalog.pg_class t
WHERE t.relnamespace = 'cerebro_state'::pg_catalog.regnamespace AND t.relkind = 'r'
  AND pg_catalog.starts_with(t.relname::text, 'model_')
  AND t.relowner = (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = current_user)
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                  WHERE d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = t.oid AND d.deptype = 'n')
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_locks l
                  WHERE l.locktype = 'relation' AND l.relation = t.oid AND l.pid <> pg_catalog.pg_backend_pid()
                    AND l.database = (SELECT b.oid FROM pg_catalog.pg_database b WHERE b.datname = pg_catalog.current_database()))

-- name: drop
DROP TABLE {states}

-- name: blocks
SELECT pg_catalog.pg_relation_size(%s::pg_catalog.regclass) / pg_catalog.current_setting('block_size')::bigint

-- name: add
INSERT INTO {states} SELECT %s::integer, s.part + %s::integer, s.chunk FROM ({source}) s

-- name: parts
SELECT max(t.part) FROM {state} t
