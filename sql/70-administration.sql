-- For administrators and for `cerebro-db check`.

CREATE OR REPLACE FUNCTION cerebro.grant_usage(
    -- The role.
    role regrole,
    -- FALSE: each session of the role starts its own trainers. TRUE: a session may get trainers
    -- that an earlier session of the role has left. NULL: unchanged.
    keep_trainers boolean DEFAULT NULL
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import administration
return administration.grant_usage(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.grant_usage IS 'Let a role use the extension: its functions, its own runs, and state tables of its own; and say whether a trainer that one of its sessions leaves may serve the next one';

CREATE OR REPLACE FUNCTION cerebro.revoke_usage(
    -- The role.
    role regrole
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import administration
return administration.revoke_usage(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.revoke_usage IS 'Take back what cerebro.grant_usage has granted to a role; its tables, runs and models stay';

CREATE OR REPLACE FUNCTION cerebro.worker_report() RETURNS jsonb
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import administration
return administration.worker_report(plpy, GD)
$$;
COMMENT ON FUNCTION cerebro.worker_report IS 'Open a worker session as a run of the current user would, and say as whom it was opened';

CREATE OR REPLACE FUNCTION cerebro.version() RETURNS text
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import administration
return administration.version(plpy, GD)
$$;
COMMENT ON FUNCTION cerebro.version IS 'The versions of the extension, of its Python package, and of the server and its Python, in one line';

CREATE OR REPLACE FUNCTION cerebro.python_version() RETURNS jsonb
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import administration
return administration.python_version(plpy, GD)
$$;
COMMENT ON FUNCTION cerebro.python_version IS 'Versions of the extension, of its Python package, of the embedded Python and of psycopg2';
