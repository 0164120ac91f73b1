"""Forms of statements that PostgreSQL executes and Greenplum 7 refuses, or means otherwise.

Each rule has a cause in Greenplum: a check of its own (in its `parser/analyze.c` and
`cdb/cdbcat.c`), its planner, or its default for the cache of a sequence (20).
"""

from __future__ import annotations

from collections.abc import Iterator

from pglast import ast
from postgresql_12 import Product, catalog
from product_sql import Statement, walk

WRITES = (ast.InsertStmt, ast.UpdateStmt, ast.DeleteStmt)
KEYS = ("CONSTR_PRIMARY", "CONSTR_UNIQUE")


def refused_forms(statement: Statement, product: Product) -> list[str]:
    """Return why Greenplum would refuse a statement, or do something else."""
    faults = [fault for node in walk(statement.node) for fault in _of_node(node, product)]
    return [*faults, *_queries_beside_catalog(statement.node, product)]


def _of_node(node: ast.Node, product: Product) -> Iterator[str]:
    if isinstance(node, (ast.CreateStmt, ast.AlterTableStmt, ast.IndexStmt)):
        yield from _generated_in_key(node, product)
    if isinstance(node, (ast.UpdateStmt, ast.DeleteStmt)) or (
        isinstance(node, ast.InsertStmt) and node.onConflictClause
    ):
        yield from _volatile_on_replicated(node, product)
    if isinstance(node, (ast.UpdateStmt, ast.DeleteStmt)):
        yield from _lateral_over_view(node, product)
    if isinstance(node, (*WRITES, ast.SelectStmt)) and node.withClause:
        written = sum(isinstance(cte.ctequery, WRITES) for cte in node.withClause.ctes)
        if written + isinstance(node, WRITES) > 1 and written:
            yield "a statement that writes in WITH writes something else, too"
    if isinstance(node, (ast.CreatePolicyStmt, ast.AlterPolicyStmt)):
        yield from _reads_on_segments(node, product)
    if isinstance(node, ast.CreateTrigStmt) and not node.row:
        yield "a trigger for statements"
    if isinstance(node, ast.ColumnDef):
        yield from _cached_identity(node)
    if isinstance(node, ast.IndexStmt) and node.concurrent:
        yield "CREATE INDEX CONCURRENTLY"


def _cached_identity(column: ast.ColumnDef) -> Iterator[str]:
    """Yield the column if each session takes several numbers at once, so that a later row may have
    a lower one.
    """
    for constraint in column.constraints or ():
        if constraint.contype.name == "CONSTR_IDENTITY":
            options = {option.defname: option.arg for option in constraint.options or ()}
            if getattr(options.get("cache"), "ival", None) != 1:
                yield f"the identity column {column.colname} without CACHE 1"


def _generated_in_key(
    node: ast.CreateStmt | ast.AlterTableStmt | ast.IndexStmt, product: Product
) -> Iterator[str]:
    """Yield the keys with a generated column, which the distribution key would have to be a part
    of.
    """
    table = node.relation.relname
    keyed: set[str] = set()
    if isinstance(node, ast.IndexStmt):
        keyed.update(p.name for p in node.indexParams if node.unique and p.name)
    else:
        commands = (
            [c.def_ for c in node.cmds]
            if isinstance(node, ast.AlterTableStmt)
            else node.tableElts or ()
        )
        for element in commands:
            if isinstance(element, ast.ColumnDef):
                constraints = [c.contype.name for c in element.constraints or ()]
                keyed.update([element.colname] if any(kind in KEYS for kind in constraints) else [])
            elif isinstance(element, ast.Constraint) and element.contype.name in KEYS:
                keyed.update(key.sval for key in element.keys or ())
    for column in sorted(keyed & product.generated.get(table, set())):
        yield f"the generated column {table}.{column} in a key"


def _volatile_on_replicated(statement: ast.Node, product: Product) -> Iterator[str]:
    """Yield the volatile functions by which rows are changed that must be the same on every
    segment.
    """
    table = statement.relation.relname
    if table not in product.replicated:
        return
    if isinstance(statement, ast.InsertStmt):
        parts = [statement.onConflictClause]
    elif isinstance(statement, ast.UpdateStmt):
        parts = [statement.targetList, statement.whereClause]
    else:
        parts = [statement.whereClause]
    for call in walk(parts):
        if isinstance(call, ast.FuncCall) and _is_volatile(call, product):
            yield (
                f"the replicated table {table} changed by the volatile function "
                f"{call.funcname[-1].sval}"
            )


def _reads_on_segments(
    policy: ast.CreatePolicyStmt | ast.AlterPolicyStmt, product: Product
) -> Iterator[str]:
    """Yield the functions of a policy that read a view or a table that is not on every segment."""
    for call in walk([policy.qual, policy.with_check]):
        if isinstance(call, ast.FuncCall):
            name = call.funcname[-1].sval
            for relation in sorted(product.reads.get(name, set()) - product.replicated):
                yield f"a policy that calls {name}, which reads {relation}"


def _is_volatile(call: ast.FuncCall, product: Product) -> bool:
    *schema, name = (part.sval for part in call.funcname)
    if schema == ["cerebro"] or name not in catalog()["function"]:
        return product.functions.get(name, True)
    return catalog()["function"][name][1:] == ["volatile"]


def _lateral_over_view(
    statement: ast.UpdateStmt | ast.DeleteStmt, product: Product
) -> Iterator[str]:
    """Yield the views that a LATERAL subselect reads anew for each row of other tables."""
    sources = (
        statement.fromClause if isinstance(statement, ast.UpdateStmt) else statement.usingClause
    )
    for node in walk(sources or ()):
        if isinstance(node, ast.RangeSubselect) and node.lateral:
            for table in walk(node.subquery):
                if isinstance(table, ast.RangeVar) and table.relname in product.views:
                    yield f"LATERAL over the view {table.relname} for rows that are changed"


def _queries_beside_catalog(statement: ast.Node, product: Product) -> Iterator[str]:
    """Yield the functions that would query in a process that reads the catalog for segments and may
    start no query.
    """
    if not isinstance(statement, (*WRITES, ast.SelectStmt)):
        return
    nodes = list(walk(statement))
    schemas = {node.schemaname for node in nodes if isinstance(node, ast.RangeVar)}
    if {"cerebro", "pg_catalog"} <= schemas:
        names = {node.funcname[-1].sval for node in nodes if isinstance(node, ast.FuncCall)}
        for name in sorted(names & product.queries):
            yield f"the function {name}, which queries, beside the catalog and a table"
