"""The one place where it is decided which configurations of a run go on: a rule is asked, its answers are logged.

A decision is committed before anything follows from it, together with all others that one result has led to. Whoever
resumes the run takes them up from the log, in their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from cerebro_plpy.configs.config import Config
from cerebro_plpy.hopping.course import Course, Heard
from cerebro_plpy.hopping.policies import LONGEST
from cerebro_plpy.hopping.residence import Residence
from cerebro_plpy.hopping.rules import Decision
from cerebro_plpy.run import messages
from cerebro_plpy.run.log import DecisionRow, RunLog
from cerebro_plpy.run.positions import Positions
from cerebro_plpy.run.request import Evaluation, FitRequest, Searching
from cerebro_plpy.run.training import ConfigTraining


class Search:
    """The search of one run; without one, nothing is ever decided."""

    def __init__(
        self,
        request: FitRequest,
        log: RunLog,
        positions: Positions,
        training: Mapping[int, ConfigTraining],
        residence: Residence | None,
        tell: Callable[[str], None],
    ) -> None:
        self._request, self._log, self._tell = request, log, tell
        self._positions, self._training, self._residence = positions, training, residence
        self._configs = {config.mst_key: config for config in request.configs}
        self._ranking = request.spec.ranking
        self._number, self._over = 0, request.search is None
        self._name = request.search.name if request.search else ""
        self._course = self._begun(request.search) if request.search else None

    def _begun(self, search: Searching) -> Course:
        fixed = self._request.spec.schedule != LONGEST
        width = self._request.workers * 2 if fixed else self._request.workers + 1
        course = Course(search.rule, search.mst_keys, width, fixed=fixed)
        course.recall(search.past, {key: self._values(key) for key in search.mst_keys})
        self._number = sum(len(heard.decisions) for heard in search.past)
        for key, limit in course.limits.items():
            self._positions.limit(key, limit)
        for key in search.mst_keys:
            if key not in self._configs:
                course.over(key, "it has failed")
        self._log.configs_resting([key for key, p in self._positions.progress.items() if p.resting and p.limit])
        return course

    def _values(self, mst_key: int) -> dict[int, float]:
        if mst_key not in self._training:
            return {}
        return dict(self._ranked(self._configs[mst_key], self._training[mst_key].evaluations))

    def _ranked(self, config: Config, evaluations: Iterable[Evaluation]) -> Iterable[tuple[int, float]]:
        sign = -1.0 if self._ranking.descending else 1.0
        for each in evaluations:
            if each.dataset == self._ranking.dataset:
                yield each.epoch, sign * messages.ranked_value(each, config, self._ranking)

    def heard(self, mst_key: int, evaluations: Sequence[Evaluation]) -> None:
        """Metrics of a configuration were logged."""
        if self._course:
            for epoch, value in self._ranked(self._configs[mst_key], evaluations):
                self._course.heard(mst_key, epoch, value)

    def ended(self, mst_key: int, why: str) -> None:
        """A configuration goes no further, whatever a rule says."""
        if self._course:
            self._course.over(mst_key, why)

    def decide(self) -> None:
        """Ask the rule about all that it has not heard of; where nothing is left to decide, let all that rest end."""
        if self._over or self._course is None:
            return
        for heard in self._course.due():
            rows = self._rows(heard)
            self._log.decided(self._name, rows)
            self._tell("\n".join(f"mst_key={row.mst_key}: {row.action} ({row.reason})" for row in rows))
            for decision in heard.decisions:
                self._follow(decision)
        if not self._course.under_way:
            self.close()

    def close(self) -> None:
        """Nothing is decided any more: who rests has come to its end."""
        if self._over:
            return
        self._over = True
        for key, progress in self._positions.progress.items():
            if progress.resting:
                self._positions.stop(key)
        self._log.search_over()

    def _rows(self, heard: Heard) -> list[DecisionRow]:
        rows = []
        for number, each in enumerate(heard.decisions, self._number + 1):
            training = self._training.get(each.mst_key)
            visits, values = (training.visits, self._values(each.mst_key)) if training else (0, {})
            epoch = max(values, default=0)
            sign = -1.0 if self._ranking.descending else 1.0
            value = sign * values[epoch] if epoch else math.nan
            told = f"{self._ranking.metric} {value:.6g} after epoch {epoch}: " if epoch else ""
            why = told + each.why
            rows.append(DecisionRow(number, each.mst_key, each.action, epoch, visits, each.limit, heard.cause, why))
        self._number += len(rows)
        return rows

    def _follow(self, decision: Decision) -> None:
        key = decision.mst_key
        if key not in self._positions.progress:
            return  # failed
        if decision.action == "stop":
            self._positions.stop(key)
        elif decision.action == "rest":
            if self._residence:
                self._residence.release(key)
        else:
            self._positions.limit(key, decision.limit)
