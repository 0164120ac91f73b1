-- Nothing is public: cerebro.grant_usage(role) gives a role what it needs. Trainers run as the server's
-- operating-system user, so who may start one is the administrator's decision.

-- Only where there is something to revoke, which is where a function is new: in the script of an update, PostgreSQL takes
-- all privileges of what it touches for the extension's own, and pg_dump would leave out what had been granted to roles.
DO $$
DECLARE
    f regprocedure;
BEGIN
    FOR f IN SELECT p.oid::regprocedure FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_proc p ON p.oid = d.objid
             WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.deptype = 'e'
               AND d.refobjid = (SELECT e.oid FROM pg_catalog.pg_extension e WHERE e.extname = 'cerebro_db')
               AND EXISTS (SELECT FROM pg_catalog.aclexplode(coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))) a
                           WHERE a.grantee = 0)
    LOOP
        EXECUTE pg_catalog.format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', f);
    END LOOP;
END $$;
