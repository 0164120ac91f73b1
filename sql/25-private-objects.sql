-- Tables in schema cerebro_state, and functions that predict, are granted by us alone. PostgreSQL grants new objects by the
-- default privileges of the role that makes them as well (ALTER DEFAULT PRIVILEGES), for which no schema can be left out.

CREATE OR REPLACE FUNCTION cerebro_internal.keep_private(made regclass) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    grantee text;
BEGIN
    FOR grantee IN
        SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
        FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid = keep_private.made AND c.relnamespace = 'cerebro_state'::regnamespace AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('REVOKE ALL ON TABLE %s FROM %s', made, grantee);
    END LOOP;
END;
$$;
COMMENT ON FUNCTION cerebro_internal.keep_private IS 'Internal: take back what default privileges have granted on a new table of the caller''s in schema cerebro_state';

CREATE OR REPLACE FUNCTION cerebro_internal.keep_private(made regprocedure) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    grantee text;
BEGIN
    FOR grantee IN
        SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
        FROM pg_proc p CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
        WHERE p.oid = keep_private.made AND a.grantee <> p.proowner
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %s', made, grantee);
    END LOOP;
END;
$$;
COMMENT ON FUNCTION cerebro_internal.keep_private IS 'Internal: take back what everybody has by default on a new function of the caller''s, and what default privileges have granted';
