"""Whom the trainer of a session serves: the role that started it, and nobody else.

In a session of one role functions of others run: those that are declared SECURITY DEFINER, in
views, in policies, or because the call names them. Whatever they ask for, they ask as their owner.
So what a trainer holds of the role that started it, its rows, states and predictions, is out of
their reach, and no check has to know how they came to run.
"""

from __future__ import annotations

from typing import Any

from cerebro_plpy.database import effective_role
from cerebro_plpy.errors import InsufficientPrivilege

ROLE = "cerebro_trainer_role"


def claim(gd: dict[str, Any]) -> None:
    """The trainer that is started now serves the role that starts it."""
    gd[ROLE] = effective_role.effective_role()


def owned(gd: dict[str, Any]) -> bool:
    """Whether the trainer of this session, if there was one, serves the role that asks."""
    role = effective_role.effective_role()
    return bool(gd.get(ROLE, role) == role)


def check(gd: dict[str, Any]) -> None:
    """Raise where the trainer of this session serves another role than the one that asks."""
    if not owned(gd):
        raise InsufficientPrivilege(
            "the trainer of this session was started by another role, and serves that role alone",
            hint="Functions that are declared SECURITY DEFINER cannot use it. After SET ROLE, call"
            " cerebro.trainer_start again.",
        )
