"""The sampler of a search that learns, which suggests configurations.

It runs in a process with the trainer's interpreter, so the backend imports neither Optuna nor
numpy.
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
"""Returns points from trials and the number of points."""


def suggest_nothing(trials: Sequence[Mapping[str, Any]], count: int) -> Sequence[Point]:
    """Return no points, for a run that samples nothing."""
    return ()


class Sampler(AbstractContextManager["Sampler"]):
    """Suggests points of a space; its process starts when needed, and ends with the block."""

    def __init__(
        self,
        trainer_settings: Settings,
        check: Callable[[], None],
        space: PointSpace,
        algorithm: str,
        seed: int,
    ) -> None:
        self._spec = settings.trainer_spec(trainer_settings, TrainerOptions(framework="none"))
        self._check = check
        self._request = {"space": space.describe(), "algorithm": algorithm, "seed": seed}
        self._connection: TrainerConnection | None = None

    def suggest(self, trials: Sequence[Mapping[str, Any]], count: int) -> Sequence[Point]:
        """Return new points, possibly fewer than `count`.

        Args:
            trials: see `describe_trial` and `add_prior_trials`.
        """
        if self._connection is None or not self._connection.is_alive():
            self._connection = TrainerConnection(self._spec, self._check)
        request = request_schema.build_request(
            "suggest", self._request, trials=list(trials), count=count
        )
        points: list[Point] = self._connection.call(request)["points"]
        return points

    def __exit__(self, *error: Any) -> None:
        if self._connection is not None:
            self._connection.close()


def describe_trial(point: Point, trial: Trial, epochs: int) -> Mapping[str, Any]:
    """Return a trial as the sampler reads it.

    Args:
        epochs: of the whole search.
    """
    if trial.failed:
        state = "failed"
    elif trial.is_running or not trial.values:
        state = "running"
    elif epochs in trial.values:
        state = "completed"
    else:
        state = "stopped"
    return {"point": point, "values": sorted(trial.values.items()), "state": state}


def add_prior_trials(
    prior_trials: Sequence[PriorTrial], trials: Sequence[Mapping[str, Any]]
) -> Sequence[Mapping[str, Any]]:
    """Return the trials of a search with those of earlier runs before them.

    Values of different runs cannot be compared, so each value is replaced by the standing of the
    trial in its run. In the search itself, trials with more epochs stand before those with fewer,
    as samplers rank them anyway.
    """
    if not prior_trials:
        return trials
    ended_numbers = [
        number for number, trial in enumerate(trials) if trial["state"] in ("stopped", "completed")
    ]
    last_values = [max(trials[number]["values"]) for number in ended_numbers]
    ranked = compute_standings([(-epoch, value) for epoch, value in last_values])
    standings = dict(zip(ended_numbers, ranked))
    described = [_describe_standing(trial.point, trial.standing) for trial in prior_trials]
    for number, trial in enumerate(trials):
        if number in standings:
            trial = _describe_standing(trial["point"], standings[number])
        described.append(trial)
    return described


def _describe_standing(point: Point, standing: float | None) -> Mapping[str, Any]:
    if standing is None:
        return {"point": point, "values": [], "state": "failed"}
    return {"point": point, "values": [(1, standing)], "state": "completed"}
