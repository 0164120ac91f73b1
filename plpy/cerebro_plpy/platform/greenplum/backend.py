"""What a process of Greenplum is about, by what the server keeps in it: asked without a
statement.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

EXECUTE = 3  # what the server calls the role of a process that works for another one


class _DispatcherState(ctypes.Structure):
    """Work that segments do for this process, as far as it is of interest."""

    _fields_ = (
        ("gangs", ctypes.c_void_p),
        ("results", ctypes.c_void_p),
        ("params", ctypes.c_void_p),
        ("sizes", ctypes.c_int * 2),
        ("destroys", ctypes.c_bool),
        ("extended", ctypes.c_bool),
    )


class _DispatcherHandle(ctypes.Structure):
    """One of a list of them."""


_DispatcherHandle._fields_ = (
    ("state", ctypes.POINTER(_DispatcherState)),
    ("owner", ctypes.c_void_p),
    ("next", ctypes.POINTER(_DispatcherHandle)),
)


def noted(flag: str) -> bool:
    """Whether the server has set a flag in this process."""
    return bool(_number(flag))


def serves_another() -> bool:
    """Whether this process works for that of a session: on a segment, or beside it on the
    coordinator.
    """
    return _number("Gp_role") == EXECUTE


def has_segments_at_work() -> bool:
    """Whether segments are at work for a statement of this process that is no cursor's."""
    handle = ctypes.POINTER(_DispatcherHandle).in_dll(ctypes.CDLL(None), "open_dispatcher_handles")
    while handle:
        if handle.contents.state and not handle.contents.state.contents.extended:
            return True
        handle = handle.contents.next
    return False


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Within, the server does not look whether it is to end a statement; after an error of its own
    it looks again.
    """
    held = ctypes.c_uint.in_dll(ctypes.CDLL(None), "InterruptHoldoffCount")
    before = held.value
    held.value = before + 1
    try:
        yield
    finally:
        held.value = before


def _number(name: str) -> int:
    return ctypes.c_int.in_dll(ctypes.CDLL(None), name).value
