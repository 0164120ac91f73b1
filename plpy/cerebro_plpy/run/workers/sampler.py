"""What suggests configurations to a search that learns.

It works in a process with the trainer's interpreter: Optuna and numpy stay out of the backend.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from cerebro_plpy.configs.prior_trials import PriorTrial, compute_standings
from cerebro_plpy.configs.search_space.sampler_space import Point, PointSpace
from cerebro_plpy.scheduling.search.promotion_rules import Trial
from cerebro_plpy.trainer_client import request_schema, settings
from cerebro_plpy.trainer_client.connection import TrainerConnection
from cerebro_plpy.trainer_client.settings import Settings, TrainerOptions

Suggest = Callable[[Sequence[Mapping[str, Any]], int], Sequence[Point]]


def suggest_nothing(trials: Sequence[Mapping[str, Any]], count: int) -> Sequence[Point]:
    """No point, where nothing is drawn."""
    return ()


class Sampler(AbstractContextManager["Sampler"]):
    """Suggests points of a space; the process is started when it is first needed, and ends with the
    block.
    """

    def __init__(
        self,
        chosen: Settings,
        check: Callable[[], None],
        space: PointSpace,
        algorithm: str,
        seed: int,
    ) -> None:
        self._spec = settings.trainer_spec(chosen, TrainerOptions(framework="none"))
        self._check = check
        self._request = {"space": space.describe(), "algorithm": algorithm, "seed": seed}
        self._link: TrainerConnection | None = None

    def suggest(self, trials: Sequence[Mapping[str, Any]], count: int) -> Sequence[Point]:
        """At most so many points that none of the trials had; see `told` and `beside`."""
        if self._link is None or not self._link.is_alive():
            self._link = TrainerConnection(self._spec, self._check)
        request = request_schema.build_request(
            "suggest", self._request, trials=list(trials), count=count
        )
        points: list[Point] = self._link.call(request)["points"]
        return points

    def __exit__(self, *error: Any) -> None:
        if self._link is not None:
            self._link.close()


def describe_trial(point: Point, trial: Trial, epochs: int) -> Mapping[str, Any]:
    """What a sampler is told of a trial of a search over so many epochs."""
    if trial.failed:
        state = "failed"
    elif trial.is_running or not trial.values:
        state = "running"
    else:
        state = "completed" if epochs in trial.values else "stopped"
    return {"point": point, "values": sorted(trial.values.items()), "state": state}


def add_prior_trials(
    earlier: Sequence[PriorTrial], own: Sequence[Mapping[str, Any]]
) -> Sequence[Mapping[str, Any]]:
    """All that a sampler is told: of a search that knows earlier runs, how configurations of each
    stood among its own.

    Of the search itself those that went further stand before those that were stopped, as samplers
    have it anyway.
    """
    if not earlier:
        return own
    over = [number for number, each in enumerate(own) if each["state"] in ("stopped", "completed")]
    last = [max(own[number]["values"]) for number in over]
    placed = dict(zip(over, compute_standings([(-epoch, value) for epoch, value in last])))
    before = [_stood(each.point, each.standing) for each in earlier]
    return before + [
        _stood(each["point"], placed[number]) if number in placed else each
        for number, each in enumerate(own)
    ]


def _stood(point: Point, standing: float | None) -> Mapping[str, Any]:
    values = [] if standing is None else [(1, standing)]
    return {"point": point, "values": values, "state": "completed" if values else "failed"}
