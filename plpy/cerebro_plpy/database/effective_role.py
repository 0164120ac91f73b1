"""As whom a function runs just now, asked of the server's own code: a statement would be too slow for every row."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any


def effective_role() -> int:
    """The oid of the role whose rights count here; within a SECURITY DEFINER function it is that of its owner."""
    return int(_get_user_id()())


@cache
def _get_user_id() -> Any:
    function = ctypes.CDLL(None).GetUserId
    function.restype = ctypes.c_uint32
    return function
