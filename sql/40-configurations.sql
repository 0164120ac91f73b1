-- Architectures and model selection tables.

CREATE OR REPLACE FUNCTION load_keras_model(
    -- The architecture table. The first load creates it.
    keras_model_arch_table varchar,
    -- The JSON that Keras' `model.to_json()` returns, from Keras 3 or Keras 2. The first layer must
    -- define its input shape.
    model_arch json,
    -- Initial weights: the arrays of `model.get_weights()` in order, flattened, as little-endian
    -- float32 without a header. NULL: Keras' initializers draw them, from the seed of the run.
    model_weights bytea DEFAULT NULL,
    -- A name for the architecture.
    name text DEFAULT NULL,
    -- A description of the architecture.
    description text DEFAULT NULL
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import configurations
return configurations.load_keras_model(plpy, GD, *args)
$$;
COMMENT ON FUNCTION load_keras_model IS 'Add an architecture (the JSON of a Keras model, with or without weights as flat float32) to an architecture table, which is created if need be';

-- Drivers that send types with their values have json as text, or as jsonb only.
CREATE OR REPLACE FUNCTION load_keras_model(
    keras_model_arch_table varchar,
    model_arch text,
    model_weights bytea DEFAULT NULL,
    name text DEFAULT NULL,
    description text DEFAULT NULL
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import configurations
return configurations.load_keras_model(plpy, GD, *args)
$$;
COMMENT ON FUNCTION load_keras_model IS 'Add an architecture, whose JSON is a text, to an architecture table, which is created if need be';

CREATE OR REPLACE FUNCTION load_keras_model(
    keras_model_arch_table varchar,
    model_arch jsonb,
    model_weights bytea DEFAULT NULL,
    name text DEFAULT NULL,
    description text DEFAULT NULL
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import configurations
return configurations.load_keras_model(plpy, GD, *args)
$$;
COMMENT ON FUNCTION load_keras_model IS 'Add an architecture, whose JSON is a jsonb, to an architecture table, which is created if need be';

CREATE OR REPLACE FUNCTION delete_keras_model(
    -- The architecture table.
    keras_model_arch_table varchar,
    -- The architecture to delete.
    model_id integer
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import configurations
return configurations.delete_keras_model(plpy, GD, *args)
$$;
COMMENT ON FUNCTION delete_keras_model IS 'Delete an architecture; the table is dropped with its last row';

CREATE OR REPLACE FUNCTION load_model_selection_table(
    -- The architecture table.
    model_arch_table varchar,
    -- The model selection table to create.
    model_selection_table varchar,
    -- Architectures, by their `model_id`.
    model_id_list integer[],
    -- Compile parameters, each a [parameter string](#parameter-strings).
    compile_params_list varchar[],
    -- Fit parameters, each a [parameter string](#parameter-strings).
    fit_params_list varchar[],
    -- Table of the [custom functions](#load_custom_function) that compile parameters may name.
    object_table varchar DEFAULT NULL
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import configurations
return configurations.load_model_selection_table(plpy, GD, *args)
$$;
COMMENT ON FUNCTION load_model_selection_table IS 'Make a model selection table of all combinations of architectures, compile parameters and fit parameters';

CREATE OR REPLACE FUNCTION generate_model_configs(
    model_arch_table varchar,
    -- The model selection table to create or extend. An existing one must have the same
    -- architecture table and the same object table.
    model_selection_table varchar,
    model_id_list integer[],
    -- Compile parameters: a Python dict literal whose values are lists.
    compile_params_grid varchar,
    -- Fit parameters: a Python dict literal whose values are lists.
    fit_params_grid varchar,
    -- `'grid'`: all combinations, with the model id varying fastest. `'random'`: random draws. A
    -- prefix of either is accepted.
    search_type varchar DEFAULT 'grid',
    -- Number of configurations that a random search draws.
    num_configs integer DEFAULT NULL,
    -- Makes a random search repeatable.
    random_state integer DEFAULT NULL,
    -- Table of the [custom functions](#load_custom_function) that compile parameters may name. It
    -- may be left out if the model selection table exists.
    object_table varchar DEFAULT NULL
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import configurations
return configurations.generate_model_configs(plpy, GD, *args)
$$;
COMMENT ON FUNCTION generate_model_configs IS 'Make or extend a model selection table by grid or random search over dictionaries of lists';
-- Arguments without a comment are those of load_model_selection_table.

CREATE OR REPLACE FUNCTION cerebro.explore_layers(
    -- The architecture table that has the network.
    model_arch_table varchar,
    -- `model_id` of the network, which was loaded with its weights.
    explored_model integer,
    -- Names of the layers to compare.
    layers text[],
    -- The architecture table to create.
    output varchar,
    -- Number of units of the last layer of each head.
    outputs integer,
    -- Units of the hidden layers of each head.
    hidden integer[] DEFAULT '{}',
    -- Activation of the last layer of each head.
    activation text DEFAULT 'softmax',
    -- Seed of the initial weights of the heads.
    seed bigint DEFAULT 1
) RETURNS TABLE (model_id integer, layer text, features integer)
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import configurations
return configurations.explore_layers(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.explore_layers IS 'Make an architecture table that puts the same head behind each of these layers of a network with weights, everything before it frozen. Trained as one run, they show the layer with the best features';
