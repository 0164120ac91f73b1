-- One row for each role, and one without a role. After 85-greenplum.sql: an index without the distribution key of its table is
-- refused on Greenplum, until every segment has the whole table.
CREATE UNIQUE INDEX IF NOT EXISTS quota_role ON cerebro.quota (coalesce(role::text, ''));
COMMENT ON INDEX cerebro.quota_role IS 'A role has at most one quota, and so have all roles together';
