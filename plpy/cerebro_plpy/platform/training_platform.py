"""A platform that trains.

`platform_protocol.Platform` describes the server in terms of the database; every part of a call may
use it, and it has no state. `TrainingPlatform` adds packed tables and trainers, and creates
`Visits`: the same platform for workers whose trainers have been chosen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from cerebro_plpy.database.platform_protocol import Platform, Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cerebro_plpy.platform.job import RawRows
    from cerebro_plpy.platform.visits import Visits
    from cerebro_plpy.trainer_client.settings import Settings, TrainerOptions


@runtime_checkable
class TrainingPlatform(Platform, Protocol):
    """A platform that trains on packed tables, with the laws of `Platform` and `Visits`."""

    def visits(
        self,
        trainers: Sequence[TrainerOptions],
        settings: Settings,
        workers: int,
        note: Callable[[str], None],
    ) -> Visits:
        """Return the visits of workers.

        Args:
            trainers: options of each worker's trainer, by its number.
            workers: number of workers that share the memory that the settings allow.
            note: sends a message to the caller.
        """

    def scoring_trainers(self, trainers: int, is_local: bool) -> int:
        """Return the number of trainers that divide the cores of a machine when they score.

        Args:
            trainers: the actual number.
            is_local: the trainer is that of the caller's own session.
        """

    def raw_rows(self, session: Reader, table: int, rows: RawRows) -> RawRows:
        """Return the rows of a table, with the segments where they are predicted.

        Args:
            table: oid of the table.
        """
