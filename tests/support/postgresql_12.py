"""The catalog of PostgreSQL 12, on which Greenplum 7 is based, and a check of statements against
it.

`postgresql_12.txt` lists its functions, types, relations, and settings, but none of extensions:
read from the catalog of a Greenplum 7 with `CATALOG`, so it also has those of Greenplum.
`tests/integration/greenplum/test_catalog.py` compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pglast import ast, enums, parse_sql, parser
from product_sql import Statement, walk

FILE = Path(__file__).with_suffix(".txt")
# A line for each: numbers of arguments ("2+": or more), and whether one of the name is volatile;
# columns of relations.
CATALOG = """
SELECT line FROM (
SELECT concat_ws(E'\\t', 'function', f.name, string_agg(DISTINCT f.taken, ','),
    max(f.volatile)) AS line
FROM (SELECT p.proname AS name, CASE p.provolatile WHEN 'v' THEN 'volatile' ELSE '' END AS volatile,
             CASE WHEN p.provariadic <> 0 THEN (p.pronargs - 1) || '+' ELSE n::text END AS taken
      FROM pg_catalog.pg_proc p, generate_series(p.pronargs::integer - p.pronargdefaults,
          p.pronargs) n
      WHERE p.pronamespace = 'pg_catalog'::regnamespace
        AND (SELECT count(*) FROM pg_catalog.pg_depend d WHERE d.objid = p.oid
            AND d.deptype = 'e') = 0) f
GROUP BY f.name
UNION ALL
SELECT 'type' || E'\\t' || t.typname FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_class c
    ON c.oid = t.typrelid
WHERE t.typnamespace = 'pg_catalog'::regnamespace AND c.oid IS NULL AND t.typname !~ '^_'
UNION ALL
SELECT concat_ws(E'\\t', 'relation', c.relname, string_agg(a.attname, ',' ORDER BY a.attnum))
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relkind IN ('r', 'v') AND NOT a.attisdropped
    GROUP BY c.relname
UNION ALL
SELECT 'setting' || E'\\t' || s.name FROM pg_catalog.pg_settings s WHERE s.name !~ '[.]'
) listed ORDER BY line COLLATE "C"
"""
# What the parser makes of syntax that PostgreSQL 12 reads as a call of another function.
RENAMED = {"extract": "date_part"}
# What Greenplum's parser itself knows.
GRAMMAR = {"gp_dist_random"}

Catalog = dict[str, dict[str, list[str]]]


@cache
def catalog() -> Catalog:
    """Read the file: the fields of each line by kind and name."""
    kinds: Catalog = {}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        kind, name, *rest = line.split("\t")
        kinds.setdefault(kind, {})[name] = rest
    return kinds


@dataclass
class Product:
    """The objects that the product itself makes.

    Args:
        functions: by name, whether they are volatile.
        views: their names.
        types: their names.
        replicated: the tables that Greenplum keeps whole on every segment.
        generated: the generated columns of tables.
        reads: by function in SQL, the tables and views of the product that its body names.
        queries: the functions in SQL whose body reads any table, one of the catalog included.
    """

    functions: dict[str, bool] = field(default_factory=dict)
    views: set[str] = field(default_factory=set)
    types: set[str] = field(default_factory=set)
    replicated: set[str] = field(default_factory=set)
    generated: dict[str, set[str]] = field(default_factory=dict)
    reads: dict[str, set[str]] = field(default_factory=dict)
    queries: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, statements: tuple[Statement, ...]) -> Product:
        """Collect the objects that statements make."""
        product = cls()
        for statement in statements:
            product._add(statement)
        return product

    def _add(self, statement: Statement) -> None:
        words = statement.text.split()
        if words[:2] == ["ALTER", "TABLE"] and words[3:] == ["SET", "DISTRIBUTED", "REPLICATED"]:
            self.replicated.add(words[2].rpartition(".")[2])
        for node in walk(statement.node):
            if isinstance(node, ast.CreateFunctionStmt):
                volatility = [o.arg.sval for o in node.options or () if o.defname == "volatility"]
                name = node.funcname[-1].sval
                self.functions[name] = self.functions.get(name, False) or volatility in (
                    [],
                    ["volatile"],
                )
                relations = list(_relations(node))
                self.reads.setdefault(name, set()).update(
                    r.relname for r in relations if r.schemaname == "cerebro"
                )
                self.queries.update([name] if relations else [])
            elif isinstance(node, ast.ViewStmt):
                self.views.add(node.view.relname)
                self.types.add(node.view.relname)
            elif isinstance(node, (ast.CompositeTypeStmt, ast.CreateStmt)):
                table = node.typevar if isinstance(node, ast.CompositeTypeStmt) else node.relation
                self.types.add(table.relname)
                if isinstance(node, ast.CreateStmt):
                    self._add_columns(table.relname, node.tableElts)
            elif isinstance(node, ast.CreateEnumStmt):
                self.types.add(node.typeName[-1].sval)
            elif isinstance(node, ast.AlterTableStmt):
                self._add_columns(node.relation.relname, [c.def_ for c in node.cmds])

    def _add_columns(self, table: str, elements: Any) -> None:
        for column in elements or ():
            if isinstance(column, ast.ColumnDef) and _constraint(column, "CONSTR_GENERATED"):
                self.generated.setdefault(table, set()).add(column.colname)


def _relations(function: ast.CreateFunctionStmt) -> Iterator[ast.RangeVar]:
    """Yield the tables and views that the body of a function in SQL names."""
    options = {option.defname: option.arg for option in function.options or ()}
    if "as" in options and options["language"].sval == "sql":
        with suppress(parser.ParseError):  # a body that is put together when it is made
            for node in walk(parse_sql(options["as"][0].sval)):
                if isinstance(node, ast.RangeVar):
                    yield node


def faults(statement: Statement, product: Product) -> list[str]:
    """Return the reasons for which a Greenplum 7 would not know the names or the syntax of a
    statement.
    """
    if statement.node is None:
        return []
    nodes = list(walk(statement.node))
    reasons = [fault for node in nodes for fault in _of_node(node, product)]
    return list(dict.fromkeys([*reasons, *_columns(nodes)]))


def _of_node(node: ast.Node, product: Product) -> Iterator[str]:
    if isinstance(node, ast.FuncCall):
        yield from _call(node, product)
    elif isinstance(node, ast.TypeName):
        yield from _type(node, product)
    elif isinstance(node, ast.VariableSetStmt) and not _is_setting(node.name):
        yield f"there is no setting {node.name}"
    yield from (text for kind, text, applies in SYNTAX if isinstance(node, kind) and applies(node))


def _call(call: ast.FuncCall, product: Product) -> Iterator[str]:
    """Yield why a call would fail: its function is missing, or takes other numbers of arguments."""
    *schema, name = (part.sval for part in call.funcname)
    if schema not in ([], ["pg_catalog"]) or (not schema and name in product.functions):
        return
    if call.funcformat == enums.CoercionForm.COERCE_SQL_SYNTAX:
        name = RENAMED.get(name, name)
    if name in GRAMMAR or name.startswith("x_"):
        return
    if name not in catalog()["function"]:
        yield f"there is no function {name}"
        return
    ordered = len(call.agg_order or ()) if call.agg_within_group else 0
    count = len(call.args or ()) + ordered
    taken = catalog()["function"][name][0].split(",")
    if not call.func_variadic and not any(_takes(one, count) for one in taken):
        yield f"function {name} takes {' or '.join(taken)} arguments, not {count}"
    if name in ("current_setting", "set_config"):
        yield from _setting(call, name)


def _setting(call: ast.FuncCall, function: str) -> Iterator[str]:
    setting = call.args[0]
    if isinstance(setting, ast.A_Const) and isinstance(setting.val, ast.String):
        may_be_missing = function == "current_setting" and len(call.args) == 2
        if not may_be_missing and not _is_setting(setting.val.sval):
            yield f"there is no setting {setting.val.sval}"


def _is_setting(name: str | None) -> bool:
    """Whether a name is that of a setting, of one that the product makes itself, or of what SET
    alone knows.
    """
    return (
        not name
        or "." in name
        or name.lower() in SPECIAL_SETTINGS
        or name.lower() in map(str.lower, catalog()["setting"])
    )


# Those that pg_settings does not list.
SPECIAL_SETTINGS = {
    "allow_system_table_mods",
    "is_superuser",
    "session_authorization",
    "transaction",
    "role",
}


def _takes(taken: str, count: int) -> bool:
    return count >= int(taken[:-1]) if taken.endswith("+") else count == int(taken)


def _type(name: ast.TypeName, product: Product) -> Iterator[str]:
    *schema, last = (part.sval for part in name.names or ())
    known = last in catalog()["type"] or last in catalog()["relation"] or last in PSEUDO_TYPES
    if (
        schema in ([], ["pg_catalog"])
        and not known
        and last not in product.types
        and not last.startswith("x_")
    ):
        yield f"there is no type {last}"


# Types that only a column definition or a body in PL/pgSQL names, and what stands for the types of
# columns.
PSEUDO_TYPES = {"serial", "bigserial", "smallserial", "x"}


def _columns(nodes: list[ast.Node]) -> Iterator[str]:
    """Yield the relations of the catalog that are missing, and the columns of them that are."""
    relations: dict[str, set[str]] = {}
    ctes = {node.ctename for node in nodes if isinstance(node, ast.CommonTableExpr)}
    aliases: dict[str, int] = {}
    for node in nodes:
        alias = getattr(node, "alias", None)
        if alias is not None:
            aliases[alias.aliasname] = aliases.get(alias.aliasname, 0) + 1
        if not isinstance(node, ast.RangeVar) or node.relname in ctes:
            continue
        if node.schemaname == "pg_catalog" or (
            not node.schemaname and node.relname.startswith("pg_")
        ):
            if node.relname not in catalog()["relation"]:
                yield f"there is no relation {node.relname}"
                continue
            name = node.alias.aliasname if node.alias else node.relname
            relations.setdefault(name, set()).update(
                catalog()["relation"][node.relname][0].split(",")
            )
    for node in nodes:
        if (
            isinstance(node, ast.ColumnRef)
            and len(node.fields) == 2
            and isinstance(node.fields[1], ast.String)
        ):
            table, column = (part.sval for part in node.fields)
            # An alias that stands for several tables of a statement may mean another one.
            if aliases.get(table, 1) == 1 and column not in relations.get(table, {column}):
                yield f"there is no column {table}.{column}"


def _constraint(column: ast.ColumnDef, *kinds: str) -> bool:
    return any(c.contype.name in kinds for c in column.constraints or ())


def _options(*allowed: str) -> Callable[[Any], bool]:
    return lambda node: any(o.defname not in allowed for o in node.options or ())


def _newer_subtype(node: Any) -> bool:
    return node.subtype.name in (
        "AT_SetExpression",
        "AT_DropExpression",
        "AT_SetCompression",
        "AT_SetAccessMethod",
    )


# Syntax that PostgreSQL 12 lacks: the node, since when there is, and a condition.
SYNTAX: list[tuple[type[ast.Node], str, Callable[[Any], bool]]] = [
    (ast.MergeStmt, "MERGE is of PostgreSQL 15", lambda node: True),
    (ast.CTESearchClause, "SEARCH is of PostgreSQL 14", lambda node: True),
    (ast.CTECycleClause, "CYCLE is of PostgreSQL 14", lambda node: True),
    (ast.SelectStmt, "GROUP BY DISTINCT is of PostgreSQL 14", lambda node: node.groupDistinct),
    (
        ast.SelectStmt,
        "WITH TIES is of PostgreSQL 13",
        lambda node: node.limitOption == enums.LimitOption.LIMIT_OPTION_WITH_TIES,
    ),
    (
        ast.RangeSubselect,
        "a subselect without an alias is of PostgreSQL 16",
        lambda node: node.alias is None,
    ),
    (ast.JoinExpr, "an alias of USING is of PostgreSQL 14", lambda node: node.join_using_alias),
    (
        ast.CreateFunctionStmt,
        "a body that is no text is of PostgreSQL 14",
        lambda node: node.sql_body,
    ),
    (
        ast.CreateFunctionStmt,
        "OUT arguments of procedures are of PostgreSQL 14",
        lambda node: (
            node.is_procedure
            and any(p.mode.name == "FUNC_PARAM_OUT" for p in node.parameters or ())
        ),
    ),
    (ast.CreateTrigStmt, "OR REPLACE of a trigger is of PostgreSQL 14", lambda node: node.replace),
    (
        ast.ViewStmt,
        "this option of a view is of PostgreSQL 15",
        _options("security_barrier", "check_option"),
    ),
    (
        ast.Constraint,
        "NULLS NOT DISTINCT is of PostgreSQL 15",
        lambda node: node.nulls_not_distinct,
    ),
    (ast.IndexStmt, "NULLS NOT DISTINCT is of PostgreSQL 15", lambda node: node.nulls_not_distinct),
    (ast.Constraint, "WITHOUT OVERLAPS is of PostgreSQL 18", lambda node: node.without_overlaps),
    (
        ast.Constraint,
        "virtual generated columns are of PostgreSQL 18",
        lambda node: node.contype.name == "CONSTR_GENERATED" and node.generated_kind == "v",
    ),
    (
        ast.ColumnDef,
        "COMPRESSION and STORAGE of a new column are newer",
        lambda n: n.compression or n.storage_name,
    ),
    (ast.AlterTableCmd, "this ALTER TABLE is newer than PostgreSQL 12", _newer_subtype),
    (ast.DropdbStmt, "options of DROP DATABASE are of PostgreSQL 13", lambda node: node.options),
    (ast.GrantRoleStmt, "INHERIT and SET of a grant are of PostgreSQL 16", lambda node: node.opt),
    (
        ast.ExplainStmt,
        "this option of EXPLAIN is newer than PostgreSQL 12",
        _options(
            "analyze", "verbose", "costs", "buffers", "timing", "summary", "settings", "format"
        ),
    ),
    *(
        (
            getattr(ast, name),
            "constructors and queries of SQL/JSON are newer than PostgreSQL 12",
            lambda node: True,
        )
        for name in dir(ast)
        if name.startswith("Json")
    ),
]
