-- What no setting of a session decides: the texts of values as whoever trained a model had them.

CREATE OR REPLACE FUNCTION cerebro_internal.canonical_text(value anyelement) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET lc_monetary = 'C' AS
'SELECT value::text';
COMMENT ON FUNCTION cerebro_internal.canonical_text IS 'Internal: the text of a value, which is the same in every session';

CREATE OR REPLACE FUNCTION cerebro_internal.canonical_json(value anyelement) RETURNS jsonb
LANGUAGE sql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET lc_monetary = 'C' AS
'SELECT to_jsonb(value)';
COMMENT ON FUNCTION cerebro_internal.canonical_json IS 'Internal: a value as JSON, which is the same in every session';
