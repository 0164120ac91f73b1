-- What Greenplum needs beside what PostgreSQL has; elsewhere nothing happens here.
DO $$
DECLARE
    logged text;
    segments CONSTANT boolean := pg_catalog.to_regclass('pg_catalog.gp_segment_configuration') IS NOT NULL;
    roles CONSTANT boolean := pg_catalog.current_setting('gp_role', true) IS NOT NULL;
    kernel CONSTANT integer := pg_catalog.current_setting('server_version_num')::integer / 10000;
BEGIN
    IF NOT segments AND NOT roles THEN
        RETURN;
    END IF;
    -- It is told by its catalog and settings; how it works is known by the PostgreSQL that it is made of.
    IF NOT (segments AND roles AND kernel IN (12, 14)) THEN
        RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
            MESSAGE = pg_catalog.format('cerebro_db does not know this kind of server: %s', pg_catalog.version()),
            DETAIL = pg_catalog.format('gp_segment_configuration %s, gp_role %s, made of PostgreSQL %s.',
                                       CASE WHEN segments THEN 'exists' ELSE 'does not exist' END,
                                       CASE WHEN roles THEN 'exists' ELSE 'does not exist' END, kernel),
            HINT = 'Servers with segments are known that are made of PostgreSQL 12 (Greenplum 7, Greengage 7, WarehousePG 7) or 14 (Apache Cloudberry 1 and 2).';
    END IF;
    IF NOT EXISTS (SELECT FROM pg_catalog.gp_segment_configuration c WHERE c.content >= 0 AND c.role = 'p') THEN
        RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
            MESSAGE = 'this server could have segments and has none, so nothing could be trained on them',
            HINT = 'Add segments to the cluster, or use PostgreSQL where one machine is enough.';
    END IF;
    -- Visits and evaluations are logged on the segment that makes them: so a visit's state and its row are one commit on one
    -- segment. What functions on segments read, and what policies look up, is on every segment.
    FOREACH logged IN ARRAY ARRAY['config_log', 'metric', 'decision_log', 'act_log'] LOOP
        EXECUTE pg_catalog.format('ALTER TABLE cerebro.%I SET DISTRIBUTED BY (run_id)', logged);
    END LOOP;
    ALTER TABLE cerebro.visit DROP CONSTRAINT visit_pkey, ADD PRIMARY KEY (run_id, mst_key, visit_no, attempt, segment_id);
    FOREACH logged IN ARRAY ARRAY['visit', 'evaluation'] LOOP
        EXECUTE pg_catalog.format('ALTER TABLE cerebro.%I SET DISTRIBUTED BY (segment_id)', logged);
    END LOOP;
    EXECUTE 'ALTER TABLE cerebro.form_timing SET DISTRIBUTED BY (owner)';
    EXECUTE 'ALTER TABLE cerebro.setting SET DISTRIBUTED REPLICATED';
    EXECUTE 'ALTER TABLE cerebro.run_log SET DISTRIBUTED REPLICATED';
    EXECUTE 'ALTER TABLE cerebro.quota SET DISTRIBUTED REPLICATED';
    -- A segment cannot ask which number its session took last.
    DROP POLICY IF EXISTS own_numbers ON cerebro.run_log;
    -- As a join, a policy makes further segments take part in each change of the log. Each has all rows of run_log itself.
    EXECUTE $function$
        CREATE OR REPLACE FUNCTION cerebro_internal.owns_run(run_id bigint) RETURNS boolean
        LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS
        'SELECT EXISTS (SELECT FROM cerebro.run_log r WHERE r.run_id = owns_run.run_id AND r.owner = current_user)'
        $function$;
    COMMENT ON FUNCTION cerebro_internal.owns_run(bigint) IS 'Internal: whether the run belongs to the current user';
    FOREACH logged IN ARRAY ARRAY['config_log', 'visit', 'evaluation', 'metric', 'decision_log'] LOOP
        EXECUTE pg_catalog.format('ALTER POLICY own_runs ON cerebro.%I USING (cerebro_internal.owns_run(run_id))', logged);
    END LOOP;
    ALTER POLICY done ON cerebro.act_log USING (cerebro_internal.owns_run(run_id));
    -- Nor can it read a view in a function. A join is planned for all segments; acts are rare.
    ALTER POLICY seen ON cerebro.act_log USING (run_id IN (SELECT s.run_id FROM cerebro.visible_run s));
    ALTER POLICY added ON cerebro.act_log WITH CHECK (actor = current_user AND run_id IN (SELECT s.run_id FROM cerebro.visible_run s));
    -- Keys of segments, several for each: a statement that names one is sent to its segment alone.
    EXECUTE 'CREATE TABLE IF NOT EXISTS cerebro.segment_key (key integer PRIMARY KEY) DISTRIBUTED BY (key)';
    INSERT INTO cerebro.segment_key SELECT k FROM pg_catalog.generate_series(0, 9999) k
    WHERE NOT EXISTS (SELECT FROM cerebro.segment_key);
    COMMENT ON TABLE cerebro.segment_key IS 'Values of __dist_key__: rows that have one lie on the segment where its row here lies';
    GRANT SELECT ON cerebro.segment_key TO PUBLIC;
    -- The lock of an orchestrator cannot be looked up beside a table. But the session by which it writes the log lives as long
    -- as it does; and so does its own session, where it is in the background.
    EXECUTE $view$
        CREATE OR REPLACE VIEW cerebro.orchestrator AS
        SELECT DISTINCT r.run_id, r.pid
        FROM pg_catalog.pg_stat_activity a JOIN cerebro.run_log r
             ON r.owner = a.usename AND r.run_id = pg_catalog.substring(a.application_name, '^cerebro_db run ([0-9]{1,18}) (?:control|background|looking at the table|packing)(?:: .*)?$')::bigint
        WHERE a.datname = current_database() $view$;
    EXECUTE $view$
        CREATE OR REPLACE VIEW cerebro.worker AS
        SELECT DISTINCT pg_catalog.substring(a.application_name, '^cerebro_db run ([0-9]{1,18}) worker$')::bigint AS run_id, a.pid
        FROM pg_catalog.pg_stat_activity a
        WHERE a.datname = current_database() AND a.application_name ~ '^cerebro_db run [0-9]{1,18} worker$' $view$;
    -- What asks the database anything must have done so before segments begin to work for the statement, and a function of
    -- FROM that is to do so (EXECUTE ON INITPLAN) does not where it stands beside them, nor are its rows right where some are
    -- left out there. A subselect that depends on nothing comes before; the planner would call it itself, but for random().
    EXECUTE 'ALTER FUNCTION cerebro_internal.predicted(text, text, text, text, oid, text, text, double precision) EXECUTE ON COORDINATOR';
    EXECUTE pg_catalog.replace(pg_catalog.pg_get_functiondef('cerebro.predict(text, text, text, text, text, double precision)'::regprocedure),
                               'cerebro_internal.predict_blocks($1, $2, $3, NULL, $5, $4, $6) AS told',
                               'r AS told FROM cerebro_internal.predicted((SELECT cerebro_internal.predict_ahead($1, $2, $3, NULL, $5, $4, $6, pg_catalog.random())), $1, $2, $3, NULL, $5, $4, $6) r');
    EXECUTE pg_catalog.replace(pg_catalog.pg_get_functiondef('cerebro.predict_rows(text, anyelement, text, text, text, double precision)'::regprocedure),
                               'cerebro_internal.predict_blocks($1, $3, NULL, pg_catalog.pg_typeof($2)::pg_catalog.oid, $5, $4, $6) AS told',
                               'r AS told FROM cerebro_internal.predicted((SELECT cerebro_internal.predict_ahead($1, $3, NULL, pg_catalog.pg_typeof($2)::pg_catalog.oid, $5, $4, $6, pg_catalog.random())), $1, $3, NULL, pg_catalog.pg_typeof($2)::pg_catalog.oid, $5, $4, $6) r');
END $$;
