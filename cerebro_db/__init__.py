"""Python client of cerebro_db, which trains and selects deep-learning models inside PostgreSQL.

The client sends SQL only.

>>> import cerebro_db
>>> with cerebro_db.connect("postgresql://localhost/flowers") as session:  # doctest: +SKIP
...     for standing in session.leaderboard(session.runs()[0].run_id):
...         print(standing.rank, standing.params, standing.value)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cerebro_db import errors

if TYPE_CHECKING:
    from cerebro_db.session import Session, connect

__all__ = ["Session", "connect", "errors"]


def __getattr__(name: str) -> Any:
    """Import Session and connect on first use: the help of a command must not import SQLAlchemy."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cerebro_db import session

    return getattr(session, name)
