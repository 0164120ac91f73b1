-- Whether a model by name still fits what there is now.

CREATE OR REPLACE FUNCTION cerebro.drift(
    -- An own model. The training rows are those of the deployed version.
    model text,
    -- The table or view to compare with them.
    source text DEFAULT NULL,
    -- A query in place of `source`: one SELECT, VALUES, TABLE or WITH that only reads. See
    -- [Queries](#queries).
    query text DEFAULT NULL
) RETURNS TABLE (
    column_name text, kind text, training_missing double precision, missing double precision, psi double precision, part text,
    new_categories double precision)
LANGUAGE plpython3u STABLE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import freshness
return freshness.drift(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.drift IS 'Compare the columns of a table or view with the training rows of an own model: missing values, population stability index, share of new categories';

CREATE OR REPLACE FUNCTION cerebro.verify(
    -- An own model.
    model text,
    -- `'best'`, `'newest'`, `'previous'` or a number. NULL: the version that predicts.
    version text DEFAULT NULL
) RETURNS TABLE (what text, ok boolean, detail text)
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import freshness
return freshness.verify(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.verify IS 'Train a version of an own model again from the records of its run, and compare the bits of the result; changes since then are listed, and nothing is kept';

CREATE OR REPLACE FUNCTION cerebro.verify(model text, version integer) RETURNS TABLE (what text, ok boolean, detail text)
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import freshness
return freshness.verify(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.verify IS 'Train a version of an own model again, by its number, and compare the bits of the result';

CREATE OR REPLACE FUNCTION cerebro.refresh(
    -- An own model. The version that predicts is trained on.
    model text,
    -- A column that grows, such as a serial number or a time of entry: only rows beyond its largest
    -- value in the newest version are encoded. NULL: all rows are.
    since text DEFAULT NULL,
    -- Epochs to train, also if no rows are new: the same model is trained longer. NULL: a tenth of
    -- those of the call that trained it, rounded up, if rows are new.
    epochs integer DEFAULT NULL,
    -- Time for the whole call, as of `cerebro.train`. NULL: that of the call that trained the
    -- version.
    budget interval DEFAULT NULL
) RETURNS TABLE (
    run_id bigint, version integer, deployed boolean, metric text, value double precision, training_rows bigint, validation_rows bigint)
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import freshness
return freshness.refresh(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.refresh IS 'Train the deployed version of an own model further: on the rows that its source has now, or longer on the same rows. Returns the new version, which predicts if it is better; no row if there is nothing to train';
