-- From 0.2.0 to 0.3.0: what of the tables cannot be created or replaced.

-- A setting that is gone; a row of it would be refused.
DELETE FROM cerebro.setting WHERE name = 'function_path';
COMMENT ON COLUMN cerebro.setting.name IS 'trainer_python, worker_conninfo, trainer_idle_seconds, trainer_memory_mb, cache_mb, compilation_cache, gpus, max_workers_total';

ALTER TABLE cerebro.run_log ADD COLUMN dropped boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN cerebro.run_log.dropped IS 'whether its owner wants it gone: see cerebro.remove_dropped';

-- A run is logged before its frameworks are chosen.
ALTER TABLE cerebro.config_log ALTER COLUMN backend DROP NOT NULL;
COMMENT ON COLUMN cerebro.config_log.backend IS 'the framework that trains it: tensorflow or jax; NULL until it is chosen';

ALTER TABLE cerebro.config_log ADD COLUMN best_epoch integer;
COMMENT ON COLUMN cerebro.config_log.state_tables IS 'the tables in schema cerebro_state that alternate as holders of the state, and the one of the best epoch';
COMMENT ON COLUMN cerebro.config_log.best_epoch IS 'the epoch of which the state is kept as the best so far, where one is kept';

-- Who may update or delete the rows of a table may also lock it against everybody: roles may update columns instead.
DO $$
DECLARE
    role text;
    ours CONSTANT text := 'cerebro.run_log, cerebro.config_log, cerebro.visit, cerebro.evaluation, cerebro.metric, cerebro.form_timing';
BEGIN
    FOR role IN
        SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(a.grantee)) END
        FROM pg_catalog.pg_class c CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) a
        WHERE c.oid = 'cerebro.run_log'::regclass AND a.privilege_type = 'UPDATE' AND a.grantee <> c.relowner
    LOOP
        EXECUTE pg_catalog.format('REVOKE UPDATE, DELETE ON %s FROM %s', ours, role);
        EXECUTE pg_catalog.format('GRANT UPDATE (status, ended_at, error, pid, dropped) ON cerebro.run_log TO %s', role);
        EXECUTE pg_catalog.format('GRANT UPDATE (status, reason, state_tables, backend, best_epoch) ON cerebro.config_log TO %s', role);
        EXECUTE pg_catalog.format('GRANT UPDATE (status, ended_at, rows, state_bytes, form, threads, error, loss, state_table,'
                                  ' training_seconds) ON cerebro.visit TO %s', role);
        EXECUTE pg_catalog.format('GRANT UPDATE (status, ended_at, rows, error) ON cerebro.evaluation TO %s', role);
        EXECUTE pg_catalog.format('GRANT UPDATE (seconds_per_row, compile_seconds, measured_at) ON cerebro.form_timing TO %s', role);
    END LOOP;
END $$;
-- By that PostgreSQL takes the privileges of these tables for the extension's own, and pg_dump would leave them out.
SET LOCAL allow_system_table_mods = on;
DELETE FROM pg_catalog.pg_init_privs p
WHERE p.classoid = 'pg_catalog.pg_class'::regclass
  AND p.objoid IN ('cerebro.run_log'::regclass, 'cerebro.config_log'::regclass, 'cerebro.visit'::regclass,
                   'cerebro.evaluation'::regclass, 'cerebro.metric'::regclass, 'cerebro.form_timing'::regclass);
SET LOCAL allow_system_table_mods = off;

-- It knows by other means that it is wanted; 0.1.0 had no such procedure.
DROP PROCEDURE IF EXISTS cerebro.work(integer, json);

-- Its normalizing_const may be a double precision, as drivers send numbers.
DROP FUNCTION @extschema@.training_preprocessor_dl(varchar, varchar, varchar, varchar, integer, real, integer[], text, integer, bigint, text);

-- Blocks of rows are sent by cerebro.pack_block now.
DROP FUNCTION cerebro.pack_rows(json, bytea[]);
