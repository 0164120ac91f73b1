-- One row for each role, and one without a role. After 85-greenplum.sql: an index without the distribution key of its table is
-- refused on Greenplum, until every segment has the whole table.
CREATE UNIQUE INDEX IF NOT EXISTS quota_role ON cerebro.quota (coalesce(role::text, ''));
COMMENT ON INDEX cerebro.quota_role IS 'A role has at most one quota, and so have all roles together';

-- Nothing here needs Python, and a row is never refused: a dump may be restored before its roles are made.
CREATE OR REPLACE FUNCTION cerebro_internal.check_quota() RETURNS trigger
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    may_log_in boolean;
BEGIN
    SELECT r.rolcanlogin INTO may_log_in FROM pg_roles r WHERE r.rolname = NEW.role;
    IF may_log_in IS NULL AND NEW.role IS NOT NULL THEN
        RAISE WARNING USING MESSAGE = format('there is no role %L: its quota limits no run', NEW.role),
            HINT = format('If the name has a mistake: DELETE FROM cerebro.quota WHERE role = %L;', NEW.role);
    ELSIF NOT may_log_in THEN
        RAISE WARNING USING MESSAGE = format('role %L cannot log in: its quota does not limit the runs of its members', NEW.role),
            HINT = 'Give each member a quota, or all roles together one (role NULL).';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION cerebro_internal.check_quota IS 'Internal: warn of a quota in cerebro.quota that limits nobody';

DROP TRIGGER IF EXISTS check_quota ON cerebro.quota;
CREATE TRIGGER check_quota BEFORE INSERT OR UPDATE ON cerebro.quota FOR EACH ROW EXECUTE FUNCTION cerebro_internal.check_quota();
COMMENT ON TRIGGER check_quota ON cerebro.quota IS 'A name with a mistake, or of a group, is not taken without a word';
