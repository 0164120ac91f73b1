"""Raw rows on their way through a trainer: collected into blocks here, because no sort and no copy
of the table may.

While the trainer computes one block the table is read for the next one, so a block's predictions
come back with the call that completes the block after it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Optional

from cerebro_plpy.errors import CerebroError, InvalidParameter, NullNotAllowed, ObjectNotReady
from cerebro_plpy.records import dataclass, field
from cerebro_plpy.trainer_client import argument_checks, ownership, request_schema
from cerebro_plpy.trainer_client.connection import Link

KEY = "cerebro_prediction"
# What a backend holds of a table at a time, whatever the size of a block.
MOST_ROWS, MOST_BYTES = 10_000, 64 << 20
Ids = list[Optional[str]]
Predicted = tuple[str, str]  # ids and predictions of a block, as JSON


@dataclass
class Prediction:
    """A prediction under way: what is asked of the trainer, and the rows that it has not got
    yet.
    """

    link: Link
    request: dict[str, Any]
    block: int
    ids: Ids = field(default_factory=list)
    rows: list[list[bytes]] = field(default_factory=list)
    size: int = 0
    computed: Ids | None = None

    def add(self, name: str | None, row: list[Any] | None) -> Predicted | None:
        """Take the inputs of a row; when it completes a block, the predictions of the block
        before.
        """
        if row is None or None in row:
            raise NullNotAllowed(
                f"the input of the row whose id is {name} is NULL",
                hint="Leave such rows out: predict from a view.",
            )
        self.ids.append(name)
        self.rows.append(row)
        self.size += sum(map(len, row))
        return self.next() if len(self.ids) >= self.block or self.size >= MOST_BYTES else None

    def next(self) -> Predicted | None:
        """Send the rows that are here to the trainer; the predictions of the block before."""
        found = (
            None
            if self.computed is None
            else (json.dumps(self.computed), self._answer(self.computed))
        )
        self.computed = None
        if self.ids:
            data = [b"".join(column) for column in _columns(self.rows)]
            lengths = [len(part) for part in data]
            self.link.post(
                request_schema.request("rows", self.request, rows=len(self.rows), lengths=lengths),
                *data,
            )
            self.computed, self.ids, self.rows, self.size = self.ids, [], [], 0
        return found

    def _answer(self, ids: Ids) -> str:
        try:
            return json.dumps(self.link.answer())
        except CerebroError as error:
            named = re.search(r"\brow (\d+)\b", error.message)
            if named and 1 <= int(named[1]) <= len(ids):
                error.detail = (
                    f"Rows are counted within a block: row {named[1]} is the one whose id is "
                    f"{ids[int(named[1]) - 1]}."
                )
            raise


def _columns(rows: list[list[bytes]]) -> Iterator[tuple[bytes, ...]]:
    """The inputs of all rows, one after another; SQL's arrays may have other lengths, or several
    dimensions.
    """
    if len({len(row) for row in rows}) > 1 or any(
        type(part) is not bytes for row in rows for part in row
    ):
        raise InvalidParameter(
            "the inputs of all rows must be arrays of one dimension and length",
            hint=argument_checks.HINT,
        )
    return zip(*rows)


def begin(gd: dict[str, Any], link: Link, spec: str | None) -> None:
    """Begin to collect rows; `spec` is JSON with the number of rows in a block and what is asked of
    the trainer.
    """
    asked = argument_checks.record("spec", spec)
    request = argument_checks.kind("request", asked.get("request"), dict)
    block = argument_checks.whole("block", asked.get("block"), 1)
    if block > MOST_ROWS:
        raise InvalidParameter(
            f"block is {block}; expected at most {MOST_ROWS} rows", hint=argument_checks.HINT
        )
    gd[KEY] = Prediction(link, request, block)


def current_prediction(gd: dict[str, Any]) -> Prediction:
    """The prediction that is under way."""
    ownership.check(gd)
    prediction: Prediction | None = gd.get(KEY)
    if prediction is None:
        raise ObjectNotReady("no prediction was begun in this session", hint=argument_checks.HINT)
    return prediction
