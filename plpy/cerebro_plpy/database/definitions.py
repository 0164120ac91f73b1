"""Views, policies and functions that a SELECT evaluates, and the session state that they read.

Definitions are read as parse trees, which every role may read. Deparsing a tree to SQL would lock
its tables, and wait for sessions that have locked one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from cerebro_plpy.database.platform_protocol import Table
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sql.definition import CALL, SESSION_FUNCTIONS, SETTING, Definition
from cerebro_plpy.errors import FeatureNotSupported
from cerebro_plpy.records import dataclass, replace

VIEW = "view"
POLICY = "policy"
FUNCTION = "function"
TEMPORARY = "temporary table"
TOKEN = re.compile(r"\\.|[(){}]|:targetList ", re.DOTALL)
QUERY_DEPTH = 2  # nesting depth of the fields of a view's query
MERGES_ROWS = re.compile(
    r":(?:distinctClause|groupClause|setOperations|limitCount|limitOffset) "
    r"(?!<>)|:has(?:Aggs|TargetSRFs) true"
)


@dataclass(frozen=True)
class SessionDependency:
    """Session state that a source reads, and that another session does not share."""

    value: str  # such as pg_backend_pid()
    place: str  # such as: view public.sales
    decides_rows: bool  # False if it only decides values of a column


def read_definitions(db: Database, sources: Sequence[int]) -> list[Definition]:
    """Return the definitions behind the relations with these oids."""
    if not sources:
        return []
    calls: dict[str, list[int]] = {}
    for row in db.rows(sql("behind.functions"), [*SESSION_FUNCTIONS, SETTING]):
        calls.setdefault(row["name"], []).append(row["oid"])
    statement = sql(
        "behind.definitions", relations=relations_query(), applies=sql("behind.applies")
    )
    return [
        Definition(
            **{**row, "tree": row["tree"] or "", "source": row["source"] or "", "calls": calls}
        )
        for row in db.rows(statement, list(sources))
    ]


def read_source_definitions(db: Database, sources: Sequence[Table]) -> list[Definition]:
    """Return the definitions behind the tables and queries of a call."""
    tables = [source.oid for source in sources if source.query is None]
    queries = [source.query for source in sources if source.query is not None]
    of_queries = [definition for query in queries for definition in query.definitions]
    return [*read_definitions(db, tables), *of_queries]


def relations_query() -> str:
    """Return the query for all relations that a SELECT reads; it takes the oids of sources."""
    return sql("behind.relations", applies=sql("behind.applies"))


def refuse_computed_names(definitions: Sequence[Definition]) -> None:
    """Refuse a policy that computes the name of a setting.

    Call this on a server that does not list its settings.
    """
    policies = {definition.name for definition in definitions if definition.kind == POLICY}
    for definition in definitions:
        policy = definition.name if definition.kind == POLICY else definition.user_name
        if policy in policies and definition.computes_names:
            raise FeatureNotSupported(
                f"{policy} computes the name of a setting, and this server does not list its "
                "custom settings",
                hint="Write the names as literals, as in current_setting('app.tenant_id'); or "
                "train on a copy: CREATE TABLE copy AS SELECT * FROM the source.",
            )


def find_session_dependencies(definitions: Sequence[Definition]) -> list[SessionDependency]:
    """Return the session state that a source reads and another session does not share.

    A policy decides which rows a source has; so does a view outside its list of columns.
    """
    row_trees = {definition.name: _row_tree(definition) for definition in definitions}
    return [*dict.fromkeys(_iterate_dependencies(definitions, row_trees))]


def check_session_dependencies(db: Database, source: Table) -> None:
    """Refuse a source if another session would see other rows; NOTICE if it sees other values.

    Call this if a session other than the caller's is to read the source.
    """
    selection = f"SELECT * FROM {source.quoted}"
    if source.query is not None:
        selection = source.query.text
    for dependency in find_session_dependencies(read_source_definitions(db, [source])):
        place = dependency.place
        value = dependency.value
        if dependency.decides_rows:
            raise FeatureNotSupported(
                f"{place} depends on {value}: the session that reads {source.spelling} "
                "would see other rows than this one",
                hint=f"Copy the rows that you see, and name that: CREATE TABLE copy AS {selection}",
            )
        db.notice(
            f"{place} has values of {value}: they are those of the session that reads "
            f"{source.spelling}, not of this one"
        )


def _iterate_dependencies(
    definitions: Sequence[Definition], row_trees: Mapping[str, str]
) -> Iterator[SessionDependency]:
    for definition in definitions:
        if definition.kind == TEMPORARY:
            yield SessionDependency(
                definition.name, "a policy or a function behind it", decides_rows=True
            )
        for value in definition.session_values:
            if definition.kind == FUNCTION:
                user_tree = row_trees.get(definition.user_name or "", "")
                decides_rows = CALL.format(oid=definition.function) in user_tree
            else:
                row_part = replace(definition, tree=row_trees[definition.name])
                decides_rows = value in row_part.session_values
            yield SessionDependency(value, definition.name, decides_rows)


def _row_tree(definition: Definition) -> str:
    """Return the part of a parse tree that decides which rows a source has."""
    if definition.kind != VIEW:
        return definition.tree
    columns = _find_target_list(definition.tree)
    if columns is None:
        return definition.tree
    begin, end = columns
    without_columns = definition.tree[:begin] + definition.tree[end:]
    return definition.tree if MERGES_ROWS.search(without_columns) else without_columns


def _find_target_list(tree: str) -> tuple[int, int] | None:
    """Return the begin and end of the list of columns in the parse tree of a view."""
    depth = 0
    begin = None
    for token in TOKEN.finditer(tree):
        text = token[0]
        if text in "({":
            depth += 1
        elif text in ")}":
            depth -= 1
            if begin is not None and depth == QUERY_DEPTH:
                return begin, token.end()
        elif text == ":targetList " and depth == QUERY_DEPTH:
            begin = token.end()
    return None
