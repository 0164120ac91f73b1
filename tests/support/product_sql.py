"""All SQL of the product, parsed, so that tests can compare it with the rules of a server that is
not there.

The parser is that of a newer PostgreSQL (pglast); clauses of Greenplum are removed before. The
statements come from the scripts of the extension and its migrations, from the bodies of their
functions, from texts that these execute, from the queries of the backend, and from literals in
Python.
"""

from __future__ import annotations

import ast as python
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pglast
from pglast import ast
from pglast.parser import ParseError
from sources import sql_files, tree

from cerebro_plpy.database import queries

ROOT = Path(__file__).parents[2]
SCRIPTS = {
    **sql_files(),
    **{path: path.read_text() for path in sorted((ROOT / "migrations").glob("*.sql"))},
}
MODULES = [
    *sorted((ROOT / "cerebro_db").rglob("*.py")),
    *sorted((ROOT / "plpy" / "cerebro_plpy").rglob("*.py")),
]

GREENPLUM_CLAUSE = re.compile(
    r"\b(SET\s+)?DISTRIBUTED\s+(BY\s*\([^()]*\)|RANDOMLY|REPLICATED)|\bEXECUTE\s+ON\s+\w+(\s+SEGMENTS)?",
    re.IGNORECASE,
)
# An ALTER of which nothing is left.
ONLY_DISTRIBUTION = re.compile(
    r"\s*ALTER\s+(TABLE|FUNCTION)\s+[\w.%]+(\([\w, ]*\))?\s*SET\s+DISTRIBUTED.*|"
    r"\s*ALTER\s+FUNCTION\s+[\w.]+\([\w, ]*\)\s*EXECUTE\s+ON\s+\w+\s*",
    re.IGNORECASE | re.DOTALL,
)
# A query may be a part of a statement: the first of these that makes it a statement is taken.
WRAPPERS = (
    *(
        "{}",
        "SELECT {}",
        "SELECT 1 {}",
        "SELECT 1{}",
        "SELECT 1 FROM t {}",
        "SELECT 1 FROM t WHERE {}",
    ),
    "CREATE TABLE t (a integer{})",
)
# The clauses that stand for words in braces, of a query alone where it is named; other words are
# names.
CLAUSES = {
    "arrays": "WHEN 1 THEN x",
    "at": "",
    "class_columns": "c integer",
    "comment": "'text'",
    "isolation": "READ COMMITTED",
    "joins": "",
    "made": "SELECT 1",
    "more": "",
    "greenplum.buffers_table columns": "c integer",
    "greenplum.buffers_table shapes": "d integer",
    "pack.table columns": "c integer",
    "pack.table shapes": "d integer",
    "places": "",
    "query": "SELECT 1",
    "rank": "",
    "relations": "SELECT 1",
    "run.features_table table": "SELECT 1",
    "same_label": "",
    "some": "",
    "taken": "SELECT 1",
    "visits": "",
}
SQL_VERB = re.compile(
    r"\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|SET|WITH|GRANT|REVOKE|LOCK)\b"
)


class CannotFollow(Exception):
    """A statement is put together in a way that is unknown here, so it cannot be checked."""


@dataclass(frozen=True)
class Statement:
    """A statement of the product.

    Args:
        place: the file, and the function or the query in it.
        text: as it stands there, with names and parameters put in.
        node: the text without clauses of Greenplum, parsed; None where nothing else is in it.
    """

    place: str
    text: str
    node: ast.Node | None


@cache
def product_statements() -> tuple[Statement, ...]:
    """Return all of them."""
    return (*script_statements(), *query_statements(), *python_statements())


def script_statements() -> Iterator[Statement]:
    """Yield those of the extension's scripts and of migrations."""
    for path, text in SCRIPTS.items():
        script = text.replace("@extschema@", "extschema")
        yield from statements_of(script, path.relative_to(ROOT).as_posix())


def query_statements() -> Iterator[Statement]:
    """Yield those of the backend's queries."""
    for path in sorted(Path(queries.FOLDER).glob("*.sql")):
        for name, text in queries.load(path.stem).items():
            yield from part_statements(
                _with_clauses(text, f"{path.stem}.{name}"), f"queries/{path.name} {name}"
            )


def python_statements() -> Iterator[Statement]:
    """Yield the literals of Python that are statements; hints to users are some of them."""
    for path in MODULES:
        place = path.relative_to(ROOT).as_posix()
        for literal in _literals(tree(path)):
            if SQL_VERB.match(literal):
                try:
                    yield from statements_of(_numbered(literal), place)
                except ParseError:
                    continue  # a sentence, or a part that is put together with others


def statements_of(text: str, place: str) -> Iterator[Statement]:
    """Yield the statements of a script, and what is in their bodies.

    >>> [s.text for s in statements_of("DO $$ BEGIN EXECUTE 'DROP TABLE t'; END $$", "here")][1:]
    ['DROP TABLE t']
    """
    for part in _parts(text):
        node = _parsed(part)
        yield Statement(place, part, node)
        if isinstance(node, ast.CreateFunctionStmt):
            yield from _of_function(part, node, place)
        elif isinstance(node, ast.DoStmt):
            options = {option.defname: option.arg for option in node.args}
            body = options["as"].sval
            yield from _of_plpgsql(
                f"CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $body${body}$body$", place
            )


def _parts(text: str) -> tuple[str, ...]:
    try:
        return tuple(pglast.split(text))
    except ParseError:  # clauses of Greenplum
        return tuple(pglast.split(text, with_parser=False))


def _parsed(text: str) -> ast.Node | None:
    """Return a statement parsed, without clauses of Greenplum if it has any; None if it is such a
    clause alone.
    """
    if ONLY_DISTRIBUTION.fullmatch(text):
        return None
    try:
        (raw,) = pglast.parse_sql(text)
    except ParseError:
        (raw,) = pglast.parse_sql(GREENPLUM_CLAUSE.sub("", text))
    return raw.stmt


def part_statements(text: str, place: str) -> Iterator[Statement]:
    """Yield the statements of a text that may be a part of one."""
    failure: ParseError | None = None
    for wrapper in WRAPPERS:
        try:
            yield from list(statements_of(wrapper.replace("{}", text), place))
            return
        except ParseError as error:
            failure = failure or error
    raise CannotFollow(f"{place}: {failure}: {text}")


def walk(node: Any) -> Iterator[ast.Node]:
    """Yield a node, and all below it.

    >>> from pglast import parse_sql
    >>> [type(node).__name__ for node in walk(parse_sql("SELECT f()")[0].stmt)]
    ['SelectStmt', 'ResTarget', 'FuncCall', 'String']
    """
    if isinstance(node, (list, tuple)):
        for each in node:
            yield from walk(each)
    elif isinstance(node, ast.Node):
        yield node
        for slot in node.__slots__:
            yield from walk(getattr(node, slot))


def _of_function(text: str, function: ast.CreateFunctionStmt, place: str) -> Iterator[Statement]:
    options = {option.defname: option.arg for option in function.options or ()}
    where = f"{place} {function.funcname[-1].sval}"
    language = options["language"].sval if "language" in options else "sql"
    if language == "plpgsql":
        yield from _of_plpgsql(text, where)
    elif language == "sql" and "as" in options:
        yield from part_statements(options["as"][0].sval, where)


def _of_plpgsql(text: str, place: str) -> Iterator[Statement]:
    for kind, expression in _expressions(pglast.parse_plpgsql(text)):
        query = expression["query"]
        if expression["parseMode"] != 0:  # an expression, which may be assigned
            query = "SELECT " + re.sub(r"^[\w.\[\]]+\s*:?=(?!=)", "", query)
        yield from statements_of(query, place)
        if kind == "PLpgSQL_stmt_dynexecute":
            (raw,) = pglast.parse_sql(query)
            yield from part_statements(dynamic_text(raw.stmt.targetList[0].val, place), place)


def dynamic_text(node: ast.Node, place: str) -> str:
    """Return the text that an EXECUTE executes: a constant, with names for the arguments of
    `format`.

    >>> from pglast import parse_sql
    >>> dynamic_text(parse_sql("SELECT format('DROP TABLE %I', t)")[0].stmt.targetList[0].val,
    ...     "here")
    'DROP TABLE x'
    """
    if isinstance(node, ast.A_Const) and isinstance(node.val, ast.String):
        return str(node.val.sval)
    if isinstance(node, ast.FuncCall):
        name = node.funcname[-1].sval
        if name == "format":
            return re.sub(r"%(\d+\$)?[Is]", "x", dynamic_text(node.args[0], place)).replace(
                "%L", "'x'"
            )
        if name == "replace":  # of a definition that stands elsewhere
            return dynamic_text(node.args[2], place)
    raise CannotFollow(f"{place}: {node}")


def _expressions(tree: Any, kind: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the expressions of PL/pgSQL, each with the kind of statement that it is in."""
    if isinstance(tree, list):
        for each in tree:
            yield from _expressions(each, kind)
    elif isinstance(tree, dict):
        for key, value in tree.items():
            if key == "PLpgSQL_expr":
                yield kind, value
            else:
                yield from _expressions(value, key if key.startswith("PLpgSQL_stmt") else kind)


def _with_clauses(text: str, query: str = "") -> str:
    """Return a query with something in each pair of braces that could stand there.

    >>> _with_clauses("SELECT {a} FROM ({source}) s WHERE x = %s")
    'SELECT x_a FROM (SELECT NULL) s WHERE x = $1'
    """
    text = re.sub(r"((?:FROM|JOIN|,)\s*\(|\(part, chunk\) )\{\w+\}(?=\)|$)", r"\1SELECT NULL", text)
    text = re.sub(
        r"\{distributed\w*\}|(?<=\w)\{\w+\}", "", text
    )  # what follows a word may be nothing
    names = re.sub(
        r"\{(\w+)\}", lambda w: CLAUSES.get(f"{query} {w[1]}", CLAUSES.get(w[1], f"x_{w[1]}")), text
    )
    return _numbered(names)


def _numbered(text: str) -> str:
    parts = queries.split_placeholders(text)
    return parts[0] + "".join(f"${number}{part}" for number, part in enumerate(parts[1:], 1))


def _literals(tree: python.AST) -> Iterator[str]:
    """Yield texts in a module, with a name for what is put into them."""
    for node in python.iter_child_nodes(tree):
        if isinstance(node, python.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, python.Constant) else "x"
                for part in node.values
            )
        elif isinstance(node, python.Constant) and isinstance(node.value, str):
            yield node.value
        else:
            yield from _literals(node)
