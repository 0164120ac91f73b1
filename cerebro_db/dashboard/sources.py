"""Read the tables and views that a model can be trained or measured on, and their columns."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from cerebro_db.dashboard.queries import Reader, Row
from cerebro_db.records import CLASS, NAMESPACE, declare_table

ATTRIBUTE = declare_table(
    "pg_attribute", "attrelid attname atttypid atttypmod attnum attisdropped", "pg_catalog"
)
DEPENDENCY = declare_table("pg_depend", "objid deptype", "pg_catalog")
SYSTEM_SCHEMAS = (
    "information_schema",
    "cerebro",
    "cerebro_state",
    "cerebro_internal",
    "cerebro_optuna",
)
OWN_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "packed rows": ("__dist_key__", "buffer_id integer"),
    "summary of packed rows": ("source_table", "output_table", "buffer_size", "normalizing_const"),
    "architectures or models": ("model_arch json", "model_weights bytea"),
    "parameters of models": ("mst_key", "model_id", "compile_params", "fit_params"),
    "summary of models": ("model_arch_table", "object_table"),
    "schedule of Hyperband": ("s integer", "i integer", "n_i integer", "r_i integer"),
    "custom functions": ("name text", "description text", "object bytea"),
    "predictions": ("class_name text", "class_value text", "prob double precision"),
    "evaluation": ("loss", "metric", "metrics_type text[]", "loss_type text"),
    "GPUs": ("hostname text", "gpu_descr text"),
}
"""Columns, some with their types, by which tables of the product are recognised, by their kind."""


def read_tables(reader: Reader) -> list[Row]:
    """Return the tables and views that the role may read and that can be learned from.

    Tables of the system, of extensions, and those that the product has created are left out.
    """
    relation = CLASS.c
    schema = NAMESPACE.c
    is_member = sa.exists().where(DEPENDENCY.c.objid == relation.oid, DEPENDENCY.c.deptype == "e")
    quoted = _quote(schema.nspname).concat(".").concat(_quote(relation.relname))
    query = (
        sa.select(
            sa.func.format("%I.%I", schema.nspname, relation.relname).label("name"),
            quoted.label("quoted"),
            sa.func.nullif(relation.reltuples, -1).label("rows"),
        )
        .join_from(CLASS, NAMESPACE, schema.oid == relation.relnamespace)
        .where(
            relation.relkind.in_(("r", "p", "v", "m", "f")),
            sa.not_(relation.relispartition),
            schema.nspname.not_in(SYSTEM_SCHEMAS),
            sa.not_(schema.nspname.startswith("pg_", autoescape=True)),
            sa.func.has_table_privilege(relation.oid, "SELECT"),
            sa.not_(is_member),
            sa.not_(_is_own(relation.oid)),
        )
        .order_by(schema.nspname, relation.relname)
    )
    return reader.read_rows(query)


def _is_own(table: sa.ColumnClause[int]) -> sa.ColumnElement[bool]:
    """Return SQL that is true for a table that the product has created."""
    column = ATTRIBUTE.c
    name = sa.cast(column.attname, sa.Text)
    type_name = sa.func.format_type(column.atttypid, sa.null())
    typed_name = name.concat(" ").concat(type_name)
    all_names = sa.func.array_cat(sa.func.array_agg(name), sa.func.array_agg(typed_name))
    columns = sa.select(all_names).where(column.attrelid == table).scalar_subquery()
    tests: list[sa.ColumnElement[bool]] = []
    for own_names in OWN_COLUMNS.values():
        own_columns = sa.literal(list(own_names), sa.ARRAY(sa.Text))
        tests.append(sa.func.pg_catalog.arraycontains(columns, own_columns))
    # A table without columns has no names.
    return sa.func.coalesce(sa.or_(*tests), False)


def _quote(name: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """Return SQL that quotes a name, also if it needs no quotes, as in the log."""
    return sa.literal('"').concat(sa.func.replace(name, '"', '""')).concat('"')


def read_columns(reader: Reader, source: str) -> list[Row]:
    """Return the columns of a table in their order, with the names of their types."""
    if not source:
        return []
    column = ATTRIBUTE.c
    query = (
        sa.select(
            column.attname.label("name"),
            sa.func.format_type(column.atttypid, column.atttypmod).label("type"),
        )
        .where(
            column.attrelid == sa.func.to_regclass(source),
            column.attnum > 0,
            sa.not_(column.attisdropped),
        )
        .order_by(column.attnum)
    )
    return reader.read_rows(query)
