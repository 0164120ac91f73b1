"""The state of a run: its configurations, their progress, and all that was decided about them.

Only the classes of this package change it. Handlers return the changes, and the loop applies them.

A trainer that holds a state can train on before the state is stored. Its visits are committed after
that state, or not at all. Until then `progress` is ahead of `committed`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

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
from cerebro_plpy.run.workers.tasks import AttemptKey
from cerebro_plpy.scheduling.schedule import schedule
from cerebro_plpy.scheduling.schedule.placement import assign_segments
from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress, Plan, VisitBatch
from cerebro_plpy.scheduling.schedule.worker_affinity import WorkerAffinity
from cerebro_plpy.tables.architectures import BuiltConfigs


class RunState:
    """All that changes while a run trains."""

    def __init__(
        self,
        request: FitRequest,
        run_id: int,
        plan: Plan,
        history: Mapping[int, ConfigHistory],
        residence: WorkerAffinity | None = None,
    ) -> None:
        self.request = request  # as the call made it, without the configurations added since
        self.run_id = run_id
        self.plan = plan
        self.residence = residence  # None if configurations hop
        self.limits = Limits(request)
        self.backends: dict[int, str] = dict(request.backends)
        self.warm_states: dict[int, WarmState] = dict(request.warm_states)
        self.configs: dict[int, ConfigState] = {}
        self.progress: dict[int, ConfigProgress] = {}  # of configurations that have not failed
        self._before_ahead: dict[int, ConfigProgress] = {}  # committed, of those that are ahead
        self.evaluations: list[Evaluation] = []
        for config in request.configs:
            past = history.get(config.mst_key, ConfigHistory())
            completed = past.completed_visits(plan.segments_of(config.mst_key))
            self.configs[config.mst_key] = ConfigState.restore(past, request, config, run_id)
            self.progress[config.mst_key] = schedule.resume(plan, config.mst_key, completed)
            self.evaluations += past.evaluations
        self.failed: dict[int, str] = {}  # reason by mst_key
        self.saving_best: set[int] = set()  # configurations whose state must not change
        self.waiting: dict[
            int, CloneStart
        ] = {}  # clones of a replay whose parent's state is missing
        self.stopped: set[int] = set()  # that a limit kept from their last epoch
        self.stopped_early: dict[int, int] = {}  # by EarlyStopping, with the epoch
        self.continued: set[int] = set()  # that a user continued, whatever their metrics are
        self.unreleased: set[int] = set()  # whose states are to be dropped
        self.first: list[int] = []  # prioritised configurations, the latest at the head
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
    def committed(self) -> Mapping[int, ConfigProgress]:
        """Return the progress as far as all visits are stored."""
        return {**self.progress, **self._before_ahead}

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
    def awaits_lost_parent(self) -> bool:
        """Return True if a clone waits for a state that its failed parent has still to store."""
        return any(start.parent not in self.progress for start in self.waiting.values())

    @property
    def is_all_paused(self) -> bool:
        """Return True if nothing trains because users have paused all that could."""
        unfinished = [each for each in self.progress.values() if not each.finished]
        if not unfinished or self.is_search_closed or self.awaits_lost_parent:
            return False
        if any(config.is_completed for config in self.configs.values()):
            return False
        return all(each.awaits_decision and each.paused for each in unfinished)

    def is_running(self, batch: VisitBatch) -> bool:
        """Return True if a configuration has still to make a batch that has begun."""
        progress = self.progress.get(batch[0].mst_key)
        return progress is not None and batch[0].segment_id in progress.running_segments

    def is_ahead(self, mst_key: int) -> bool:
        """Return True if a configuration trains from a state that is not stored yet."""
        return mst_key in self._before_ahead

    def may_train_ahead(self, batch: VisitBatch) -> bool:
        """Return True if a configuration may train on from the unstored state of a batch."""
        return not self.is_ahead(batch[0].mst_key) and self.is_running(batch)

    def progress_after(self, batch: VisitBatch) -> ConfigProgress:
        """Return the progress of a configuration when a running batch is stored."""
        return schedule.complete(self.plan, self.progress[batch[0].mst_key], batch)

    def count_visits(self, progress: ConfigProgress) -> int:
        """Return how many visits a configuration has made when the running ones end."""
        config = self.configs[progress.mst_key]
        visits = config.visits
        if self.is_ahead(progress.mst_key):
            visits += config.unstored
        if progress.kind != "evaluate":
            visits += len(progress.running_segments) + progress.later_visits
        return visits

    def max_epoch_of(self, progress: ConfigProgress) -> int:
        """Return the last epoch that a configuration may train."""
        return self.plan.epochs if progress.max_epoch is None else progress.max_epoch

    def list_values(self, mst_key: int, evaluations: Iterable[Evaluation]) -> Mapping[int, float]:
        """Return the values by which a rule compares, by epoch; smaller ones are better."""
        ranking = self.request.spec.ranking
        sign = -1.0 if ranking.descending else 1.0
        config = self.configs[mst_key].config
        return {
            evaluation.epoch: sign * ranked_value(evaluation, config, ranking)
            for evaluation in evaluations
            if evaluation.dataset == ranking.dataset
        }

    def list_own_values(self, mst_key: int) -> Mapping[int, float]:
        """Return the values of all evaluations of a configuration; none if it has failed before."""
        config = self.configs.get(mst_key)
        return {} if config is None else self.list_values(mst_key, config.evaluations)

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
        key = batch[0].mst_key
        if unstored:
            self._before_ahead[key] = self.progress[key]
            self.progress[key] = self.progress_after(unstored)
        self.progress[key] = schedule.begin(self.progress[key], batch)
        self.configs[key].count_attempt(batch)

    def hold_unstored(self, mst_key: int, visits: int) -> None:
        """Note that a trainer holds the state that these many visits have left."""
        self.configs[mst_key].unstored = visits

    def shorten(self, batch: VisitBatch, count: int) -> None:
        """Let all visits of a running batch but the first ones wait again: they were not made."""
        if batch[count:] and self.is_running(batch):
            self.abandon(batch[count:])

    def abandon(self, batch: VisitBatch) -> None:
        """Let the visits of a running batch wait again."""
        key = batch[0].mst_key
        self.progress[key] = schedule.abandon(self.progress[key], batch)

    def abandon_if_running(self, batch: VisitBatch) -> None:
        """Let the visits of a batch wait again, unless its configuration no longer waits for it."""
        if self.is_running(batch):
            self.abandon(batch)

    def complete(self, batch: VisitBatch) -> None:
        """Complete a running batch."""
        self.progress[batch[0].mst_key] = self.progress_after(batch)

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

    def complete_stored(self, batch: VisitBatch) -> None:
        """Complete a batch that is stored, unless its configuration has gone ahead from it."""
        was_ahead = self._before_ahead.pop(batch[0].mst_key, None) is not None
        if not was_ahead and self.is_running(batch):
            self.complete(batch)

    def drop_unstored(self, mst_key: int) -> None:
        """Drop the state that a lost trainer held."""
        self.configs[mst_key].unstored = 0

    def take_back(self, mst_key: int) -> None:
        """Return a configuration to its committed progress: the state it trained from is lost."""
        before = self._before_ahead.pop(mst_key, None)
        if before is None or mst_key not in self.progress:
            return
        if self.progress[mst_key].stopping:
            before = schedule.stop(self.plan, before)
        self.progress[mst_key] = before

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
        self.evaluations += evaluations
        self.configs[mst_key].evaluations += evaluations

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

    def set_progress(self, mst_key: int, progress: ConfigProgress) -> None:
        """Set the progress of a configuration that a limit ends."""
        self.progress[mst_key] = progress

    def set_epochs(self, mst_key: int, epochs: int) -> None:
        """Set the last epoch that a configuration trains."""
        self.configs[mst_key].epochs = epochs

    def set_max_epoch(self, mst_key: int, epoch: int) -> None:
        """Let a configuration train until the end of an epoch."""
        self._change(mst_key, lambda progress: replace(progress, max_epoch=epoch))

    def extend(self, mst_key: int, epoch: int) -> None:
        """Let a configuration train until the end of an epoch, even if it had finished."""
        segments = frozenset(self.plan.segments)

        def change(progress: ConfigProgress) -> ConfigProgress:
            waiting = progress.waiting_segments
            if progress.finished and not progress.stopping and progress.epoch <= epoch:
                waiting = segments
            return replace(progress, max_epoch=epoch, waiting_segments=waiting)

        self._change(mst_key, change)

    def grow_plan(self, epochs: int, evaluate_epochs: Iterable[int]) -> None:
        """Give the plan more epochs; configurations without a last epoch keep the one they had."""
        for key, progress in list(self.progress.items()):
            if progress.max_epoch is None:
                self.set_max_epoch(key, self.plan.epochs)
        self.plan = replace(
            self.plan,
            epochs=epochs,
            evaluate_epochs=self.plan.evaluate_epochs.union(evaluate_epochs),
        )

    def evaluate_after(self, epoch: int) -> None:
        """Evaluate after an epoch that ends a configuration, if the run evaluates at all."""
        if self.plan.evaluations:
            evaluate_epochs = self.plan.evaluate_epochs | {epoch}
            self.plan = replace(self.plan, evaluate_epochs=evaluate_epochs)

    def pause_config(self, mst_key: int) -> None:
        """Let a configuration start no visit to train until it is continued."""
        self._change(mst_key, lambda progress: replace(progress, paused=True))

    def resume_config(self, mst_key: int) -> None:
        """Let a paused configuration start visits again."""
        self._change(mst_key, lambda progress: replace(progress, paused=False))

    def continue_config(self, mst_key: int, max_epoch: int) -> None:
        """Let a paused or stopped configuration train until the end of an epoch."""
        self.continued.add(mst_key)
        self._change(mst_key, lambda progress: schedule.revive(self.plan, progress, max_epoch))

    def stop(self, mst_key: int) -> None:
        """Let a configuration train no further."""
        self.progress[mst_key] = schedule.stop(self.plan, self.progress[mst_key])

    def stop_early(self, mst_key: int, epoch: int) -> None:
        """Let a configuration train no further: EarlyStopping ended it at an epoch."""
        self.stopped_early[mst_key] = epoch
        self.stop(mst_key)

    def end(self, mst_key: int) -> None:
        """Let a configuration do nothing more."""
        self.progress[mst_key] = schedule.end(self.progress[mst_key])

    def limit(self, mst_keys: Iterable[int]) -> None:
        """Note that a limit kept configurations from their last epoch."""
        self.stopped.update(mst_keys)

    def fail(self, mst_key: int, reason: str) -> None:
        """Give a configuration up."""
        self.failed[mst_key] = reason
        del self.progress[mst_key]
        self._before_ahead.pop(mst_key, None)

    def prioritise(self, mst_key: int) -> None:
        """Let a configuration go before all others."""
        self.first = [mst_key, *(key for key in self.first if key != mst_key)]

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
        self.plan = replace(self.plan, segment_subsets=subsets)
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

    def _change(self, mst_key: int, change: Callable[[ConfigProgress], ConfigProgress]) -> None:
        """Change the progress of a configuration, and the committed one if it is ahead."""
        for progress in (self.progress, self._before_ahead):
            if mst_key in progress:
                progress[mst_key] = change(progress[mst_key])
