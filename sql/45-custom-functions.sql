-- Losses and metrics that an administrator registers as Python's source. They run in trainers, as the server's user.

CREATE OR REPLACE FUNCTION load_custom_function(
    -- The object table. The first load creates it, in the schema of the extension.
    object_table varchar,
    -- Source of a Python module that defines `name` at its top level, at most 100,000 characters;
    -- as `bytea`, in UTF-8.
    object bytea,
    -- Name of the loss or metric in compile parameters.
    name text,
    -- A description of the function.
    description text DEFAULT NULL
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import custom_functions
return custom_functions.load_custom_function(plpy, GD, *args)
$$;
COMMENT ON FUNCTION load_custom_function IS 'Register a loss or metric, of which object is the source in UTF-8, in an object table, which is made if need be; for superusers';

CREATE OR REPLACE FUNCTION load_custom_function(
    object_table varchar,
    object text,
    name text,
    description text DEFAULT NULL
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import custom_functions
return custom_functions.load_custom_function(plpy, GD, *args)
$$;
COMMENT ON FUNCTION load_custom_function IS 'Register a loss or metric, of which object is the source, in an object table, which is made if need be; for superusers';

CREATE OR REPLACE FUNCTION delete_custom_function(
    -- The object table.
    object_table varchar,
    -- The id of the function to delete.
    id integer
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import custom_functions
return custom_functions.delete_custom_function(plpy, GD, *args)
$$;
COMMENT ON FUNCTION delete_custom_function IS 'Delete a custom function by its id; the object table is dropped with its last row; for superusers';

CREATE OR REPLACE FUNCTION delete_custom_function(
    object_table varchar,
    -- The name of the function to delete.
    name text
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import custom_functions
return custom_functions.delete_custom_function(plpy, GD, *args)
$$;
COMMENT ON FUNCTION delete_custom_function IS 'Delete a custom function by its name; the object table is dropped with its last row; for superusers';

CREATE OR REPLACE FUNCTION load_top_k_accuracy_function(
    -- The object table. The first load creates it, in the schema of the extension.
    object_table varchar,
    -- Number of most probable classes among which the right class must be.
    k integer
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import custom_functions
return custom_functions.load_top_k_accuracy_function(plpy, GD, *args)
$$;
COMMENT ON FUNCTION load_top_k_accuracy_function IS 'Register the metric top_<k>_accuracy: whether the right class is among the k most probable ones; for superusers';
