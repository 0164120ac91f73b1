"""Raw rows on their way through a trainer: collected into blocks here, because no sort and no copy of the table may.

While the trainer computes one block the table is read for the next one, so a block's predictions come back with
the call that completes the block after it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Optional

from cerebro_plpy.errors import CerebroError, NullNotAllowed
from cerebro_plpy.link import Link

KEY = "cerebro_prediction"
Ids = list[Optional[str]]
Predicted = tuple[str, str]  # ids and predictions of a block, as JSON


@dataclass
class Prediction:
    """A prediction under way: what is asked of the trainer, and the rows that it has not got yet."""

    link: Link
    request: dict[str, Any]
    block: int
    ids: Ids = field(default_factory=list)
    rows: list[bytes] = field(default_factory=list)
    computed: Ids | None = None

    def add(self, name: str | None, row: bytes | None) -> Predicted | None:
        """Take a row; when it completes a block, the predictions of the block before."""
        if row is None:
            raise NullNotAllowed(
                f"the input of the row whose id is {name} is NULL", hint="Leave such rows out: predict from a view."
            )
        self.ids.append(name)
        self.rows.append(row)
        return self.next() if len(self.ids) == self.block else None

    def next(self) -> Predicted | None:
        """Send the rows that are here to the trainer; the predictions of the block before."""
        found = None if self.computed is None else (json.dumps(self.computed), self._answer(self.computed))
        self.computed = None
        if self.ids:
            data = b"".join(self.rows)
            self.link.send({**self.request, "do": "rows", "rows": len(self.rows), "lengths": [len(data)]}, data)
            self.computed, self.ids, self.rows = self.ids, [], []
        return found

    def _answer(self, ids: Ids) -> str:
        try:
            return json.dumps(self.link.answer())
        except CerebroError as error:
            named = re.search(r"\brow (\d+)\b", error.message)
            if named and 1 <= int(named[1]) <= len(ids):
                error.detail = (
                    f"Rows are counted within a block: row {named[1]} is the one whose id is {ids[int(named[1]) - 1]}."
                )
            raise


def begin(session: dict[str, Any], link: Link, spec: str) -> None:
    """Begin to collect rows; `spec` is JSON with the number of rows in a block and what is asked of the trainer."""
    asked = json.loads(spec)
    session[KEY] = Prediction(link, asked["request"], asked["block"])
