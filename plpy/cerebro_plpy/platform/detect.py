"""Detection of this process's platform; called only where a call enters.

Adapters of other platforms are not imported.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cerebro_plpy.platform.training_platform import TrainingPlatform


@cache
def detect_platform() -> TrainingPlatform:
    """Return the adapter of this process, which is recognized by symbols of its server."""
    if hasattr(ctypes.CDLL(None), "Gp_role"):
        from cerebro_plpy.platform.greenplum.adapter import Greenplum

        return Greenplum()
    from cerebro_plpy.platform.postgres.adapter import Postgres

    return Postgres()
