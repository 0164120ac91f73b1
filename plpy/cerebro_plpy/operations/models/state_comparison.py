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
from cerebro_plpy.tables.models.model_versions import Member
from cerebro_plpy.tables.outputs.weights import read_weights

EQUAL = "the same bits came out"


class StateResult(NamedTuple):
    """The result of the comparison of a state, or of a calibration."""

    name: str  # "state", "state of <group>" or "state of member <position>", or of a calibration
    ok: bool
    detail: str


@dataclass(frozen=True)
class StateComparison:
    """The comparison of the states of a version with the last ones of repeated configurations."""

    context: CallContext
    lineage: Lineage

    def compare(self, repeated: Mapping[int, StoredState]) -> Iterator[StateResult]:
        """Compare the states of models of groups, and then those of the model of all rows.

        Args:
            repeated: states by mst_key, as in `compare_refit`.
        """
        version = self.lineage.version
        for group, config in sorted(self.lineage.group_configs.items()):
            mst_key = config["mst_key"]
            state = repeated[mst_key]
            yield self._compare_state(f"state of {group}", version.run_id, mst_key, state)
        if len(version.members) < len(self.lineage.configs):
            yield self._compare_joined(repeated)
            return
        for name, member in self._name_members():
            state = repeated[member.mst_key]
            yield self._compare_state(name, member.run_id, member.mst_key, state)

    def compare_refit(self, repeated: Mapping[int, StoredState]) -> Iterator[StateResult]:
        """Compare the states of members that were trained again on all rows."""
        for name, member in self._name_members():
            if member.refit_run_id is not None:
                yield self._compare_state(
                    f"{name} of all rows",
                    member.refit_run_id,
                    member.mst_key,
                    repeated[member.mst_key],
                )

    def _name_members(self) -> Iterator[tuple[str, Member]]:
        members = self.lineage.version.members
        for number, member in enumerate(members, 1):
            yield "state" if len(members) == 1 else f"state of member {number}", member

    def _compare_state(
        self, name: str, run_id: int, mst_key: int, repeated: StoredState
    ) -> StateResult:
        """Compare a stored state with the repeated one chunk by chunk, in the database."""
        platform = self.context.platform
        query = sql(
            "provenance.differing",
            one=platform.state_rows_sql(version_table(run_id, mst_key), None),
            other=platform.state_rows_sql(*repeated),
        )
        ((differing, chunks),) = self.context.control.run(query)
        return _make_result(name, differing, chunks)

    def _compare_joined(self, repeated: Mapping[int, StoredState]) -> StateResult:
        """Compare the weights of an ensemble of an older release, which lie one after another."""
        table = self.lineage.version.members[0].state_table
        joined_weights = self._read_weights(StoredState(table, None))
        position = 0
        differing = 0
        for mst_key in self.lineage.configs:
            weights = self._read_weights(repeated[mst_key])
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
