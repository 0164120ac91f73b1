"""The Python client of cerebro_db: model selection for deep learning inside PostgreSQL, spoken to in SQL.

>>> import cerebro_db
>>> with cerebro_db.connect("postgresql://localhost/flowers") as session:  # doctest: +SKIP
...     for standing in session.leaderboard(session.runs()[0].run_id):
...         print(standing.rank, standing.params, standing.value)
"""

from cerebro_db import errors
from cerebro_db.session import Session, connect

__all__ = ["Session", "connect", "errors"]
