"""What the server tells of itself through the symbols of its own process, without a statement.

On Greenplum every statement of a function opens a subtransaction on all segments, and where one of these has been
restarted meanwhile, that can end the whole coordinator. So a call that waits must learn there what it has to know
without one: whether it is to end. A cancel mostly comes by itself, as a KeyboardInterrupt.
"""

from __future__ import annotations

import ctypes
from functools import cache


@cache
def greenplum() -> bool:
    """Whether this process is a backend of Greenplum, or of what descends from it."""
    return hasattr(ctypes.CDLL(None), "Gp_role")


def cancelled() -> bool:
    """Whether the statement of this backend of Greenplum was cancelled, or ran out of time."""
    return _set("QueryCancelPending")


def ending() -> bool:
    """Whether this backend of Greenplum was told to end."""
    return _set("ProcDiePending")


def _set(flag: str) -> bool:
    return bool(ctypes.c_int.in_dll(ctypes.CDLL(None), flag))
