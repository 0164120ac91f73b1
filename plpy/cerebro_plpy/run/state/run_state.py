"""The state of a run: its configurations, their progress, and all that was decided about them.

Only the classes of this package change it. Handlers return the changes, and the loop applies them.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.platform.visit_protocol import VisitResult
from cerebro_plpy.records import replace
from cerebro_plpy.run.request.ranking import ranked_value
from cerebro_plpy.run.request.run_request import CloneStart, Evaluation, FitRequest, WarmState
from cerebro_plpy.run.request.visit_jobs import make_initial_state
from cerebro_plpy.run.state.config_state import (
    ConfigHistory,
    ConfigState,
    Part,
    RetainedState,
)
from cerebro_plpy.run.state.limits import Limits
from cerebro_plpy.run.state.progress_tracker import ProgressTracker
from cerebro_plpy.run.workers.tasks import AttemptKey
from cerebro_plpy.scheduling.schedule import schedule
from cerebro_plpy.scheduling.schedule.placement import assign_segments
from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress, Plan, VisitBatch
from cerebro_plpy.scheduling.schedule.worker_affinity import WorkerAffinity
from cerebro_plpy.tables.architectures import BuiltConfigs


class RunState(ProgressTracker):
    """All that changes while a run trains."""

    def __init__(
        self,
        request: FitRequest,
        run_id: int,
        plan: Plan,
        history: Mapping[int, ConfigHistory],
        residence: WorkerAffinity | None = None,
    ) -> None:
        super().__init__(plan)
        self.request = request  # as the call made it, without the configurations added since
        self.run_id = run_id
        self.residence = residence  # None if configurations hop
        self.limits = Limits(request)
        self.backends: dict[int, str] = dict(request.backends)
        self.warm_states: dict[int, WarmState] = dict(request.warm_states)
        self.configs: dict[int, ConfigState] = {}
        self.evaluations: list[Evaluation] = []
        for config in request.configs:
            past = history.get(config.mst_key, ConfigHistory())
            completed = past.completed_visits(plan.segments_of(config.mst_key))
            self.configs[config.mst_key] = ConfigState.restore(past, request, config, run_id)
            self.progress[config.mst_key] = schedule.resume(plan, config.mst_key, completed)
            self._take_evaluations(config, past.evaluations)
        self.failed: dict[int, str] = {}  # reason by mst_key
        self.saving_best: set[int] = set()  # configurations whose state must not change
        self.waiting: dict[int, CloneStart] = {}  # clones of a replay that lack a parent's state
        self.stopped: set[int] = set()  # that a limit kept from their last epoch
        self.stopped_early: dict[int, int] = {}  # by EarlyStopping, with the epoch
        self.continued: set[int] = set()  # that a user continued, whatever their metrics are
        self.unreleased: set[int] = set()  # whose states are to be dropped
        self.first: list[int] = []  # prioritized configurations, the latest at the head
        self.requested: list[int] = []  # configurations that users have added
        self.decisions = 0  # number of the newest decision
        self.paused_at: float | None = None
        self.is_search_closed = False
        self.undecided: frozenset[int] = frozenset()  # running when the search was closed

    # Reads.

    @property
    def is_paused(self) -> bool:
        """Return True if no visit may begin until a user continues the run."""
        return self.paused_at is not None

    @property
    def model_states(self) -> dict[int, StoredState]:
        """Return the stored model of each configuration that has one and has not failed."""
        return {
            key: config.model_state
            for key, config in self.configs.items()
            if config.model_state and key not in self.failed
        }

    @property
    def has_model_state(self) -> bool:
        """Return True if a configuration that has not failed has a stored model."""
        return any(
            config.model_state and key not in self.failed for key, config in self.configs.items()
        )

    @property
    def untrained_requests(self) -> list[int]:
        """Return the configurations that users have added, and that have made no visit."""
        return [
            key
            for key in self.requested
            if key in self.progress and not (self.configs[key].visits or self.progress[key].paused)
        ]

    @property
    def awaits_lost_parent(self) -> bool:
        """Return True if a clone waits for a state that its failed parent has still to store."""
        return any(start.parent not in self.progress for start in self.waiting.values())

    @property
    def is_all_paused(self) -> bool:
        """Return True if nothing trains because users have paused all that could."""
        unfinished = [position for position in self.progress.values() if not position.finished]
        if not unfinished or self.is_search_closed or self.awaits_lost_parent:
            return False
        if any(config.is_completed for config in self.configs.values()):
            return False
        return all(position.awaits_decision and position.paused for position in unfinished)

    def count_visits(self, progress: ConfigProgress) -> int:
        """Return how many visits a configuration has made when the running ones end."""
        config = self.configs[progress.mst_key]
        visits = config.visits
        if self.is_ahead(progress.mst_key):
            visits += config.unstored
        if progress.kind != "evaluate":
            visits += len(progress.running_segments) + progress.later_visits
        return visits

    @property
    def ranking_sign(self) -> float:
        """Return the factor that makes smaller values better: 1.0 or -1.0."""
        return -1.0 if self.request.spec.ranking.descending else 1.0

    def list_values(self, mst_key: int, evaluations: Iterable[Evaluation]) -> Mapping[int, float]:
        """Return the values by which a rule compares, by epoch; smaller ones are better."""
        ranking = self.request.spec.ranking
        config = self.configs[mst_key].config
        return {
            evaluation.epoch: self.ranking_sign * ranked_value(evaluation, config, ranking)
            for evaluation in evaluations
            if evaluation.dataset == ranking.dataset
        }

    def list_own_values(self, mst_key: int) -> Mapping[int, float]:
        """Return the values of all evaluations of a configuration; none if it has failed before."""
        if mst_key not in self.configs:
            return {}
        return self.list_values(mst_key, self.configs[mst_key].evaluations)

    def find_orphan(self) -> int | None:
        """Return a clone that waits for a state which cannot be stored any more."""
        for key, start in self.waiting.items():
            parent = self.configs.get(start.parent)
            is_trained = parent is not None and parent.visits + parent.unstored >= start.visits
            if not is_trained and start.parent not in self.progress:
                return key
        return None

    # Visits.

    def start_visits(self, batch: VisitBatch, unstored: VisitBatch | None = None) -> None:
        """Start a batch, from the state that `unstored` leaves if it is given."""
        self.begin(batch, unstored)
        self.configs[batch[0].mst_key].count_attempt(batch)

    def hold_unstored(self, mst_key: int, visits: int) -> None:
        """Note that a trainer holds the state that these many visits have left."""
        self.configs[mst_key].unstored = visits

    def store_visits(
        self,
        batch: VisitBatch,
        results: Sequence[VisitResult],
        best: RetainedState | None = None,
    ) -> None:
        """Add the stored visits of a batch, also if its configuration no longer waits for them."""
        config = self.configs[batch[0].mst_key]
        visits = [visit for visit in batch if visit.kind != "evaluate"]
        for visit, result in zip(visits, results):
            config.add_visit(visit, result)
        if best:
            config.best = best

    def drop_unstored(self, mst_key: int) -> None:
        """Drop the state that a lost trainer held."""
        self.configs[mst_key].unstored = 0

    def lose_visits(self, batch: VisitBatch, first: AttemptKey, *, charged: bool) -> None:
        """Count the attempts of visits whose session is lost; see `ConfigState.mark_lost`."""
        self.configs[batch[0].mst_key].mark_lost(batch, first, charged=charged)

    # Evaluations.

    def add_parts(self, mst_key: int, epoch: int, parts: Mapping[int, Part]) -> None:
        """Add the sums of segments to an evaluation."""
        self.configs[mst_key].parts.setdefault(epoch, {}).update(parts)

    def forget_parts(self, mst_key: int, epoch: int) -> None:
        """Forget the sums of an evaluation that is complete."""
        del self.configs[mst_key].parts[epoch]

    def add_evaluations(self, mst_key: int, evaluations: Sequence[Evaluation]) -> None:
        """Add evaluations that the log contains."""
        config = self.configs[mst_key]
        self._take_evaluations(config.config, evaluations)
        config.evaluations += evaluations

    def _take_evaluations(self, config: Config, evaluations: Sequence[Evaluation]) -> None:
        self.evaluations += evaluations
        if config.group is not None:
            return
        ranking = self.request.spec.ranking
        for evaluation in evaluations:
            if evaluation.dataset == ranking.dataset:
                value = ranked_value(evaluation, config, ranking)
                self.limits.return_watch.note_value(
                    config.mst_key, value, evaluation.loss, time.monotonic()
                )

    def start_saving(self, mst_key: int) -> None:
        """Note that the newest state of a configuration is being copied."""
        self.saving_best.add(mst_key)

    def retain_best(self, mst_key: int, best: RetainedState) -> None:
        """Note the state that was copied as the best."""
        self.configs[mst_key].best = best
        self.saving_best.remove(mst_key)

    def forget_losses(self, epoch: int, mst_keys: Iterable[int]) -> None:
        """Forget the training losses of an epoch that was reported."""
        for key in mst_keys:
            del self.configs[key].losses[epoch]

    # Decisions.

    def count_decisions(self, count: int) -> None:
        """Note that these many decisions were logged."""
        self.decisions += count

    def set_epochs(self, mst_key: int, epochs: int) -> None:
        """Set the last epoch that a configuration trains."""
        self.configs[mst_key].epochs = epochs

    def continue_config(self, mst_key: int, max_epoch: int) -> None:
        """Let a configuration train until the end of an epoch, whatever its metrics are."""
        self.continued.add(mst_key)
        self.revive(mst_key, max_epoch)

    def stop_early(self, mst_key: int, epoch: int) -> None:
        """Let a configuration train no further: EarlyStopping ended it at an epoch."""
        self.stopped_early[mst_key] = epoch
        self.stop(mst_key)

    def limit(self, mst_keys: Iterable[int]) -> None:
        """Note that a limit kept configurations from their last epoch."""
        self.stopped.update(mst_keys)

    def fail(self, mst_key: int, reason: str) -> None:
        """Give a configuration up."""
        self.failed[mst_key] = reason
        self.drop(mst_key)

    def prioritize(self, mst_key: int) -> None:
        """Let a configuration go before all others."""
        self.first = [mst_key, *(key for key in self.first if key != mst_key)]

    def note_request(self, mst_key: int) -> None:
        """Note that a user has added a configuration."""
        self.requested.append(mst_key)

    def free_worker(self, mst_key: int) -> None:
        """Let a resting configuration go on with any worker."""
        if self.residence:
            self.residence.release(mst_key)

    def plan_release(self, mst_keys: Collection[int]) -> None:
        """End configurations whose states are to be dropped: nobody may continue them."""
        for key in mst_keys:
            self.end(key)
            self.configs[key].released = True
        self.unreleased.update(mst_keys)

    def release(self, mst_keys: Collection[int]) -> None:
        """Drop the states of configurations."""
        self.unreleased.difference_update(mst_keys)
        for key in mst_keys:
            self.configs[key].release()

    def close_search(self, undecided: Iterable[int]) -> None:
        """Close the search; `undecided` configurations were running at that time."""
        if not self.is_search_closed:
            self.undecided = frozenset(undecided)
        self.is_search_closed = True

    def pause(self) -> None:
        """Pause the run."""
        self.paused_at = time.monotonic()

    def resume(self, seconds: float) -> None:
        """Continue the run, which was paused for so many seconds."""
        self.paused_at = None
        self.limits.postpone(seconds)

    # Configurations and workers that are added or removed.

    def add_configs(
        self,
        request: FitRequest,
        configs: Sequence[Config],
        warm_states: Mapping[int, WarmState],
    ) -> None:
        """Add configurations to the run.

        Args:
            request: the request with these configurations.
            warm_states: states from which some of them begin.
        """
        self.warm_states.update(warm_states)
        subsets = {**self.plan.segment_subsets, **request.segment_subsets}
        whole_keys = self.plan.whole_epoch_keys | request.whole_epoch_keys
        self.plan = replace(self.plan, segment_subsets=subsets, whole_epoch_keys=whole_keys)
        for config in configs:
            key = config.mst_key
            self.backends[key] = request.backends[key]
            self.configs[key] = ConfigState.restore(ConfigHistory(), request, config, self.run_id)
            self.progress[key] = schedule.start(self.plan, key)
            if self.residence:
                self.residence.add_config(key, self.configs[key].compilation)

    def await_parent(self, mst_key: int, start: CloneStart) -> None:
        """Let a clone of a replay wait for the state that it begins from."""
        self.waiting[mst_key] = start
        self.pause_config(mst_key)

    def forget_waiting(self, mst_key: int) -> None:
        """Let a clone wait no longer: the state that it begins from cannot be stored any more."""
        del self.waiting[mst_key]

    def start_clone(self, mst_key: int, warm_state: WarmState) -> None:
        """Let a clone of a replay begin from the copied state of its parent."""
        del self.waiting[mst_key]
        self.warm_states[mst_key] = warm_state
        clone = self.configs[mst_key]
        request = self.request.with_configs(BuiltConfigs((), {}), self.backends, self.warm_states)
        clone.state = make_initial_state(request, clone.config, self.run_id)
        self.resume_config(mst_key)

    def assign_worker(self, mst_key: int, worker: int) -> None:
        """Let a configuration stay with a worker."""
        if self.residence:
            self.residence.assign(mst_key, worker)

    def set_residence(self, residence: WorkerAffinity | None) -> None:
        """Let configurations stay with workers from now on; None lets them hop."""
        self.residence = residence

    def assign_segments(self, workers: Collection[int], removed: Iterable[int]) -> None:
        """Share the segments among the workers that remain or have been added."""
        if workers:
            shared = assign_segments(self.plan.segments, workers)
            self.plan = replace(self.plan, workers=shared)
        if self.residence:
            for worker in removed:
                self.residence.remove_worker(worker)
