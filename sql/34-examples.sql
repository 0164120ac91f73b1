-- Tables to try the functions on.

CREATE OR REPLACE FUNCTION cerebro.load_example(
    -- The example. `'flowers'`: 150 flowers with four measures each, and their species.
    name text DEFAULT 'flowers',
    -- The table to create. NULL: a table with the name of the example.
    output text DEFAULT NULL
) RETURNS regclass
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import examples
return examples.load_example(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.load_example IS 'Create a table of example data, and return its name';
