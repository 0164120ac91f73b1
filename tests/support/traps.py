"""A schema of traps: operators and functions that a statement finds if it leaves to the path which
of several it means.

Whoever may create objects in a schema of somebody's path can set them. PostgreSQL takes the one
whose types are exactly those of the arguments, wherever on the path it is; `pg_catalog` has none
for many pairs of types, such as `varchar = varchar`. Nobody may execute a trap, which PostgreSQL
looks at for each one in a plan, whether it is reached or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pglast
from pglast import ast
from product_sql import walk
from workbench import Workbench

from cerebro_plpy.database.sessions.spi import number_placeholders

SCHEMA = "traps"
PATH = f"pg_catalog, {SCHEMA}, public, pg_temp"
PINNED = "pg_catalog, pg_temp"
SCALARS = (
    "text", "varchar", "bpchar", "name", '"char"', "smallint", "integer", "bigint", "real",
    "float8", "numeric",
    "boolean", "date", "time", "timestamp", "timestamptz", "interval", "money", "json", "jsonb",
    "uuid", "bytea",
    "inet",
)  # fmt: skip
ARRAYS = ("text[]", "smallint[]", "integer[]", "bigint[]", "real[]", "float8[]", "numeric[]")
HIDDEN = (
    "text", "bytea", "name", "jsonb", "json", "int2", "int4", "int8", "float4", "float8", "numeric",
    "bool", "uuid",
    "oid", "date", "time", "timestamp", "timestamptz", "interval", "varchar", "regclass",
)  # fmt: skip
"""Names of types of PostgreSQL's own, of which the schema has others."""
SETTING = f"""
DO $$
DECLARE
    a text; b text; o text;
BEGIN
    FOREACH a IN ARRAY %(types)s LOOP
        FOREACH b IN ARRAY %(types)s LOOP
            EXECUTE format('CREATE FUNCTION {SCHEMA}.captured(%%s, %%s) RETURNS boolean'
                           ' LANGUAGE sql AS $f$SELECT true$f$', a, b);
            FOREACH o IN ARRAY %(operators)s LOOP
                CONTINUE WHEN EXISTS (SELECT FROM pg_operator p
                    WHERE p.oprnamespace = 'pg_catalog'::regnamespace
                                      AND p.oprname = o AND p.oprleft = a::regtype
                                          AND p.oprright = b::regtype);
                EXECUTE format('CREATE OPERATOR {SCHEMA}.%%s'
                               ' (LEFTARG = %%s, RIGHTARG = %%s, FUNCTION = {SCHEMA}.captured)', o,
                                   a, b);
            END LOOP;
        END LOOP;
    END LOOP;
END $$;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {SCHEMA} FROM PUBLIC"""


class Names(NamedTuple):
    """What statements leave to the path."""

    operators: frozenset[str]
    functions: frozenset[str]


def names_of(statements: Iterable[str]) -> Names:
    """Return the names of the operators and functions in statements that have no schema.

    >>> names_of(["SELECT count(*) FROM t JOIN u USING (x)"
    ...           " WHERE a OPERATOR(pg_catalog.<) %s AND b LIKE 'c'"])
    Names(operators=frozenset({'=', '~~'}), functions=frozenset({'count'}))
    """
    operators, functions = set[str](), set[str]()
    for statement in statements:
        for node in walk([raw.stmt for raw in pglast.parse_sql(number_placeholders(statement))]):
            operators |= set(_operators(node))
            if isinstance(node, ast.FuncCall) and len(node.funcname) == 1:
                functions.add(node.funcname[0].sval)
    return Names(frozenset(operators), frozenset(functions))


def _operators(node: Any) -> Iterator[str]:
    if isinstance(node, ast.A_Expr) and len(node.name) == 1:
        name = node.name[0].sval
        yield from {"BETWEEN": (">=", "<="), "NOT BETWEEN": ("<", ">")}.get(name, (name,))
    compares = (
        (isinstance(node, ast.CaseExpr) and node.arg)
        or (isinstance(node, ast.JoinExpr) and node.usingClause)
        or (isinstance(node, ast.SubLink) and node.testexpr and not node.operName)
    )
    if compares:
        yield "="


def set_traps(
    administrator: Workbench, operators: Iterable[str], types: Iterable[str] = ()
) -> None:
    """Make the schema with traps for these operators, over all pairs of PostgreSQL's usual types
    and of these.
    """
    hidden = "; ".join(
        f"CREATE DOMAIN {SCHEMA}.{name} AS pg_catalog.bit CHECK (false)" for name in HIDDEN
    )
    administrator.rows(
        f"CREATE SCHEMA {SCHEMA}; GRANT USAGE ON SCHEMA {SCHEMA} TO PUBLIC; {hidden}"
    )
    wanted = {"types": [*SCALARS, *ARRAYS, *types], "operators": sorted(operators)}
    with administrator.connection.cursor() as cursor:
        cursor.execute(SETTING, wanted)
