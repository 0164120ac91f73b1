"""What a shell completes: ids of runs and names of models, from the database where it answers at
once.

A shell reads what it completes once more. So names are offered only where it takes them as they
are, and nothing else of a user's is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import typer

from cerebro_db.commands.database import running
from cerebro_db.errors import CerebroError

PATIENCE = {"connect_timeout": 1}
MOST = 100
AS_IT_IS = re.compile(r"[\w.][\w.-]*")


def runs(ctx: typer.Context, incomplete: str) -> list[str]:
    """Ids of runs, newest first."""
    return _offered(_found(ctx, "run_id", "run"), incomplete)


def models(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of models."""
    return _offered(_found(ctx, "model", "model"), incomplete)


def subjects(ctx: typer.Context, incomplete: str) -> list[str]:
    """Both, for what is either."""
    return [*runs(ctx, incomplete), *models(ctx, incomplete)]


def _offered(found: Iterable[str], incomplete: str) -> list[str]:
    """Those that begin so and that every shell takes as they are.

    >>> _offered(["ups", "up $(reboot)", "-rf", "downs"], "u")
    ['ups']
    """
    return [name for name in found if name.startswith(incomplete) and AS_IT_IS.fullmatch(name)]


def _found(ctx: typer.Context, column: str, view: str) -> list[str]:
    import sqlalchemy as sa

    from cerebro_db.driver import parse_url, translate_errors

    wanted: sa.ColumnClause[object] = sa.column(column)
    query = (
        sa.select(wanted)
        .select_from(sa.table(view, schema="cerebro"))
        .distinct()
        .order_by(wanted.desc())
    )
    try:
        engine = sa.create_engine(parse_url(running(ctx.params.get("url"))), connect_args=PATIENCE)
        with translate_errors(), engine.connect() as connection:
            return [str(value) for value in connection.scalars(query.limit(MOST))]
    except CerebroError:
        return []
