"""The custom settings that the backend finds in a session, and sessions that are opened with
them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager

from psycopg2.extensions import make_dsn
from workbench import Workbench, superuser

# Functions of the tests alone: the product has none that returns values of settings.
FUNCTIONS = """
CREATE OR REPLACE FUNCTION public.custom_settings(sources regclass[], lists boolean = true)
    RETURNS json
LANGUAGE plpython3u AS $$
    import json
    from types import SimpleNamespace
    from cerebro_plpy.api import entry
    from cerebro_plpy.database import custom_settings
    statement = plpy.prepare("SELECT s.oid::bigint AS oid FROM unnest($1::oid[]) s (oid)",
        ["regclass[]"])
    tables = [SimpleNamespace(oid=row["oid"], query=None)
        for row in plpy.execute(statement, [sources])]
    listing = custom_settings.list_changed_settings
    custom_settings.list_changed_settings = listing if lists else lambda: None
    try:
        return entry.report_errors(entry.call)(plpy, {}, lambda db:
            json.dumps(dict(custom_settings.read_custom_settings(db, tables))))
    finally:
        custom_settings.list_changed_settings = listing
$$;
CREATE OR REPLACE FUNCTION public.escape_startup_options() RETURNS text LANGUAGE plpython3u AS $$
    from cerebro_plpy.api import entry
    from cerebro_plpy.database.custom_settings import read_custom_settings, escape_startup_options
    options = entry.report_errors(entry.call)(plpy, {},
        lambda db: escape_startup_options(read_custom_settings(db)))
    return " ".join(f"-c {name}={value}" for name, value in options.items())
$$;
CREATE OR REPLACE FUNCTION public.check_dependencies(source regclass) RETURNS void
    LANGUAGE plpython3u AS $$
    from cerebro_plpy.api import entry
    from cerebro_plpy.database import catalog, definitions
    oid = plpy.execute(plpy.prepare("SELECT $1::oid::bigint AS oid", ["regclass"]),
        [source])[0]["oid"]
    check = definitions.check_session_dependencies
    entry.report_errors(entry.call)(plpy, {},
        lambda db: check(db, catalog.Catalog(db, "train").read_relation(oid)))
$$;
GRANT EXECUTE ON FUNCTION public.custom_settings, public.escape_startup_options,
    public.check_dependencies TO PUBLIC
"""


def create_functions(bench: Workbench) -> None:
    """Create functions that return what the backend finds, in the database of a workbench."""
    with closing(superuser(bench)) as administrator:
        administrator.rows(FUNCTIONS)


def backend_settings(session: Workbench, *sources: str, lists: bool = True) -> dict[str, str]:
    """Return the custom settings that the backend finds in a session; without a list as where a
    server has none.
    """
    found = session.value("SELECT public.custom_settings(%s::regclass[], %s)", list(sources), lists)
    return found if isinstance(found, dict) else json.loads(found)


def settings_as_sql_reads(session: Workbench, names: Iterable[str]) -> dict[str, str]:
    """Return those of the settings that are set, as current_setting has them."""
    rows = session.rows("SELECT n, current_setting(n, true) FROM unnest(%s::text[]) n", list(names))
    return {name: value for name, value in rows if value is not None}


@contextmanager
def reading_session(session: Workbench, url: str | None = None) -> Iterator[Workbench]:
    """Open a session with the startup options that the backend makes of the settings of another
    one.
    """
    options = session.value("SELECT public.escape_startup_options()")
    with closing(Workbench(make_dsn(url or session.url, options=options))) as reader:
        yield reader
