"""Output tables that are begun while a run goes on have what they would have had at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trials import trials

from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.errors import CerebroError, DataCorrupted, QueryCanceled
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.tables.chunked_work import PIECE_SECONDS, Pieces, next_size
from cerebro_plpy.tables.outputs import fit_output
from cerebro_plpy.tables.outputs.fit_output import Begun, OutputTables, Written
from cerebro_plpy.tables.outputs.incremental_output import EarlyOutput

OUTPUT = Relation("t", "public", "t", 1, "public.t")
TABLES = OutputTables("t", "t_info", "t_summary", "states")


class Tables:
    """What is written, a second for each piece; the statement of that number fails."""

    def __init__(self, fails: int | None, error: type[CerebroError] = DataCorrupted) -> None:
        self._fails, self._error = fails, error
        self._count = 0
        self.made = False
        self.now = 0.0
        self.models: Counter[int] = Counter()
        self.metrics: Counter[int] = Counter()
        self.removed: list[tuple[str, int]] = []

    def statement(self) -> None:
        self._count += 1
        self.now += 1.0
        if self._count == self._fails:
            raise self._error("the statement failed")

    def find_error(self, work: Callable[[], object]) -> Exception | None:
        try:
            work()
        except QueryCanceled:
            raise
        except CerebroError as error:
            return error
        return None

    @contextmanager
    def atomic(self, **settings: str) -> Iterator[None]:
        yield

    def rows(self, statement: str, *values: int) -> list[Any]:
        if statement.startswith("DELETE"):
            (mst_key,) = values
            self.removed.append((statement.split()[2], mst_key))
        return []

    def create(self, db: object, output: Relation, run: object) -> OutputTables:
        self.statement()
        assert not self.made
        self.made = True
        return TABLES

    def model_written(
        self, db: object, tables: OutputTables, run: object, config: dict[str, Any]
    ) -> Pieces[Written]:
        for _ in range(2):
            self.statement()
            yield
        self.models[config["mst_key"]] += 1
        return Written(fit_output.state_of(config), 1.0)

    def metrics_written(
        self,
        db: object,
        tables: OutputTables,
        run: object,
        config: dict[str, Any],
        written: Written,
    ) -> Written:
        self.statement()
        self.metrics[config["mst_key"]] += 1
        return written._replace(metrics=True)


class Run:
    run_id = 7
    status = "completed"


def config(mst_key: int, failed: bool = False) -> dict[str, Any]:
    """What the log says of a configuration."""
    return {
        "mst_key": mst_key,
        "state_table": None if failed else f"state_{mst_key}",
        "segment_id": 0,
        "base_table": None,
    }


@contextmanager
def writing(
    tables: Tables, newest: Callable[[], list[dict[str, Any]]] = list
) -> Iterator[EarlyOutput]:
    """Everything else than the order of the work is that of these tables."""
    db: Any = tables
    with pytest.MonkeyPatch.context() as patch:
        for name in ("create", "model_written", "metrics_written"):
            patch.setattr(fit_output, name, getattr(tables, name))
        patch.setattr(fit_output, "read_run", lambda *_: Run())
        patch.setattr(fit_output, "newest_state", lambda _, run_id, mst_key: config(mst_key))
        patch.setattr(fit_output, "held_configs", lambda *_: newest())
        patch.setattr(fit_output, "_write_summary", lambda *_: None)
        patch.setattr(
            "cerebro_plpy.tables.outputs.incremental_output.time.monotonic", lambda: tables.now
        )
        yield EarlyOutput(db, OUTPUT)


@given(
    st.lists(st.integers(0, 3), max_size=5),
    st.integers(1, 9),
    st.one_of(st.none(), st.integers(1, 12)),
)
@trials(200)
def test_all_that_was_heard_of_is_written_once_and_an_error_waits_for_the_end(
    looks: list[int], configs: int, fails: int | None
) -> None:
    tables = Tables(fails)
    with writing(tables) as early:
        assert not early.piece(), "nobody was told of anything"
        for key in range(configs):
            early.trained(Run.run_id, key)
            for _ in range(looks[key] if key < len(looks) else 0):
                early.piece()
            if key % 2:
                early.finished(key)
        heard = 1 + 2 * configs + configs // 2
        try:
            begun = early.begun()
        except DataCorrupted:
            assert fails is not None and 1 < fails <= heard
            return
    if begun is None:
        assert not tables.made and (not any(looks[:configs]) or fails == 1), (
            "all is written at the end"
        )
        return
    assert begun.tables == TABLES and set(begun.written) == set(range(configs))
    assert set(tables.models.values()) == {1} and set(tables.metrics) == set(range(1, configs, 2))
    assert all(found.metrics == key % 2 for key, found in begun.written.items())


def test_a_piece_is_short_and_a_cancel_is_raised_at_once() -> None:
    tables = Tables(4, QueryCanceled)
    with writing(tables) as early:
        early.trained(Run.run_id, 1)
        early.trained(Run.run_id, 2)
        for statements in (1, 2, 3):
            assert early.piece() and tables.now == statements, (
                "a statement that takes long is a piece"
            )
        with pytest.raises(QueryCanceled):
            early.piece()


@given(
    st.dictionaries(st.integers(1, 6), st.booleans()),
    st.sets(st.integers(1, 6)),
    st.sets(st.integers(1, 6)),
)
def test_the_end_writes_what_is_missing_and_takes_back_who_failed(
    before: dict[int, bool], failed: set[int], absent: set[int]
) -> None:
    written = {
        key: Written(StoredState(f"state_{key}", 0), 1.0, known) for key, known in before.items()
    }
    keys = sorted(before.keys() | absent)
    tables = Tables(None)
    db: Any = tables
    run: Any = Run()
    with writing(tables, lambda: [config(key, key in failed) for key in keys]):
        fit_output.write(db, run, OUTPUT, None, Begun(TABLES, written))
    again = before.keys() & failed
    assert tables.removed == [
        (table, key) for key in sorted(again) for table in ("t", "t_info", "states")
    ]
    assert set(tables.models) == set(keys) - (before.keys() - again)
    assert set(tables.metrics) == {key for key in keys if key in again or not before.get(key)}
    assert not tables.made


@given(st.integers(1, 10**6), st.floats(1e-6, 1e-3), st.integers(1, 10**6))
def test_sizes_come_to_what_a_piece_has_time_for(blocks: int, seconds: float, size: int) -> None:
    for _ in range(40):
        size = next_size(size, size * seconds)
    assert size == 1 or size * seconds <= PIECE_SECONDS
    assert (size + 1) * seconds > 0.7 * PIECE_SECONDS
