"""The Python that the server embeds: its version, its packages, its folder for more."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

# Only the server knows its Python. The transaction is rolled back, with the language in it.
PROBE = """
DO LANGUAGE plpython3u $$
    import importlib.util
    import json
    import sys
    import sysconfig

    package = importlib.util.find_spec("cerebro_plpy")
    version = "%d.%d" % sys.version_info[:2]
    report = {
        "version": version,
        "interpreter": "%s/bin/python%s" % (sys.exec_prefix, version),
        "folder": sysconfig.get_path("purelib"),
        "package": package and list(package.submodule_search_locations)[0],
        "has_psycopg2": importlib.util.find_spec("psycopg2") is not None,
    }
    literal = plpy.quote_literal(json.dumps(report))
    plpy.execute("SELECT pg_catalog.set_config('cerebro_db.python', %s, true)" % literal)
$$
"""


@dataclass(frozen=True, kw_only=True)
class BackendPython:
    """The Python that the server embeds."""

    version: str
    interpreter: Path  # may be missing: only its library is needed
    folder: Path  # folder of the package for backends
    has_psycopg2: bool


def has_language(connection: sa.Connection) -> bool:
    """Return whether the server has the files of PL/Python 3."""
    query = "SELECT FROM pg_catalog.pg_available_extensions e WHERE e.name = 'plpython3u'"
    return connection.exec_driver_sql(query).first() is not None


def probe(connection: sa.Connection) -> BackendPython:
    """Return the Python of the server, whose PL/Python is installed; leave nothing behind."""
    connection.exec_driver_sql("BEGIN")
    try:
        connection.exec_driver_sql("CREATE EXTENSION IF NOT EXISTS plpython3u")
        connection.exec_driver_sql(PROBE)
        report = json.loads(connection.exec_driver_sql("SHOW cerebro_db.python").scalar_one())
    finally:
        connection.exec_driver_sql("ROLLBACK")
    package = report["package"]
    return BackendPython(
        version=report["version"],
        interpreter=Path(report["interpreter"]),
        folder=Path(package).parent if package else Path(report["folder"]),
        has_psycopg2=report["has_psycopg2"],
    )
