-- What runs on a segment: everything comes as an argument, nothing is read from a table here. These
-- functions talk to the trainer of their session; statements around them move rows and states.

CREATE OR REPLACE FUNCTION cerebro_internal.trainer_start(spec json) RETURNS json
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import segment
return segment.trainer_start(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.trainer_start IS 'Internal: start the trainer of this session, or find the one that was started alike, and return what it says of itself';

CREATE OR REPLACE FUNCTION cerebro_internal.dataset_open(dataset text, cache_bytes bigint) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import segment
return segment.dataset_open(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.dataset_open IS 'Internal: tell the trainer of this session that the buffers of a data set follow';

CREATE OR REPLACE FUNCTION cerebro_internal.dataset_add(dataset text, pass_no integer, buffer_id integer, shapes json, part bytea) RETURNS integer
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import segment
return segment.dataset_add(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.dataset_add IS 'Internal: pass a part of a packed row to the trainer of this session, with the first one the shapes; returns its length';

CREATE OR REPLACE FUNCTION cerebro_internal.dataset_close(dataset text) RETURNS json
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import segment
return segment.dataset_close(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.dataset_close IS 'Internal: end of a data set; returns whether the trainer keeps it or wants it streamed into each job';

CREATE OR REPLACE FUNCTION cerebro_internal.state_add(part integer, chunk bytea) RETURNS integer
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import segment
return segment.state_add(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.state_add IS 'Internal: pass one chunk of a state, its parts numbered from 1, to the job that job_begin began; returns its length';

CREATE OR REPLACE FUNCTION cerebro_internal.state_chunks(chunk_bytes integer, key text, part text DEFAULT 'whole') RETURNS SETOF bytea
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import segment
return segment.state_chunks(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.state_chunks IS 'Internal: the state of that name that a job of this session''s trainer left, in chunks, or a part of it: its ''own'' variables, or its ''base'', the frozen weights; also while the next one is done';

CREATE OR REPLACE FUNCTION cerebro_internal.job_begin(spec json) RETURNS json
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import segment
return segment.job_begin(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.job_begin IS 'Internal: begin to train, evaluate or predict in the trainer of this session';

CREATE OR REPLACE FUNCTION cerebro_internal.sealed_job(model oid, spec json, mst_key integer) RETURNS bigint
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import segment
return segment.sealed_job(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.sealed_job IS 'Internal: begin to evaluate or predict with a model of this table by the function that its owner has granted, where it is the one that cerebro.grant_predict makes; returns how many chunks its state has';

-- Functions that cerebro.grant_predict has made depend on the next two: their arguments must stay as they are.
CREATE OR REPLACE FUNCTION cerebro.sealed_begin(spec json, architecture json) RETURNS json
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import segment
return segment.sealed_begin(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.sealed_begin IS 'Internal: begin to evaluate or predict with weights that this session must not see';

CREATE OR REPLACE FUNCTION cerebro.sealed_add(part integer, chunk bytea) RETURNS integer
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import segment
return segment.sealed_add(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.sealed_add IS 'Internal: pass one chunk of such weights to the job that sealed_begin began; returns its length';

CREATE OR REPLACE FUNCTION cerebro_internal.job_start() RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import segment
return segment.job_start(plpy, GD)
$$;
COMMENT ON FUNCTION cerebro_internal.job_start IS 'Internal: let the job that job_begin began be done, without waiting for it: job_finish does';

CREATE OR REPLACE FUNCTION cerebro_internal.job_finish() RETURNS json
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import segment
return segment.job_finish(plpy, GD)
$$;
COMMENT ON FUNCTION cerebro_internal.job_finish IS 'Internal: end the job that job_begin began and return its result';

CREATE OR REPLACE FUNCTION cerebro_internal.job_series(spec json) RETURNS json
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import segment
return segment.job_series(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.job_series IS 'Internal: end the job that job_begin began, do others that go on from what it left, and return the results of all';

CREATE OR REPLACE FUNCTION cerebro_internal.job_cost() RETURNS json
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import segment
return segment.job_cost(plpy, GD)
$$;
COMMENT ON FUNCTION cerebro_internal.job_cost IS 'Internal: what this session and its trainer have cost since a job ended last, such as for one that has failed';

CREATE OR REPLACE FUNCTION cerebro_internal.metric_results(spec json) RETURNS json
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import segment
return segment.metric_results(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.metric_results IS 'Internal: final values of metrics from their sums over segments';

CREATE OR REPLACE FUNCTION cerebro_internal.row_outputs(units integer, chunk_bytes integer) RETURNS SETOF bytea
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import segment
return segment.row_outputs(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.row_outputs IS 'Internal: the target and the outputs, of so many units, of each row that the job that was ended last has gone over, as real numbers, in chunks of whole rows';

CREATE OR REPLACE FUNCTION cerebro_internal.buffer_features(spec json, inputs bytea[]) RETURNS bytea
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import segment
return segment.buffer_features(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.buffer_features IS 'Internal: what a layer gives for the rows of a buffer with these inputs, under the state of the job that job_begin began';

CREATE OR REPLACE FUNCTION cerebro_internal.predict_begin(spec json) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import segment
return segment.predict_begin(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.predict_begin IS 'Internal: begin to collect rows into blocks for predictions';

CREATE OR REPLACE FUNCTION cerebro_internal.predict_add(id text, inputs bytea[]) RETURNS cerebro.predicted
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import segment
return segment.predict_add(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.predict_add IS 'Internal: take the inputs of a row; where it completes a block, return the predictions of the block before, else NULL';

CREATE OR REPLACE FUNCTION cerebro_internal.predict_rest() RETURNS cerebro.predicted
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import segment
return segment.predict_rest(plpy, GD)
$$;
COMMENT ON FUNCTION cerebro_internal.predict_rest IS 'Internal: after the last row, first the predictions of the block before the last one, then those of the last';

-- Names of state tables are taken from the log, which its owner may change, and put into statements: only such as this
-- function knows. The pattern leaves no sign that would end a quoted name.
CREATE OR REPLACE FUNCTION cerebro_internal.is_state(run_id bigint, name text) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS
$$SELECT EXISTS (
    SELECT FROM pg_class c
    WHERE c.relnamespace = 'cerebro_state'::regnamespace AND c.relkind = 'r' AND c.relname = split_part(name, '"', 2)::name
      AND c.relowner = (SELECT r.oid FROM pg_roles r WHERE r.rolname = current_user)
      AND name = 'cerebro_state."' || c.relname || '"' AND c.relname ~ ('^r' || run_id || '_(c-?[0-9]+_[0-9ab_]+|z_[0-9a-f]{32}|f[0-9]+_(training|validation))$'))$$;
COMMENT ON FUNCTION cerebro_internal.is_state IS 'Internal: whether this is the quoted name of a table of the current user that holds a state of the run, frozen weights that states share, or what frozen layers give for its rows';

-- The function behind bytea's binary output copies any value of variable length: as citext does with text's, it is
-- declared for another type of the same make. Arrays then cross to the packer without a call for each element.
CREATE OR REPLACE FUNCTION cerebro_internal.array_bytes(value anyarray) RETURNS bytea
LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'byteasend';
COMMENT ON FUNCTION cerebro_internal.array_bytes IS 'Internal: an array as it lies in memory';

CREATE OR REPLACE FUNCTION cerebro_internal.pack_block(spec json, data bytea[]) RETURNS json
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import segment
return segment.pack_block(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.pack_block IS 'Internal: send a block of rows, or NULL, to be packed into a buffer; where it is of another buffer than the block before, return the number and the shapes of that one';

CREATE OR REPLACE FUNCTION cerebro_internal.packed_array(place integer) RETURNS bytea
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import segment
return segment.packed_array(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.packed_array IS 'Internal: an array of the buffer that pack_block has told of, each once and in order from 1';

CREATE OR REPLACE FUNCTION cerebro_internal.trainer_rest() RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import segment
return segment.trainer_rest(plpy, GD)
$$;
COMMENT ON FUNCTION cerebro_internal.trainer_rest IS 'Internal: let the trainer of this session wait for the next call, of this session or of another one of the role that comes after it';

CREATE OR REPLACE FUNCTION cerebro_internal.trainer_stop() RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import segment
return segment.trainer_stop(plpy, GD)
$$;
COMMENT ON FUNCTION cerebro_internal.trainer_stop IS 'Internal: end the trainer of this session, if there is one';

CREATE OR REPLACE FUNCTION cerebro_internal.gpu_count() RETURNS integer
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import segment
return segment.gpu_count(plpy, GD)
$$;
COMMENT ON FUNCTION cerebro_internal.gpu_count IS 'Internal: how many GPUs of this machine trainers may use';

CREATE OR REPLACE FUNCTION cerebro.trainer_report(
    -- The framework that the trainer loads: `'tensorflow'`, `'jax'` or `'torch'`.
    framework text DEFAULT 'tensorflow'
) RETURNS jsonb
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import segment
return segment.trainer_report(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.trainer_report IS 'Start a trainer in this session and return its versions and devices';
