"""The Python client of cerebro_db: model selection for deep learning inside PostgreSQL, spoken to
in SQL.

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
    """Sessions bring SQLAlchemy with them, which the help of a command need not wait for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cerebro_db import session

    return getattr(session, name)
