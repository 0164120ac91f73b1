"""One-time codes that open the pages, and the browser sessions that begin with one."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable

CODE_SECONDS = 15 * 60
"""Lifetime of a code that nobody has used."""


class Entrance:
    """The codes that are still valid, and the sessions that have begun.

    A session belongs to the operating-system user whose browser brought the code. Browsers send
    cookies to every port of a host; a session id that reached another user's server is refused when
    that user sends it.

    Args:
        clock: current time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._expiries: dict[bytes, float] = {}  # by the digest of a code
        self._users: dict[bytes, int | None] = {}  # by the digest of a session id

    def issue_code(self) -> str:
        """Return a new code, which is valid once and for CODE_SECONDS."""
        code = secrets.token_urlsafe(24)
        self._expiries[_digest(code)] = self._clock() + CODE_SECONDS
        return code

    def begin_session(self, code: str, user: int | None) -> str | None:
        """Exchange a code for a new session id; None if the code is unknown, used or expired."""
        expiry = self._expiries.pop(_digest(code), None)
        if expiry is None or expiry <= self._clock():
            return None
        session = secrets.token_urlsafe(32)
        self._users[_digest(session)] = user
        return session

    def admits(self, session: str | None, user: int | None) -> bool:
        """Return True if the session has begun and belongs to this user."""
        digest = _digest(session or "")
        return digest in self._users and self._users[digest] == user


def _digest(secret: str) -> bytes:
    """Return a key for a lookup whose duration does not depend on how much of a guess is right."""
    return hashlib.sha256(secret.encode()).digest()
