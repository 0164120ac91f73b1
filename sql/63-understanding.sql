-- What a model by name is worth over the rows of a table, by which columns, and why it predicts what it does for a row. What
-- is said in sql/61-named-prediction.sql of functions that become a part of the query holds for the last one here.

CREATE OR REPLACE FUNCTION cerebro_internal.evaluation_blocks(model text, source text, group_by text, query text, level double precision, caller json) RETURNS SETOF cerebro.predicted_rows
LANGUAGE plpython3u STABLE PARALLEL UNSAFE COST 1000000 ROWS 1 AS $$
from cerebro_plpy.api import understanding
return understanding.evaluation_blocks(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.evaluation_blocks IS 'Internal: the rows of a source block by block, with what a model predicts for them; the id of each is an array of its target and its group; caller has the path and the settings of the session that evaluates';

CREATE OR REPLACE FUNCTION cerebro.evaluate(
    -- An own model. The deployed version is evaluated.
    model text,
    -- The table or view with the rows and their targets.
    source text DEFAULT NULL,
    -- A column of the source, as exact text, or several as `'a, b'`. Each combination of their values
    -- is evaluated, too.
    group_by text DEFAULT NULL,
    -- A query in place of `source`: one SELECT, VALUES, TABLE or WITH that only reads. See
    -- [Queries](#queries).
    query text DEFAULT NULL,
    -- Of a regression, the level of the intervals whose `coverage` is measured: above 0 and below 1.
    level double precision DEFAULT 0.9
) RETURNS TABLE (
    group_values jsonb, metric text, class text, predicted text, value double precision, rows bigint)
LANGUAGE plpython3u STABLE PARALLEL UNSAFE COST 1000000 ROWS 100 AS $$
from cerebro_plpy.api import understanding
return understanding.evaluate(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.evaluate IS 'Measure a model over the rows of a table or view with a known target: over all of them, and over each group';

CREATE OR REPLACE FUNCTION cerebro.importance(
    -- An own model. The deployed version is explained.
    model text,
    -- The table or view with the rows and their targets.
    source text DEFAULT NULL,
    -- A query in place of `source`: one SELECT, VALUES, TABLE or WITH that only reads. See
    -- [Queries](#queries).
    query text DEFAULT NULL
) RETURNS TABLE (
    column_name text, importance double precision, importance_error double precision, metric text, rows bigint)
LANGUAGE plpython3u STABLE PARALLEL UNSAFE COST 1000000 ROWS 100 AS $$
from cerebro_plpy.api import understanding
return understanding.importance(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.importance IS 'Rank the columns that a model uses: the loss of quality over a table or view when the values of a column are shuffled, with the standard error';

CREATE OR REPLACE FUNCTION cerebro_internal.version_importance(model text, version integer, seconds double precision) RETURNS TABLE (
    importance double precision[], importance_error double precision[])
LANGUAGE plpython3u STABLE PARALLEL UNSAFE COST 1000000 ROWS 1 AS $$
from cerebro_plpy.api import understanding
return understanding.version_importance(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.version_importance IS 'Internal: what the columns of a version of an own model are worth over rows that it was not trained on, in the order of its recipe, as far as there is time to compute it';

CREATE OR REPLACE FUNCTION cerebro_internal.attribution_blocks(model text, source text, id_col text, query text) RETURNS SETOF cerebro.attributed_rows
LANGUAGE plpython3u STABLE PARALLEL UNSAFE COST 1000000 ROWS 1 AS $$
from cerebro_plpy.api import understanding
return understanding.attribution_blocks(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.attribution_blocks IS 'Internal: the rows of a source block by block, with what each of their columns adds to a prediction';

CREATE OR REPLACE FUNCTION cerebro.attribution(
    -- An own model. The deployed version is explained.
    model text,
    -- The table or view with the rows.
    source text DEFAULT NULL,
    -- The column that identifies rows, or several. NULL: those of the primary key; without one `id`
    -- is NULL, and a NOTICE names this argument.
    id_col text DEFAULT NULL,
    -- A query in place of `source`: one SELECT, VALUES, TABLE or WITH that only reads. See
    -- [Queries](#queries).
    query text DEFAULT NULL
) RETURNS TABLE (
    id text, column_name text, value text, attribution double precision, gap double precision, patch integer[])
LANGUAGE sql STABLE PARALLEL UNSAFE COST 1000000 ROWS 10000 AS $$
SELECT pg_catalog.unnest((b.told).ids), pg_catalog.unnest((b.told).columns), pg_catalog.unnest((b.told).texts),
       pg_catalog.unnest(pg_catalog.convert_from((b.told).attributions, 'UTF8')::pg_catalog.float8[]),
       pg_catalog.unnest(pg_catalog.convert_from((b.told).gaps, 'UTF8')::pg_catalog.float8[]),
       pg_catalog.unnest((b.told).patches)::pg_catalog.int4[]
FROM (SELECT cerebro_internal.attribution_blocks($1, $2, $3, $4) AS told OFFSET 0) b
$$;
COMMENT ON FUNCTION cerebro.attribution IS 'Explain predictions for the rows of a table or view: the part of each column, and of each patch of an image, in the number or in the probability of the predicted class';
