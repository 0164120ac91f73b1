"""Views, policies and functions that a SELECT on a source evaluates, and what they read of the
session.

They are read as parse trees, which everybody may read. To write a tree as SQL would lock the tables
in it, and wait for whoever has locked one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from cerebro_plpy.database.platform_protocol import Table
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import FeatureNotSupported
from cerebro_plpy.records import dataclass, replace

VIEW, POLICY, FUNCTION, TEMPORARY = "view", "policy", "function", "temporary table"
APPLICATION_NAME = "application_name"
OF_SESSION = (
    "currval",
    "inet_client_addr",
    "inet_client_port",
    "inet_server_addr",
    "inet_server_port",
    "lastval",
    "pg_backend_pid",
    "pg_my_temp_schema",
)
"""Functions of PostgreSQL with values that another session of the same caller does not share."""
SETTING = "current_setting"
LITERAL_NAME = re.compile(
    rf"\b{SETTING}\s*\(\s*E?'((?:[^']|'')+)'\s*(?:::\s*[\w.]+\s*)?(?=[,)])", re.IGNORECASE
)
NAME_IN_SOURCE = re.compile(rf"\b{SETTING}\s*\(", re.IGNORECASE)
CALL = "funcid {oid} "  # of a function, or of one behind an operator
LITERAL_ARGUMENT = (
    r":funcid (?:{oids}) [^(]*:args \(\{{CONST [^\[{{}}]*:constvalue \d+ \[([-\d ]+)\]"
)
HEADER_BYTES = 4  # of a text as a constant of a parse tree
TOKEN = re.compile(r"\\.|[(){}]|:targetList ", re.DOTALL)
QUERY_DEPTH = 2  # of the fields of the query of a view
MERGES_ROWS = re.compile(
    r":(?:distinctClause|groupClause|setOperations|limitCount|limitOffset) "
    r"(?!<>)|:has(?:Aggs|TargetSRFs) true"
)


@dataclass(frozen=True)
class Definition:
    """A view, policy or function that a SELECT evaluates, or a temporary table that it reads."""

    kind: str
    name: str  # with its kind, as in an error
    tree: str  # the parse tree, '' if there is none
    source: str  # the body of a function that is not SQL of the standard, else ''
    function: int | None  # the oid of a function
    user_name: str | None  # the view or policy that calls the function
    calls: Mapping[str, Sequence[int]]  # oids of functions of PostgreSQL by name

    @property
    def names(self) -> list[str]:
        """Return the names of settings that stand as literals in the definition."""
        pattern = LITERAL_ARGUMENT.format(oids="|".join(map(str, self.calls[SETTING])))
        arguments = [_decode_text(match[1]) for match in re.finditer(pattern, self.tree)]
        return [
            *arguments,
            *(match[1].replace("''", "'") for match in LITERAL_NAME.finditer(self.source)),
        ]

    @property
    def computes_names(self) -> bool:
        """Check whether the definition has the name of a setting that is not a literal."""
        calls = sum(self.tree.count(CALL.format(oid=oid)) for oid in self.calls[SETTING])
        return calls + len(NAME_IN_SOURCE.findall(self.source)) > len(self.names)

    @property
    def session_values(self) -> list[str]:
        """Return what the definition reads of the session, as it is written in SQL."""
        called = [f"{name}()" for name in OF_SESSION if self._calls(name, self.tree, self.source)]
        setting = [APPLICATION_NAME] if APPLICATION_NAME in map(str.lower, self.names) else []
        return [*setting, *called]

    def _calls(self, name: str, tree: str, source: str) -> bool:
        if any(CALL.format(oid=oid) in tree for oid in self.calls.get(name, ())):
            return True
        return re.search(rf"\b{name}\s*\(", source, re.IGNORECASE) is not None


@dataclass(frozen=True)
class SessionDependency:
    """Something of the caller's session that a source reads, and that another session does not
    share.
    """

    value: str  # such as pg_backend_pid()
    place: str  # such as: view public.sales
    decides_rows: bool  # False if only a column has it


def read_definitions(db: Database, sources: Sequence[int]) -> list[Definition]:
    """Return the definitions behind relations, which are named by their oids."""
    if not sources:
        return []
    calls: dict[str, list[int]] = {}
    for row in db.rows(sql("behind.functions"), [*OF_SESSION, SETTING]):
        calls.setdefault(row["name"], []).append(row["oid"])
    statement = sql("behind.definitions", relations=relations(), applies=sql("behind.applies"))
    return [
        Definition(
            **{**row, "tree": row["tree"] or "", "source": row["source"] or "", "calls": calls}
        )
        for row in db.rows(statement, list(sources))
    ]


def relations() -> str:
    """Return the query for the relations that a SELECT reads; its value are the oids of sources."""
    return sql("behind.relations", applies=sql("behind.applies"))


def named_settings(definitions: Sequence[Definition]) -> set[str]:
    """Return the names of settings that stand as literals in definitions."""
    return {name for each in definitions for name in each.names}


def refuse_computed_names(definitions: Sequence[Definition]) -> None:
    """Refuse a policy that computes the name of a setting, on a server that does not list its
    settings.
    """
    policies = {each.name for each in definitions if each.kind == POLICY}
    for each in definitions:
        policy = each.name if each.kind == POLICY else each.user_name
        if policy in policies and each.computes_names:
            raise FeatureNotSupported(
                f"{policy} computes the name of a setting, and this server does not list its "
                "custom settings",
                hint="Write the names as literals, as in current_setting('app.tenant_id'); or "
                "train on a copy: CREATE TABLE copy AS SELECT * FROM the source.",
            )


def session_dependencies(definitions: Sequence[Definition]) -> list[SessionDependency]:
    """Return what a source reads of the caller's session that the session that reads does not
    share.

    A policy, and a view outside of its list of columns, decide which rows there are.
    """
    deciding = {each.name: _row_tree(each) for each in definitions}
    return [*dict.fromkeys(_dependencies(definitions, deciding))]


def check_session_dependencies(db: Database, source: Table) -> None:
    """Refuse a source whose rows another session would not see alike; tell by a NOTICE of columns
    that are such.

    Call this if another session than the caller's is to read the source.
    """
    for each in session_dependencies(read_definitions(db, [source.oid])):
        if each.decides_rows:
            raise FeatureNotSupported(
                f"{each.place} depends on {each.value}: the session that reads {source.spelling} "
                "would see other rows than this one",
                hint="Copy the rows that you see, and name that: CREATE TABLE copy AS SELECT * "
                f"FROM {source.quoted}",
            )
        db.notice(
            f"{each.place} has values of {each.value}: they are those of the session that reads "
            f"{source.spelling}, not of this one"
        )


def _dependencies(
    definitions: Sequence[Definition], deciding: Mapping[str, str]
) -> Iterator[SessionDependency]:
    for each in definitions:
        if each.kind == TEMPORARY:
            yield SessionDependency(
                each.name, "a policy or a function behind it", decides_rows=True
            )
        for value in each.session_values:
            if each.kind == FUNCTION:
                decides = CALL.format(oid=each.function) in deciding.get(each.user_name or "", "")
            else:
                rows = replace(each, tree=deciding[each.name])
                decides = value in rows.session_values
            yield SessionDependency(value, each.name, decides)


def _row_tree(definition: Definition) -> str:
    """Return the part of a parse tree that decides which rows there are."""
    if definition.kind != VIEW:
        return definition.tree
    columns = _target_list(definition.tree)
    if columns is None:
        return definition.tree
    begin, end = columns
    rest = definition.tree[:begin] + definition.tree[end:]
    return definition.tree if MERGES_ROWS.search(rest) else rest


def _target_list(tree: str) -> tuple[int, int] | None:
    """Return where the list of columns of a view begins and ends in its parse tree."""
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


def _decode_text(datum: str) -> str:
    """Return the text of a constant of a parse tree, which is written as bytes with signs.

    >>> _decode_text("28 0 0 0 97 46 98")
    'a.b'
    """
    numbers = [int(number) % 256 for number in datum.split()]
    return bytes(numbers[HEADER_BYTES:]).decode("utf-8", "replace")
