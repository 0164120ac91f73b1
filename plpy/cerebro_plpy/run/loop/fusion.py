"""Fusion: configurations with the same program train in one job if that is faster.

The trainer measures how fast fused execution modes are when a worker first trains several
configurations together. The timings are then known, in later runs too. The result of a fused visit
depends on the execution mode, and on no other configuration. Configurations at the same position
are fused; a replay may fuse a different set. Configurations that hop are not fused: the mode of a
visit would depend on which others happen to be there, and the `rotation` schedule would not
reproduce its models.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.run.log.form_timings import (
    LANES,
    choose_fused_form,
    choose_fusion_size,
    choose_max_lanes,
    compute_fusion_saving,
)
from cerebro_plpy.run.loop.choice import VisitChooser
from cerebro_plpy.run.state.config_state import ConfigState
from cerebro_plpy.run.state.run_state import RunState
from cerebro_plpy.run.state.runtime_stats import RuntimeStats
from cerebro_plpy.scheduling.schedule import fusion_groups
from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress, VisitBatch

Code = tuple[int, str]
"""A worker's number, and the key of code that it compiles."""


class FusionChooser:
    """Chooses which configurations of one run train together."""

    def __init__(self, state: RunState, stats: RuntimeStats, chooser: VisitChooser) -> None:
        self._state = state
        self._stats = stats
        self._chooser = chooser
        self._tried_modes: set[tuple[Code, str]] = set()  # with the mode that was to be measured
        self._failed_codes: set[Code] = set()

    def choose(
        self, worker: Worker, batch: VisitBatch, chosen_keys: Collection[int], workers: int
    ) -> Sequence[VisitBatch]:
        """Return batches that a worker makes together instead of `batch`; none if it goes alone.

        Args:
            chosen_keys: configurations that workers visit next.
            workers: number of workers.
        """
        state = self._state
        leader = state.progress[batch[0].mst_key]
        if leader.mst_key in state.first or not self._is_fusible(leader):
            return ()
        if self._code_of(worker, leader.mst_key) in self._failed_codes:
            return ()
        members = [leader, *self._find_companions(worker, leader, chosen_keys)]
        visits = fusion_groups.take_training(batch)
        form = self._recorded_form(leader.mst_key, visits[:1])
        if form:
            members, visits = self._repeat(members, visits, form)
        elif state.request.replay.forms:
            return ()
        else:
            most = choose_max_lanes(state.request.gpus)
            members = members[: min(most, self._share(worker, members, workers))]
            limits = [self._chooser.limit_of(member, len(members)).visits for member in members]
            is_whole = len(visits) == len(batch)
            visits = visits[: max(1, min(limits))]
            members = members[: self._choose_size(worker, members, visits, is_whole=is_whole)]
        if len(members) < 2:
            return ()
        return [fusion_groups.assign_batch(visits, member.mst_key) for member in members]

    def note_tried(self, worker: Worker, batches: Sequence[VisitBatch]) -> None:
        """Note that a worker measures a mode, and need not be asked again."""
        code = self._code_of(worker, batches[0][0].mst_key)
        self._tried_modes.add((code, choose_fused_form(len(batches))))

    def note_unfit(self, worker: Worker, mst_key: int) -> None:
        """Note that a worker failed: fused visits may be too much for its trainer."""
        self._failed_codes.add(self._code_of(worker, mst_key))

    def _code_of(self, worker: Worker, mst_key: int) -> Code:
        return worker.number, self._state.configs[mst_key].compilation

    def _repeat(
        self, members: Sequence[ConfigProgress], visits: VisitBatch, form: str
    ) -> tuple[list[ConfigProgress], VisitBatch]:
        """Return the members that the log has in a mode, and the visits for which all have it."""
        repeated = [
            member for member in members if self._recorded_form(member.mst_key, visits[:1]) == form
        ]
        repeated = repeated[: LANES[form]]
        while any(self._recorded_form(member.mst_key, visits) != form for member in repeated):
            visits = visits[:-1]
        return repeated, visits

    def _recorded_form(self, mst_key: int, visits: VisitBatch) -> str | None:
        """Return the fused mode in which a replay has all these visits, if it has one."""
        recorded = self._state.request.replay.forms
        forms = {recorded.get((mst_key, visit.epoch, visit.segment_id)) for visit in visits}
        if len(forms) > 1 or forms.isdisjoint(LANES):
            return None
        return forms.pop()

    def _is_fusible(self, progress: ConfigProgress) -> bool:
        """Return True if a configuration may train together with others now."""
        state = self._state
        config = state.configs[progress.mst_key]
        if state.plan.is_averaging or progress.kind != "train":
            return False
        if progress.mst_key in state.plan.whole_epoch_keys:
            return False
        if state.residence is None and not state.request.replay.forms:
            return False
        if config.config.group is not None or config.config.fit.callbacks.tensorboard is not None:
            return False
        if config.unstored or progress.mst_key in state.saving_best:
            return False
        return not config.must_visit_singly(progress)

    def _find_companions(
        self, worker: Worker, leader: ConfigProgress, chosen_keys: Collection[int]
    ) -> list[ConfigProgress]:
        """Return configurations that can train together with the leader on a worker."""
        state = self._state
        config = state.configs[leader.mst_key]
        free = (
            progress
            for key, progress in sorted(state.progress.items())
            if key not in chosen_keys and self._is_fusible(progress)
        )
        return [
            progress
            for progress in fusion_groups.find_companions(leader, free)
            if _is_alike(config, state.configs[progress.mst_key])
            and self._home_of(progress.mst_key) in (None, worker.number)
        ]

    def _share(self, worker: Worker, members: Sequence[ConfigProgress], workers: int) -> int:
        """Return how many of the members fall to a worker if all workers get equally many.

        Configurations that stay with the worker but are elsewhere in their epochs count, too.
        """
        state = self._state
        config = state.configs[members[0].mst_key]
        keys = {
            key
            for key, progress in state.progress.items()
            if not progress.finished and _is_alike(config, state.configs[key])
        }
        elsewhere = keys - {progress.mst_key for progress in members}
        staying = sum(self._home_of(key) == worker.number for key in elsewhere)
        return max(1, math.ceil(len(keys) / workers) - staying)

    def _home_of(self, mst_key: int) -> int | None:
        if self._state.residence is None:
            return None
        return self._state.residence.home_of(mst_key)

    def _choose_size(
        self,
        worker: Worker,
        members: Sequence[ConfigProgress],
        visits: VisitBatch,
        *,
        is_whole: bool,
    ) -> int:
        """Return how many members train together; 1 if they train alone.

        A mode that is still to be measured is tried with all members. Otherwise the saving decides.

        Args:
            is_whole: no visit of the batch is left out. Otherwise the saving must exceed the time
                that storing the states takes.
        """
        most = len(members)
        config = self._state.configs[members[0].mst_key]
        timings = self._stats.timings_of(config, worker)
        form = choose_fused_form(most)
        if form not in timings:
            is_tried = (self._code_of(worker, config.mst_key), form) in self._tried_modes
            may_measure = most > LANES[form] // 2 and not is_tried
            return most if may_measure else 1
        size = choose_fusion_size(timings, most)
        saving = compute_fusion_saving(timings, size)
        if saving <= 0:
            return 1
        segments = len(self._state.plan.segments)
        rows = config.config.fit.passes * self._state.request.source.rows / segments
        if is_whole or saving * rows * len(visits) > self._stats.hop_seconds:
            return size
        return 1


def _is_alike(first: ConfigState, second: ConfigState) -> bool:
    same_code = first.compilation == second.compilation
    return same_code and first.config.fit == second.config.fit
