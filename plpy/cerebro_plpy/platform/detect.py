"""Which platform this process serves: asked where a call enters, and nowhere else. Of the others it
imports nothing.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cerebro_plpy.platform.visit_protocol import TrainingPlatform


@cache
def here() -> TrainingPlatform:
    """The adapter of this process: what descends from PostgreSQL is told by what its servers alone
    have.
    """
    if hasattr(ctypes.CDLL(None), "Gp_role"):
        from cerebro_plpy.platform.greenplum.adapter import Greenplum

        return Greenplum()
    from cerebro_plpy.platform.postgres.adapter import Postgres

    return Postgres()
