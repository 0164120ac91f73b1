-- What Greenplum needs beside what PostgreSQL has; elsewhere nothing happens here.
DO $$
DECLARE
    logged text;
BEGIN
    IF pg_catalog.to_regclass('pg_catalog.gp_segment_configuration') IS NULL THEN
        RETURN;
    END IF;
    -- Visits and evaluations are logged on the segment that makes them: so a visit's state and its row are one commit on one
    -- segment. What functions on segments read, and what policies look up, is on every segment.
    FOREACH logged IN ARRAY ARRAY['config_log', 'metric'] LOOP
        EXECUTE pg_catalog.format('ALTER TABLE cerebro.%I SET DISTRIBUTED BY (run_id)', logged);
    END LOOP;
    ALTER TABLE cerebro.visit DROP CONSTRAINT visit_pkey, ADD PRIMARY KEY (run_id, mst_key, visit_no, attempt, segment_id);
    FOREACH logged IN ARRAY ARRAY['visit', 'evaluation'] LOOP
        EXECUTE pg_catalog.format('ALTER TABLE cerebro.%I SET DISTRIBUTED BY (segment_id)', logged);
    END LOOP;
    EXECUTE 'ALTER TABLE cerebro.form_timing SET DISTRIBUTED BY (owner)';
    EXECUTE 'ALTER TABLE cerebro.setting SET DISTRIBUTED REPLICATED';
    EXECUTE 'ALTER TABLE cerebro.run_log SET DISTRIBUTED REPLICATED';
    -- A segment cannot ask which number its session took last.
    DROP POLICY IF EXISTS own_numbers ON cerebro.run_log;
    -- As a join, a policy makes further segments take part in each change of the log. Each has all rows of run_log itself.
    EXECUTE $function$
        CREATE OR REPLACE FUNCTION cerebro.owns_run(run_id bigint) RETURNS boolean
        LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS
        'SELECT EXISTS (SELECT FROM cerebro.run_log r WHERE r.run_id = owns_run.run_id AND r.owner = current_user)'
        $function$;
    COMMENT ON FUNCTION cerebro.owns_run(bigint) IS 'Internal: whether the run belongs to the current user';
    FOREACH logged IN ARRAY ARRAY['config_log', 'visit', 'evaluation', 'metric'] LOOP
        EXECUTE pg_catalog.format('ALTER POLICY own_runs ON cerebro.%I USING (cerebro.owns_run(run_id))', logged);
    END LOOP;
    -- Keys of segments, several for each: a statement that names one is sent to its segment alone.
    EXECUTE 'CREATE TABLE IF NOT EXISTS cerebro.segment_key (key integer PRIMARY KEY) DISTRIBUTED BY (key)';
    INSERT INTO cerebro.segment_key SELECT k FROM pg_catalog.generate_series(0, 9999) k
    WHERE NOT EXISTS (SELECT FROM cerebro.segment_key);
    COMMENT ON TABLE cerebro.segment_key IS 'Values of __dist_key__: rows that have one lie on the segment where its row here lies';
    GRANT SELECT ON cerebro.segment_key TO PUBLIC;
    -- The lock of an orchestrator cannot be looked up beside a table, but the session by which it writes the log lives as
    -- long as it does.
    EXECUTE $view$
        CREATE OR REPLACE VIEW cerebro.orchestrator AS
        SELECT DISTINCT r.run_id, r.pid
        FROM pg_catalog.pg_stat_activity a JOIN cerebro.run_log r
             ON r.owner = a.usename AND r.run_id = pg_catalog.substring(a.application_name, '^cerebro_db run ([0-9]{1,18}) control$')::bigint
        WHERE a.datname = current_database() $view$;
END $$;
