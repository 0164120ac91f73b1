-- Runs in the background, and what is done with runs that are in the log.

CREATE OR REPLACE FUNCTION cerebro.submit(@arguments of madlib_keras_fit_multiple_model@) RETURNS bigint
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import runs
return runs.submit(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.submit IS 'Execute madlib_fit_multiple_model with these arguments in the background; return the id of the run when it is logged';

CREATE OR REPLACE FUNCTION cerebro.submit(
    -- `'madlib_fit_multiple_model'`, `'madlib_fit'`, `'madlib_automl'` (or their names with
    -- `keras`) or `'cerebro.train'`.
    call text,
    -- Arguments of the call by their SQL names. Those left out have their defaults. Unknown names
    -- (22023) and values of another type (22P02) are refused.
    arguments jsonb
) RETURNS bigint
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import runs
return runs.submit_call(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.submit IS 'Execute a call in the background: madlib_fit, madlib_fit_multiple_model, madlib_automl or cerebro.train, with named arguments. Returns the id of the run when it is logged';

CREATE OR REPLACE PROCEDURE cerebro_internal.work(task json)
LANGUAGE plpython3u AS $$
from cerebro_plpy.api import runs
return runs.work(plpy, GD, *args)
$$;
COMMENT ON PROCEDURE cerebro_internal.work IS 'Internal: do what cerebro.submit or cerebro.resume has opened this session for; commits often';

CREATE OR REPLACE FUNCTION cerebro.wait(
    -- A run that the caller may see.
    run_id bigint,
    -- The longest wait. NULL: no limit.
    timeout interval DEFAULT NULL
) RETURNS text
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import runs
return runs.wait(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.wait IS 'Wait until a run ends, and return its status; return running if the time is over first';

CREATE OR REPLACE FUNCTION cerebro.cancel(
    -- The run to cancel.
    run_id bigint
) RETURNS boolean
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import runs
return runs.cancel(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.cancel IS 'Cancel a run, in the background or not; return false if it is not under way. Completed work stays, and cerebro.resume continues it';

CREATE OR REPLACE FUNCTION cerebro.resume(
    -- An own run that is `interrupted`, `cancelled` or `failed`.
    run_id bigint,
    -- TRUE: resume it in the background, as `cerebro.submit` does.
    background boolean DEFAULT FALSE
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import runs
return runs.resume_run(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.resume IS 'Continue an own run that was interrupted, cancelled or failed, here or in the background. Completed visits are not repeated; the output tables are made at the end';

CREATE OR REPLACE FUNCTION cerebro.write_outputs(
    -- An own run.
    run_id bigint,
    -- Name of the output tables to create: `<output>`, `<output>_info` and so on.
    output text
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import runs
return runs.write_outputs(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.write_outputs IS 'Make the output tables of a run under any name: again, after a rollback, or with the results so far of a run that is under way or ended early';

CREATE OR REPLACE FUNCTION cerebro.drop_run(
    -- An own run that is not under way.
    run_id bigint
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import runs
return runs.drop_run(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.drop_run IS 'Remove an own run that is not under way: its log and its states; output tables stay';

-- Who may delete rows of a table may also lock it against everybody, so roles may not. As the owner of the tables this
-- removes what the owner of a run has marked, whoever calls: the mark is subject to row security. It touches no rows of another
-- role, for which that one would have to wait, and locks nothing before it has seen the mark.
CREATE OR REPLACE FUNCTION cerebro_internal.remove_dropped(run_id bigint) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM cerebro.run_log r WHERE r.run_id = remove_dropped.run_id AND r.dropped;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    DELETE FROM cerebro.visit v WHERE v.run_id = remove_dropped.run_id;
    DELETE FROM cerebro.evaluation e WHERE e.run_id = remove_dropped.run_id;
    DELETE FROM cerebro.act_log a WHERE a.run_id = remove_dropped.run_id;
    DELETE FROM cerebro.decision_log d WHERE d.run_id = remove_dropped.run_id;
    DELETE FROM cerebro.metric m WHERE m.run_id = remove_dropped.run_id;
    DELETE FROM cerebro.queue_log q WHERE q.run_id = remove_dropped.run_id;
    DELETE FROM cerebro.config_log c WHERE c.run_id = remove_dropped.run_id;
    DELETE FROM cerebro.run_log r WHERE r.run_id = remove_dropped.run_id AND r.dropped;
END;
$$;
COMMENT ON FUNCTION cerebro_internal.remove_dropped IS 'Internal: remove the log of a run that its owner has marked as dropped';

CREATE OR REPLACE FUNCTION cerebro.vacuum_runs(
    -- Least time since a run ended or was interrupted.
    older_than interval DEFAULT '7 days'
) RETURNS bigint
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import runs
return runs.vacuum_runs(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.vacuum_runs IS 'Remove the states of own runs that ended or were interrupted long enough ago, and features of dropped tables; return the bytes that were freed. Logs and output tables stay';

CREATE OR REPLACE FUNCTION cerebro.drop_features(
    -- The packed table. NULL: all packed tables.
    source varchar DEFAULT NULL
) RETURNS bigint
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import runs
return runs.drop_features(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.drop_features IS 'Remove the stored outputs of frozen layers for the rows of a packed table, or of all own ones; return the bytes that were freed';
