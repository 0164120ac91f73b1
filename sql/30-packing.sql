-- Preprocessors: rows of a table become buffers of many examples, spread over segments.

CREATE OR REPLACE FUNCTION training_preprocessor_dl(
    source_table varchar, output_table varchar, dependent_varname varchar, independent_varname varchar,
    buffer_size integer DEFAULT NULL, normalizing_const double precision DEFAULT 1.0, num_classes integer[] DEFAULT NULL,
    distribution_rules text DEFAULT NULL, n_segments integer DEFAULT NULL, seed bigint DEFAULT NULL,
    dependent_type text DEFAULT NULL, sample_weight_varname varchar DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import packing
return packing.training_preprocessor(plpy, GD, *args)
$$;
COMMENT ON FUNCTION training_preprocessor_dl IS 'Pack a table for training: rows in random order (by seed), many to a buffer, spread evenly over n_segments segments; dependent_type class encodes targets one-hot, float keeps them as numbers; the column sample_weight_varname says how much each row counts in the training loss';

CREATE OR REPLACE FUNCTION validation_preprocessor_dl(
    source_table varchar, output_table varchar, dependent_varname varchar, independent_varname varchar,
    training_preprocessor_table varchar, buffer_size integer DEFAULT NULL, distribution_rules text DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import packing
return packing.validation_preprocessor(plpy, GD, *args)
$$;
COMMENT ON FUNCTION validation_preprocessor_dl IS 'Pack a table for validation: normalised, encoded and spread as its training table was';

CREATE OR REPLACE FUNCTION cerebro.pack_mixed(
    source text, output text, dependent text, independent text, dependent_type text, weight text, rows bigint,
    classes text[], recipes json, grouped json) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import packing
return packing.pack_mixed(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.pack_mixed IS 'Internal: pack a table for training whose rows are in random order already: so many, without a NULL, of these classes; recipes are applied to the raw values of inputs, by their names; grouped has the buffers of rows that come group by group';

CREATE OR REPLACE FUNCTION cerebro.pack_beside(
    source text, output text, dependent text, independent text, training text, recipes json, grouped json) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import packing
return packing.pack_beside(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.pack_beside IS 'Internal: pack a table for validation as its training table was, of raw values to which recipes are applied';

CREATE OR REPLACE FUNCTION cerebro.rows_seen(rows bigint) RETURNS boolean
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import packing
return packing.rows_seen(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.rows_seen IS 'Internal: let those who look at this session know how many rows the preprocessor has read so far; always true';
