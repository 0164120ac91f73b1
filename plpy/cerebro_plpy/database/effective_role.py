"""The roles that the current function runs as, read from the server's own code.

A statement would be too slow, because the role is needed for every row.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

ROLE_FUNCTIONS = ("GetAuthenticatedUserId", "GetSessionUserId", "GetOuterUserId", "GetUserId")


def effective_role() -> int:
    """Return the oid of the current user; within a SECURITY DEFINER function that is its owner."""
    return int(_load_function("GetUserId")())


def session_roles() -> str | None:
    """Return the oids of the database and of this session's roles, separated by spaces.

    The roles are the authenticated user, the session user, the outer user and the current user. If
    all oids are equal in two sessions of a server, one may have what the other had. None if the
    server does not export these functions.
    """
    try:
        database = ctypes.c_uint32.in_dll(ctypes.CDLL(None), "MyDatabaseId").value
        roles = [_load_function(name)() for name in ROLE_FUNCTIONS]
    except (AttributeError, ValueError):
        return None
    return " ".join(map(str, (database, *roles)))


@cache
def _load_function(name: str) -> Any:
    function = getattr(ctypes.CDLL(None), name)
    function.restype = ctypes.c_uint32
    return function
