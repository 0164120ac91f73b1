"""Functions called by hand, with arguments that no call of ours gives: what a backend holds is
bounded.
"""

from __future__ import annotations

from typing import Any

import pytest

from cerebro_plpy.database import effective_role
from cerebro_plpy.database.sql import strict_json
from cerebro_plpy.errors import InvalidParameter, InvalidText
from cerebro_plpy.trainer_client import (
    argument_checks,
    ownership,
    prediction_rows,
    segment_functions,
    settings,
)


class Sink:
    """Takes what would go to a trainer."""

    def __init__(self) -> None:
        self.sent: list[tuple[dict[str, Any], int]] = []

    def greet(self) -> None: ...

    def send(self, header: dict[str, Any], *payload: bytes) -> None:
        self.sent.append((header, sum(map(len, payload))))

    post = send

    def receive_result(self) -> dict[str, Any]:
        return {}


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a session keeps whose trainer serves the role that asks."""
    monkeypatch.setattr(effective_role, "effective_role", lambda: 10)
    return {ownership.ROLE: 10}


def test_chunks_without_bytes_do_not_pile_up(session: dict[str, Any]) -> None:
    sink = Sink()
    session[segment_functions.KEY] = sink
    most = 0
    for part in range(1, 10 * segment_functions.MAX_COLLECTED_CHUNKS):
        segment_functions.add_state(session, part, b"")
        most = max(most, len(session.get(segment_functions.CHUNKS, ())))
    assert most <= segment_functions.MAX_COLLECTED_CHUNKS and len(sink.sent) >= 9


def test_what_is_sent_with_a_sealed_chunk_is_sealed(session: dict[str, Any]) -> None:
    sink = Sink()
    session[segment_functions.KEY] = sink
    segment_functions.add_state(session, 1, b"a")
    segment_functions.add_state(session, 2, b"b", sealed=True)
    segment_functions.add_state(session, 3, b"c")
    segment_functions.get_trainer(session)
    segment_functions.add_state(session, 1, b"d")
    segment_functions.get_trainer(session)
    assert [(header["sealed"], size) for header, size in sink.sent] == [(True, 3), (False, 1)]


@pytest.mark.parametrize("block", [0, -1, 10**12, 1.5, "10", None, True])
def test_the_size_of_a_block_is_limited(block: object) -> None:
    spec = strict_json.dumps({"request": {}, "block": block})
    with pytest.raises(InvalidParameter):
        prediction_rows.begin_prediction({}, Sink(), spec)  # type: ignore[arg-type]


def test_a_block_of_long_rows_is_sent_early(session: dict[str, Any]) -> None:
    sink = Sink()
    prediction_rows.begin_prediction(session, sink, '{"request": {}, "block": 10000}')  # type: ignore[arg-type]
    row = bytes(prediction_rows.MAX_BYTES // 4)
    for number in range(8):
        prediction_rows.current_prediction(session).add(str(number), [row])
    assert [size for _, size in sink.sent] == [prediction_rows.MAX_BYTES] * 2


@pytest.mark.parametrize("rows", [[[b"x"], [b"x", b"y"]], [[[b"x"]]], [[b"x"], ["x"]]])
def test_rows_whose_inputs_are_no_plain_array_are_refused(
    session: dict[str, Any], rows: list[Any]
) -> None:
    prediction_rows.begin_prediction(session, Sink(), '{"request": {}, "block": 10}')  # type: ignore[arg-type]
    for row in rows:
        prediction_rows.current_prediction(session).add("1", row)
    with pytest.raises(InvalidParameter):
        prediction_rows.current_prediction(session).flush()


@pytest.mark.parametrize("text", ["[]", "1", "null", "{", "NaN", '{"a": ', "[" * 100_000])
def test_what_is_no_json_object_is_refused(text: str) -> None:
    with pytest.raises((InvalidParameter, InvalidText)):
        argument_checks.parse_object("spec", text)


@pytest.mark.parametrize(
    "asked",
    [{"threads": 0}, {"threads": True}, {"threads": 1.0}, {"threads": 10**9}, {"trainers": "1"},
    {"gpu": -2},
     {"gpu": "0"}, {"framework": "os"}, {"framework": ["none"]}, {"python": "/bin/sh"},
     {"spec": {}}],
)  # fmt: skip
def test_a_trainer_is_asked_for_in_known_words(asked: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        settings.parse_options(asked)
