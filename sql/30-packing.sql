-- Preprocessors: rows of a table become buffers of many examples, spread over segments.

CREATE OR REPLACE FUNCTION training_preprocessor_dl(
    -- The table or view to pack.
    source_table varchar,
    -- The packed table to create. The table `<output_table>_summary` is created with it.
    output_table varchar,
    -- The column with the targets: a class of any type, or numbers. For a model with several
    -- outputs, a list of columns, in the order of its outputs.
    dependent_varname varchar,
    -- The column with the inputs: a numeric array, a number or an image, with the same shape in
    -- every row. NULL (22004), NaN and infinities (22003) are refused. For a model with several
    -- inputs, a list of columns, in the order of its inputs.
    independent_varname varchar,
    -- Rows per buffer, as a hint: every segment gets the same number of buffers. NULL: as many as
    -- take about 8 MB, or 1,024 if these take at most 64 MB.
    buffer_size integer DEFAULT NULL,
    -- The inputs are divided by it, rounded to a real. Predictions do the same.
    normalizing_const double precision DEFAULT 1.0,
    -- One number for each dependent column, at least the number of its classes. Additional classes
    -- are padding.
    num_classes integer[] DEFAULT NULL,
    -- Segments to use on Greenplum: `'all_segments'` (the default), `'gpu_segments'` for those on
    -- machines with GPUs, or a table whose column `dbid` names them as in
    -- `gp_segment_configuration`. No effect on PostgreSQL.
    distribution_rules text DEFAULT NULL,
    -- Number of segments. NULL: what cores and memory of the machine allow, at least 2. On
    -- Greenplum at most, and by default, all that `distribution_rules` selects.
    n_segments integer DEFAULT NULL,
    -- Makes the random order repeatable.
    seed bigint DEFAULT NULL,
    -- `'class'`: one-hot encoded. `'float'`: kept as float32, for a regression. NULL: float arrays
    -- stay float32, everything else is encoded. For several columns one type for all, or a list:
    -- `'class, float'`.
    dependent_type text DEFAULT NULL,
    -- Column of numbers that weigh rows in the training loss, as `sample_weight` of Keras.
    sample_weight_varname varchar DEFAULT NULL
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import packing
return packing.training_preprocessor(plpy, GD, *args)
$$;
COMMENT ON FUNCTION training_preprocessor_dl IS 'Pack a table for training: rows in random order (by seed), many to a buffer, spread evenly over n_segments segments; dependent_type class encodes targets one-hot, float keeps them as numbers; the column sample_weight_varname says how much each row counts in the training loss';

CREATE OR REPLACE FUNCTION validation_preprocessor_dl(
    source_table varchar,
    output_table varchar,
    dependent_varname varchar,
    independent_varname varchar,
    -- The packed training table, which determines normalisation, classes and segments.
    training_preprocessor_table varchar,
    buffer_size integer DEFAULT NULL,
    -- Accepted. If they name other segments than those of the training table, a NOTICE says so.
    distribution_rules text DEFAULT NULL
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import packing
return packing.validation_preprocessor(plpy, GD, *args)
$$;
COMMENT ON FUNCTION validation_preprocessor_dl IS 'Pack a table for validation: normalised, encoded and spread as its training table was';
-- Arguments without a comment are those of training_preprocessor_dl.

CREATE OR REPLACE FUNCTION cerebro_internal.pack_mixed(
    source text, output text, dependent text, independent text, dependent_type text, weight text, rows bigint,
    classes text[], recipes json, grouped json, n_segments integer) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import packing
return packing.pack_mixed(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.pack_mixed IS 'Internal: pack a table for training whose rows are in random order already: so many, without a NULL, of these classes; recipes are applied to the raw values of inputs, by their names; grouped has the buffers of rows that come group by group; n_segments NULL: as many as the rows are worth';

CREATE OR REPLACE FUNCTION cerebro_internal.pack_beside(
    source text, output text, dependent text, independent text, training text, recipes json, grouped json) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import packing
return packing.pack_beside(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.pack_beside IS 'Internal: pack a table for validation as its training table was, of raw values to which recipes are applied';

CREATE OR REPLACE FUNCTION cerebro_internal.rows_seen(rows bigint) RETURNS boolean
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import packing
return packing.rows_seen(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.rows_seen IS 'Internal: let those who look at this session know how many rows the preprocessor has read so far; always true';
