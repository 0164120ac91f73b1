"""What is seen of a long statement, and when its caller is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from cerebro_plpy.database import progress


class Recorder:
    """A session that keeps what is said in it, and when."""

    def __init__(self) -> None:
        self.now = 100.0
        self.shown: list[tuple[float, str]] = []
        self.told: list[tuple[float, str]] = []

    def rows(self, statement: object, *values: object) -> Sequence[dict[str, Any]]:
        self.shown.append((self.now, str(values[0])))
        return []

    def notice(self, text: str) -> None:
        self.told.append((self.now, text))


def test_notices_come_more_and_more_seldom_and_others_see_every_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session: Any = Recorder()
    monkeypatch.setattr("cerebro_plpy.database.progress.time.monotonic", lambda: session.now)
    task = progress.Progress("packing", "sales")
    task.begin(session, "read", 300)
    for second in range(1, 300):
        session.now = 100.0 + second
        task.report(session, second)
    assert [at - 100 for at, _ in session.told] == [5, 15, 35, 75, 135, 195, 255]
    assert session.told[1][1] == "packing sales: read 15 of 300 rows"
    assert (
        len(session.shown) == 300
        and session.shown[-1][1] == "packing: read 299 of 300 rows (sales)"
    )
