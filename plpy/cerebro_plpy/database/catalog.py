"""The tables that a call names, resolved in the caller's search path, and their columns.

Names are resolved once, without a lock; afterwards every statement has them schema-qualified.
"""

from __future__ import annotations

import time

from cerebro_plpy.database import lock_holders
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.sql.identifiers import (
    MAX_BYTES,
    Names,
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

PAUSE_SECONDS = 0.1  # between two attempts to reserve a name


@dataclass(frozen=True)
class Relation:
    """An existing table or view."""

    spelling: str  # as the user wrote it
    schema: str
    name: str
    oid: int  # 0 for a table that is still to be created
    quoted: str  # as it stands in a statement: qualified and quoted


READABLE_KINDS = "rvmpf"  # relkind of pg_class


class Catalog:
    """The caller's names; every error message begins with `module`, as MADlib's do."""

    def __init__(self, db: Database, module: str) -> None:
        self.db = db
        self.module = module

    def resolve_input(
        self, name: str | None, role: str = "input", owner: Relation | None = None
    ) -> Relation:
        """Return the table or view of a name, which the caller must be able to read.

        Args:
            name: as the user wrote it, see `find`.
            role: the part of the table in the call, for error messages.
            owner: the table whose schema is searched first.
        """
        if name is None or not name.strip():
            raise NullNotAllowed(
                f"{self.module} error: NULL/empty input table name!", hint=f"Name the {role} table."
            )
        row = self.find(name, owner)
        if row is None:
            raise UndefinedTable(
                f"{self.module} error: Input table '{name}' does not exist.",
                detail=f"It was named as the {role} table.",
                hint="Check the spelling and the search_path, or write schema.table.",
            )
        if row["kind"] not in READABLE_KINDS:
            raise WrongObjectType(f"{self.module} error: '{name}' is not a table or view.")
        if not self.db.value(sql("read.may_select"), row["oid"], row["oid"]):
            raise InsufficientPrivilege(
                f"{self.module} error: permission denied for {role} table '{name}'.",
                hint=f"Its owner can GRANT SELECT ON {name} to you.",
            )
        self._check_policies(name, row["oid"])
        return _build_relation(name, row)

    def find_companion(self, relation: Relation, suffix: str) -> Relation | None:
        """Return the table in the same schema whose name is that of a relation plus a suffix."""
        if len((relation.name + suffix).encode()) > MAX_BYTES:
            return None
        name = quote_qualified((relation.schema, relation.name + suffix))
        row = self._look_up(name)
        if row is None:
            return None
        self._check_policies(name, row["oid"])
        return _build_relation(name, row)

    def read_relation(self, oid: int) -> Relation:
        """Return the relation with an oid."""
        (row,) = self.db.rows(sql("read.relation"), oid)
        return _build_relation(f"{row['schema']}.{row['name']}", row)

    def check_output_name(self, name: str | None) -> str:
        """Return the name of a new table, which must not be empty."""
        if name is None or not name.strip():
            raise NullNotAllowed(
                f"{self.module} error: NULL/empty output table name!", hint="Name the output table."
            )
        return name

    def reserve_output(self, name: str | None, suffixes: Names = ()) -> Relation:
        """Return a new table in a schema where the caller may create; reserve its name.

        Neither the table nor its companions with these suffixes may exist yet.
        """
        spelling, schema, plain = self._resolve_output(name)
        longest = plain + max(suffixes, key=len, default="")
        if len(longest.encode()) > MAX_BYTES:
            raise InvalidName(
                f"{self.module} error: Invalid output table name {spelling}: with its suffix it has"
                f" {len(longest.encode())} bytes, expected at most {MAX_BYTES}.",
                hint="Choose a shorter name.",
            )
        for suffix in ("", *suffixes):
            quoted = quote_qualified((schema, plain + suffix))
            if self._look_up(quoted):
                raise DuplicateTable(
                    f"{self.module} error: Output table '{spelling}{suffix}' already exists. Drop "
                    "it before calling the function.",
                    hint=f"DROP TABLE {quoted};",
                )
        self._reserve(spelling, schema, plain)
        return Relation(
            spelling=spelling,
            schema=schema,
            name=plain,
            oid=0,
            quoted=quote_qualified((schema, plain)),
        )

    def wait_for_creator(self, name: str | None) -> None:
        """Wait while another session creates a table of this name, and reserve the name."""
        _, schema, plain = self._resolve_output(name)
        while not lock_holders.reserve(self.db, schema, plain):
            time.sleep(PAUSE_SECONDS)
            self.db.check_interrupts()
        self.db.rows(sql("read.open"), schema, plain)

    def read_columns(self, relation: Relation) -> dict[str, Row]:
        """Return the columns of a table by name; a row has their type, category and element."""
        return {row["name"]: row for row in self.db.rows(sql("read.columns"), relation.oid)}

    def read_column(self, relation: Relation, name: str) -> Row:
        """Return one column, which must exist."""
        columns = self.read_columns(relation)
        if name not in columns:
            raise UndefinedColumn(
                f"{self.module} error: Column '{name}' does not exist in table "
                f"'{relation.spelling}'!",
                hint=f"Its columns are: {', '.join(columns)}.",
            )
        return columns[name]

    def find(self, name: str, owner: Relation | None = None) -> Row | None:
        """Return the catalog row of a name as the user wrote it, or None.

        A name without a schema is first looked up in the schema of `owner`, then in the path.
        """
        parts = self._split(name, "input")
        if owner is not None and len(parts) == 1:
            row = self._look_up(quote_qualified((owner.schema, *parts)))
            if row is not None:
                return row
        return self._look_up(quote_qualified(parts))

    def _check_policies(self, name: str, oid: int) -> None:
        """Refuse a table whose policies hide rows if the caller's row_security is off.

        With that setting the caller asks for all rows or an error.
        """
        if self.db.reading.row_security == "off" and self.db.value(sql("read.filtered"), oid):
            raise InsufficientPrivilege(
                f"{self.module} error: row_security is off, and policies of table '{name}' decide "
                "which rows you see.",
                hint="SET row_security = on; to read the rows that they show you.",
            )

    def _look_up(self, name: str) -> Row | None:
        with self.db.configured(search_path=self.db.caller_path):
            oid = self.db.value(sql("read.resolve"), name)
        if oid is None:
            return None
        return next(iter(self.db.rows(sql("read.relation"), oid)), None)

    def _split(self, name: str, role: str) -> Names:
        try:
            return split_qualified(name, self.db.name)
        except InvalidName as error:
            raise InvalidName(
                f"{self.module} error: Invalid {role} table name {name}",
                detail=error.message,
                hint=error.hint,
            ) from error

    def _resolve_output(self, name: str | None) -> tuple[str, str, str]:
        """Return the name of a new table as the user wrote it, its schema and its plain name."""
        spelling = self.check_output_name(name)
        parts = self._split(spelling, "output")
        schema = parts[0] if len(parts) == 2 else self.db.caller_schema
        return spelling, self._check_schema(spelling, schema), parts[-1]

    def _check_schema(self, name: str, schema: str | None) -> str:
        rows = self.db.rows(sql("read.schema"), schema, schema) if schema else []
        if schema is None or not rows:
            raise InvalidName(
                f"{self.module} error: Invalid output table name {name}: there is no schema to "
                "create it in.",
                hint="Create the schema, or put an existing one into the search_path.",
            )
        if not rows[0]["may_create"]:
            raise InsufficientPrivilege(
                f"{self.module} error: permission denied to create '{name}' in schema {schema}.",
                hint=f"Its owner can GRANT CREATE ON SCHEMA {quote_identifier(schema)} to you.",
            )
        return schema

    def _reserve(self, spelling: str, schema: str, name: str) -> None:
        """Reserve a name until this transaction ends.

        Another session that began a table of this name would work in vain.
        """
        if not lock_holders.reserve(self.db, schema, name):
            raise DuplicateTable(
                f"{self.module} error: Output table '{spelling}' is being made by another "
                "transaction.",
                hint="Choose another name, or wait for the other call to end.",
            )


def _build_relation(spelling: str, row: Row) -> Relation:
    return Relation(
        spelling=spelling,
        schema=row["schema"],
        name=row["name"],
        oid=row["oid"],
        quoted=quote_qualified((row["schema"], row["name"])),
    )
