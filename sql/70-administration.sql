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
COMMENT ON FUNCTION cerebro.grant_usage IS 'Let a role use the extension, with runs and state tables of its own; keep_trainers decides if an idle trainer of one of its sessions may serve the next one';

CREATE OR REPLACE FUNCTION cerebro.revoke_usage(
    -- The role.
    role regrole
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import administration
return administration.revoke_usage(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.revoke_usage IS 'Revoke from a role the grant of cerebro.grant_usage; its tables, runs and models stay';

CREATE OR REPLACE FUNCTION cerebro.worker_report() RETURNS jsonb
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import administration
return administration.worker_report(plpy, GD)
$$;
COMMENT ON FUNCTION cerebro.worker_report IS 'Open a worker session as a run of the current user would, and return its role';

CREATE OR REPLACE FUNCTION cerebro.version() RETURNS text
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import administration
return administration.version(plpy, GD)
$$;
COMMENT ON FUNCTION cerebro.version IS 'Return the versions of the extension, of its Python package, and of the server and its Python, in one line';

CREATE OR REPLACE FUNCTION cerebro.python_version() RETURNS jsonb
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import administration
return administration.python_version(plpy, GD)
$$;
COMMENT ON FUNCTION cerebro.python_version IS 'Return the versions of the extension, of its Python package, of the embedded Python and of psycopg2';
