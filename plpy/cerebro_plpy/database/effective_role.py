"""As whom a function runs just now, asked of the server's own code: a statement would be too slow
for every row.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

ROLES = ("GetAuthenticatedUserId", "GetSessionUserId", "GetOuterUserId", "GetUserId")


def effective_role() -> int:
    """The oid of the role whose rights count here; within a SECURITY DEFINER function it is that of
    its owner.
    """
    return int(_function("GetUserId")())


def all_roles() -> str | None:
    """Database and roles of this session by their oids: who logged in, who that became, and whose
    rights count here.

    Where these are equal in two sessions of a server, one may have what the other had. None where a
    server has no such functions.
    """
    try:
        database = ctypes.c_uint32.in_dll(ctypes.CDLL(None), "MyDatabaseId").value
        return " ".join(map(str, (database, *(_function(name)() for name in ROLES))))
    except (AttributeError, ValueError):
        return None


@cache
def _function(name: str) -> Any:
    function = getattr(ctypes.CDLL(None), name)
    function.restype = ctypes.c_uint32
    return function
