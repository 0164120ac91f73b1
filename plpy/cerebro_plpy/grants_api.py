"""One function per SQL function by which owners grant their models; see `api`."""

from __future__ import annotations

from typing import Any

from cerebro_plpy import model_grants
from cerebro_plpy.api import Globals, call
from cerebro_plpy.catalog import Catalog


def grant_predict(plpy: Any, session: Globals, model_table: str | None, role: str | None) -> None:
    """Let a role predict with the models of a table."""
    call(plpy, session, lambda db: model_grants.grant(Catalog(db, "grant_predict"), model_table, role))


def revoke_predict(plpy: Any, session: Globals, model_table: str | None, role: str | None) -> None:
    """Take that back."""
    call(plpy, session, lambda db: model_grants.revoke(Catalog(db, "revoke_predict"), model_table, role))
