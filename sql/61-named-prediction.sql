-- Predictions by the name of a model. PostgreSQL puts cerebro.predict and cerebro.predict_rows into the query that calls them, where each
-- block of rows is read when it is needed; so they have no path of their own, and all that they name is qualified. PL/Python begins a subtransaction for each
-- statement, which is an error before PostgreSQL 17 while workers of a parallel plan run: so there can be none.

-- Ids are joined with the text that a column has in the caller's session, while the statement that reads the source has other formats.
CREATE OR REPLACE FUNCTION cerebro_internal.text_under(
    value anyelement, timezone text, datestyle text, intervalstyle text, lc_monetary text, extra_float_digits text, bytea_output text) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = iso, ymd SET intervalstyle = postgres
SET lc_monetary = 'C' SET extra_float_digits = 1 SET bytea_output = hex AS $$
BEGIN
    PERFORM set_config('timezone', timezone, true), set_config('datestyle', datestyle, true), set_config('intervalstyle', intervalstyle, true),
            set_config('lc_monetary', lc_monetary, true), set_config('extra_float_digits', extra_float_digits, true),
            set_config('bytea_output', bytea_output, true);
    RETURN value::text;
END;
$$;
COMMENT ON FUNCTION cerebro_internal.text_under IS 'Internal: the text of a value under these settings, whatever those of the session are';

-- Functions that write have it look at a query, because it may not: PostgreSQL refuses what locks rows.
CREATE OR REPLACE FUNCTION cerebro_internal.describe_query(query text) RETURNS TABLE (name text, type bigint, modifier integer, error text)
LANGUAGE plpython3u STABLE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import named_prediction
return named_prediction.describe_query(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.describe_query IS 'Internal: the columns of a query, of which no row is read; or the error, if it is not a single query that only reads';

CREATE OR REPLACE FUNCTION cerebro_internal.predict_blocks(model text, source text, id_col text, row_type oid, query text, owner text, level double precision) RETURNS SETOF cerebro.predicted_rows
LANGUAGE plpython3u STABLE PARALLEL UNSAFE COST 1000000 ROWS 1 AS $$
from cerebro_plpy.api import named_prediction
return named_prediction.predict_blocks(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.predict_blocks IS 'Internal: the rows of a source block by block, with what a model predicts for them';

CREATE OR REPLACE FUNCTION cerebro_internal.predict_ahead(model text, source text, id_col text, row_type oid, query text, owner text, level double precision, drawn double precision) RETURNS text
LANGUAGE plpython3u STABLE PARALLEL UNSAFE COST 1000000 AS $$
from cerebro_plpy.api import named_prediction
return named_prediction.predict_ahead(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.predict_ahead IS 'Internal: predict the rows of a source before they are wanted, and return what cerebro.predicted is to be told; the last argument may be anything that is not known before';

CREATE OR REPLACE FUNCTION cerebro_internal.predicted(told text, model text, source text, id_col text, row_type oid, query text, owner text, level double precision) RETURNS SETOF cerebro.predicted_rows
LANGUAGE plpython3u STABLE PARALLEL UNSAFE COST 1000000 ROWS 1 AS $$
from cerebro_plpy.api import named_prediction
return named_prediction.predicted(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.predicted IS 'Internal: what was predicted ahead, block by block; with the arguments of the prediction, so that columns of other tables among them are refused where they would not be known yet';

CREATE OR REPLACE FUNCTION cerebro.predict(
    -- Name of the model, as exact text. The deployed version predicts.
    model text,
    -- The table or view with the rows. Its columns are found by name.
    source text DEFAULT NULL,
    -- The column that identifies rows, or several. NULL: those of the primary key; without one `id`
    -- is NULL, and a NOTICE names this argument.
    id_col text DEFAULT NULL,
    -- The role that owns the model, if that is another one, which has
    -- [granted](#cerebro.grant_predict) it.
    owner text DEFAULT NULL,
    -- A query in place of `source`: one SELECT, VALUES, TABLE or WITH that only reads. See
    -- [Queries](#queries).
    query text DEFAULT NULL,
    -- Of a regression, the probability with which a new row lies between `lower` and `upper`: above 0
    -- and below 1. Other levels than 0.9 are for the owner of the model.
    level double precision DEFAULT 0.9
) RETURNS TABLE (
    id text, prediction text, probability double precision, probabilities jsonb, lower double precision, upper double precision)
LANGUAGE sql STABLE PARALLEL UNSAFE COST 1000000 ROWS 10000 AS $$
SELECT r.id, r.prediction, r.probability, r.probabilities::pg_catalog.jsonb,
       pg_catalog.float8mi(r.number, r.margin), pg_catalog.float8pl(r.number, r.margin)
FROM (SELECT (b.told).margin AS margin, pg_catalog.unnest((b.told).ids) AS id,
             pg_catalog.unnest(pg_catalog.convert_from((b.told).prediction, 'UTF8')::pg_catalog.text[]) AS prediction,
             pg_catalog.unnest(pg_catalog.convert_from((b.told).probability, 'UTF8')::pg_catalog.float8[]) AS probability,
             pg_catalog.unnest(pg_catalog.convert_from((b.told).probabilities, 'UTF8')::pg_catalog.text[]) AS probabilities,
             pg_catalog.unnest(pg_catalog.convert_from((b.told).number, 'UTF8')::pg_catalog.float8[]) AS number
      FROM (SELECT cerebro_internal.predict_blocks($1, $2, $3, NULL, $5, $4, $6) AS told OFFSET 0) b OFFSET 0) r
$$;
COMMENT ON FUNCTION cerebro.predict IS 'Predict each row of a table or view with an own model, or with one that its owner has granted and owner names';

CREATE OR REPLACE FUNCTION cerebro_internal.rows_of_texts(texts text[], row_type anyelement) RETURNS anyarray
LANGUAGE plpgsql STABLE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = iso, ymd SET intervalstyle = postgres
SET lc_monetary = 'C' SET array_nulls = on SET xmloption = content AS $$
DECLARE
    result ALIAS FOR $0;
BEGIN
    result := texts;
    RETURN result;
END;
$$;
COMMENT ON FUNCTION cerebro_internal.rows_of_texts IS 'Internal: rows of a type, read from the texts that they have under the same settings';

CREATE OR REPLACE FUNCTION cerebro.predict_rows(
    -- Name of the model, as exact text. The deployed version predicts.
    model text,
    -- NULL of the type of the rows to return, such as `NULL::passengers`: each table and view has a
    -- type of its name.
    row_type anyelement,
    -- The table or view with the rows, which must have all columns of `row_type`. NULL: the table of
    -- `row_type`.
    source text DEFAULT NULL,
    owner text DEFAULT NULL,
    query text DEFAULT NULL,
    level double precision DEFAULT 0.9
) RETURNS TABLE (
    "row" anyelement, prediction text, number double precision, probability double precision, probabilities jsonb, lower double precision,
    upper double precision)
LANGUAGE sql STABLE PARALLEL UNSAFE COST 1000000 ROWS 10000 AS $$
SELECT r."row", r.prediction, r.number, r.probability, r.probabilities::pg_catalog.jsonb,
       pg_catalog.float8mi(r.number, r.margin), pg_catalog.float8pl(r.number, r.margin)
FROM (SELECT (b.told).margin AS margin, pg_catalog.unnest(cerebro_internal.rows_of_texts((b.told).ids, $2)) AS "row",
             pg_catalog.unnest(pg_catalog.convert_from((b.told).prediction, 'UTF8')::pg_catalog.text[]) AS prediction,
             pg_catalog.unnest(pg_catalog.convert_from((b.told).probability, 'UTF8')::pg_catalog.float8[]) AS probability,
             pg_catalog.unnest(pg_catalog.convert_from((b.told).probabilities, 'UTF8')::pg_catalog.text[]) AS probabilities,
             pg_catalog.unnest(pg_catalog.convert_from((b.told).number, 'UTF8')::pg_catalog.float8[]) AS number
      FROM (SELECT cerebro_internal.predict_blocks($1, $3, NULL, pg_catalog.pg_typeof($2)::pg_catalog.oid, $5, $4, $6) AS told OFFSET 0) b OFFSET 0) r
$$;
COMMENT ON FUNCTION cerebro.predict_rows IS 'Return the rows of a table or view, each beside its prediction by an own model, or by one that its owner has granted and owner names';
-- Arguments without a comment are those of cerebro.predict.

CREATE OR REPLACE FUNCTION cerebro.predict_row(
    model text,
    -- The row: an object of its columns, such as `to_jsonb(t)`.
    record jsonb,
    owner text DEFAULT NULL,
    level double precision DEFAULT 0.9
) RETURNS jsonb
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE COST 100000
SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 SET array_nulls = on SET row_security = on
SET datestyle = iso, ymd SET intervalstyle = postgres SET lc_monetary = 'C' AS $$
from cerebro_plpy.api import named_prediction
return named_prediction.predict_row(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.predict_row IS 'Predict one row, an object of its columns, with an own model, or with one that its owner has granted and owner names';
-- Arguments without a comment are those of cerebro.predict.

-- Who was granted predictions has no right to read what it fills the trainer with. Which version that is, it is told by
-- our own code in this process, which has seen that the caller may; nothing that a session can say by SQL tells it.
CREATE OR REPLACE FUNCTION cerebro_internal.sealed_version() RETURNS void
LANGUAGE plpython3u STABLE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
from cerebro_plpy.api import named_prediction
return named_prediction.sealed_version(plpy, GD)
$$;
COMMENT ON FUNCTION cerebro_internal.sealed_version IS 'Internal: fill the trainer of this session with a granted model for cerebro.predict and cerebro.predict_row, which alone can call it';
