"""The states of a repeated run are compared with those of a version."""

from __future__ import annotations

import json
import struct
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.operations.models.state_comparison import EQUAL, StateComparison
from cerebro_plpy.platform.state_tables import StoredState, version_table

JOINED = version_table(1, 1)
WEIGHTS = st.lists(st.binary(min_size=4, max_size=4), min_size=1, max_size=3)


def make_state(weights: list[bytes], optimizer: bytes) -> bytes:
    """Return a state: an optimizer variable, and the weights in the opposite order."""
    header: dict[str, Any] = {}
    data = b""
    names = [f"weight {number}" for number in range(len(weights))]
    for name, content in [("rate", optimizer), *reversed([*zip(names, weights, strict=True)])]:
        offsets = [len(data), len(data) + len(content)]
        header[name] = {"dtype": "F32", "shape": [1], "data_offsets": offsets}
        data += content
    header["__metadata__"] = {"weights": json.dumps(names)}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def compare(joined: list[bytes], repeated: list[list[bytes]]) -> tuple[bool, str]:
    """Compare the state of an ensemble of an older release with those of its configurations."""
    tables = {JOINED: make_state(joined, b"join")}
    states = {}
    for key, weights in enumerate(repeated, 1):
        tables[f"state {key}"] = make_state(weights, b"opt" + bytes([key]))
        states[key] = StoredState(f"state {key}", 0)
    member = SimpleNamespace(state_table=JOINED, run_id=1, mst_key=1)
    lineage = SimpleNamespace(
        version=SimpleNamespace(run_id=1, members=(member,)),
        configs=dict.fromkeys(states),
        group_configs={},
    )

    def run(table: str, values: object = ()) -> list[tuple[int, bytes]]:
        data = tables[table]
        return [(2, data[9:]), (1, data[:9])]

    context = SimpleNamespace(
        control=SimpleNamespace(run=run),
        platform=SimpleNamespace(state_rows_sql=lambda table, *_: table),
    )
    comparison: Any = StateComparison(context, lineage)  # type: ignore[arg-type]
    ((name, ok, detail),) = comparison.compare(states)
    assert name == "state"
    return ok, detail


@given(st.lists(WEIGHTS, min_size=2, max_size=3), st.data())
def test_joined_weights_lie_one_after_another(
    repeated: list[list[bytes]], data: st.DataObject
) -> None:
    """A weight with another bit, or one that is missing or too many, is found."""
    joined = [weight for weights in repeated for weight in weights]
    assert compare(joined, repeated) == (True, EQUAL)
    place = data.draw(st.integers(0, len(joined) - 1))
    changed = [*joined]
    changed[place] = bytes([changed[place][0] ^ 1]) + changed[place][1:]
    count = len(repeated)
    assert compare(changed, repeated) == (False, f"parts with other bits: 1 of {count}")
    for other in (joined[:-1], [*joined, b"more"]):
        assert compare(other, repeated) == (False, f"parts with other bits: 1 of {count}")
