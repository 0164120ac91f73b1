"""No cancel takes effect while a subtransaction begins or ends: Greenplum would end the session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.platform.postgres.adapter import Postgres


class Held(Postgres):
    """A platform that remembers whether cancels are held back."""

    def __init__(self) -> None:
        super().__init__()
        self.held = False

    @contextmanager
    def uninterrupted(self) -> Iterator[None]:
        self.held = True
        yield
        self.held = False


class Backend:
    """A backend that remembers how a subtransaction began and ended, and whether cancels were held
    back then.
    """

    def __init__(self, platform: Held) -> None:
        self.platform = platform
        self.events: list[tuple[object, bool]] = []

    def subtransaction(self) -> Backend:
        return self

    def __enter__(self) -> None:
        self.events.append(("begin", self.platform.held))

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.events.append((kind, self.platform.held))

    def prepare(self, statement: str, types: list[str]) -> str:
        return statement

    def execute(self, plan: str, values: list[Any]) -> list[dict[str, Any]]:
        return [{"json_object_agg": "{}"}]


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_cancels_wait_where_a_subtransaction_begins_and_ends(
    error: type[BaseException] | None,
) -> None:
    platform = Held()
    backend = Backend(platform)
    db = Database(backend, platform)
    during = []
    try:
        with db.atomic(jit="off"):
            during.append(platform.held)
            if error:
                raise error
    except KeyboardInterrupt:
        assert error
    assert backend.events == [("begin", True), (error, True)] and during == [False]
