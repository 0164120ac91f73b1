-- What each function does, for who asks in psql; docs/reference/sql answers.

-- The first statement of MADlib's notebooks. Drivers read the number that follows its first words.
CREATE OR REPLACE FUNCTION version() RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT 'MADlib version: 2.1.0, whose functions for deep learning cerebro_db ' || e.extversion || ' has'
FROM pg_extension e WHERE e.extname = 'cerebro_db'
$$;
-- By its schema: without one this would be PostgreSQL's own function.
COMMENT ON FUNCTION @extschema@.version() IS 'The version of MADlib whose functions these are, and that of cerebro_db';

CREATE OR REPLACE FUNCTION cerebro.help(
    -- A function of this reference. NULL: list all of them.
    name text DEFAULT NULL,
    -- `'usage'`, `'help'` or `'?'` for everything that the reference says. NULL: a summary.
    message text DEFAULT NULL
) RETURNS text
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import help
return help.explain(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.help IS 'Describe a function in short, or as in the reference (message usage, help or ?); without a name, list all functions';

-- MADlib's way to ask, f() and f('usage'), for every function of the schema, so that none can be forgotten. Where a
-- function already means something when it is called so, it keeps its meaning: with no argument needed there is no help
-- form, with one needed only f().
DO $$
DECLARE
    f record;
    arguments text;
    asked text;
BEGIN
    FOR f IN SELECT p.proname AS name, min(p.pronargs - p.pronargdefaults) AS needed
             FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_proc p ON p.oid = d.objid
             WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.deptype = 'e'
               AND d.refobjid = (SELECT e.oid FROM pg_catalog.pg_extension e WHERE e.extname = 'cerebro_db')
               AND p.pronamespace = '@extschema@'::regnamespace AND p.prosrc NOT LIKE 'SELECT cerebro.help(%'
             GROUP BY p.proname HAVING min(p.pronargs - p.pronargdefaults) > 0
    LOOP
        arguments := CASE WHEN f.needed > 1 THEN 'message text DEFAULT NULL' ELSE '' END;
        asked := CASE WHEN f.needed > 1 THEN 'message' ELSE quote_literal('usage') END;
        EXECUTE pg_catalog.format(
            'CREATE OR REPLACE FUNCTION @extschema@.%I(%s) RETURNS text LANGUAGE sql VOLATILE PARALLEL UNSAFE'
            ' SET search_path = pg_catalog, pg_temp AS %L',
            f.name, arguments, pg_catalog.format('SELECT cerebro.help(%L, %s)', f.name, asked));
        EXECUTE pg_catalog.format('COMMENT ON FUNCTION @extschema@.%I(%s) IS %L', f.name,
            CASE WHEN f.needed > 1 THEN 'text' ELSE '' END,
            pg_catalog.format('Help for %s; with the message usage, help or ? all that the reference says', f.name));
    END LOOP;
END $$;
