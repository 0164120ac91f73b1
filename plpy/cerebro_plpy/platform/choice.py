"""Which platform this process serves: asked where a call enters, and nowhere else."""

from __future__ import annotations

from functools import cache

from cerebro_plpy.platform.greenplum import Greenplum
from cerebro_plpy.platform.postgres import Postgres
from cerebro_plpy.platform.protocol import TrainingPlatform

ADAPTERS: tuple[TrainingPlatform, ...] = (Greenplum(), Postgres())  # what descends from PostgreSQL comes before it


@cache
def here() -> TrainingPlatform:
    """The adapter of this process."""
    return next(adapter for adapter in ADAPTERS if adapter.here())
