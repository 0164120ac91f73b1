-- How the processor time of a role is counted, which quotas limit. What the log says of it, its owner may have written.
-- As in sql/83-queue.sql the ticket proves the run to be the caller's own.

CREATE OR REPLACE FUNCTION cerebro_internal.count_time(run_id bigint, ticket text, seconds double precision) RETURNS boolean
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
from cerebro_plpy.api import used_time
return used_time.count_time(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.count_time IS 'Internal: count processor seconds that an own run, which its ticket proves it to be, has used since the last time; false if it is not, or no call is at work for the run';
