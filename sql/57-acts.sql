-- What people ask of runs that go on, from any session of a member of the owner's role. It holds from the next visit on once the
-- caller's transaction has committed.

CREATE OR REPLACE FUNCTION cerebro.stop_config(
    -- A run that is under way, of the caller or of a role of which the caller is a member.
    run_id bigint,
    -- The configuration.
    mst_key integer
) RETURNS bigint
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import acts
return acts.stop_config(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.stop_config IS 'Stop a configuration of a live run: it begins no further visit. Its state stays, and cerebro.continue_config continues from it. Returns the id of the act';

CREATE OR REPLACE FUNCTION cerebro.continue_config(
    run_id bigint,
    mst_key integer
) RETURNS bigint
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import acts
return acts.continue_config(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.continue_config IS 'Train a configuration of a live run to the last epoch, after it was stopped or paused by a search. Returns the id of the act';
-- Arguments without a comment are those of cerebro.stop_config.

CREATE OR REPLACE FUNCTION cerebro.clone_config(
    run_id bigint,
    mst_key integer,
    -- Compile and fit parameters to replace, by name (`null` leaves one out). In a run of
    -- `cerebro.train`: fields of the template (`null`: the usual value). `lr` and `learning_rate` are
    -- the same; in other runs they change the optimizer.
    change jsonb,
    -- TRUE: begin with a copy of the stored state of `mst_key`, with its optimizer if that has the
    -- same class. FALSE: begin with new weights.
    warm boolean DEFAULT TRUE
) RETURNS bigint
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import acts
return acts.clone_config(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.clone_config IS 'Add a changed copy of a configuration to a live run: with other compile or fit parameters, or other fields of its template. A warm copy begins with its state. Returns the id of the act';
-- Arguments without a comment are those of cerebro.stop_config.

CREATE OR REPLACE FUNCTION cerebro.add_configs(
    run_id bigint,
    -- The space from which configurations are drawn: see [Searches](#searches).
    space jsonb DEFAULT NULL,
    -- Number of configurations to draw. NULL: all of the space, which then has no ranges.
    configs integer DEFAULT NULL,
    -- A model selection table whose configurations are added, instead of `space`. It is read with
    -- the privileges of the caller. Not in a run of `cerebro.train`.
    selection_table text DEFAULT NULL
) RETURNS bigint
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import acts
return acts.add_configs(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.add_configs IS 'Add configurations of a space, or of a model selection table, to a live run. Returns the id of the act';
-- Arguments without a comment are those of cerebro.stop_config.

CREATE OR REPLACE FUNCTION cerebro.drill_down(
    run_id bigint,
    mst_key integer,
    -- The fields to vary. Everything else is as in `mst_key`.
    space jsonb,
    configs integer DEFAULT NULL
) RETURNS bigint
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import acts
return acts.drill_down(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.drill_down IS 'Add configurations to a live run that vary one of its configurations in a space: all of the space, or as many as configs. Returns the id of the act';
-- Arguments without a comment are those of cerebro.stop_config, cerebro.add_configs.

CREATE OR REPLACE FUNCTION cerebro.set_epochs(
    run_id bigint,
    -- Number of epochs, fewer or more than the run has.
    epochs integer,
    -- The configuration. NULL: all of them. In a search a configuration must be named.
    mst_key integer DEFAULT NULL
) RETURNS bigint
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import acts
return acts.set_epochs(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.set_epochs IS 'Change the number of epochs of a configuration of a live run, or of all; a configuration that is in a later epoch ends with it. Returns the id of the act';
-- Arguments without a comment are those of cerebro.stop_config.

CREATE OR REPLACE FUNCTION cerebro.prioritize(
    run_id bigint,
    mst_key integer
) RETURNS bigint
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import acts
return acts.prioritize(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.prioritize IS 'Give workers to a configuration of a live run before all others. Returns the id of the act';
-- Arguments without a comment are those of cerebro.stop_config.

CREATE OR REPLACE FUNCTION cerebro.pause_run(
    run_id bigint
) RETURNS bigint
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import acts
return acts.pause_run(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.pause_run IS 'Pause a run: no further visit begins, its trainers end, and its time stops until cerebro.continue_run. Returns the id of the act';
-- Arguments without a comment are those of cerebro.stop_config.

CREATE OR REPLACE FUNCTION cerebro.continue_run(
    run_id bigint
) RETURNS bigint
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import acts
return acts.continue_run(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.continue_run IS 'Continue a paused run. Returns the id of the act';
-- Arguments without a comment are those of cerebro.stop_config.
