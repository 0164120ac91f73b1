-- name: prepare
-- Messages reach the caller until the run is logged; the session waits for locks as long as the caller does.
SELECT pg_catalog.set_config('client_min_messages', 'notice', false), pg_catalog.set_config('client_connection_check_interval', '0', false),
       pg_catalog.set_config('lock_timeout', %s, false)

-- name: begin
CALL cerebro_internal.work(%s::json)

-- name: standing
SELECT r.status, r.pid, EXISTS (SELECT FROM cerebro.visit v WHERE v.run_id = r.run_id) AS begun FROM cerebro.run r WHERE r.run_id = %s::bigint

-- name: cancel
SELECT pg_catalog.pg_cancel_backend(%s::integer)

-- name: arguments
-- The parameters of a function of the extension, in order, as SQL: `default_value` is NULL for those without a default.
-- Functions of the same name with one argument return help.
SELECT p.proargnames[a.place] AS name, pg_catalog.format_type(a.type, NULL) AS type, pg_catalog.pg_get_function_arg_default(p.oid, a.place::integer) AS default_value
FROM pg_catalog.pg_proc p
JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
JOIN pg_catalog.pg_extension e ON d.refclassid = 'pg_catalog.pg_extension'::regclass AND e.oid = d.refobjid AND e.extname = 'cerebro_db'
CROSS JOIN LATERAL pg_catalog.unnest(p.proargtypes::oid[]) WITH ORDINALITY AS a (type, place)
WHERE p.proname = %s::text::name AND p.pronargs > 1 ORDER BY a.place

-- name: typed
SELECT {chosen} FROM pg_catalog.jsonb_to_record(%s::jsonb) AS given ({columns})
