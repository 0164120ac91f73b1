"""One-time codes that open the pages, and the browser sessions that start with a code."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable

CODE_SECONDS = 15 * 60
"""Lifetime of an unused code."""


class Entrance:
    """The valid codes, and the sessions that were started with a code.

    A session belongs to the operating-system user whose browser sent the code. Browsers send
    cookies to every port of a host. If another user's server receives a session id, that user
    cannot use it here.

    Args:
        clock: returns the current time in seconds.
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

    def start_session(self, code: str, user: int | None) -> str | None:
        """Exchange a code for a new session id; None if the code is unknown, used or expired."""
        expiry = self._expiries.pop(_digest(code), None)
        if expiry is None or expiry <= self._clock():
            return None
        session = secrets.token_urlsafe(32)
        self._users[_digest(session)] = user
        return session

    def admits(self, session: str | None, user: int | None) -> bool:
        """Return True if the session exists and belongs to this user."""
        digest = _digest(session or "")
        return digest in self._users and self._users[digest] == user


def _digest(secret: str) -> bytes:
    """Return a key whose lookup takes the same time for good and bad guesses of the secret."""
    return hashlib.sha256(secret.encode()).digest()
