"""Output tables that are written while a run is live contain the same as those written later."""

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
from cerebro_plpy.tables.chunked_work import PIECE_SECONDS, ChunkedWork, choose_next_size
from cerebro_plpy.tables.outputs import fit_output, logged_run
from cerebro_plpy.tables.outputs.fit_output import OutputTables, PartialOutput, WrittenModel
from cerebro_plpy.tables.outputs.incremental_output import IncrementalOutput
from cerebro_plpy.tables.outputs.logged_run import stored_state

OUTPUT = Relation("t", "public", "t", 1, "public.t")
TABLES = OutputTables("t", "t_info", "t_summary", "states")


class Tables:
    """A database in which each statement takes a second, and perhaps one fails.

    Args:
        failing: number of the failing statement.
    """

    def __init__(self, failing: int | None, error: type[CerebroError] = DataCorrupted) -> None:
        self._failing = failing
        self._error = error
        self._statements = 0
        self.is_created = False
        self.now = 0.0
        self.models: Counter[int] = Counter()
        self.metrics: Counter[int] = Counter()
        self.removed: list[tuple[str, int]] = []

    def statement(self) -> None:
        self._statements += 1
        self.now += 1.0
        if self._statements == self._failing:
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
        assert not self.is_created
        self.is_created = True
        return TABLES

    def write_model(
        self, db: object, tables: OutputTables, run: object, config: dict[str, Any]
    ) -> ChunkedWork[WrittenModel]:
        for _ in range(2):
            self.statement()
            yield
        self.models[config["mst_key"]] += 1
        return WrittenModel(stored_state(config), 1.0)

    def write_metrics(
        self,
        db: object,
        tables: OutputTables,
        run: object,
        config: dict[str, Any],
        model: WrittenModel,
    ) -> WrittenModel:
        self.statement()
        self.metrics[config["mst_key"]] += 1
        return model._replace(has_metrics=True)


class Run:
    run_id = 7
    status = "completed"
    is_completed = True


def make_config(mst_key: int, failed: bool = False) -> dict[str, Any]:
    """Return a configuration as logged."""
    return {
        "mst_key": mst_key,
        "state_table": None if failed else f"state_{mst_key}",
        "segment_id": 0,
        "base_table": None,
    }


@contextmanager
def patched_output(
    tables: Tables, read_configs: Callable[[], list[dict[str, Any]]] = list
) -> Iterator[IncrementalOutput]:
    """Replace everything but the order of the work by these tables."""
    db: Any = tables
    with pytest.MonkeyPatch.context() as patch:
        for name in ("create", "write_model", "write_metrics"):
            patch.setattr(fit_output, name, getattr(tables, name))
        patch.setattr(logged_run, "read_run", lambda *_: Run())
        patch.setattr(
            logged_run, "read_newest_state", lambda _, run_id, mst_key: make_config(mst_key)
        )
        patch.setattr(fit_output, "read_pinned_configs", lambda *_: read_configs())
        patch.setattr(fit_output, "_write_summary", lambda *_: None)
        patch.setattr(
            "cerebro_plpy.tables.outputs.incremental_output.time.monotonic", lambda: tables.now
        )
        yield IncrementalOutput(db, OUTPUT)


@given(
    st.lists(st.integers(0, 3), max_size=5),
    st.integers(1, 9),
    st.one_of(st.none(), st.integers(1, 12)),
)
@trials(200)
def test_each_configuration_is_written_once_and_an_error_waits_for_the_end(
    pieces: list[int], configs: int, failing: int | None
) -> None:
    tables = Tables(failing)
    with patched_output(tables) as output:
        assert not output.do_piece(), "no configuration was added"
        for key in range(configs):
            output.report_trained(Run.run_id, key)
            for _ in range(pieces[key] if key < len(pieces) else 0):
                output.do_piece()
            if key % 2:
                output.report_finished(key)
        statements = 1 + 2 * configs + configs // 2
        try:
            partial = output.complete()
        except DataCorrupted:
            assert failing is not None and 1 < failing <= statements
            return
    if partial is None:
        assert not tables.is_created and (not any(pieces[:configs]) or failing == 1), (
            "all is written at the end"
        )
        return
    assert partial.tables == TABLES and set(partial.models) == set(range(configs))
    assert set(tables.models.values()) == {1} and set(tables.metrics) == set(range(1, configs, 2))
    assert all(model.has_metrics == key % 2 for key, model in partial.models.items())


def test_a_piece_is_short_and_a_cancel_is_raised_at_once() -> None:
    tables = Tables(4, QueryCanceled)
    with patched_output(tables) as output:
        output.report_trained(Run.run_id, 1)
        output.report_trained(Run.run_id, 2)
        for statements in (1, 2, 3):
            assert output.do_piece() and tables.now == statements, "a long statement is a piece"
        with pytest.raises(QueryCanceled):
            output.do_piece()


@given(
    st.dictionaries(st.integers(1, 6), st.booleans()),
    st.sets(st.integers(1, 6)),
    st.sets(st.integers(1, 6)),
)
def test_the_end_writes_missing_models_and_removes_failed_ones(
    has_metrics: dict[int, bool], failed: set[int], missing: set[int]
) -> None:
    models = {
        key: WrittenModel(StoredState(f"state_{key}", 0), 1.0, value)
        for key, value in has_metrics.items()
    }
    keys = sorted(has_metrics.keys() | missing)
    tables = Tables(None)
    db: Any = tables
    run: Any = Run()
    with patched_output(tables, lambda: [make_config(key, key in failed) for key in keys]):
        fit_output.write(db, run, OUTPUT, None, PartialOutput(TABLES, models))
    again = has_metrics.keys() & failed
    assert tables.removed == [
        (table, key) for key in sorted(again) for table in ("t", "t_info", "states")
    ]
    assert set(tables.models) == set(keys) - (has_metrics.keys() - again)
    assert set(tables.metrics) == {key for key in keys if key in again or not has_metrics.get(key)}
    assert not tables.is_created


@given(st.integers(1, 10**6), st.floats(1e-6, 1e-3), st.integers(1, 10**6))
def test_sizes_approach_the_time_of_a_piece(blocks: int, seconds: float, size: int) -> None:
    for _ in range(40):
        size = choose_next_size(size, size * seconds)
    assert size == 1 or size * seconds <= PIECE_SECONDS
    assert (size + 1) * seconds > 0.7 * PIECE_SECONDS
