"""The tables that a call names, resolved in the caller's search path, and their columns.

Names are resolved once, without a lock; afterwards every statement has them schema-qualified.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from cerebro_plpy.database import lock_holders
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.sql.identifiers import (
    MAX_BYTES,
    Names,
    quote_identifier,
    quote_qualified,
    split_columns,
    split_qualified,
)
from cerebro_plpy.database.sql.named_query import NamedQuery
from cerebro_plpy.database.sql.spelling import suggest_columns, suggest_similar
from cerebro_plpy.database.sql.view_hints import read_as_query
from cerebro_plpy.database.table_hints import (
    describe_other_kind,
    suggest_source,
    suggest_table,
    suggest_table_of,
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
from cerebro_plpy.nouns import count_nouns
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
    query: NamedQuery | None = None  # in place of a table

    @property
    def relations(self) -> Sequence[int]:
        """The oids of the relations that a SELECT names: those of a query, or this one."""
        if self.query is not None:
            return self.query.relations
        return (self.oid,)


READABLE_KINDS = "rvmpf"  # relkind of pg_class
ARGUMENTS = {"source": "source", "split": "split", "test": "test_table"}
"""Arguments of hints, by the part of their table in the call; others are not named."""


class Catalog:
    """The caller's names; every error message begins with `module`, as MADlib's do.

    Args:
        takes_query: the function has an argument `query`, in place of a source.
        query_arguments: arguments that a call with a query needs more than one with a table, as a
            hint has them after the query.
    """

    def __init__(
        self, db: Database, module: str, *, takes_query: bool = False, query_arguments: str = ""
    ) -> None:
        self.db = db
        self.module = module
        self.takes_query = takes_query
        self.query_arguments = query_arguments

    def resolve_input(
        self,
        name: str | None,
        role: str = "input",
        owner: Relation | None = None,
        argument: str | None = None,
    ) -> Relation:
        """Return the table or view of a name, which the caller must be able to read.

        Args:
            name: as the user wrote it, see `find`.
            role: the part of the table in the call, for error messages.
            owner: the table whose schema is searched first.
            argument: the argument of the call, for hints; by default that of the role.
        """
        if name is None or not name.strip():
            hint = f"Name the {role} table."
            if self.takes_query:
                hint = f"Name the {role} table, or write a query in the argument query."
            raise NullNotAllowed(f"{self.module} error: NULL/empty input table name!", hint=hint)
        argument = argument or ARGUMENTS.get(role)
        row = self.find(name, owner, argument)
        if row is None:
            raise self._unknown_table(name, role, argument)
        if row["kind"] not in READABLE_KINDS:
            raise WrongObjectType(
                f"{self.module} error: '{name}' is not a table or view, but "
                f"{describe_other_kind(row['kind'])}.",
                hint=suggest_table_of(self.db, row["oid"], argument),
            )
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
                f" {count_nouns(len(longest.encode()), 'byte')}, expected at most {MAX_BYTES}.",
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

    def split_list(self, relation: Relation, argument: str, text: str) -> Names:
        """Return the columns that an argument lists; all of them must exist."""
        columns = self.read_columns(relation)
        try:
            names = split_columns(text)
        except InvalidName as error:
            raise InvalidName(
                f"{self.module} error: {argument} is {text!r}: {error.message}.",
                detail=error.detail,
                hint=suggest_columns(argument, text, columns),
            ) from error
        for name in names:
            if name not in columns:
                raise self._unknown_column(relation, name, suggest_columns(argument, text, columns))
        return names

    def read_column(self, relation: Relation, name: str) -> Row:
        """Return one column, which must exist."""
        columns = self.read_columns(relation)
        if name not in columns:
            raise self._unknown_column(relation, name, suggest_similar(name, columns))
        return columns[name]

    def _unknown_column(self, relation: Relation, name: str, hint: str) -> UndefinedColumn:
        return UndefinedColumn(
            f"{self.module} error: Column '{name}' does not exist in table '{relation.spelling}'!",
            hint=hint,
        )

    def find(
        self, name: str, owner: Relation | None = None, argument: str | None = None
    ) -> Row | None:
        """Return the catalog row of a name as the user wrote it, or None.

        A name without a schema is first looked up in the schema of `owner`, then in the path.
        """
        parts = self._split(name, "input", argument)
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
                hint="SET row_security = on; then the call reads the rows that they show you.",
            )

    def _look_up(self, name: str) -> Row | None:
        oid = self.db.value_in_caller_path(sql("read.resolve"), name)
        if oid is None:
            return None
        return next(iter(self.db.rows(sql("read.relation"), oid)), None)

    def _unknown_table(self, name: str, role: str, argument: str | None) -> UndefinedTable:
        """Return the error about a table that does not exist."""
        detail = f"It was named as the {role} table."
        parts = split_qualified(name, self.db.name)
        if self.db.value_in_caller_path(sql("read.names_type"), quote_qualified(parts)):
            detail = f"{name} is a type."
        return UndefinedTable(
            f"{self.module} error: Input table '{name}' does not exist.",
            detail=detail,
            hint=suggest_table(self.db, parts, argument),
        )

    def _split(self, name: str, role: str, argument: str | None = None) -> Names:
        try:
            return split_qualified(name, self.db.name)
        except InvalidName as error:
            detail = error.message
            hint = None
            if role == "input":
                query_arguments = None
                if self.takes_query and argument == ARGUMENTS["source"]:
                    query_arguments = self.query_arguments
                hint = suggest_source(self.db, name, argument, query_arguments)
                if read_as_query(name) is not None:
                    detail = "It is a query; expected the name of a table or view."
            raise InvalidName(
                f"{self.module} error: Invalid {role} table name {name}",
                detail=detail,
                hint=hint or error.hint,
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
