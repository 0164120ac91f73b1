"""Prediction of rows in blocks, which are collected here: a sort or a copy of the table cannot.

While the trainer computes one block, rows of the next one are read. Therefore the predictions of a
block are returned by the call that completes the next block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Optional

from cerebro_plpy.database.platform_protocol import Globals
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.errors import CerebroError, InvalidParameter, NullNotAllowed, ObjectNotReady
from cerebro_plpy.records import dataclass, field
from cerebro_plpy.trainer_client import argument_checks, ownership, request_schema
from cerebro_plpy.trainer_client.connection import TrainerConnection

KEY = "cerebro_prediction"
MAX_ROWS = 10_000  # of a block
MAX_BYTES = 64 << 20  # of a block in a backend's memory, whatever its number of rows
Ids = list[Optional[str]]
PredictedBlock = tuple[str, str]  # ids and predictions of a block, as JSON


@dataclass
class Prediction:
    """A prediction in progress, with the rows that the trainer has not received yet."""

    link: TrainerConnection
    request: JsonObject  # fields of each request to the trainer
    block: int  # rows of a block
    ids: Ids = field(default_factory=list)
    rows: list[list[bytes]] = field(default_factory=list)
    size: int = 0  # bytes of these rows
    pending_ids: Ids | None = None  # ids of the block that the trainer computes

    def add(self, name: str | None, row: list[Any] | None) -> PredictedBlock | None:
        """Add the inputs of a row; if it completes a block, return the block before."""
        if row is None or None in row:
            raise NullNotAllowed(
                f"the input of the row whose id is {name} is NULL",
                hint="Leave such rows out: predict from a view.",
            )
        self.ids.append(name)
        self.rows.append(row)
        self.size += sum(map(len, row))
        if len(self.ids) < self.block and self.size < MAX_BYTES:
            return None
        return self.flush()

    def flush(self) -> PredictedBlock | None:
        """Send the collected rows to the trainer; return the predictions of the block before."""
        predicted = None
        if self.pending_ids is not None:
            predicted = (json.dumps(self.pending_ids), self._receive(self.pending_ids))
        self.pending_ids = None
        if self.ids:
            data = [b"".join(column) for column in _transpose(self.rows)]
            lengths = [len(part) for part in data]
            header = request_schema.build_request(
                "rows", self.request, rows=len(self.rows), lengths=lengths
            )
            self.link.post(header, *data)
            self.pending_ids = self.ids
            self.ids = []
            self.rows = []
            self.size = 0
        return predicted

    def _receive(self, ids: Ids) -> str:
        try:
            return json.dumps(self.link.receive_result())
        except CerebroError as error:
            match = re.search(r"\brow (\d+)\b", error.message)
            row = int(match[1]) if match else 0
            if 1 <= row <= len(ids):
                error.detail = (
                    f"Rows are counted within a block: row {row} is the one whose id is "
                    f"{ids[row - 1]}."
                )
            raise


def _transpose(rows: list[list[bytes]]) -> Iterator[tuple[bytes, ...]]:
    """Yield each input of all rows.

    SQL's arrays may differ in length, or have several dimensions.
    """
    has_equal_lengths = len({len(row) for row in rows}) <= 1
    if not has_equal_lengths or any(type(part) is not bytes for row in rows for part in row):
        raise InvalidParameter(
            "the inputs of all rows must be arrays of one dimension and length",
            hint=argument_checks.HINT,
        )
    return zip(*rows)


def begin_prediction(gd: Globals, link: TrainerConnection, spec: str | None) -> None:
    """Begin to collect rows.

    Args:
        spec: JSON with the number of rows in a block, and the request to the trainer.
    """
    fields = argument_checks.parse_object("spec", spec)
    request = argument_checks.read_field(fields, "request", dict)
    block = argument_checks.check_integer("block", fields.get("block"), 1)
    if block > MAX_ROWS:
        raise InvalidParameter(
            f"block is {block}; expected at most {MAX_ROWS} rows", hint=argument_checks.HINT
        )
    gd[KEY] = Prediction(link, request, block)


def current_prediction(gd: Globals) -> Prediction:
    """Return the prediction in progress."""
    ownership.check_owner(gd)
    prediction: Prediction | None = gd.get(KEY)
    if prediction is None:
        raise ObjectNotReady("no prediction was begun in this session", hint=argument_checks.HINT)
    return prediction
