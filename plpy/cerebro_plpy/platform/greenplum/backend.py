"""The state of a Greenplum process, read from the server's variables without a statement."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

EXECUTE = 3  # GP_ROLE_EXECUTE, the role of a process that works for another one


class _DispatcherState(ctypes.Structure):
    """The first fields of the server's CdbDispatcherState: work of segments for this process."""

    _fields_ = (
        ("gangs", ctypes.c_void_p),
        ("results", ctypes.c_void_p),
        ("params", ctypes.c_void_p),
        ("sizes", ctypes.c_int * 2),
        ("destroys", ctypes.c_bool),
        ("extended", ctypes.c_bool),
    )


class _DispatcherHandle(ctypes.Structure):
    """An element of the server's list of dispatcher states."""


_DispatcherHandle._fields_ = (
    ("state", ctypes.POINTER(_DispatcherState)),
    ("owner", ctypes.c_void_p),
    ("next", ctypes.POINTER(_DispatcherHandle)),
)


def is_flag_set(name: str) -> bool:
    """Return True if the server has set a flag in this process."""
    return bool(_read_int(name))


def serves_another_process() -> bool:
    """Return True if this process works for a session's process, on a segment or coordinator."""
    return _read_int("Gp_role") == EXECUTE


def has_busy_segments() -> bool:
    """Return True if segments work for a statement of this process other than a cursor."""
    handle = ctypes.POINTER(_DispatcherHandle).in_dll(ctypes.CDLL(None), "open_dispatcher_handles")
    while handle:
        if handle.contents.state and not handle.contents.state.contents.extended:
            return True
        handle = handle.contents.next
    return False


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold off the server's interrupts; after an error of its own the server handles them again."""
    holdoff = ctypes.c_uint.in_dll(ctypes.CDLL(None), "InterruptHoldoffCount")
    count = holdoff.value
    holdoff.value = count + 1
    try:
        yield
    finally:
        holdoff.value = count


def _read_int(name: str) -> int:
    return ctypes.c_int.in_dll(ctypes.CDLL(None), name).value
