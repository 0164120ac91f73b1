"""The owner of a session's trainer: only the role that started it may use it.

In a session of one role, functions of other roles may run: functions that are declared SECURITY
DEFINER, in views, in policies, or named by the call. They make requests as their owner. The rows,
states and predictions in a trainer of another role are therefore out of their reach, and no check
depends on how they were called.
"""

from __future__ import annotations

from cerebro_plpy.database import effective_role
from cerebro_plpy.database.platform_protocol import Globals
from cerebro_plpy.errors import InsufficientPrivilege

ROLE = "cerebro_trainer_role"


def claim(gd: Globals) -> None:
    """Make the current role the owner of the trainer that is being started."""
    gd[ROLE] = effective_role.effective_role()


def is_owner(gd: Globals) -> bool:
    """Return True if the current role owns the trainer of this session, or if there was none."""
    role = effective_role.effective_role()
    return bool(gd.get(ROLE, role) == role)


def check_owner(gd: Globals) -> None:
    """Raise if the trainer of this session belongs to another role."""
    if not is_owner(gd):
        raise InsufficientPrivilege(
            "the trainer of this session was started by another role, and serves that role alone",
            hint="Functions that are declared SECURITY DEFINER cannot use it. After SET ROLE, call"
            " cerebro_internal.trainer_start again.",
        )
