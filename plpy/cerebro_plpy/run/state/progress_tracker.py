"""The progress of the configurations of a run through its plan.

A trainer that holds a state can train on before the state is stored. Its visits are committed after
that state, or not at all. Until then `progress` is ahead of `committed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from cerebro_plpy.records import replace
from cerebro_plpy.scheduling.schedule import schedule
from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress, Plan, VisitBatch


class ProgressTracker:
    """The plan of a run, and the progress of each configuration that has not failed."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.progress: dict[int, ConfigProgress] = {}
        self._before_ahead: dict[int, ConfigProgress] = {}  # committed, of those that are ahead

    @property
    def committed(self) -> Mapping[int, ConfigProgress]:
        """Return the progress as far as all visits are stored."""
        return {**self.progress, **self._before_ahead}

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

    def max_epoch_of(self, progress: ConfigProgress) -> int:
        """Return the last epoch that a configuration may train."""
        return self.plan.epochs if progress.max_epoch is None else progress.max_epoch

    def begin(self, batch: VisitBatch, unstored: VisitBatch | None = None) -> None:
        """Begin a batch, from the state that `unstored` leaves if it is given."""
        key = batch[0].mst_key
        if unstored:
            self._before_ahead[key] = self.progress[key]
            self.progress[key] = self.progress_after(unstored)
        self.progress[key] = schedule.begin(self.progress[key], batch)

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

    def complete_stored(self, batch: VisitBatch) -> None:
        """Complete a batch that is stored, unless its configuration has gone ahead from it."""
        was_ahead = self._before_ahead.pop(batch[0].mst_key, None) is not None
        if not was_ahead and self.is_running(batch):
            self.complete(batch)

    def take_back(self, mst_key: int) -> None:
        """Return a configuration to its committed progress: the state it trained from is lost."""
        before = self._before_ahead.pop(mst_key, None)
        if before is None or mst_key not in self.progress:
            return
        if self.progress[mst_key].stopping:
            before = schedule.stop(self.plan, before)
        self.progress[mst_key] = before

    def set_progress(self, mst_key: int, progress: ConfigProgress) -> None:
        """Set the progress of a configuration that a limit ends."""
        self.progress[mst_key] = progress

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

    def stop(self, mst_key: int) -> None:
        """Let a configuration train no further."""
        self.progress[mst_key] = schedule.stop(self.plan, self.progress[mst_key])

    def revive(self, mst_key: int, max_epoch: int) -> None:
        """Let a paused or stopped configuration train until the end of an epoch."""
        self._change(mst_key, lambda progress: schedule.revive(self.plan, progress, max_epoch))

    def drop(self, mst_key: int) -> None:
        """Drop a configuration that has failed."""
        del self.progress[mst_key]
        self._before_ahead.pop(mst_key, None)

    def end(self, mst_key: int) -> None:
        """Let a configuration do nothing more."""
        self.progress[mst_key] = schedule.end(self.progress[mst_key])

    def _change(self, mst_key: int, change: Callable[[ConfigProgress], ConfigProgress]) -> None:
        """Change the progress of a configuration, and the committed one if it is ahead."""
        for progress in (self.progress, self._before_ahead):
            if mst_key in progress:
                progress[mst_key] = change(progress[mst_key])
