"""A process with the trainer's interpreter that suggests configurations: Optuna and numpy stay out of the backend."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from cerebro_plpy.configs.points import Point, describe
from cerebro_plpy.configs.space import Space
from cerebro_plpy.configs.stages import Trials
from cerebro_plpy.database.caller import Database
from cerebro_plpy.trainer import settings, wire
from cerebro_plpy.trainer.link import Link
from cerebro_plpy.trainer.settings import Settings, TrainerOptions


class Suggester(AbstractContextManager["Suggester"]):
    """Suggests points of a space; the process is started when it is first needed, and ends with the block."""

    def __init__(self, db: Database, chosen: Settings, space: Space, algorithm: str, seed: int) -> None:
        self._spec = settings.trainer_spec(chosen, TrainerOptions(framework="none"))
        self._check = db.check_interrupts
        self._request = {"space": describe(space), "algorithm": algorithm, "seed": seed}
        self._link: Link | None = None

    def suggest(self, trials: Trials, count: int) -> Sequence[Point]:
        """At most so many points that none of the trials had."""
        if self._link is None or not self._link.alive():
            self._link = Link(self._spec, self._check)
        request = wire.request("suggest", self._request, trials=list(trials), count=count)
        points: list[Point] = self._link.ask(request)["points"]
        return points

    def __exit__(self, *error: Any) -> None:
        if self._link is not None:
            self._link.close()
