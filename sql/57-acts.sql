-- What people ask of runs that go on, from any session of a member of the owner's role. It holds from the next visit on once the
-- caller's transaction has committed.

CREATE OR REPLACE FUNCTION cerebro.stop_config(run_id bigint, mst_key integer) RETURNS bigint
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import acts
return acts.stop_config(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.stop_config IS 'Let a configuration of a run that goes on begin no further visit to train; its state stays, and cerebro.continue_config goes on with it. Returns the id of the act';

CREATE OR REPLACE FUNCTION cerebro.continue_config(run_id bigint, mst_key integer) RETURNS bigint
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import acts
return acts.continue_config(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.continue_config IS 'Train a configuration that was stopped, or that a search lets rest, on to the last epoch of its run. Returns the id of the act';

CREATE OR REPLACE FUNCTION cerebro.clone_config(run_id bigint, mst_key integer, change jsonb, warm boolean DEFAULT TRUE) RETURNS bigint
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import acts
return acts.clone_config(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.clone_config IS 'Add a configuration to a run that goes on: another one with other compile or fit parameters, or other fields of its template, which begins from a copy of its state where it is warm. Returns the id of the act';

CREATE OR REPLACE FUNCTION cerebro.add_configs(run_id bigint, space jsonb DEFAULT NULL, n integer DEFAULT NULL, selection_table text DEFAULT NULL) RETURNS bigint
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import acts
return acts.add_configs(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.add_configs IS 'Add n configurations of a space, or those of a model selection table, to a run that goes on. Returns the id of the act';

CREATE OR REPLACE FUNCTION cerebro.drill_down(run_id bigint, mst_key integer, space jsonb, n integer DEFAULT NULL) RETURNS bigint
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import acts
return acts.drill_down(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.drill_down IS 'Add configurations to a run that goes on that are like one of it, but for what the space says: all of it, or n. Returns the id of the act';

CREATE OR REPLACE FUNCTION cerebro.set_epochs(run_id bigint, n integer, mst_key integer DEFAULT NULL) RETURNS bigint
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import acts
return acts.set_epochs(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.set_epochs IS 'Let a configuration of a run that goes on, or all of them, be trained for n epochs, fewer or more than the run has; who has begun a later one ends with that. Returns the id of the act';

CREATE OR REPLACE FUNCTION cerebro.prioritise(run_id bigint, mst_key integer) RETURNS bigint
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import acts
return acts.prioritise(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.prioritise IS 'Let a configuration of a run that goes on take workers before all others. Returns the id of the act';

CREATE OR REPLACE FUNCTION cerebro.pause_run(run_id bigint) RETURNS bigint
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import acts
return acts.pause_run(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.pause_run IS 'Let a run begin no further visit: its trainers end, and its time stops until cerebro.continue_run. Returns the id of the act';

CREATE OR REPLACE FUNCTION cerebro.continue_run(run_id bigint) RETURNS bigint
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import acts
return acts.continue_run(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.continue_run IS 'Let a run go on that was paused. Returns the id of the act';
