"""Where the states of a run, and those of a model table, lie: the names of their tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cerebro_plpy.database.sql.identifiers import quote_identifier


class StoredState(NamedTuple):
    """Where a state lies: a table, in which there may be others, and the segment whose visit left
    it.

    There is no segment where the table has this state alone, whoever left it. Its frozen weights
    lie in another table, its `base`, which it shares with others; where there is none, the table
    has all.
    """

    table: str
    segment_id: int | None
    base: str | None = None

    @property
    def tables(self) -> list[str]:
        """All that it takes."""
        return [self.table] if self.base is None else [self.table, self.base]

    @property
    def base_digest(self) -> str | None:
        """What tells its frozen weights from others."""
        return None if self.base is None else self.base.strip('"')[-DIGITS:]


STATE_SCHEMA = "cerebro_state"
VALIDATION = "validation"
SIDES = ("training", VALIDATION)
COMPARED = "compared"
"""The rows that are held back as an earlier version takes them, with which the run is compared."""
DATA_TABLES = tuple(side + end for side in (*SIDES, COMPARED) for end in ("", "_summary"))
# Each TRUNCATE leaves an old version of the table's row in pg_class, which stays as long as
# anybody, such as the caller, holds a snapshot from before; looking the table up passes all of
# them. So tables are made anew in time.
RENEWED = 64  # states
DIGITS = 32  # of what tells frozen weights apart
HOPPING = 2  # tables of a configuration: the one that a visit reads, and the one that it writes


def state_tables(run_id: int, mst_key: int, count: int = HOPPING) -> list[str]:
    """The tables that hold states of a configuration in turn, quoted, the one that is written last
    first.
    """
    return [state_table(run_id, mst_key, visit_no, count) for visit_no in range(count, 0, -1)]


def state_table(run_id: int, mst_key: int, visit_no: int, count: int = HOPPING) -> str:
    """The table that takes the state after that visit of a configuration, quoted."""
    turn, generation = visit_no % count, visit_no // (count * RENEWED) or ""
    place = "ab"[turn] if count == HOPPING else f"a{turn}_"
    return _state_table(f"r{run_id}_c{mst_key}_{place}{generation}")


def replaced_table(run_id: int, mst_key: int, visit_no: int, count: int = HOPPING) -> str | None:
    """The table whose place a new one takes with that visit; None where the visit needs no new
    one.
    """
    before = visit_no - count
    if before < 1 or before // (count * RENEWED) == visit_no // (count * RENEWED):
        return None
    return state_table(run_id, mst_key, before, count)


def spare_table(run_id: int, mst_key: int, visit_no: int, attempt: int) -> str:
    """A table for one state, for when the one whose turn it is cannot be emptied; quoted."""
    return _state_table(f"r{run_id}_c{mst_key}_{visit_no}_{attempt}")


def prefix(run_id: int, mst_key: int) -> str:
    """What the names of all tables with states of a configuration begin with."""
    return f"r{run_id}_c{mst_key}_"


def start_table(run_id: int, mst_key: int) -> str:
    """The table with the state that a configuration begins from, a copy of another one's;
    quoted.
    """
    return _state_table(f"r{run_id}_c{mst_key}_0")


def best_table(run_id: int, mst_key: int, epoch: int) -> str:
    """The table that keeps the state that a configuration had after an epoch, quoted."""
    return _state_table(f"r{run_id}_c{mst_key}_b_{epoch}")


def base_table(run_id: int, digest: str) -> str:
    """The table for the frozen weights of that digest, which states of a run share; quoted."""
    return _state_table(f"r{run_id}_z_{digest}")


def joined_table(run_id: int, mst_key: int) -> str:
    """The table for a state that has the weights of several configurations, that one the best of
    them; quoted.
    """
    return _state_table(f"r{run_id}_c{mst_key}_ab")


def version_table(run_id: int, mst_key: int) -> str:
    """The table that keeps the state of a version of a model, which a configuration of a run has
    come to; quoted.
    """
    return _state_table(f"r{run_id}_m{mst_key}")


def data_table(run_id: int, side: str) -> str:
    """One of the packed tables of a run that has made them itself, which is one of DATA_TABLES;
    quoted.
    """
    return _state_table(f"r{run_id}_{side}")


def features_name(run_id: int, number: int, side: str) -> str:
    """The name of a table with what frozen layers give for the rows of a side, one of SIDES: the
    run has several.
    """
    return f"r{run_id}_f{number}_{side}"


def features_table(name: str) -> str:
    """The table of that name, of features that a run trains on or that are kept for a later one;
    quoted.
    """
    return _state_table(name)


def gate_table(name: str) -> str:
    """The empty table with that name of its own by which predictions with a model are granted,
    quoted.
    """
    return _state_table(name)


def model_states_table(name: str) -> str:
    """The table with that name of its own for the states of a model table, quoted."""
    return _state_table(f"model_{name}")


def _state_table(name: str) -> str:
    return f"{STATE_SCHEMA}.{quote_identifier(name)}"


def dropped(run_id: int, names: Sequence[str]) -> tuple[object, ...]:
    """The values of the statement that drops state tables of a run."""
    tables = list(names)
    return (run_id, tables, tables, run_id, tables, run_id, tables)
