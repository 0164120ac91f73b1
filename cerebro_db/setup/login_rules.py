"""Rules of pg_hba.conf: which one decides a login now, and which entries let workers in beside it.

A worker session of a role comes from the server's system user. An entry must change nothing for
everybody else, so it depends on the rule that decides the logins of that role now.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import sqlalchemy as sa

from cerebro_db.setup.marked_block import MAP, HbaEntry, IdentEntry
from cerebro_db.setup.server_address import ServerAddress
from cerebro_db.setup.target import database_exists

# The first rule for a login over the socket, by the order of the view, which is that of the files.
# Membership is followed by hand: pg_has_role() calls a superuser a member of every role.
FIND_RULE = """
WITH RECURSIVE membership AS (
    SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname::text = %(role)s::text
  UNION
    SELECT m.roleid FROM membership s JOIN pg_catalog.pg_auth_members m ON m.member = s.oid
), parent AS (
    SELECT r.rolname::text AS name FROM membership s JOIN pg_catalog.pg_roles r ON r.oid = s.oid
), rule AS (
    SELECT pg_catalog.row_number() OVER () AS number, f.*
    FROM pg_catalog.pg_hba_file_rules f WHERE f.error IS NULL
)
SELECT f.line_number, f.auth_method, f.options
FROM rule f
WHERE f.type = 'local'
  AND EXISTS (
    SELECT FROM pg_catalog.unnest(f.database) d (name)
    WHERE d.name IN ('all', %(database)s::text)
       OR d.name = 'sameuser' AND %(database)s::text = %(role)s::text
       OR d.name IN ('samerole', 'samegroup')
          AND %(database)s::text IN (SELECT p.name FROM parent p)
       OR %(has_patterns)s::boolean AND d.name LIKE '/%%'
          AND %(database)s::text ~ pg_catalog.substr(d.name, 2))
  AND EXISTS (
    SELECT FROM pg_catalog.unnest(f.user_name) u (name)
    WHERE u.name IN ('all', %(role)s::text)
       OR u.name LIKE '+%%' AND pg_catalog.substr(u.name, 2) IN (SELECT p.name FROM parent p)
       OR %(has_patterns)s::boolean AND u.name LIKE '/%%'
          AND %(role)s::text ~ pg_catalog.substr(u.name, 2))
ORDER BY f.number LIMIT 1
"""
PATTERNS_SINCE = 160000  # version of the server


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule of pg_hba.conf for the socket."""

    line: int
    method: str
    map: str | None

    def __str__(self) -> str:
        return f"line {self.line}: {self.method}"


@dataclass(frozen=True, kw_only=True)
class Login:
    """Logins of a role in a database over the socket, and the rule that decides them."""

    database: str
    role: str
    rule: Rule | None  # None if no rule matches: such logins fail
    problem: str | None  # why the server's system user cannot log in as the role
    exists: bool  # both the role and the database, so that the problem is one of rules

    @property
    def works(self) -> bool:
        """Return whether the server's system user can log in as the role."""
        return self.problem is None

    @property
    def is_inexplicable(self) -> bool:
        """Return whether the login fails for another reason than the rule, such as a limit."""
        if self.works or not self.exists:
            return False
        return self.rule is not None and self.rule.method == "trust"

    @property
    def is_by_password(self) -> bool:
        """Return whether an entry would take a way to log in from somebody."""
        return (
            not self.works and self.rule is not None and self.rule.method not in ("peer", "trust")
        )

    def list_entries(self, system_user: str) -> tuple[list[HbaEntry], list[IdentEntry]]:
        """Return the entries that let `system_user` in as the role, and others as before."""
        if self.works or (self.rule is not None and self.rule.method == "trust"):
            return [], []
        if self.rule is not None and self.rule.map is not None:
            return [], [IdentEntry(self.rule.map, system_user, self.role)]
        hba = [HbaEntry(self.database, self.role)]
        ident = [IdentEntry(MAP, system_user, self.role)]
        if self.rule is not None and self.rule.method != "reject":
            ident.append(IdentEntry(MAP, self.role, self.role))  # what `peer` without a map allows
        return hba, ident


def find_rule(connection: sa.Connection, database: str, role: str) -> Rule | None:
    """Return the rule that decides a login over the socket; the role may not exist yet."""
    version = connection.exec_driver_sql("SHOW server_version_num").scalar_one()
    arguments = {
        "database": database,
        "role": role,
        "has_patterns": int(version) >= PATTERNS_SINCE,
    }
    row = connection.exec_driver_sql(FIND_RULE, arguments).first()
    if row is None:
        return None
    options = dict(option.split("=", 1) for option in row.options or ())
    return Rule(line=row.line_number, method=row.auth_method, map=options.get("map"))


def read_logins(
    address: ServerAddress, connection: sa.Connection, database: str, roles: Iterable[str]
) -> list[Login]:
    """Return the logins of the roles in the database, as the files decide them now."""
    query = "SELECT FROM pg_catalog.pg_roles r WHERE r.rolname::text = %s::text"
    has_database = database_exists(connection, database)
    return [
        Login(
            database=database,
            role=role,
            rule=find_rule(connection, database, role),
            problem=address.try_login(address.user, database, role),
            exists=has_database and connection.exec_driver_sql(query, (role,)).first() is not None,
        )
        for role in roles
    ]
