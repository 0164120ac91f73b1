"""A version is added together with the end of its run, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import UndefinedObject
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.tables.models import model_grants, model_registry
from cerebro_plpy.tables.models.model_registry import ModelEntry, RunResult

RESULT = RunResult(7, 1, 0.5, None, StoredState('cerebro_state."r7_c1_a"', 0, None))


class Platform:
    def state_table_sql(self, table: str) -> str:
        return f"CREATE TABLE {table} ()"

    def copy_state_sql(self, state: str, segment: int | None, base: str | None, table: str) -> str:
        return f"INSERT INTO {table} TABLE {state}"


class Session:
    """A session that logs its statements.

    If the run is not visible to its role, statements about the run change no row.
    """

    def __init__(self, *, visible: bool) -> None:
        self.platform = Platform()
        self.statements = list[str]()
        self._rows: dict[str, list[tuple[Any, ...]]] = {
            sql("version.lock_model"): [(None,)],
            sql("version.next"): [(1,)],
            sql("version.add"): [(1,)] if visible else [],
        }

    def run(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        self.statements.append(statement)
        return self._rows.get(statement, [])


def add(session: Session) -> model_registry.AddedVersion:
    entry = ModelEntry("random", 1, None, None)
    return model_registry.add(session, "m", entry, RESULT, deploy=True)  # type: ignore[arg-type]


def test_a_version_of_a_run_that_cannot_be_seen_is_not_added() -> None:
    session = Session(visible=False)
    with pytest.raises(UndefinedObject, match="no run 7 that you may see"):
        add(session)
    assert session.statements[-1] == sql("session.rollback")


def test_the_run_is_ended_before_its_version_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the owner is renamed in between, no version is added, and nothing is committed."""
    monkeypatch.setattr(model_grants, "publish_deployed", lambda *_: None)
    session = Session(visible=True)
    assert add(session).version == 1
    order = [
        session.statements.index(sql(name)) for name in ("run.end", "version.add", "session.commit")
    ]
    assert order == sorted(order)
