"""Records as JSON: whatever is in them, another program reads one document."""

from __future__ import annotations

import json
import math
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from trials import trials

from cerebro_db.display.documents import format_document

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(
    LEAVES, lambda part: st.lists(part) | st.dictionaries(st.text(), part), max_leaves=8
)


def finite(value: Any) -> Any:
    """The value with null for each number that JSON has no word for."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    return [finite(part) for part in value] if isinstance(value, list) else value


@trials(50)
@given(st.lists(st.dictionaries(st.text(), VALUES)))
def test_what_is_read_is_what_was_written_and_nothing_in_it_commands_a_terminal(
    records: list[dict[str, Any]],
) -> None:
    written = format_document(records)
    assert json.loads(written, parse_constant=lambda name: name) == finite(records)
    assert written.isascii()
    assert written.isprintable()


@given(st.datetimes(), st.timedeltas())
def test_times_come_back(moment: datetime, length: timedelta) -> None:
    (found,) = json.loads(format_document([{"moment": moment, "length": length}]))
    assert datetime.fromisoformat(found["moment"]) == moment
    assert found["length"] == length.total_seconds()
