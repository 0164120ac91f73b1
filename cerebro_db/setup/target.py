"""What to set up: a server, a database on it, roles, and what they are to have."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from cerebro_db.errors import FeatureNotSupported, InvalidParameter
from cerebro_db.server.installation import OLDEST
from cerebro_db.setup.server_address import ServerAddress

SCHEMA = "madlib"  # of the functions that have no schema of their own; suits MADlib's scripts
OWN_SCHEMAS = ("cerebro", "cerebro_state", "cerebro_optuna")


@dataclass(frozen=True, kw_only=True)
class Target:
    """What to set up."""

    address: ServerAddress
    database: str
    roles: tuple[str, ...]
    extras: tuple[str, ...] = ("tensorflow", "boosting")  # libraries of the trainers
    has_search_path: bool = False  # whether sessions find functions without their schema
    has_peer_logins: bool = False  # whether a peer line may replace logins by password


def check_target(connection: sa.Connection, target: Target) -> None:
    """Check that the server can have the extension, and that the names can be used.

    Raises:
        FeatureNotSupported: the server is too old, or has segments.
        InvalidParameter: a name is reserved.
    """
    number, has_segments = connection.exec_driver_sql(
        "SELECT pg_catalog.current_setting('server_version_num')::integer, "
        "pg_catalog.to_regclass('pg_catalog.gp_segment_configuration') IS NOT NULL"
    ).one()
    if has_segments:
        raise FeatureNotSupported(
            "this command sets up PostgreSQL, and the server is a cluster with segments",
            hint="docs/how-to/greenplum.md has the steps for a cluster.",
        )
    if number < OLDEST * 10000:
        raise FeatureNotSupported(
            f"the server is PostgreSQL {number // 10000}; expected {OLDEST} or newer",
            hint="Choose another server with --port.",
        )
    for role in target.roles:
        if role in OWN_SCHEMAS:
            raise InvalidParameter(
                f"a role must not be named {role}: the extension has a schema of that name",
                hint="Choose another name for the role.",
            )


def database_exists(connection: sa.Connection, database: str) -> bool:
    """Return whether the server has the database."""
    query = "SELECT FROM pg_catalog.pg_database d WHERE d.datname::text = %s::text"
    return connection.exec_driver_sql(query, (database,)).first() is not None


def format_statement(connection: sa.Connection, template: str, *names: str) -> str:
    """Return a statement with names that the server has quoted, as format() does."""
    query = "SELECT pg_catalog.format(%s::text, VARIADIC %s::text[])"
    return str(connection.exec_driver_sql(query, (template, list(names))).scalar_one())
