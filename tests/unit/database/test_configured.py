"""Settings for a part of a call take few statements, however many they are."""

from __future__ import annotations

from typing import Any

import pytest

from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.platform.postgres.adapter import Postgres


class Backend:
    """A backend whose settings are what statements make of them."""

    def __init__(self) -> None:
        self.asked: list[list[Any]] = []

    def prepare(self, statement: str, types: list[str]) -> str:
        """The statement itself."""
        return statement

    def execute(self, plan: str, values: list[Any]) -> list[dict[str, Any]]:
        """Remember what was asked."""
        self.asked.append(values)
        return [{"json_object_agg": '{"jit": "on"}'}]


@pytest.mark.parametrize("count", [1, 7])
def test_settings_are_read_set_and_restored_by_one_statement_each(count: int) -> None:
    backend = Backend()
    db = Database(backend, Postgres())
    with db.configured(**{f"setting_{n}": "off" for n in range(count)}):
        assert len(backend.asked) == 2
    assert len(backend.asked) == 3
    assert backend.asked[-1] == ['{"jit": "on"}'], "what was read before"
