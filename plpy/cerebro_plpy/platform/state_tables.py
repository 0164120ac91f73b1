"""Names of the tables that contain states and packed rows of runs and models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cerebro_plpy.database.sql.identifiers import quote_identifier


class StoredState(NamedTuple):
    """The location of a state."""

    table: str  # may contain states of other segments
    segment_id: int | None  # segment whose visit has stored it; None: the only state in the table
    base: str | None = None  # table of its frozen weights, if they are shared with other states

    @property
    def tables(self) -> list[str]:
        """The tables that contain the state."""
        return [*filter(None, (self.table, self.base))]

    @property
    def base_digest(self) -> str | None:
        """The digest of its frozen weights, if they are shared."""
        return self.base and self.base.strip('"')[-DIGEST_DIGITS:]


STATE_SCHEMA = "cerebro_state"
VALIDATION = "validation"
SPLITS = ("training", VALIDATION)
# The holdout rows as a prior version encodes them, for the comparison of the run with it.
COMPARED = "compared"
PACKED_TABLES = tuple(
    split + suffix for split in (*SPLITS, COMPARED) for suffix in ("", "_summary")
)
# Each TRUNCATE leaves an old version of the table's row in pg_class, which remains as long as any
# session, such as the caller's, holds an older snapshot. Looking up the table reads all of these
# versions. Therefore a table is replaced after this number of states.
MAX_STATES = 64
DIGEST_DIGITS = 32  # digits of a digest of frozen weights
HOPPING = 2  # tables of a configuration: a visit reads one and writes the other


def state_tables(run_id: int, mst_key: int, count: int = HOPPING) -> list[str]:
    """Return the quoted tables that take states of a configuration in turn, last written first."""
    return [state_table(run_id, mst_key, visit_no, count) for visit_no in range(count, 0, -1)]


def state_table(run_id: int, mst_key: int, visit_no: int, count: int = HOPPING) -> str:
    """Return the quoted table for the state after a visit of a configuration."""
    slot = visit_no % count
    generation = visit_no // (count * MAX_STATES) or ""
    letter = "ab"[slot] if count == HOPPING else f"a{slot}_"
    return quote_table(f"r{run_id}_c{mst_key}_{letter}{generation}")


def replaced_table(run_id: int, mst_key: int, visit_no: int, count: int = HOPPING) -> str | None:
    """Return the table that a visit replaces by a new one, or None."""
    previous = visit_no - count
    states = count * MAX_STATES
    if previous < 1 or previous // states == visit_no // states:
        return None
    return state_table(run_id, mst_key, previous, count)


def spare_table(run_id: int, mst_key: int, visit_no: int, attempt: int) -> str:
    """Return the quoted table for a state whose usual table cannot be emptied."""
    return quote_table(f"r{run_id}_c{mst_key}_{visit_no}_{attempt}")


def prefix(run_id: int, mst_key: int) -> str:
    """Return the prefix of the names of all tables with states of a configuration."""
    return f"r{run_id}_c{mst_key}_"


def start_table(run_id: int, mst_key: int) -> str:
    """Return the quoted table for the copied state that a configuration starts from."""
    return quote_table(f"r{run_id}_c{mst_key}_0")


def best_table(run_id: int, mst_key: int, epoch: int) -> str:
    """Return the quoted table for the retained state of a configuration after an epoch."""
    return quote_table(f"r{run_id}_c{mst_key}_b_{epoch}")


def base_table(run_id: int, digest: str) -> str:
    """Return the quoted table for frozen weights that states of a run share."""
    return quote_table(f"r{run_id}_z_{digest}")


def version_table(run_id: int, mst_key: int) -> str:
    """Return the quoted table for the state of a model version, trained by a configuration."""
    return quote_table(f"r{run_id}_m{mst_key}")


def packed_table_name(run_id: int, split: str) -> str:
    """Return the quoted name of a packed table that a run has created, one of PACKED_TABLES."""
    return quote_table(f"r{run_id}_{split}")


def features_name(run_id: int, number: int, split: str) -> str:
    """Return the name of a table for outputs of frozen layers; a run may have several."""
    return f"r{run_id}_f{number}_{split}"


def features_table(name: str) -> str:
    """Return the quoted table of this name for outputs of frozen layers."""
    return quote_table(name)


def model_states_table(name: str) -> str:
    """Return the quoted table for the states of a model table."""
    return quote_table(f"model_{name}")


def quote_table(name: str) -> str:
    """Return the quoted table of this name in the schema of states."""
    return f"{STATE_SCHEMA}.{quote_identifier(name)}"


def drop_values(run_id: int, names: Sequence[str]) -> tuple[object, ...]:
    """Return the values of the statement that drops state tables of a run."""
    tables = list(names)
    return (run_id, tables, tables, run_id, tables, run_id, tables)
