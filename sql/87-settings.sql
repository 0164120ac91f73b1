-- Settings of an administrator. Nothing here needs Python: a dump is restored before anything else can work. After
-- 85-greenplum.sql: there every segment has the whole table, and a trigger of its own.

CREATE OR REPLACE FUNCTION cerebro_internal.setting_rules()
RETURNS TABLE (name text, pattern text, minimum integer, maximum integer, expected text)
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
VALUES ('trainer_python', '^/', NULL::integer, NULL::integer, 'the absolute path of an interpreter, such as ''/opt/cerebro/bin/python'''),
       ('worker_conninfo', '^postgres(ql)?://|^\s*([a-z_]+\s*=\s*(''([^''\\]|\\.)*''|([^\s''\\]|\\.)([^\s\\]|\\.)*)?\s*)*$', NULL, NULL,
        'a connection string, such as ''host=localhost port=5432'''),
       ('trainer_idle_seconds', '^ *[0-9]{1,10} *$', 0, 2147483647, NULL),
       ('trainer_nursery_seconds', '^ *[0-9]{1,10} *$', 0, 2147483647, NULL),
       ('trainer_memory_mb', '^ *[0-9]{1,10} *$', 64, 2147483647, NULL),
       ('cache_mb', '^ *[0-9]{1,10} *$', 0, 2147483647, NULL),
       ('compilation_cache', '^(/|$)', NULL, NULL, 'the absolute path of a folder, or an empty text for none'),
       ('kept_features_mb', '^ *[0-9]{1,10} *$', 0, 2147483647, NULL),
       ('commit_seconds', '^ *[0-9]{1,10} *$', 0, 2147483647, NULL),
       ('gpus', '^ *$|^ *[0-9]{1,4} *(, *[0-9]{1,4} *)*$', 0, 1024, 'different numbers of devices, such as ''0,1'', or an empty text for none'),
       ('spare_cores', '^ *[0-9]{1,10} *$', 0, 2147483647, NULL),
       ('max_workers_total', '^ *[0-9]{1,10} *$', 2, 262143, NULL),
       ('tenant_roles', '^\{ *\}$|^\{ *("([^"\\]|\\.)+"|[^" ,{}\\][^",{}\\]*)( *, *("([^"\\]|\\.)+"|[^" ,{}\\][^",{}\\]*))* *\}$', NULL, NULL,
        'an array of roles, such as ''{web,app}'''),
       ('price_per_core_hour', '^[0-9]{1,15}([.][0-9]{1,15})?$', NULL, NULL, 'a number, such as ''0.05'''),
       ('price_per_gpu_hour', '^[0-9]{1,15}([.][0-9]{1,15})?$', NULL, NULL, 'a number, such as ''2.5'''),
       ('price_per_gb_month', '^[0-9]{1,15}([.][0-9]{1,15})?$', NULL, NULL, 'a number, such as ''0.1'''),
       ('watts_per_core', '^[0-9]{1,15}([.][0-9]{1,15})?$', NULL, NULL, 'a number, such as ''12.5'''),
       ('watts_per_gpu', '^[0-9]{1,15}([.][0-9]{1,15})?$', NULL, NULL, 'a number, such as ''300''')
$$;
COMMENT ON FUNCTION cerebro_internal.setting_rules IS 'Internal: the settings that exist, and the values that each may have';

CREATE OR REPLACE FUNCTION cerebro_internal.check_setting() RETURNS trigger
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    rule record;
    expected text;
    is_valid boolean;
BEGIN
    SELECT r.name, r.pattern, r.minimum, r.maximum, r.expected INTO rule FROM cerebro_internal.setting_rules() r WHERE r.name = NEW.name;
    IF rule.name IS NULL THEN
        RAISE WARNING USING MESSAGE = format('cerebro_db has no setting %L; its row was left out', NEW.name),
            HINT = 'The settings are ' || (SELECT string_agg(r.name, ', ') FROM cerebro_internal.setting_rules() r) || '.';
        RETURN NULL;
    END IF;
    is_valid := NEW.value IS NULL OR NEW.value ~ rule.pattern;
    IF is_valid AND rule.minimum IS NOT NULL THEN
        SELECT coalesce(bool_and(n.number::bigint BETWEEN rule.minimum AND rule.maximum), true)
               AND count(DISTINCT n.number::bigint) = count(n.number) INTO is_valid
        FROM (SELECT nullif(btrim(p.part), '') AS number FROM unnest(string_to_array(NEW.value, ',')) p (part)) n;
    END IF;
    IF NOT is_valid THEN
        expected := coalesce(rule.expected, format('a whole number from %s to %s', rule.minimum, rule.maximum));
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('setting %s is %L; expected %s', NEW.name, left(NEW.value, 80), expected),
            HINT = format('SELECT cerebro.set(%L, NULL); returns to the default.', NEW.name);
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION cerebro_internal.check_setting IS 'Internal: refuse a wrong value in cerebro.setting, and leave out a row that names no setting';

DROP TRIGGER IF EXISTS check_setting ON cerebro.setting;
CREATE TRIGGER check_setting BEFORE INSERT OR UPDATE ON cerebro.setting FOR EACH ROW EXECUTE FUNCTION cerebro_internal.check_setting();
COMMENT ON TRIGGER check_setting ON cerebro.setting IS 'Rows of dumps and of statements are checked as those of cerebro.set are';

CREATE OR REPLACE FUNCTION cerebro.set(
    -- A [setting](../operations.md#settings).
    name text,
    -- Its value, as text or as a number. NULL: the default.
    value text
) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- It has the rights of its caller: who may call it may do no more. This check has a hint, which the table's own error lacks.
    IF NOT (has_table_privilege('cerebro.setting', 'INSERT') AND has_table_privilege('cerebro.setting', 'UPDATE')
            AND has_table_privilege('cerebro.setting', 'DELETE')) THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = format('role %L may not change settings, which are for administrators', current_user::text),
            HINT = format('Ask a superuser to call SELECT cerebro.set(%L, %L);', $1, $2);
    END IF;
    IF $2 IS NULL THEN
        DELETE FROM cerebro.setting s WHERE s.name = $1;
        IF FOUND THEN
            RETURN;
        END IF;
    END IF;
    IF NOT EXISTS (SELECT FROM cerebro_internal.setting_rules() r WHERE r.name = $1) THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = format('cerebro_db has no setting %L', $1),
            HINT = 'The settings are ' || (SELECT string_agg(r.name, ', ') FROM cerebro_internal.setting_rules() r) || '.';
    END IF;
    IF $2 IS NOT NULL THEN
        INSERT INTO cerebro.setting VALUES ($1, $2)
        ON CONFLICT ON CONSTRAINT setting_pkey DO UPDATE SET value = excluded.value;
    END IF;
END $$;
COMMENT ON FUNCTION cerebro.set IS 'Change a setting, or return it to its default (value NULL); for superusers';

CREATE OR REPLACE FUNCTION cerebro.set(name text, value numeric) RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT cerebro.set($1, $2::text)
$$;
COMMENT ON FUNCTION cerebro.set IS 'Change a setting that is a number; for superusers';
