\echo Use "CREATE EXTENSION cerebro_db" to load this file. \quit
-- Two schemas of fixed name. The functions that users call go to the schema named in CREATE EXTENSION.

CREATE SCHEMA cerebro;
COMMENT ON SCHEMA cerebro IS 'cerebro_db: runs, their configurations, visits and metrics, and the functions that run on segments';

CREATE SCHEMA cerebro_state;
COMMENT ON SCHEMA cerebro_state IS 'cerebro_db: two tables per configuration of a run, holding its state in chunks';
-- What a run leaves behind. New columns go last: an upgrade appends them.

CREATE TABLE cerebro.setting (
    name  text PRIMARY KEY,
    value text
);
COMMENT ON TABLE cerebro.setting IS 'Settings that only an administrator may change; a missing row or NULL means the default';
COMMENT ON COLUMN cerebro.setting.name IS 'trainer_python, worker_conninfo, trainer_idle_seconds, trainer_memory_mb, cache_mb, compilation_cache, gpus, function_path';
COMMENT ON COLUMN cerebro.setting.value IS 'the value as text';

CREATE TABLE cerebro.run_log (
    run_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text,
    owner      name NOT NULL DEFAULT current_user,
    status     text NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'completed', 'cancelled', 'failed')),
    spec       jsonb NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at   timestamptz,
    error      text,
    pid        integer NOT NULL,
    epochs     integer NOT NULL CHECK (epochs > 0),
    segments   integer[] NOT NULL
);
COMMENT ON TABLE cerebro.run_log IS 'One row per run as its orchestrator wrote it; read the view cerebro.run, which knows whether the orchestrator is still alive';
COMMENT ON COLUMN cerebro.run_log.spec IS 'the arguments of the call';
COMMENT ON COLUMN cerebro.run_log.pid IS 'the backend that runs the orchestrator; it holds an advisory lock while the run is alive';

CREATE TABLE cerebro.config_log (
    run_id         bigint NOT NULL REFERENCES cerebro.run_log ON DELETE CASCADE,
    mst_key        integer NOT NULL,
    params         jsonb NOT NULL,
    status         text NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'running', 'completed', 'stopped', 'failed')),
    reason         text,
    state_tables   text[] NOT NULL DEFAULT '{}',
    model_id       integer NOT NULL,
    compile_params text NOT NULL,
    fit_params     text NOT NULL,
    architecture   json NOT NULL,
    backend        text NOT NULL,
    PRIMARY KEY (run_id, mst_key)
);
COMMENT ON TABLE cerebro.config_log IS 'One training configuration of a run; its rows change rarely, so what changes with every visit is counted by the view cerebro.config';
COMMENT ON COLUMN cerebro.config_log.architecture IS 'the architecture as it was when the run began';
COMMENT ON COLUMN cerebro.config_log.backend IS 'the framework that trains it: tensorflow or jax';
COMMENT ON COLUMN cerebro.config_log.state_tables IS 'the tables in schema cerebro_state that alternate as holders of the state';

CREATE TABLE cerebro.visit (
    run_id      bigint NOT NULL REFERENCES cerebro.run_log ON DELETE CASCADE,
    epoch       integer NOT NULL,
    mst_key     integer NOT NULL,
    segment_id  integer NOT NULL,
    visit_no    integer NOT NULL,
    attempt     integer NOT NULL,
    status      text NOT NULL CHECK (status IN ('running', 'completed', 'failed')),
    started_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at    timestamptz,
    rows        bigint,
    state_bytes bigint,
    form        text,
    threads     integer,
    error       text,
    loss        double precision,
    state_table text,
    worker_pid  integer NOT NULL DEFAULT pg_backend_pid(),
    training_seconds double precision,
    kind        text NOT NULL DEFAULT 'train' CHECK (kind IN ('train', 'average')),
    PRIMARY KEY (run_id, mst_key, visit_no, attempt)
);
COMMENT ON TABLE cerebro.visit IS 'One configuration training over one segment, once; committed together with the state it produced';
COMMENT ON COLUMN cerebro.visit.visit_no IS 'order within the configuration, from 1';
COMMENT ON COLUMN cerebro.visit.kind IS 'train, or average: the visit after those of an epoch, which makes the mean of the states that they left';
COMMENT ON COLUMN cerebro.visit.loss IS 'mean training loss of the visit, taken while the weights changed';
COMMENT ON COLUMN cerebro.visit.training_seconds IS 'what of the time between started_at and ended_at the training loop itself took';
COMMENT ON COLUMN cerebro.visit.state_table IS 'where the state after this visit was written';

CREATE TABLE cerebro.evaluation (
    run_id     bigint NOT NULL REFERENCES cerebro.run_log ON DELETE CASCADE,
    epoch      integer NOT NULL,
    mst_key    integer NOT NULL,
    segment_id integer NOT NULL,
    attempt    integer NOT NULL,
    status     text NOT NULL CHECK (status IN ('running', 'completed', 'failed')),
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at   timestamptz,
    rows       bigint,
    error      text,
    PRIMARY KEY (run_id, mst_key, epoch, segment_id, attempt)
);
COMMENT ON TABLE cerebro.evaluation IS 'One configuration evaluated over one segment after an epoch; its state does not change';

CREATE TABLE cerebro.metric (
    run_id  bigint NOT NULL REFERENCES cerebro.run_log ON DELETE CASCADE,
    mst_key integer NOT NULL,
    epoch   integer NOT NULL,
    dataset text NOT NULL CHECK (dataset IN ('training', 'validation')),
    name    text NOT NULL,
    value   double precision,
    time    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (run_id, mst_key, epoch, dataset, name)
);
COMMENT ON TABLE cerebro.metric IS 'Metrics over a whole data set after an epoch, one value a row; the loss is the metric named loss';

CREATE TABLE cerebro.form_timing (
    owner           name NOT NULL DEFAULT current_user,
    machine         text NOT NULL,
    program         text NOT NULL,
    batch_size      integer NOT NULL,
    threads         integer NOT NULL,
    form            text NOT NULL,
    seconds_per_row double precision,
    compile_seconds double precision NOT NULL,
    measured_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (owner, machine, program, batch_size, threads, form)
);
COMMENT ON TABLE cerebro.form_timing IS 'How fast the forms of a training loop were, so that later runs need not try them again; rows may be deleted at any time';
COMMENT ON COLUMN cerebro.form_timing.machine IS 'processor, devices and framework, as the trainer reports them';
COMMENT ON COLUMN cerebro.form_timing.program IS 'a hash of architecture and compile parameters without learning rates and the like';
COMMENT ON COLUMN cerebro.form_timing.seconds_per_row IS 'NULL where the form does not work for the program';

-- Rows belong to the owner of their run. Superusers and the extension's views are not subject to this;
-- the views carry the same rule themselves.
ALTER TABLE cerebro.run_log ENABLE ROW LEVEL SECURITY;
ALTER TABLE cerebro.config_log ENABLE ROW LEVEL SECURITY;
ALTER TABLE cerebro.visit ENABLE ROW LEVEL SECURITY;
ALTER TABLE cerebro.evaluation ENABLE ROW LEVEL SECURITY;
ALTER TABLE cerebro.metric ENABLE ROW LEVEL SECURITY;
ALTER TABLE cerebro.form_timing ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_runs ON cerebro.run_log USING (owner = current_user) WITH CHECK (owner = current_user);
-- Numbers come from the sequence, in the session that logs the run: nobody takes those of others' runs to come.
CREATE POLICY own_numbers ON cerebro.run_log AS RESTRICTIVE FOR INSERT WITH CHECK (run_id = currval('cerebro.run_log_run_id_seq'));
CREATE POLICY own_timings ON cerebro.form_timing USING (owner = current_user) WITH CHECK (owner = current_user);
CREATE POLICY own_runs ON cerebro.config_log USING (EXISTS (SELECT FROM cerebro.run_log r WHERE r.run_id = config_log.run_id AND r.owner = current_user));
CREATE POLICY own_runs ON cerebro.visit USING (EXISTS (SELECT FROM cerebro.run_log r WHERE r.run_id = visit.run_id AND r.owner = current_user));
CREATE POLICY own_runs ON cerebro.evaluation USING (EXISTS (SELECT FROM cerebro.run_log r WHERE r.run_id = evaluation.run_id AND r.owner = current_user));
CREATE POLICY own_runs ON cerebro.metric USING (EXISTS (SELECT FROM cerebro.run_log r WHERE r.run_id = metric.run_id AND r.owner = current_user));

SELECT pg_catalog.pg_extension_config_dump('cerebro.setting', '');
SELECT pg_catalog.pg_extension_config_dump('cerebro.run_log', '');
SELECT pg_catalog.pg_extension_config_dump('cerebro.run_log_run_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('cerebro.config_log', '');
SELECT pg_catalog.pg_extension_config_dump('cerebro.visit', '');
SELECT pg_catalog.pg_extension_config_dump('cerebro.evaluation', '');
SELECT pg_catalog.pg_extension_config_dump('cerebro.metric', '');

CREATE TYPE cerebro.predicted AS (ids json, found json);
COMMENT ON TYPE cerebro.predicted IS 'Internal: the ids of a block of rows, and their predictions';
-- What runs on a segment: everything comes as an argument, nothing is read from a table here. These
-- functions talk to the trainer of their session; statements around them move rows and states.

CREATE OR REPLACE FUNCTION cerebro.trainer_start(spec json) RETURNS json
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import segment_api
return segment_api.trainer_start(plpy, GD, spec)
$$;
COMMENT ON FUNCTION cerebro.trainer_start(json) IS 'Internal: start the trainer of this session, or find the one that was started alike, and return what it says of itself';

CREATE OR REPLACE FUNCTION cerebro.dataset_open(dataset text, cache_bytes bigint) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import segment_api
return segment_api.dataset_open(plpy, GD, dataset, cache_bytes)
$$;
COMMENT ON FUNCTION cerebro.dataset_open(text, bigint) IS 'Internal: tell the trainer of this session that the buffers of a data set follow';

CREATE OR REPLACE FUNCTION cerebro.dataset_add(dataset text, pass_no integer, buffer_id integer, shapes json, part bytea) RETURNS integer
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import segment_api
return segment_api.dataset_add(plpy, GD, dataset, pass_no, buffer_id, shapes, part)
$$;
COMMENT ON FUNCTION cerebro.dataset_add(text, integer, integer, json, bytea) IS 'Internal: pass a part of a packed row to the trainer of this session, with the first one the shapes; returns its length';

CREATE OR REPLACE FUNCTION cerebro.dataset_close(dataset text) RETURNS json
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import segment_api
return segment_api.dataset_close(plpy, GD, dataset)
$$;
COMMENT ON FUNCTION cerebro.dataset_close(text) IS 'Internal: end of a data set; returns whether the trainer keeps it or wants it streamed into each job';

CREATE OR REPLACE FUNCTION cerebro.state_add(part integer, chunk bytea) RETURNS integer
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import segment_api
return segment_api.state_add(plpy, GD, part, chunk)
$$;
COMMENT ON FUNCTION cerebro.state_add(integer, bytea) IS 'Internal: pass one chunk of a state, its parts numbered from 1, to the job that job_begin began; returns its length';

CREATE OR REPLACE FUNCTION cerebro.state_chunks(chunk_bytes integer) RETURNS SETOF bytea
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import segment_api
return segment_api.state_chunks(plpy, GD, chunk_bytes)
$$;
COMMENT ON FUNCTION cerebro.state_chunks(integer) IS 'Internal: the state that the last job of this session''s trainer left, in chunks';

CREATE OR REPLACE FUNCTION cerebro.job_begin(spec json) RETURNS json
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import segment_api
return segment_api.job_begin(plpy, GD, spec)
$$;
COMMENT ON FUNCTION cerebro.job_begin(json) IS 'Internal: begin to train, evaluate or predict in the trainer of this session';

-- Functions that cerebro.grant_predict has made depend on the next two: their arguments must stay as they are.
CREATE OR REPLACE FUNCTION cerebro.sealed_begin(spec json, architecture json) RETURNS json
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import segment_api
return segment_api.sealed_begin(plpy, GD, spec, architecture)
$$;
COMMENT ON FUNCTION cerebro.sealed_begin(json, json) IS 'Internal: begin to evaluate or predict with weights that this session must not see';

CREATE OR REPLACE FUNCTION cerebro.sealed_add(part integer, chunk bytea) RETURNS integer
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import segment_api
return segment_api.sealed_add(plpy, GD, part, chunk)
$$;
COMMENT ON FUNCTION cerebro.sealed_add(integer, bytea) IS 'Internal: pass one chunk of such weights to the job that sealed_begin began; returns its length';

CREATE OR REPLACE FUNCTION cerebro.job_finish() RETURNS json
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import segment_api
return segment_api.job_finish(plpy, GD)
$$;
COMMENT ON FUNCTION cerebro.job_finish() IS 'Internal: end the job that job_begin began and return its result';

CREATE OR REPLACE FUNCTION cerebro.metric_results(spec json) RETURNS json
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import segment_api
return segment_api.metric_results(plpy, GD, spec)
$$;
COMMENT ON FUNCTION cerebro.metric_results(json) IS 'Internal: final values of metrics from their sums over segments';

CREATE OR REPLACE FUNCTION cerebro.predict_begin(spec json) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import segment_api
return segment_api.predict_begin(plpy, GD, spec)
$$;
COMMENT ON FUNCTION cerebro.predict_begin(json) IS 'Internal: begin to collect rows into blocks for predictions';

CREATE OR REPLACE FUNCTION cerebro.predict_row(id text, inputs bytea[]) RETURNS cerebro.predicted
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import segment_api
return segment_api.predict_row(plpy, GD, id, inputs)
$$;
COMMENT ON FUNCTION cerebro.predict_row(text, bytea[]) IS 'Internal: take the inputs of a row; where it completes a block, return the predictions of the block before, else NULL';

CREATE OR REPLACE FUNCTION cerebro.predict_rest() RETURNS cerebro.predicted
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import segment_api
return segment_api.predict_rest(plpy, GD)
$$;
COMMENT ON FUNCTION cerebro.predict_rest() IS 'Internal: after the last row, first the predictions of the block before the last one, then those of the last';

-- Names of state tables are taken from the log, which its owner may change, and put into statements: only such as this
-- function knows. The pattern leaves no sign that would end a quoted name.
CREATE OR REPLACE FUNCTION cerebro.is_state(run_id bigint, name text) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS
$$SELECT EXISTS (
    SELECT FROM pg_class c
    WHERE c.relnamespace = 'cerebro_state'::regnamespace AND c.relkind = 'r' AND c.relname = split_part(name, '"', 2)::name
      AND c.relowner = (SELECT r.oid FROM pg_roles r WHERE r.rolname = current_user)
      AND name = 'cerebro_state."' || c.relname || '"' AND c.relname ~ ('^r' || run_id || '_c-?[0-9]+_[0-9ab_]+$'))$$;
COMMENT ON FUNCTION cerebro.is_state(bigint, text) IS 'Internal: whether this is the quoted name of a table of the current user that holds a state of the run';

-- The function behind bytea's binary output copies any value of variable length: as citext does with text's, it is
-- declared for another type of the same make. Arrays then cross to the packer without a call for each element.
CREATE OR REPLACE FUNCTION cerebro.array_bytes(value anyarray) RETURNS bytea
LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'byteasend';
COMMENT ON FUNCTION cerebro.array_bytes(anyarray) IS 'Internal: an array as it lies in memory';

CREATE OR REPLACE FUNCTION cerebro.pack_rows(spec json, data bytea[]) RETURNS bytea[]
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import segment_api
return segment_api.pack_rows(plpy, GD, spec, data)
$$;
COMMENT ON FUNCTION cerebro.pack_rows(json, bytea[]) IS 'Internal: send a block of rows, or NULL, to be packed into a buffer, and return the one sent before: its number and shapes as JSON, and its arrays';

CREATE OR REPLACE FUNCTION cerebro.trainer_stop() RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import segment_api
return segment_api.trainer_stop(plpy, GD)
$$;
COMMENT ON FUNCTION cerebro.trainer_stop() IS 'Internal: end the trainer of this session, if there is one';

CREATE OR REPLACE FUNCTION cerebro.gpu_count() RETURNS integer
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import segment_api
return segment_api.gpu_count(plpy, GD)
$$;
COMMENT ON FUNCTION cerebro.gpu_count() IS 'Internal: how many GPUs of this machine trainers may use';

CREATE OR REPLACE FUNCTION cerebro.trainer_report(framework text DEFAULT 'tensorflow') RETURNS jsonb
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import segment_api
return segment_api.trainer_report(plpy, GD, framework)
$$;
COMMENT ON FUNCTION cerebro.trainer_report(text) IS 'Start a trainer in this session and return its versions and devices';
-- Preprocessors: rows of a table become buffers of many examples, spread over segments.

CREATE OR REPLACE FUNCTION training_preprocessor_dl(
    source_table varchar, output_table varchar, dependent_varname varchar, independent_varname varchar,
    buffer_size integer DEFAULT NULL, normalizing_const real DEFAULT 1.0, num_classes integer[] DEFAULT NULL,
    distribution_rules text DEFAULT NULL, n_segments integer DEFAULT NULL, seed bigint DEFAULT NULL,
    dependent_type text DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import api
return api.training_preprocessor(plpy, GD, source_table, output_table, dependent_varname, independent_varname, buffer_size, normalizing_const, num_classes, distribution_rules, n_segments, seed, dependent_type)
$$;
COMMENT ON FUNCTION training_preprocessor_dl(varchar, varchar, varchar, varchar, integer, real, integer[], text, integer, bigint, text)
IS 'Pack a table for training: rows in random order (by seed), many to a buffer, spread evenly over n_segments segments; dependent_type class encodes targets one-hot, float keeps them as numbers';

CREATE OR REPLACE FUNCTION validation_preprocessor_dl(
    source_table varchar, output_table varchar, dependent_varname varchar, independent_varname varchar,
    training_preprocessor_table varchar, buffer_size integer DEFAULT NULL, distribution_rules text DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import api
return api.validation_preprocessor(plpy, GD, source_table, output_table, dependent_varname, independent_varname, training_preprocessor_table, buffer_size, distribution_rules)
$$;
COMMENT ON FUNCTION validation_preprocessor_dl(varchar, varchar, varchar, varchar, varchar, integer, text)
IS 'Pack a table for validation: normalised, encoded and spread as its training table was';
-- Architectures and model selection tables.

CREATE OR REPLACE FUNCTION load_keras_model(
    keras_model_arch_table varchar, model_arch json, model_weights bytea DEFAULT NULL, name text DEFAULT NULL,
    description text DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import api
return api.load_keras_model(plpy, GD, keras_model_arch_table, model_arch, model_weights, name, description)
$$;
COMMENT ON FUNCTION load_keras_model(varchar, json, bytea, text, text)
IS 'Add an architecture (the JSON of a Keras model, with or without weights as flat float32) to an architecture table, which is created if need be';

CREATE OR REPLACE FUNCTION delete_keras_model(keras_model_arch_table varchar, model_id integer) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import api
return api.delete_keras_model(plpy, GD, keras_model_arch_table, model_id)
$$;
COMMENT ON FUNCTION delete_keras_model(varchar, integer) IS 'Delete an architecture; the table is dropped with its last row';

CREATE OR REPLACE FUNCTION load_model_selection_table(
    model_arch_table varchar, model_selection_table varchar, model_id_list integer[], compile_params_list varchar[],
    fit_params_list varchar[], object_table varchar DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import api
return api.load_model_selection_table(plpy, GD, model_arch_table, model_selection_table, model_id_list, compile_params_list, fit_params_list, object_table)
$$;
COMMENT ON FUNCTION load_model_selection_table(varchar, varchar, integer[], varchar[], varchar[], varchar)
IS 'Make a model selection table of all combinations of architectures, compile parameters and fit parameters';

CREATE OR REPLACE FUNCTION generate_model_configs(
    model_arch_table varchar, model_selection_table varchar, model_id_list integer[], compile_params_grid varchar,
    fit_params_grid varchar, search_type varchar DEFAULT 'grid', num_configs integer DEFAULT NULL,
    random_state integer DEFAULT NULL, object_table varchar DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import api
return api.generate_model_configs(plpy, GD, model_arch_table, model_selection_table, model_id_list, compile_params_grid, fit_params_grid, search_type, num_configs, random_state, object_table)
$$;
COMMENT ON FUNCTION generate_model_configs(varchar, varchar, integer[], varchar, varchar, varchar, integer, integer, varchar)
IS 'Make or extend a model selection table by grid or random search over dictionaries of lists';
-- Losses and metrics that an administrator registers as Python's source. They run in trainers, as the server's user.

CREATE OR REPLACE FUNCTION load_custom_function(
    object_table varchar, object bytea, name text, description text DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import functions_api
return functions_api.load_custom_function(plpy, GD, object_table, object, name, description)
$$;
COMMENT ON FUNCTION load_custom_function(varchar, bytea, text, text)
IS 'Register a loss or metric, of which object is the source in UTF-8, in an object table, which is made if need be; for superusers';

CREATE OR REPLACE FUNCTION load_custom_function(
    object_table varchar, object text, name text, description text DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import functions_api
return functions_api.load_custom_function(plpy, GD, object_table, object, name, description)
$$;
COMMENT ON FUNCTION load_custom_function(varchar, text, text, text)
IS 'Register a loss or metric, of which object is the source, in an object table, which is made if need be; for superusers';

CREATE OR REPLACE FUNCTION delete_custom_function(object_table varchar, id integer) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import functions_api
return functions_api.delete_custom_function(plpy, GD, object_table, id)
$$;
COMMENT ON FUNCTION delete_custom_function(varchar, integer)
IS 'Delete a custom function by its id; the object table is dropped with its last row; for superusers';

CREATE OR REPLACE FUNCTION delete_custom_function(object_table varchar, name text) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import functions_api
return functions_api.delete_custom_function(plpy, GD, object_table, name)
$$;
COMMENT ON FUNCTION delete_custom_function(varchar, text)
IS 'Delete a custom function by its name; the object table is dropped with its last row; for superusers';

CREATE OR REPLACE FUNCTION load_top_k_accuracy_function(object_table varchar, k integer) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import functions_api
return functions_api.load_top_k_accuracy_function(plpy, GD, object_table, k)
$$;
COMMENT ON FUNCTION load_top_k_accuracy_function(varchar, integer)
IS 'Register the metric top_<k>_accuracy: whether the right class is among the k most probable ones; for superusers';
-- Training. Each function stands under MADlib's name and under a short one.

CREATE OR REPLACE FUNCTION madlib_keras_fit_multiple_model(
    source_table varchar, model_output_table varchar, model_selection_table varchar, num_iterations integer,
    use_gpus boolean DEFAULT FALSE, validation_table varchar DEFAULT NULL, metrics_compute_frequency integer DEFAULT NULL,
    warm_start boolean DEFAULT FALSE, name varchar DEFAULT NULL, description varchar DEFAULT NULL,
    use_caching boolean DEFAULT FALSE, seed bigint DEFAULT NULL, schedule text DEFAULT 'longest',
    workers integer DEFAULT NULL, replay_run bigint DEFAULT NULL,
    training_metrics boolean DEFAULT TRUE, dtype_policy text DEFAULT NULL, backend text DEFAULT 'tensorflow',
    max_attempts integer DEFAULT 3, max_runtime interval DEFAULT NULL, keep_states boolean DEFAULT TRUE) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import api
return api.fit_multiple_model(plpy, GD, source_table, model_output_table, model_selection_table, num_iterations, use_gpus, validation_table, metrics_compute_frequency, warm_start, name, description, use_caching, seed, schedule, workers, replay_run, training_metrics, dtype_policy, backend, max_attempts, max_runtime, keep_states)
$$;
COMMENT ON FUNCTION madlib_keras_fit_multiple_model(varchar, varchar, varchar, integer, boolean, varchar, integer, boolean, varchar, varchar, boolean, bigint, text, integer, bigint, boolean, text, text, integer, interval, boolean)
IS 'Train all configurations of a model selection table over a packed table; use_caching is accepted, memory decides; seed, schedule (longest, rotation, or replay of replay_run), workers, training_metrics, dtype_policy (float32, mixed_bfloat16 or mixed_float16), backend, max_attempts, max_runtime and keep_states are additions to MADlib';

CREATE OR REPLACE FUNCTION madlib_fit_multiple_model(
    source_table varchar, model_output_table varchar, model_selection_table varchar, num_iterations integer,
    use_gpus boolean DEFAULT FALSE, validation_table varchar DEFAULT NULL, metrics_compute_frequency integer DEFAULT NULL,
    warm_start boolean DEFAULT FALSE, name varchar DEFAULT NULL, description varchar DEFAULT NULL,
    use_caching boolean DEFAULT FALSE, seed bigint DEFAULT NULL, schedule text DEFAULT 'longest',
    workers integer DEFAULT NULL, replay_run bigint DEFAULT NULL,
    training_metrics boolean DEFAULT TRUE, dtype_policy text DEFAULT NULL, backend text DEFAULT 'tensorflow',
    max_attempts integer DEFAULT 3, max_runtime interval DEFAULT NULL, keep_states boolean DEFAULT TRUE) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import api
return api.fit_multiple_model(plpy, GD, source_table, model_output_table, model_selection_table, num_iterations, use_gpus, validation_table, metrics_compute_frequency, warm_start, name, description, use_caching, seed, schedule, workers, replay_run, training_metrics, dtype_policy, backend, max_attempts, max_runtime, keep_states)
$$;
COMMENT ON FUNCTION madlib_fit_multiple_model(varchar, varchar, varchar, integer, boolean, varchar, integer, boolean, varchar, varchar, boolean, bigint, text, integer, bigint, boolean, text, text, integer, interval, boolean)
IS 'Train all configurations of a model selection table over a packed table; use_caching is accepted, memory decides; seed, schedule (longest, rotation, or replay of replay_run), workers, training_metrics, dtype_policy (float32, mixed_bfloat16 or mixed_float16), backend, max_attempts, max_runtime and keep_states are additions to MADlib';
-- Training one model: each segment trains from the same weights, and what they reach is averaged after each iteration.

CREATE OR REPLACE FUNCTION madlib_keras_fit(
    source_table varchar, model varchar, model_arch_table varchar, model_id integer, compile_params varchar,
    fit_params varchar, num_iterations integer, use_gpus boolean DEFAULT FALSE, validation_table varchar DEFAULT NULL,
    metrics_compute_frequency integer DEFAULT NULL, warm_start boolean DEFAULT NULL, name varchar DEFAULT NULL,
    description varchar DEFAULT NULL, object_table varchar DEFAULT NULL, seed bigint DEFAULT NULL,
    workers integer DEFAULT NULL, training_metrics boolean DEFAULT TRUE, dtype_policy text DEFAULT NULL,
    backend text DEFAULT 'tensorflow', max_attempts integer DEFAULT 3, max_runtime interval DEFAULT NULL,
    keep_states boolean DEFAULT TRUE) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import api
return api.fit_one_model(plpy, GD, source_table, model, model_arch_table, model_id, compile_params, fit_params, num_iterations, use_gpus, validation_table, metrics_compute_frequency, warm_start, name, description, object_table, seed, workers, training_metrics, dtype_policy, backend, max_attempts, max_runtime, keep_states)
$$;
COMMENT ON FUNCTION madlib_keras_fit(varchar, varchar, varchar, integer, varchar, varchar, integer, boolean, varchar, integer, boolean, varchar, varchar, varchar, bigint, integer, boolean, text, text, integer, interval, boolean)
IS 'Train one model over a packed table: all segments at once from the same weights, which are averaged after each iteration; seed, workers, training_metrics, dtype_policy, backend, max_attempts, max_runtime and keep_states are additions to MADlib';

CREATE OR REPLACE FUNCTION madlib_fit(
    source_table varchar, model varchar, model_arch_table varchar, model_id integer, compile_params varchar,
    fit_params varchar, num_iterations integer, use_gpus boolean DEFAULT FALSE, validation_table varchar DEFAULT NULL,
    metrics_compute_frequency integer DEFAULT NULL, warm_start boolean DEFAULT NULL, name varchar DEFAULT NULL,
    description varchar DEFAULT NULL, object_table varchar DEFAULT NULL, seed bigint DEFAULT NULL,
    workers integer DEFAULT NULL, training_metrics boolean DEFAULT TRUE, dtype_policy text DEFAULT NULL,
    backend text DEFAULT 'tensorflow', max_attempts integer DEFAULT 3, max_runtime interval DEFAULT NULL,
    keep_states boolean DEFAULT TRUE) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import api
return api.fit_one_model(plpy, GD, source_table, model, model_arch_table, model_id, compile_params, fit_params, num_iterations, use_gpus, validation_table, metrics_compute_frequency, warm_start, name, description, object_table, seed, workers, training_metrics, dtype_policy, backend, max_attempts, max_runtime, keep_states)
$$;
COMMENT ON FUNCTION madlib_fit(varchar, varchar, varchar, integer, varchar, varchar, integer, boolean, varchar, integer, boolean, varchar, varchar, varchar, bigint, integer, boolean, text, text, integer, interval, boolean)
IS 'Train one model over a packed table: all segments at once from the same weights, which are averaged after each iteration; seed, workers, training_metrics, dtype_policy, backend, max_attempts, max_runtime and keep_states are additions to MADlib';
-- Runs in the background, and what is done with runs that are in the log.

CREATE OR REPLACE FUNCTION cerebro.submit(
    source_table varchar, model_output_table varchar, model_selection_table varchar, num_iterations integer,
    use_gpus boolean DEFAULT FALSE, validation_table varchar DEFAULT NULL, metrics_compute_frequency integer DEFAULT NULL,
    warm_start boolean DEFAULT FALSE, name varchar DEFAULT NULL, description varchar DEFAULT NULL,
    use_caching boolean DEFAULT FALSE, seed bigint DEFAULT NULL, schedule text DEFAULT 'longest',
    workers integer DEFAULT NULL, replay_run bigint DEFAULT NULL,
    training_metrics boolean DEFAULT TRUE, dtype_policy text DEFAULT NULL, backend text DEFAULT 'tensorflow',
    max_attempts integer DEFAULT 3, max_runtime interval DEFAULT NULL, keep_states boolean DEFAULT TRUE) RETURNS bigint
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import runs_api
return runs_api.submit(plpy, GD, source_table, model_output_table, model_selection_table, num_iterations, use_gpus, validation_table, metrics_compute_frequency, warm_start, name, description, use_caching, seed, schedule, workers, replay_run, training_metrics, dtype_policy, backend, max_attempts, max_runtime, keep_states)
$$;
COMMENT ON FUNCTION cerebro.submit(varchar, varchar, varchar, integer, boolean, varchar, integer, boolean, varchar, varchar, boolean, bigint, text, integer, bigint, boolean, text, text, integer, interval, boolean)
IS 'Train in the background what madlib_fit_multiple_model would with the same arguments, and return the id of the run as soon as it is logged';

CREATE OR REPLACE PROCEDURE cerebro.work(asker integer, task json)
LANGUAGE plpython3u AS $$
from cerebro_plpy import runs_api
return runs_api.work(plpy, GD, asker, task)
$$;
COMMENT ON PROCEDURE cerebro.work(integer, json) IS 'Internal: do what the process asker, which waits in cerebro.submit or cerebro.resume, asks for; commits often';

CREATE OR REPLACE FUNCTION cerebro.wait(run_id bigint, timeout interval DEFAULT NULL) RETURNS text
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import runs_api
return runs_api.wait(plpy, GD, run_id, timeout)
$$;
COMMENT ON FUNCTION cerebro.wait(bigint, interval) IS 'Wait until nobody works for a run any more, and return its status; running, where the time was over before';

CREATE OR REPLACE FUNCTION cerebro.cancel(run_id bigint) RETURNS boolean
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import runs_api
return runs_api.cancel(plpy, GD, run_id)
$$;
COMMENT ON FUNCTION cerebro.cancel(bigint) IS 'Cancel a run, in the background or not; false where nobody works for it. What it completed stays, and cerebro.resume goes on with it';

CREATE OR REPLACE FUNCTION cerebro.resume(run_id bigint, background boolean DEFAULT FALSE) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import runs_api
return runs_api.resume_run(plpy, GD, run_id, background)
$$;
COMMENT ON FUNCTION cerebro.resume(bigint, boolean) IS 'Go on with an own run that was interrupted, cancelled or failed, here or in the background: visits that were completed are not made again, then the output tables are made';

CREATE OR REPLACE FUNCTION cerebro.write_outputs(run_id bigint, name text) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import runs_api
return runs_api.write_outputs(plpy, GD, run_id, name)
$$;
COMMENT ON FUNCTION cerebro.write_outputs(bigint, text) IS 'Make the output tables of a completed run again, under any name: after a rollback, or a second time';

CREATE OR REPLACE FUNCTION cerebro.drop_run(run_id bigint) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import runs_api
return runs_api.drop_run(plpy, GD, run_id)
$$;
COMMENT ON FUNCTION cerebro.drop_run(bigint) IS 'Remove an own run that is not under way: its log and its states; output tables stay';

CREATE OR REPLACE FUNCTION cerebro.vacuum_runs(older_than interval DEFAULT '7 days') RETURNS bigint
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import runs_api
return runs_api.vacuum_runs(plpy, GD, older_than)
$$;
COMMENT ON FUNCTION cerebro.vacuum_runs(interval) IS 'Remove the states of own runs that ended, or were interrupted, so long ago, and return how many bytes they took; logs and output tables stay';
-- Evaluation and prediction. pred_type may be a name, a number of classes or a threshold: three functions
-- told apart by its type, of which only the first has a default for it.

CREATE OR REPLACE FUNCTION madlib_keras_evaluate(
    model_table varchar, test_table varchar, output_table varchar, use_gpus boolean DEFAULT FALSE,
    mst_key integer DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import api
return api.evaluate(plpy, GD, model_table, test_table, output_table, use_gpus, mst_key)
$$;
COMMENT ON FUNCTION madlib_keras_evaluate(varchar, varchar, varchar, boolean, integer)
IS 'Loss and metric of a trained model over a packed table, as a table of one row';

CREATE OR REPLACE FUNCTION madlib_evaluate(
    model_table varchar, test_table varchar, output_table varchar, use_gpus boolean DEFAULT FALSE,
    mst_key integer DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import api
return api.evaluate(plpy, GD, model_table, test_table, output_table, use_gpus, mst_key)
$$;
COMMENT ON FUNCTION madlib_evaluate(varchar, varchar, varchar, boolean, integer)
IS 'Loss and metric of a trained model over a packed table, as a table of one row';

CREATE OR REPLACE FUNCTION madlib_keras_predict(
    model_table varchar, test_table varchar, id_col varchar, independent_varname varchar, output_table varchar,
    pred_type varchar DEFAULT 'prob', use_gpus boolean DEFAULT FALSE, mst_key integer DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import api
return api.predict(plpy, GD, model_table, test_table, id_col, independent_varname, output_table, pred_type, use_gpus, mst_key)
$$;
COMMENT ON FUNCTION madlib_keras_predict(varchar, varchar, varchar, varchar, varchar, varchar, boolean, integer)
IS 'Predictions for raw rows: pred_type prob gives all classes with rank, response the best class';

CREATE OR REPLACE FUNCTION madlib_keras_predict(
    model_table varchar, test_table varchar, id_col varchar, independent_varname varchar, output_table varchar,
    pred_type integer, use_gpus boolean DEFAULT FALSE, mst_key integer DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import api
return api.predict(plpy, GD, model_table, test_table, id_col, independent_varname, output_table, pred_type, use_gpus, mst_key)
$$;
COMMENT ON FUNCTION madlib_keras_predict(varchar, varchar, varchar, varchar, varchar, integer, boolean, integer)
IS 'Predictions for raw rows: the pred_type best classes of each';

CREATE OR REPLACE FUNCTION madlib_keras_predict(
    model_table varchar, test_table varchar, id_col varchar, independent_varname varchar, output_table varchar,
    pred_type double precision, use_gpus boolean DEFAULT FALSE, mst_key integer DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import api
return api.predict(plpy, GD, model_table, test_table, id_col, independent_varname, output_table, pred_type, use_gpus, mst_key)
$$;
COMMENT ON FUNCTION madlib_keras_predict(varchar, varchar, varchar, varchar, varchar, double precision, boolean, integer)
IS 'Predictions for raw rows: the classes with a probability above pred_type';

CREATE OR REPLACE FUNCTION madlib_predict(
    model_table varchar, test_table varchar, id_col varchar, independent_varname varchar, output_table varchar,
    pred_type varchar DEFAULT 'prob', use_gpus boolean DEFAULT FALSE, mst_key integer DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import api
return api.predict(plpy, GD, model_table, test_table, id_col, independent_varname, output_table, pred_type, use_gpus, mst_key)
$$;
COMMENT ON FUNCTION madlib_predict(varchar, varchar, varchar, varchar, varchar, varchar, boolean, integer)
IS 'Predictions for raw rows: pred_type prob gives all classes with rank, response the best class';

CREATE OR REPLACE FUNCTION madlib_predict(
    model_table varchar, test_table varchar, id_col varchar, independent_varname varchar, output_table varchar,
    pred_type integer, use_gpus boolean DEFAULT FALSE, mst_key integer DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import api
return api.predict(plpy, GD, model_table, test_table, id_col, independent_varname, output_table, pred_type, use_gpus, mst_key)
$$;
COMMENT ON FUNCTION madlib_predict(varchar, varchar, varchar, varchar, varchar, integer, boolean, integer)
IS 'Predictions for raw rows: the pred_type best classes of each';

CREATE OR REPLACE FUNCTION madlib_predict(
    model_table varchar, test_table varchar, id_col varchar, independent_varname varchar, output_table varchar,
    pred_type double precision, use_gpus boolean DEFAULT FALSE, mst_key integer DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import api
return api.predict(plpy, GD, model_table, test_table, id_col, independent_varname, output_table, pred_type, use_gpus, mst_key)
$$;
COMMENT ON FUNCTION madlib_predict(varchar, varchar, varchar, varchar, varchar, double precision, boolean, integer)
IS 'Predictions for raw rows: the classes with a probability above pred_type';

CREATE OR REPLACE FUNCTION cerebro.grant_predict(model_table text, role regrole) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import grants_api
return grants_api.grant_predict(plpy, GD, model_table, role)
$$;
COMMENT ON FUNCTION cerebro.grant_predict(text, regrole)
IS 'Let a role predict and evaluate with the models of an own table without reading their weights';

CREATE OR REPLACE FUNCTION cerebro.revoke_predict(model_table text, role regrole) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import grants_api
return grants_api.revoke_predict(plpy, GD, model_table, role)
$$;
COMMENT ON FUNCTION cerebro.revoke_predict(text, regrole) IS 'Take back what cerebro.grant_predict gave to a role';
-- Predictions with a model that was not trained here. Three functions told apart by the type of pred_type, as in
-- 60-evaluation-prediction.sql.

CREATE OR REPLACE FUNCTION madlib_keras_predict_byom(
    model_arch_table varchar, model_id integer, test_table varchar, id_col varchar, independent_varname varchar, output_table varchar,
    pred_type varchar DEFAULT 'prob', use_gpus boolean DEFAULT NULL, class_values text[] DEFAULT NULL,
    normalizing_const double precision DEFAULT NULL, dependent_count integer DEFAULT 1, backend text DEFAULT 'tensorflow') RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import byom_api
return byom_api.predict_byom(plpy, GD, model_arch_table, model_id, test_table, id_col, independent_varname, output_table, pred_type, use_gpus, class_values, normalizing_const, dependent_count, backend)
$$;
COMMENT ON FUNCTION madlib_keras_predict_byom(varchar, integer, varchar, varchar, varchar, varchar, varchar, boolean, text[], double precision, integer, text)
IS 'Predictions for raw rows with a model of an architecture table that was loaded with its weights: pred_type prob gives all classes with rank, response the best class';

CREATE OR REPLACE FUNCTION madlib_keras_predict_byom(
    model_arch_table varchar, model_id integer, test_table varchar, id_col varchar, independent_varname varchar, output_table varchar,
    pred_type integer, use_gpus boolean DEFAULT NULL, class_values text[] DEFAULT NULL,
    normalizing_const double precision DEFAULT NULL, dependent_count integer DEFAULT 1, backend text DEFAULT 'tensorflow') RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import byom_api
return byom_api.predict_byom(plpy, GD, model_arch_table, model_id, test_table, id_col, independent_varname, output_table, pred_type, use_gpus, class_values, normalizing_const, dependent_count, backend)
$$;
COMMENT ON FUNCTION madlib_keras_predict_byom(varchar, integer, varchar, varchar, varchar, varchar, integer, boolean, text[], double precision, integer, text)
IS 'Predictions for raw rows with a model of an architecture table that was loaded with its weights: the pred_type best classes of each';

CREATE OR REPLACE FUNCTION madlib_keras_predict_byom(
    model_arch_table varchar, model_id integer, test_table varchar, id_col varchar, independent_varname varchar, output_table varchar,
    pred_type double precision, use_gpus boolean DEFAULT NULL, class_values text[] DEFAULT NULL,
    normalizing_const double precision DEFAULT NULL, dependent_count integer DEFAULT 1, backend text DEFAULT 'tensorflow') RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import byom_api
return byom_api.predict_byom(plpy, GD, model_arch_table, model_id, test_table, id_col, independent_varname, output_table, pred_type, use_gpus, class_values, normalizing_const, dependent_count, backend)
$$;
COMMENT ON FUNCTION madlib_keras_predict_byom(varchar, integer, varchar, varchar, varchar, varchar, double precision, boolean, text[], double precision, integer, text)
IS 'Predictions for raw rows with a model of an architecture table that was loaded with its weights: the classes with a probability above pred_type';

CREATE OR REPLACE FUNCTION madlib_predict_byom(
    model_arch_table varchar, model_id integer, test_table varchar, id_col varchar, independent_varname varchar, output_table varchar,
    pred_type varchar DEFAULT 'prob', use_gpus boolean DEFAULT NULL, class_values text[] DEFAULT NULL,
    normalizing_const double precision DEFAULT NULL, dependent_count integer DEFAULT 1, backend text DEFAULT 'tensorflow') RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import byom_api
return byom_api.predict_byom(plpy, GD, model_arch_table, model_id, test_table, id_col, independent_varname, output_table, pred_type, use_gpus, class_values, normalizing_const, dependent_count, backend)
$$;
COMMENT ON FUNCTION madlib_predict_byom(varchar, integer, varchar, varchar, varchar, varchar, varchar, boolean, text[], double precision, integer, text)
IS 'Predictions for raw rows with a model of an architecture table that was loaded with its weights: pred_type prob gives all classes with rank, response the best class';

CREATE OR REPLACE FUNCTION madlib_predict_byom(
    model_arch_table varchar, model_id integer, test_table varchar, id_col varchar, independent_varname varchar, output_table varchar,
    pred_type integer, use_gpus boolean DEFAULT NULL, class_values text[] DEFAULT NULL,
    normalizing_const double precision DEFAULT NULL, dependent_count integer DEFAULT 1, backend text DEFAULT 'tensorflow') RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import byom_api
return byom_api.predict_byom(plpy, GD, model_arch_table, model_id, test_table, id_col, independent_varname, output_table, pred_type, use_gpus, class_values, normalizing_const, dependent_count, backend)
$$;
COMMENT ON FUNCTION madlib_predict_byom(varchar, integer, varchar, varchar, varchar, varchar, integer, boolean, text[], double precision, integer, text)
IS 'Predictions for raw rows with a model of an architecture table that was loaded with its weights: the pred_type best classes of each';

CREATE OR REPLACE FUNCTION madlib_predict_byom(
    model_arch_table varchar, model_id integer, test_table varchar, id_col varchar, independent_varname varchar, output_table varchar,
    pred_type double precision, use_gpus boolean DEFAULT NULL, class_values text[] DEFAULT NULL,
    normalizing_const double precision DEFAULT NULL, dependent_count integer DEFAULT 1, backend text DEFAULT 'tensorflow') RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import byom_api
return byom_api.predict_byom(plpy, GD, model_arch_table, model_id, test_table, id_col, independent_varname, output_table, pred_type, use_gpus, class_values, normalizing_const, dependent_count, backend)
$$;
COMMENT ON FUNCTION madlib_predict_byom(varchar, integer, varchar, varchar, varchar, varchar, double precision, boolean, text[], double precision, integer, text)
IS 'Predictions for raw rows with a model of an architecture table that was loaded with its weights: the classes with a probability above pred_type';
-- AutoML: searches that decide by themselves what is trained next, and for how long.

CREATE OR REPLACE FUNCTION madlib_keras_automl(
    source_table varchar, model_output_table varchar, model_arch_table varchar, model_selection_table varchar,
    model_id_list integer[], compile_params_grid varchar, fit_params_grid varchar,
    automl_method varchar DEFAULT 'hyperband', automl_params varchar DEFAULT NULL, random_state integer DEFAULT NULL,
    object_table varchar DEFAULT NULL, use_gpus boolean DEFAULT FALSE, validation_table varchar DEFAULT NULL,
    metrics_compute_frequency integer DEFAULT NULL, name varchar DEFAULT NULL, description varchar DEFAULT NULL,
    use_caching boolean DEFAULT FALSE) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import automl_api
return automl_api.automl(plpy, GD, source_table, model_output_table, model_arch_table, model_selection_table, model_id_list, compile_params_grid, fit_params_grid, automl_method, automl_params, random_state, object_table, use_gpus, validation_table, metrics_compute_frequency, name, description, use_caching)
$$;
COMMENT ON FUNCTION madlib_keras_automl(varchar, varchar, varchar, varchar, integer[], varchar, varchar, varchar, varchar, integer, varchar, boolean, varchar, integer, varchar, varchar, boolean)
IS 'Search for the configuration with the lowest loss, by hyperband or hyperopt, and keep the model that it gave; use_caching is accepted, memory decides';

CREATE OR REPLACE FUNCTION madlib_automl(
    source_table varchar, model_output_table varchar, model_arch_table varchar, model_selection_table varchar,
    model_id_list integer[], compile_params_grid varchar, fit_params_grid varchar,
    automl_method varchar DEFAULT 'hyperband', automl_params varchar DEFAULT NULL, random_state integer DEFAULT NULL,
    object_table varchar DEFAULT NULL, use_gpus boolean DEFAULT FALSE, validation_table varchar DEFAULT NULL,
    metrics_compute_frequency integer DEFAULT NULL, name varchar DEFAULT NULL, description varchar DEFAULT NULL,
    use_caching boolean DEFAULT FALSE) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import automl_api
return automl_api.automl(plpy, GD, source_table, model_output_table, model_arch_table, model_selection_table, model_id_list, compile_params_grid, fit_params_grid, automl_method, automl_params, random_state, object_table, use_gpus, validation_table, metrics_compute_frequency, name, description, use_caching)
$$;
COMMENT ON FUNCTION madlib_automl(varchar, varchar, varchar, varchar, integer[], varchar, varchar, varchar, varchar, integer, varchar, boolean, varchar, integer, varchar, varchar, boolean)
IS 'Search for the configuration with the lowest loss, by hyperband or hyperopt, and keep the model that it gave; use_caching is accepted, memory decides';

CREATE OR REPLACE FUNCTION hyperband_schedule(
    schedule_table varchar, r integer, eta integer DEFAULT 3, skip_last integer DEFAULT 0) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import automl_api
return automl_api.hyperband_schedule(plpy, GD, schedule_table, r, eta, skip_last)
$$;
COMMENT ON FUNCTION hyperband_schedule(varchar, integer, integer, integer)
IS 'Make a table of the rounds that Hyperband makes: for bracket s and round i the number of configurations and of iterations';
-- For administrators and for `cerebro-db check`.

CREATE OR REPLACE FUNCTION cerebro.grant_usage(role regrole) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import api
return api.grant_usage(plpy, GD, role)
$$;
COMMENT ON FUNCTION cerebro.grant_usage(regrole) IS 'Let a role use the extension: its functions, its own runs, and state tables of its own';

CREATE OR REPLACE FUNCTION cerebro.worker_report() RETURNS jsonb
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import api
return api.worker_report(plpy, GD)
$$;
COMMENT ON FUNCTION cerebro.worker_report() IS 'Open a worker session as a run of the current user would, and say as whom it was opened';

CREATE OR REPLACE FUNCTION cerebro.python_version() RETURNS jsonb
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import api
return api.python_version(plpy, GD)
$$;
COMMENT ON FUNCTION cerebro.python_version() IS 'Versions of the extension, of its Python package, of the embedded Python and of psycopg2';
-- Which GPUs the hosts have.

CREATE OR REPLACE FUNCTION gpu_configuration(output_table text, source text DEFAULT 'tensorflow') RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import gpu_api
return gpu_api.write(plpy, GD, output_table, source)
$$;
COMMENT ON FUNCTION gpu_configuration(text, text)
IS 'Make a table with host and description of each GPU that the trainers'' framework finds, or that NVIDIA''s driver lists (source nvidia)';

CREATE OR REPLACE FUNCTION cerebro.gpu_report(source text) RETURNS json
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import gpu_api
return gpu_api.report(plpy, GD, source)
$$;
COMMENT ON FUNCTION cerebro.gpu_report(text) IS 'Internal: descriptions of the GPUs of the host where it is called';
-- What other sessions read while a run goes on. Each view shows the runs whose owner's role the reader
-- has; a view that left this to row security would show everyone's rows, as its owner is a superuser.

CREATE OR REPLACE FUNCTION cerebro.may_see(owner name) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS
$$SELECT EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = owner AND pg_catalog.pg_has_role(r.oid, 'MEMBER'))$$;
COMMENT ON FUNCTION cerebro.may_see(name) IS 'Whether the current user has the role that owns a run';

-- 1667590770 is the number of the advisory locks that say "the orchestrator of run objid is alive".
CREATE OR REPLACE VIEW cerebro.orchestrator AS
SELECT DISTINCT l.objid::bigint AS run_id, l.pid
FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_database d ON d.oid = l.database
WHERE l.locktype = 'advisory' AND l.classid = 1667590770 AND l.objsubid = 2 AND d.datname = current_database();
COMMENT ON VIEW cerebro.orchestrator IS 'Internal: backends that say that they work for a run';

CREATE OR REPLACE VIEW cerebro.run WITH (security_barrier) AS
SELECT r.run_id, r.name, r.owner,
       CASE WHEN r.status <> 'running' THEN r.status WHEN o.pid IS NOT NULL THEN 'running' ELSE 'interrupted' END AS status,
       r.spec, r.started_at, r.ended_at, r.error, r.epochs, r.segments, r.pid
FROM cerebro.run_log r LEFT JOIN cerebro.orchestrator o ON o.run_id = r.run_id AND o.pid = r.pid
WHERE cerebro.may_see(r.owner);
COMMENT ON VIEW cerebro.run IS 'Runs that the reader may see; a run whose orchestrator is gone is interrupted';

-- Here and below nothing is correlated: Greenplum forgets the conditions of a subquery in a comparison that reads a view
-- with a correlated part.
CREATE OR REPLACE VIEW cerebro.config WITH (security_barrier) AS
SELECT c.run_id, c.mst_key, c.params, c.status, c.reason, coalesce(v.visits, 0) / nullif(cardinality(r.segments), 0) AS epochs,
       c.state_tables, c.model_id, c.compile_params, c.fit_params, c.architecture, c.backend
FROM cerebro.config_log c JOIN cerebro.run_log r USING (run_id)
LEFT JOIN (
    SELECT t.run_id, t.mst_key, count(*)::integer AS visits FROM cerebro.visit t
    WHERE t.status = 'completed' AND t.kind = 'train' GROUP BY t.run_id, t.mst_key) v
    ON v.run_id = c.run_id AND v.mst_key = c.mst_key
WHERE cerebro.may_see(r.owner);
COMMENT ON VIEW cerebro.config IS 'Training configurations of runs that the reader may see; epochs are those completed';

-- A metric is better when larger, unless it is a loss or an error.
CREATE OR REPLACE VIEW cerebro.leaderboard WITH (security_barrier) AS
WITH last AS (
    SELECT DISTINCT ON (m.run_id, m.mst_key, m.dataset, m.name) m.run_id, m.mst_key, m.dataset, m.name, m.value, m.epoch
    FROM cerebro.metric m
    ORDER BY m.run_id, m.mst_key, m.dataset, m.name, m.epoch DESC
), ranked_by AS (
    SELECT r.run_id, r.spec ->> 'rank_dataset' AS dataset, r.spec ->> 'rank_metric' AS name,
           r.spec ->> 'rank_descending' = 'true' AS descending
    FROM cerebro.run_log r
    WHERE cerebro.may_see(r.owner)
), trained AS (
    SELECT v.run_id, v.mst_key, sum(v.ended_at - v.started_at) AS training_time
    FROM cerebro.visit v WHERE v.status = 'completed' GROUP BY v.run_id, v.mst_key
)
SELECT c.run_id,
       rank() OVER (PARTITION BY c.run_id
                    ORDER BY c.status = 'failed', l.value IS NULL OR l.value = 'NaN',
                             CASE WHEN b.descending THEN -l.value ELSE l.value END) AS rank,
       c.mst_key, c.params, c.epochs, c.status, b.dataset, b.name AS metric, l.value, t.training_time, c.reason
FROM cerebro.config c
JOIN ranked_by b USING (run_id)
LEFT JOIN last l ON l.run_id = c.run_id AND l.mst_key = c.mst_key AND l.dataset = b.dataset AND l.name = b.name
LEFT JOIN trained t ON t.run_id = c.run_id AND t.mst_key = c.mst_key;
COMMENT ON VIEW cerebro.leaderboard IS 'Configurations of a run, best first, by the newest value of the metric that ranks it: that of the validation set where there is one, else of the training set; failed ones last';

CREATE OR REPLACE VIEW cerebro.progress WITH (security_barrier) AS
WITH config AS (
    SELECT c.run_id, c.mst_key, c.status, cardinality(r.segments) AS segments,
           count(*) FILTER (WHERE v.status = 'completed' AND v.kind = 'train') AS done,
           max(v.epoch) AS epoch, max(v.ended_at) AS last_end
    FROM cerebro.config_log c JOIN cerebro.run_log r USING (run_id) LEFT JOIN cerebro.visit v USING (run_id, mst_key)
    GROUP BY c.run_id, c.mst_key, c.status, cardinality(r.segments)
), configs AS (
    SELECT k.run_id, count(*) FILTER (WHERE k.status <> 'failed') AS alive,
           count(*) FILTER (WHERE k.status = 'running') AS running,
           count(*) FILTER (WHERE k.status = 'failed') AS failed,
           sum(k.done)::bigint AS done,
           sum(k.done) FILTER (WHERE k.status = 'failed')::bigint AS lost,
           coalesce(min(k.done / nullif(k.segments, 0) + 1) FILTER (WHERE k.status IN ('waiting', 'running')), max(k.epoch))::integer AS epoch,
           max(k.last_end) AS last_end
    FROM config k GROUP BY k.run_id
), best AS (
    SELECT DISTINCT ON (l.run_id) l.run_id, l.mst_key, l.value FROM cerebro.leaderboard l
    WHERE l.rank = 1 AND l.status <> 'failed' AND l.value IS NOT NULL ORDER BY l.run_id, l.mst_key
)
SELECT r.run_id, r.name, r.owner, r.status,
       least(r.epochs, coalesce(c.epoch, 1)) AS epoch,
       r.epochs,
       coalesce(c.done, 0) AS visits_done,
       coalesce(c.alive, 0) * r.epochs * cardinality(r.segments) + coalesce(c.lost, 0) AS visits_total,
       coalesce(c.running, 0) AS configs_running,
       coalesce(c.failed, 0) AS configs_failed,
       b.mst_key AS best_mst_key,
       b.value AS best_value,
       coalesce(r.ended_at, CASE WHEN r.status = 'running' THEN clock_timestamp() ELSE c.last_end END, r.started_at) - r.started_at AS elapsed,
       CASE WHEN r.status = 'running' AND c.done > 0
            THEN (clock_timestamp() - r.started_at) * greatest(c.alive * r.epochs * cardinality(r.segments) + coalesce(c.lost, 0) - c.done, 0) / c.done END AS eta
FROM cerebro.run r LEFT JOIN configs c USING (run_id) LEFT JOIN best b USING (run_id);
COMMENT ON VIEW cerebro.progress IS 'How far each run is; epoch is the oldest one that a configuration has not completed, eta assumes that the rest goes as fast as what is done';

CREATE OR REPLACE VIEW cerebro.timeline WITH (security_barrier) AS
SELECT v.run_id, v.segment_id, v.mst_key, v.epoch, v.started_at, v.ended_at, v.kind, v.status
FROM cerebro.visit v JOIN cerebro.run_log r USING (run_id) WHERE cerebro.may_see(r.owner)
UNION ALL
SELECT e.run_id, e.segment_id, e.mst_key, e.epoch, e.started_at, e.ended_at, 'evaluate', e.status
FROM cerebro.evaluation e JOIN cerebro.run_log r USING (run_id) WHERE cerebro.may_see(r.owner);
COMMENT ON VIEW cerebro.timeline IS 'What each segment did when: training visits and evaluations';

CREATE OR REPLACE VIEW cerebro.learning_curve WITH (security_barrier) AS
SELECT m.run_id, m.mst_key, m.epoch, m.dataset, m.name, m.value, m.time
FROM cerebro.metric m JOIN cerebro.run_log r USING (run_id) WHERE cerebro.may_see(r.owner);
COMMENT ON VIEW cerebro.learning_curve IS 'Metrics by epoch, one value a row';
-- What Greenplum needs beside what PostgreSQL has; elsewhere nothing happens here.
DO $$
DECLARE
    logged text;
BEGIN
    IF pg_catalog.to_regclass('pg_catalog.gp_segment_configuration') IS NULL THEN
        RETURN;
    END IF;
    -- Visits and evaluations are logged on the segment that makes them: so a visit's state and its row are one commit on one
    -- segment. What functions on segments read, and what policies look up, is on every segment.
    FOREACH logged IN ARRAY ARRAY['config_log', 'metric'] LOOP
        EXECUTE pg_catalog.format('ALTER TABLE cerebro.%I SET DISTRIBUTED BY (run_id)', logged);
    END LOOP;
    ALTER TABLE cerebro.visit DROP CONSTRAINT visit_pkey, ADD PRIMARY KEY (run_id, mst_key, visit_no, attempt, segment_id);
    FOREACH logged IN ARRAY ARRAY['visit', 'evaluation'] LOOP
        EXECUTE pg_catalog.format('ALTER TABLE cerebro.%I SET DISTRIBUTED BY (segment_id)', logged);
    END LOOP;
    EXECUTE 'ALTER TABLE cerebro.form_timing SET DISTRIBUTED BY (owner)';
    EXECUTE 'ALTER TABLE cerebro.setting SET DISTRIBUTED REPLICATED';
    EXECUTE 'ALTER TABLE cerebro.run_log SET DISTRIBUTED REPLICATED';
    -- A segment cannot ask which number its session took last.
    DROP POLICY IF EXISTS own_numbers ON cerebro.run_log;
    -- As a join, a policy makes further segments take part in each change of the log. Each has all rows of run_log itself.
    EXECUTE $function$
        CREATE OR REPLACE FUNCTION cerebro.owns_run(run_id bigint) RETURNS boolean
        LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS
        'SELECT EXISTS (SELECT FROM cerebro.run_log r WHERE r.run_id = owns_run.run_id AND r.owner = current_user)'
        $function$;
    COMMENT ON FUNCTION cerebro.owns_run(bigint) IS 'Internal: whether the run belongs to the current user';
    FOREACH logged IN ARRAY ARRAY['config_log', 'visit', 'evaluation', 'metric'] LOOP
        EXECUTE pg_catalog.format('ALTER POLICY own_runs ON cerebro.%I USING (cerebro.owns_run(run_id))', logged);
    END LOOP;
    -- Keys of segments, several for each: a statement that names one is sent to its segment alone.
    EXECUTE 'CREATE TABLE IF NOT EXISTS cerebro.segment_key (key integer PRIMARY KEY) DISTRIBUTED BY (key)';
    INSERT INTO cerebro.segment_key SELECT k FROM pg_catalog.generate_series(0, 9999) k
    WHERE NOT EXISTS (SELECT FROM cerebro.segment_key);
    COMMENT ON TABLE cerebro.segment_key IS 'Values of __dist_key__: rows that have one lie on the segment where its row here lies';
    GRANT SELECT ON cerebro.segment_key TO PUBLIC;
    -- The lock of an orchestrator cannot be looked up beside a table, but the session by which it writes the log lives as
    -- long as it does.
    EXECUTE $view$
        CREATE OR REPLACE VIEW cerebro.orchestrator AS
        SELECT DISTINCT r.run_id, r.pid
        FROM pg_catalog.pg_stat_activity a JOIN cerebro.run_log r
             ON r.owner = a.usename AND r.run_id = pg_catalog.substring(a.application_name, '^cerebro_db run ([0-9]{1,18}) control$')::bigint
        WHERE a.datname = current_database() $view$;
END $$;
-- What each function does, for who asks in psql; docs/sql-reference.md answers.

CREATE OR REPLACE FUNCTION cerebro.help(name text DEFAULT NULL, message text DEFAULT NULL) RETURNS text
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy import help_api
return help_api.explain(plpy, GD, name, message)
$$;
COMMENT ON FUNCTION cerebro.help(text, text)
IS 'What a function does: in short, or with message usage, help or ? all that the reference says; without a name, a list of all functions';

-- MADlib's way to ask, f() and f('usage'), for every function of the schema, so that none can be forgotten. Where a
-- function already means something when it is called so, it keeps its meaning: with no argument needed there is no help
-- form, with one needed only f().
DO $$
DECLARE
    f record;
    arguments text;
    asked text;
BEGIN
    FOR f IN SELECT p.proname AS name, min(p.pronargs - p.pronargdefaults) AS needed
             FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_proc p ON p.oid = d.objid
             WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.deptype = 'e'
               AND d.refobjid = (SELECT e.oid FROM pg_catalog.pg_extension e WHERE e.extname = 'cerebro_db')
               AND p.pronamespace = '@extschema@'::regnamespace AND p.prosrc NOT LIKE 'SELECT cerebro.help(%'
             GROUP BY p.proname HAVING min(p.pronargs - p.pronargdefaults) > 0
    LOOP
        arguments := CASE WHEN f.needed > 1 THEN 'message text DEFAULT NULL' ELSE '' END;
        asked := CASE WHEN f.needed > 1 THEN 'message' ELSE quote_literal('usage') END;
        EXECUTE pg_catalog.format(
            'CREATE OR REPLACE FUNCTION @extschema@.%I(%s) RETURNS text LANGUAGE sql VOLATILE PARALLEL UNSAFE'
            ' SET search_path = pg_catalog, pg_temp AS %L',
            f.name, arguments, pg_catalog.format('SELECT cerebro.help(%L, %s)', f.name, asked));
        EXECUTE pg_catalog.format('COMMENT ON FUNCTION @extschema@.%I(%s) IS %L', f.name,
            CASE WHEN f.needed > 1 THEN 'text' ELSE '' END,
            pg_catalog.format('Help for %s; with the message usage, help or ? all that the reference says', f.name));
    END LOOP;
END $$;
-- Nothing is public: cerebro.grant_usage(role) gives a role what it needs. Trainers run as the server's
-- operating-system user, so who may start one is the administrator's decision.

-- Only where there is something to revoke, which is where a function is new: in the script of an update, PostgreSQL takes
-- all privileges of what it touches for the extension's own, and pg_dump would leave out what had been granted to roles.
DO $$
DECLARE
    f regprocedure;
BEGIN
    FOR f IN SELECT p.oid::regprocedure FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_proc p ON p.oid = d.objid
             WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.deptype = 'e'
               AND d.refobjid = (SELECT e.oid FROM pg_catalog.pg_extension e WHERE e.extname = 'cerebro_db')
               AND EXISTS (SELECT FROM pg_catalog.aclexplode(coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))) a
                           WHERE a.grantee = 0)
    LOOP
        EXECUTE pg_catalog.format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', f);
    END LOOP;
END $$;
