-- How the processor time of a role is counted, which quotas limit. What the log says of it, its owner may have written.

CREATE OR REPLACE FUNCTION cerebro.count_time(run_id bigint, seconds double precision) RETURNS boolean
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
from cerebro_plpy.api import used_time
return used_time.count_time(plpy, GD, run_id, seconds)
$$;
COMMENT ON FUNCTION cerebro.count_time(bigint, double precision) IS 'Internal: count processor seconds that an own run has used since the last time; false if the run is not alive, or not the caller''s';

-- It runs with the rights of the extension's owner. For whom it counts how much, it is told by our own code in this process, which has
-- looked at the run as the caller; SQL cannot tell it, and called by hand it is refused.
CREATE OR REPLACE FUNCTION cerebro.add_time() RETURNS boolean
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
from cerebro_plpy.api import used_time
return used_time.add_time(plpy, GD)
$$;
COMMENT ON FUNCTION cerebro.add_time() IS 'Internal: add to the processor time of a role for cerebro.count_time, which alone can call it';
