"""Finds the tables that a call names, in the caller's search path, and the columns they have.

Names are resolved once, without a lock; afterwards every statement has them schema-qualified.
"""

from __future__ import annotations

import time

from cerebro_plpy.database import lock_holders
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.sql.identifiers import (
    MAX_BYTES,
    quote_identifier,
    quote_qualified,
    split_qualified,
)
from cerebro_plpy.errors import (
    DuplicateTable,
    InsufficientPrivilege,
    InvalidName,
    NullNotAllowed,
    UndefinedColumn,
    UndefinedTable,
    WrongObjectType,
)
from cerebro_plpy.records import dataclass

PAUSE_SECONDS = 0.1


@dataclass(frozen=True)
class Relation:
    """A table or view that exists: its name as the user wrote it, and as it must stand in a
    statement.
    """

    spelling: str
    schema: str
    name: str
    oid: int
    quoted: str


READABLE = "rvmpf"


class Catalog:
    """The caller's names. `module` opens every message, as users of MADlib know it."""

    def __init__(self, db: Database, module: str) -> None:
        self.db = db
        self.module = module

    def relation(
        self, given: str | None, what: str = "input", beside: Relation | None = None
    ) -> Relation:
        """The table or view of that name, see `find`; what it is, is said in errors."""
        if given is None or not given.strip():
            raise NullNotAllowed(
                f"{self.module} error: NULL/empty input table name!", hint=f"Name the {what} table."
            )
        found = self.find(given, beside)
        if found is None:
            raise UndefinedTable(
                f"{self.module} error: Input table '{given}' does not exist.",
                detail=f"It was named as the {what} table.",
                hint="Check the spelling and the search_path, or write schema.table.",
            )
        if found["kind"] not in READABLE:
            raise WrongObjectType(f"{self.module} error: '{given}' is not a table or view.")
        allowed = self.db.value(sql("read.may_select"), found["oid"], found["oid"])
        if not allowed:
            raise InsufficientPrivilege(
                f"{self.module} error: permission denied for {what} table '{given}'.",
                hint=f"Its owner can GRANT SELECT ON {given} to you.",
            )
        self._check_policies(given, found["oid"])
        return self._made(given, found)

    def companion(self, of: Relation, suffix: str) -> Relation | None:
        """The table whose name is that of another and a suffix, in the same schema."""
        if len((of.name + suffix).encode()) > MAX_BYTES:
            return None
        name = quote_qualified((of.schema, of.name + suffix))
        found = self._lookup(name)
        if found is None:
            return None
        self._check_policies(name, found["oid"])
        return self._made(name, found)

    def by_oid(self, oid: int) -> Relation:
        """A table that the catalog names."""
        (found,) = self.db.rows(sql("read.relation"), oid)
        return self._made(f"{found['schema']}.{found['name']}", found)

    def output_name(self, given: str | None) -> str:
        """The name of a table that is to be made, which there must be."""
        if given is None or not given.strip():
            raise NullNotAllowed(
                f"{self.module} error: NULL/empty output table name!", hint="Name the output table."
            )
        return given

    def output(self, name: str | None, suffixes: tuple[str, ...] = ()) -> Relation:
        """A table that does not exist yet, nor its companions, in a schema where the caller may
        create.
        """
        given = self.output_name(name)
        parts = self._parts(given, "output")
        schema = self._check_schema(given, parts[0] if len(parts) == 2 else self.db.caller_schema)
        plain = parts[-1]
        longest = plain + max(suffixes, key=len, default="")
        if len(longest.encode()) > MAX_BYTES:
            raise InvalidName(
                f"{self.module} error: Invalid output table name {given}: with its suffix it has"
                f" {len(longest.encode())} bytes, expected at most {MAX_BYTES}.",
                hint="Choose a shorter name.",
            )
        for suffix in ("", *suffixes):
            if self._lookup(quote_qualified((schema, plain + suffix))):
                raise DuplicateTable(
                    f"{self.module} error: Output table '{given}{suffix}' already exists. Drop it "
                    "before calling the function.",
                    hint=f"DROP TABLE {quote_qualified((schema, plain + suffix))};",
                )
        self._reserve(given, schema, plain)
        return Relation(
            spelling=given,
            schema=schema,
            name=plain,
            oid=0,
            quoted=quote_qualified((schema, plain)),
        )

    def wait_for_maker(self, name: str | None) -> None:
        """Wait while another session makes a table of that name, and reserve it."""
        given = self.output_name(name)
        parts = self._parts(given, "output")
        schema = self._check_schema(given, parts[0] if len(parts) == 2 else self.db.caller_schema)
        while not lock_holders.reserve(self.db, schema, parts[-1]):
            time.sleep(PAUSE_SECONDS)
            self.db.check_interrupts()
        self.db.rows(sql("read.open"), schema, parts[-1])

    def _reserve(self, given: str, schema: str, name: str) -> None:
        """Until this transaction ends nobody else begins a table of that name: the work would be
        for nothing.
        """
        if not lock_holders.reserve(self.db, schema, name):
            raise DuplicateTable(
                f"{self.module} error: Output table '{given}' is being made by another "
                "transaction.",
                hint="Choose another name, or wait for the other call to end.",
            )

    def columns(self, of: Relation) -> dict[str, Row]:
        """The columns of a table: name to type, category and element type."""
        return {row["name"]: row for row in self.db.rows(sql("read.columns"), of.oid)}

    def column(self, of: Relation, name: str) -> Row:
        """One column, which must exist."""
        columns = self.columns(of)
        if name not in columns:
            raise UndefinedColumn(
                f"{self.module} error: Column '{name}' does not exist in table '{of.spelling}'!",
                hint=f"Its columns are: {', '.join(columns)}.",
            )
        return columns[name]

    def find(self, given: str, beside: Relation | None = None) -> Row | None:
        """The catalog row of a name as the user wrote it, or None.

        A name without a schema that is kept `beside` a table is looked for in that table's schema
        before the path.
        """
        parts = self._parts(given, "input")
        near = quote_qualified((beside.schema, *parts)) if beside and len(parts) == 1 else None
        return (self._lookup(near) if near else None) or self._lookup(quote_qualified(parts))

    def _check_policies(self, given: str, oid: int) -> None:
        """Raise InsufficientPrivilege if policies hide rows from a caller who asks by row_security
        for all or none.
        """
        if self.db.reading.row_security == "off" and self.db.value(sql("read.filtered"), oid):
            raise InsufficientPrivilege(
                f"{self.module} error: row_security is off, and policies of table '{given}' decide "
                "which rows you see.",
                hint="SET row_security = on; to read the rows that they show you.",
            )

    def _lookup(self, name: str) -> Row | None:
        with self.db.configured(search_path=self.db.caller_path):
            oid = self.db.value(sql("read.resolve"), name)
        rows = [] if oid is None else self.db.rows(sql("read.relation"), oid)
        return rows[0] if rows else None

    def _parts(self, given: str, what: str) -> tuple[str, ...]:
        try:
            return split_qualified(given, self.db.name)
        except InvalidName as error:
            raise InvalidName(
                f"{self.module} error: Invalid {what} table name {given}",
                detail=error.message,
                hint=error.hint,
            ) from error

    def _check_schema(self, given: str, schema: str | None) -> str:
        rows = self.db.rows(sql("read.schema"), schema, schema) if schema else []
        if schema is None or not rows:
            raise InvalidName(
                f"{self.module} error: Invalid output table name {given}: there is no schema to "
                "create it in.",
                hint="Create the schema, or put an existing one into the search_path.",
            )
        if not rows[0]["may_create"]:
            raise InsufficientPrivilege(
                f"{self.module} error: permission denied to create '{given}' in schema {schema}.",
                hint=f"Its owner can GRANT CREATE ON SCHEMA {quote_identifier(schema)} to you.",
            )
        return schema

    def _made(self, given: str, found: Row) -> Relation:
        return Relation(
            spelling=given,
            schema=found["schema"],
            name=found["name"],
            oid=found["oid"],
            quoted=quote_qualified((found["schema"], found["name"])),
        )
