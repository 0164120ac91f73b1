"""Completion of run ids and model names in a shell, if the database answers at once.

A shell parses the completed text again. Only names without special characters are therefore
offered, and no other data of users.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import typer

from cerebro_db.commands.database import choose_url
from cerebro_db.errors import CerebroError

CONNECT_ARGUMENTS = {"connect_timeout": 1}
MAX_VALUES = 100
SAFE_NAME = re.compile(r"[\w.][\w.-]*")


def runs(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return ids of runs, the newest first."""
    return _filter_names(_read_values(ctx, "run_id", "run"), incomplete)


def models(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return names of models."""
    return _filter_names(_read_values(ctx, "model", "model"), incomplete)


def subjects(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return ids of runs and names of models, for an argument that accepts both."""
    return [*runs(ctx, incomplete), *models(ctx, incomplete)]


def _filter_names(names: Iterable[str], incomplete: str) -> list[str]:
    """Return the names with this prefix that no shell interprets.

    >>> _filter_names(["ups", "up $(reboot)", "-rf", "downs"], "u")
    ['ups']
    """
    return [name for name in names if name.startswith(incomplete) and SAFE_NAME.fullmatch(name)]


def _read_values(ctx: typer.Context, column_name: str, view: str) -> list[str]:
    """Return the values of a column; none if the database cannot be read."""
    import sqlalchemy as sa

    from cerebro_db.driver import parse_url, translate_errors

    column: sa.ColumnClause[object] = sa.column(column_name)
    query = (
        sa.select(column)
        .select_from(sa.table(view, schema="cerebro"))
        .distinct()
        .order_by(column.desc())
        .limit(MAX_VALUES)
    )
    try:
        url = parse_url(choose_url(ctx.params.get("url")))
        engine = sa.create_engine(url, connect_args=CONNECT_ARGUMENTS)
        with translate_errors(), engine.connect() as connection:
            return [str(value) for value in connection.scalars(query)]
    except CerebroError:
        return []
