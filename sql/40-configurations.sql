-- Architectures and model selection tables.

CREATE OR REPLACE FUNCTION load_keras_model(
    keras_model_arch_table varchar, model_arch json, model_weights bytea DEFAULT NULL, name text DEFAULT NULL,
    description text DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import configurations
return configurations.load_keras_model(plpy, GD, *args)
$$;
COMMENT ON FUNCTION load_keras_model IS 'Add an architecture (the JSON of a Keras model, with or without weights as flat float32) to an architecture table, which is created if need be';

-- Drivers that send types with their values have json as text, or as jsonb only.
CREATE OR REPLACE FUNCTION load_keras_model(
    keras_model_arch_table varchar, model_arch text, model_weights bytea DEFAULT NULL, name text DEFAULT NULL,
    description text DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import configurations
return configurations.load_keras_model(plpy, GD, *args)
$$;
COMMENT ON FUNCTION load_keras_model IS 'Add an architecture, whose JSON is a text, to an architecture table, which is created if need be';

CREATE OR REPLACE FUNCTION load_keras_model(
    keras_model_arch_table varchar, model_arch jsonb, model_weights bytea DEFAULT NULL, name text DEFAULT NULL,
    description text DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import configurations
return configurations.load_keras_model(plpy, GD, *args)
$$;
COMMENT ON FUNCTION load_keras_model IS 'Add an architecture, whose JSON is a jsonb, to an architecture table, which is created if need be';

CREATE OR REPLACE FUNCTION delete_keras_model(keras_model_arch_table varchar, model_id integer) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import configurations
return configurations.delete_keras_model(plpy, GD, *args)
$$;
COMMENT ON FUNCTION delete_keras_model IS 'Delete an architecture; the table is dropped with its last row';

CREATE OR REPLACE FUNCTION load_model_selection_table(
    model_arch_table varchar, model_selection_table varchar, model_id_list integer[], compile_params_list varchar[],
    fit_params_list varchar[], object_table varchar DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import configurations
return configurations.load_model_selection_table(plpy, GD, *args)
$$;
COMMENT ON FUNCTION load_model_selection_table IS 'Make a model selection table of all combinations of architectures, compile parameters and fit parameters';

CREATE OR REPLACE FUNCTION generate_model_configs(
    model_arch_table varchar, model_selection_table varchar, model_id_list integer[], compile_params_grid varchar,
    fit_params_grid varchar, search_type varchar DEFAULT 'grid', num_configs integer DEFAULT NULL,
    random_state integer DEFAULT NULL, object_table varchar DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import configurations
return configurations.generate_model_configs(plpy, GD, *args)
$$;
COMMENT ON FUNCTION generate_model_configs IS 'Make or extend a model selection table by grid or random search over dictionaries of lists';

CREATE OR REPLACE FUNCTION cerebro.explore_layers(
    model_arch_table varchar, explored_model integer, layers text[], output_table varchar, outputs integer, hidden integer[] DEFAULT '{}',
    activation text DEFAULT 'softmax', seed bigint DEFAULT 1) RETURNS TABLE (model_id integer, layer text, features integer)
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import configurations
return configurations.explore_layers(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.explore_layers IS 'Make an architecture table with the same head on what each of these layers of a network with weights gives, all in front of it frozen; trained as one run they say which layer gives the best features';
