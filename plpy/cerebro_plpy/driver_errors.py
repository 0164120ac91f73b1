"""Errors of the driver as ours, so that whoever waits for a session can tell what may be tried again."""

from __future__ import annotations

import re
from typing import Any

from cerebro_plpy.errors import CerebroError, ConnectionFailure, SegmentLost, by_sqlstate

SEGMENT_LOST = "58M01"  # Greenplum's: a segment does not answer, or not as the one that it was
_SEGMENT = re.compile(r"  \(seg\d+ [^()]*pid=\d+\)$")  # what Greenplum adds to a message that came from a segment


def translated(error: Any) -> CerebroError:
    """An error of psycopg2 as ours, with the code, detail and hint that the server gave."""
    if error.pgcode is None:
        return ConnectionFailure(f"a worker session was lost: {str(error).strip()}")
    diag = error.diag
    message = _SEGMENT.sub("", diag.message_primary or str(error)).removeprefix("plpy.Error: ")
    ours = by_sqlstate(error.pgcode)(message, hint=diag.message_hint, detail=diag.message_detail)
    ours.sqlstate = error.pgcode
    if error.pgcode.startswith("57P"):
        return ConnectionFailure(f"a worker session was ended by the server: {message}")
    if error.pgcode == SEGMENT_LOST:
        return SegmentLost(f"a segment was lost: {message.splitlines()[0]}")
    return ours
