-- name: settings
-- The settings of these names, and those that a role or database gives to a new session of the login role of worker sessions (see
-- session.identity). A name that is missing in pg_settings is a placeholder, or is hidden from the caller.
WITH login (role) AS (
    SELECT CASE WHEN s.rolsuper AND NOT c.rolsuper THEN c.oid ELSE s.oid END
    FROM pg_catalog.pg_roles s, pg_catalog.pg_roles c WHERE s.rolname = session_user AND c.rolname = current_user
), names (name, is_default) AS (
    SELECT n.name, false FROM pg_catalog.unnest(%s::text[]) n (name)
    UNION ALL
    SELECT pg_catalog.split_part(c.setting, '=', 1), true
    FROM login l, pg_catalog.pg_db_role_setting s CROSS JOIN LATERAL pg_catalog.unnest(s.setconfig) c (setting)
    WHERE s.setrole IN (0, l.role)
      AND s.setdatabase IN (0, (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()))
)
SELECT pg_catalog.min(n.name) AS name, pg_catalog.bool_or(n.is_default) AS is_default, pg_catalog.min(s.context) AS context
FROM names n LEFT JOIN pg_catalog.pg_settings s ON pg_catalog.lower(s.name) = pg_catalog.lower(n.name)
WHERE pg_catalog.strpos(n.name, '.') > 0 AND NOT pg_catalog.starts_with(pg_catalog.lower(n.name), 'cerebro_db.')
GROUP BY pg_catalog.lower(n.name) ORDER BY 1

-- name: value
-- A value is the result of a statement and never a parameter: the server logs parameters.
SELECT pg_catalog.current_setting(%s, true)

-- name: values
SELECT n.name, pg_catalog.current_setting(n.name, true) FROM pg_catalog.unnest(%s::text[]) n (name)
