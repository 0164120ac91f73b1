"""Grants of predictions: with a model by name, or with the models of a table of MADlib's."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import InvalidName
from cerebro_plpy.tables.models import grants, model_grants


class Change(NamedTuple):
    """What is done to a grant of either kind."""

    module: str
    of_model: Callable[[Database, str, str, str | None], None]
    of_table: Callable[[Catalog, str | None, str | None], None]


GRANT = Change("grant_predict", model_grants.grant, grants.grant)
REVOKE = Change("revoke_predict", model_grants.revoke, grants.revoke)


def change(db: Database, kind: Change, given: str | None, role: str | None) -> None:
    """Grant or revoke. A name is that of a model of the caller's, if there is one; a table may have
    its schema.
    """
    catalog = Catalog(db, kind.module)
    if given is None or not db.peek(sql("version.model"), given):
        kind.of_table(catalog, given, role)
        return
    if _is_table(catalog, given):
        db.notice(
            f"{given!r} is taken for the name of a model; write the table of that name with its "
            "schema"
        )
    kind.of_model(db, kind.module, given, role)


def _is_table(catalog: Catalog, given: str) -> bool:
    try:
        return catalog.find(given) is not None
    except InvalidName:
        return False
