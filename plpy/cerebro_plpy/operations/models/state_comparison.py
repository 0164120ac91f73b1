"""Comparison of the states of a version with those of a repeated run, bit by bit."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cerebro_plpy.database.queries import sql
from cerebro_plpy.operations.train.model_lineage import Lineage
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.platform.state_tables import StoredState, version_table
from cerebro_plpy.records import dataclass
from cerebro_plpy.tables.chunked_work import run_to_end
from cerebro_plpy.tables.outputs.weights import read_weights

EQUAL = "the same bits came out"


class StateResult(NamedTuple):
    """The result of the comparison of a state."""

    name: str  # "state", "state of <group>" or "state of member <position>"
    ok: bool
    detail: str


@dataclass(frozen=True)
class StateComparison:
    """The states of a version, and the last states of its repeated configurations by mst_key."""

    context: CallContext
    lineage: Lineage
    repeated: Mapping[int, StoredState]

    def compare(self) -> Iterator[StateResult]:
        """Compare the states of models of groups, and then those of the model of all rows."""
        version = self.lineage.version
        for group, config in sorted(self.lineage.group_configs.items()):
            yield self._compare_state(f"state of {group}", version.run_id, config["mst_key"])
        if len(version.members) < len(self.lineage.configs):
            yield self._compare_joined()
            return
        for number, member in enumerate(version.members, 1):
            name = "state" if len(version.members) == 1 else f"state of member {number}"
            yield self._compare_state(name, member.run_id, member.mst_key)

    def _compare_state(self, name: str, run_id: int, mst_key: int) -> StateResult:
        """Compare a stored state with the repeated one chunk by chunk, in the database."""
        platform = self.context.platform
        query = sql(
            "provenance.differing",
            one=platform.state_rows_sql(version_table(run_id, mst_key), None),
            other=platform.state_rows_sql(*self.repeated[mst_key]),
        )
        ((differing, chunks),) = self.context.control.run(query)
        return _make_result(name, differing, chunks)

    def _compare_joined(self) -> StateResult:
        """Compare the weights of an ensemble of an older release, which lie one after another."""
        table = self.lineage.version.members[0].state_table
        joined_weights = self._read_weights(StoredState(table, None))
        position = 0
        differing = 0
        for mst_key in self.lineage.configs:
            weights = self._read_weights(self.repeated[mst_key])
            differing += joined_weights[position : position + len(weights)] != weights
            position += len(weights)
        if position != len(joined_weights):
            differing = max(differing, 1)
        return _make_result("state", differing, len(self.lineage.configs))

    def _read_weights(self, state: StoredState) -> bytes:
        """Return the weights of a state, one after another."""
        rows = self.context.control.run(self.context.platform.state_rows_sql(*state))
        chunks = [bytes(chunk) for _, chunk in sorted(rows)]
        return run_to_end(read_weights(chunks, sys.maxsize)).flat or b""


def _make_result(name: str, differing: int, parts: int) -> StateResult:
    if differing:
        return StateResult(name, False, f"parts with other bits: {differing} of {parts}")
    return StateResult(name, True, EQUAL)
