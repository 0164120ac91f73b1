"""`grant_predict` and `revoke_predict`: permit predictions to other roles.

The grant is for a model by name, or for the models of a table of MADlib.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import InvalidName
from cerebro_plpy.tables.models import grants, model_grants


class GrantCommand(NamedTuple):
    """A command that changes a grant."""

    module: str
    change_model: Callable[[Database, str, str, str | None], None]
    change_table: Callable[[Catalog, str | None, str | None], None]


GRANT = GrantCommand("grant_predict", model_grants.grant, grants.grant)
REVOKE = GrantCommand("revoke_predict", model_grants.revoke, grants.revoke)


def change(db: Database, command: GrantCommand, name: str | None, role: str | None) -> None:
    """Grant or revoke predictions.

    Args:
        name: name of a model of the caller; without such a model, a table.
    """
    catalog = Catalog(db, command.module)
    if name is None or not db.peek(sql("version.model"), name):
        command.change_table(catalog, name, role)
        return
    if _is_table(catalog, name):
        db.notice(
            f"{name!r} is taken for the name of a model; write the table of that name with its "
            "schema"
        )
    command.change_model(db, command.module, name, role)


def _is_table(catalog: Catalog, name: str) -> bool:
    try:
        return catalog.find(name) is not None
    except InvalidName:
        return False
