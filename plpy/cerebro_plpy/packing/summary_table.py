"""Write the summary table of a packed table."""

from __future__ import annotations

from cerebro_plpy.database.platform_protocol import ALL
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sql.identifiers import quote_identifier, quote_qualified
from cerebro_plpy.database.sql.literals import array_literal, literal
from cerebro_plpy.packing.packed_columns import CLASSES, Column
from cerebro_plpy.packing.packing_plan import PackingPlan


def create_summary(db: Database, plan: PackingPlan, buffer_size: int) -> None:
    """Create and fill the summary table of a packed table.

    Args:
        buffer_size: rows of the largest buffer.
    """
    summary = quote_qualified((plan.output.schema, plan.output.name + "_summary"))
    distribution = plan.distribution.describe()
    rules_type = "integer[]"
    if distribution == (ALL, ALL):
        rules_type = "text"
    weights = [column.name for column in plan.weight]
    statements = [
        sql(
            "pack.summary",
            summary=summary,
            literal=literal(summary),
            class_columns=", ".join(_define_class_column(column) for column in plan.dependent),
            rules=rules_type,
            **db.platform.clauses,
        )
    ]
    statements += [sql("pack.summary_weight", summary=summary) for _ in weights]
    db.rows("; ".join(statements))
    class_values = ", ".join(_make_class_array(column) for column in plan.dependent)
    db.rows(
        sql("pack.summarize", summary=summary, class_values=class_values, rules=rules_type),
        plan.source.spelling,
        plan.output.spelling,
        [column.name for column in plan.dependent],
        [column.name for column in plan.independent],
        [column.type for column in plan.dependent],
        buffer_size,
        plan.normalizing_const,
        _count_classes(plan),
        *distribution,
    )
    for name in weights:
        db.rows(sql("pack.summarize_weight", summary=summary), name)


def _define_class_column(target: Column) -> str:
    element_type = "text"
    if target.classes:
        element_type = target.type
    return f"{quote_identifier(target.name + CLASSES)} {element_type}[]"


def _make_class_array(target: Column) -> str:
    if not target.classes:
        return "NULL"
    return f"{array_literal(target.classes)}::text[]::{target.type}[]"


def _count_classes(plan: PackingPlan) -> list[int] | None:
    """Return the number of classes of each encoded target; NULL if a target is a float.

    Only this tells floats from targets that the user encoded, for which the list is empty.
    """
    if any(column.kind == "float32" for column in plan.dependent):
        return None
    return [len(column.classes) for column in plan.dependent if column.classes]
